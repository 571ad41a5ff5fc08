"""Rules: services, processes, and the machine itself."""

from __future__ import annotations

from outlive.observe.dialects import assigns, ends_own_children, sets_the_clock
from outlive.observe.rules import READS, has_operands, is_called, program, rule

_SYSTEMCTL_READS = (
    "status show cat list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active "
    "is-enabled is-failed is-system-running get-default help show-environment"
)

SERVICES = (
    program(
        "date",
        rule("", "service:=clock", "date -s 12:00 => service:clock", "date +%s =>", when="-s --set"),
        rule("", "service:=clock", "date 010203042026 => service:clock", "date -d now +%s =>", asks=sets_the_clock),
        takes="-d -f -r -s -v",
        otherwise=READS,
        says="first -d -s -v --date --set",
    ),
    program(
        "hostname",
        rule("", "service:=system", "hostname web => service:system", "hostname -I =>", asks=has_operands),
        otherwise=READS,
    ),
    program(
        "journalctl dmesg",
        rule(
            "",
            "path:=/var/log",
            "journalctl --vacuum-size=1G => path:/var/log",
            "dmesg -C => path:/var/log",
            "journalctl -u web -n 9 =>",
            when="-C --clear --vacuum-size --vacuum-time --vacuum-files --rotate --flush",
        ),
        takes="-u -n -p -t",
        otherwise=READS,
    ),
    program(
        "history",
        rule("", "path:=~/.bash_history", "history -c => path:~/.bash_history", when="-c -d -w -a"),
        otherwise=READS,
    ),
    program(
        "systemctl",
        rule(_SYSTEMCTL_READS, "", "systemctl status a =>", "systemctl =>"),
        rule(
            "daemon-reload daemon-reexec reboot poweroff halt suspend",
            "service:=system",
            "systemctl reboot => service:system",
        ),
        rule("", "service:rest", "systemctl --user restart a b => service:a service:b", asks=has_operands),
        otherwise=READS,
        takes="-n -p -t -H -M --type --property --state",
    ),
    program(
        "service rc-service invoke-rc.d",
        rule(
            "", "", "service a status =>", asks=lambda call, _: [word.text for word in call.operands[1:2]] == ["status"]
        ),
        rule("", "service:first", "service a start => service:a", asks=has_operands),
        otherwise=READS,
    ),
    program(
        "launchctl",
        rule("list print blame dumpstate", "", "launchctl list =>"),
        rule("", "service:rest", "launchctl unload a => service:a", asks=has_operands),
    ),
    program(
        "supervisorctl pm2 forever monit circusctl",
        rule("status list ls show logs log tail avail monit describe info prettylist jlist", "", "pm2 list =>"),
        rule("", "service:rest|tool", "pm2 restart web => service:web", asks=has_operands),
    ),
    program(
        "kill",
        rule("", "", "kill -0 42 =>", "kill -l =>", when="-0 -l -L"),
        rule("", "", "kill %1 =>", "kill $! =>", "kill %1 42 => service:%1 service:42", asks=ends_own_children),
        rule("", "service:each", "kill -9 42 43 => service:42 service:43", "kill -s TERM 42 => service:42"),
        takes="-s -n",
        says="each",
    ),
    program(
        "pkill killall skill xkill",
        rule("", "", "killall -l =>", when="-l"),
        rule("", "service:each", "pkill -f web => service:web"),
        takes="-u -U -g -P -t -s --signal",
        says="each",
    ),
    program(
        "ss",
        rule("", "service:=network", "ss -K dst 10.0.0.2 => service:network", "ss -ltnp =>", when="-K --kill"),
        otherwise=READS,
    ),
    program(
        "fuser",
        rule("", "service:each", "fuser -k 80/tcp => service:80/tcp", when="-k --kill"),
        takes="-n",
        otherwise=READS,
    ),
    program(
        "crontab",
        rule("", "", "crontab -l =>", when="-l"),
        rule("", "service:=crontab", "crontab a.cron => service:crontab", "crontab -r => service:crontab"),
        takes="-u",
    ),
    program(
        "at batch",
        rule("", "", "at -l =>", when="-l -c"),
        rule("", "service:=at", "at now < a.sh => service:at"),
        takes="-f -t -q",
    ),
    program(
        "mount",
        rule("", "service:=mounts", "mount /dev/sdb1 /mnt => service:mounts", "mount =>", asks=has_operands),
        rule("", "service:=mounts", "mount -a => service:mounts", when="-a --all"),
        otherwise=READS,
        takes="-t -o",
    ),
    program(
        "umount swapon swapoff losetup modprobe insmod rmmod hwclock timedatectl hostnamectl localectl loginctl",
        rule("status list-sessions show list-timezones", "", "timedatectl status =>"),
        rule("", "service:=system", "umount /mnt => service:system", asks=has_operands),
        rule(
            "",
            "service:=system",
            "swapoff -a => service:system",
            "losetup -a =>",
            when="-a --all",
            asks=is_called("umount", "swapon", "swapoff"),
        ),
        rule(
            "",
            "service:=clock",
            "hwclock -w => service:clock",
            "hwclock =>",
            when="-w -s --systohc --hctosys --set",
            asks=is_called("hwclock"),
        ),
        otherwise=READS,
    ),
    program(
        "sysctl",
        rule("", "service:=kernel", "sysctl -w a=1 => service:kernel", when="-w -p --write --load"),
        rule(
            "",
            "service:=kernel",
            "sysctl a=1 => service:kernel",
            "sysctl a =>",
            asks=assigns,
        ),
        otherwise=READS,
    ),
    program(
        "shutdown reboot poweroff halt init telinit", rule("", "service:=system", "shutdown -h now => service:system")
    ),
    program(
        "useradd userdel usermod groupadd groupdel groupmod adduser deluser addgroup passwd chpasswd chsh chage "
        "visudo gpasswd",
        rule("", "service:=accounts", "useradd -m bob => service:accounts"),
    ),
    program(
        "iptables ip6tables nft ufw firewall-cmd",
        rule("", "", "iptables -L =>", when="-L -S --list --list-rules --list-all --state"),
        rule("status list", "", "ufw status =>"),
        rule("", "service:=firewall", "ufw allow 80 => service:firewall", "iptables -F => service:firewall"),
    ),
    program(
        "ip ifconfig route nmcli brctl networkctl resolvectl",
        rule(
            "",
            "service:=network",
            "ip link set a up => service:network",
            "ip addr =>",
            asks=lambda call, _: any(
                w.text in {"add", "del", "delete", "set", "up", "down", "flush", "replace", "modify", "connect"}
                for w in call.operands
            ),
        ),
        rule(
            "",
            "service:=network",
            "ifconfig eth0 10.0.0.2 => service:network",
            asks=lambda call, command: len(call.operands) > 1 and command.words[0].text.endswith("ifconfig"),
        ),
        otherwise=READS,
    ),
    program(
        "nginx apachectl httpd apache2ctl caddy",
        rule("", "", "nginx -t =>", when="-t -T -v -V -S"),
        rule("validate version adapt fmt configtest", "", "caddy validate =>"),
        rule("", "service:tool", "nginx -s reload => service:nginx"),
        takes="-s -c -p -k",
    ),
    program(
        "pg_ctl pg_ctlcluster redis-server mongod mysqld postgres dockerd containerd",
        rule("status", "", "pg_ctl status =>"),
        rule("", "service:tool", "pg_ctl -D a start => service:pg_ctl"),
        takes="-D -l -o",
    ),
    program(
        "defaults scutil networksetup pmset csrutil spctl",
        rule("read find domains", "", "defaults read a =>"),
        rule(
            "write delete import rename",
            "path:=~/Library/Preferences",
            "defaults write a b => path:~/Library/Preferences",
        ),
        rule("", "", "pmset -g =>", when="-g --dns --proxy"),
    ),
    program(
        "update-alternatives ldconfig update-ca-certificates locale-gen dpkg-reconfigure",
        rule("", "", "ldconfig -p =>", when="-p --display --list --query --print-cache"),
        rule("", "packages:tool", "ldconfig => packages:ldconfig"),
    ),
    program(
        "tmux screen zellij",
        rule("ls list-sessions list-windows list-panes capture-pane has-session display-message", "", "tmux ls =>"),
        rule("", "", "screen -ls =>", when="-ls -list -V"),
        rule(
            "kill-server kill-session kill-window kill-pane send-keys",
            "service:tool",
            "tmux kill-session -t a => service:tmux",
        ),
        rule("", "service:tool", "screen -S a -X quit => service:screen", when="-X"),
        takes="-t -S -L",
        clusters=False,
    ),
    program(
        "sbatch scancel srun salloc",
        rule("", "", "sbatch --test-only a.sh =>", when="--test-only"),
        rule("", "service:=slurm unknown:tool", "sbatch a.sh => service:slurm unknown:sbatch"),
    ),
    program("renice", rule("", "service:-p,--pid|rest", "renice -n 9 -p 42 => service:42"), takes="-n -p -g -u --pid"),
    program("kill-port", rule("", "service:each", "npx kill-port 3000 => service:3000")),
    program(
        "mkcert certbot",
        rule("certificates", "", "certbot certificates =>"),
        rule("", "path:here", "mkcert localhost => path:/w", asks=is_called("mkcert")),
        rule("", "service:tool", "certbot renew => service:certbot", unless="--dry-run"),
    ),
    program(
        "outlive",
        rule("audit sweep", "", "outlive audit =>", unless="--rebuild --apply"),
        rule(
            "list ps show output logs wait result effects guard gate inbox hand-off hand_off doctor completion help",
            "",
            "outlive wait t7 =>",
            "outlive run 'make' => unknown:outlive",
        ),
        rule("cancel", "service:each|=outlive", "outlive cancel t7 => service:t7", "outlive cancel => service:outlive"),
        rule("ack dismiss session sweep audit", "service:=outlive", "outlive ack n7 => service:outlive"),
        says="each",
    ),
    program("exec", otherwise=READS),
)
