"""Rules: other machines, and what is fetched from them."""

from __future__ import annotations

from outlive.observe.dialects import fetches_nothing, method_is_given, sends
from outlive.observe.rules import READS, has_operands, program, rule

REMOTES = (
    program(
        "ssh mosh telnet ftp lftp autossh",
        rule("", "", "ssh -V =>", when="-V -G -Q"),
        rule("", "unknown:first", "ssh web => unknown:web"),
        takes="-p -i -o -l -F -J -L -R -D",
    ),
    program("ssh-copy-id", rule("", "remote:last", "ssh-copy-id web => remote:web"), takes="-i -p -o"),
    program(
        "curl",
        rule("", "unknown:tool", "curl -K conf => unknown:curl", when="-K --config", also=True),
        rule(
            "",
            "path:-D,-c,--dump-header,--cookie-jar,--trace,--trace-ascii,--stderr,--etag-save,--libcurl",
            "curl -c jar https://x => path:/w/jar",
            "curl -I -D a https://x => path:/w/a",
            "curl -sD - https://x =>",
            when="-D -c --dump-header --cookie-jar --trace --trace-ascii --stderr --etag-save --libcurl",
            also=True,
        ),
        rule(
            "",
            "",
            "curl -I https://a =>",
            "curl -G -d q=x https://a =>",
            when="-I --head -G --get",
            unless="-o -O --output",
        ),
        rule(
            "",
            "remote:--url|last",
            "curl -d a=b https://x.org/y => remote:x.org",
            "curl -XDELETE a:9 => remote:a",
            "curl -X PURGE https://x --retry-delay 2 => remote:x",
            "curl -X PROPFIND https://x =>",
            "curl --form-string a=b https://x --max-redirs 3 => remote:x",
            asks=sends,
            also=True,
        ),
        rule(
            "",
            "path:-o,--output",
            "curl -o a https://x => path:/w/a",
            "curl -so /dev/null https://x =>",
            when="-o --output",
        ),
        rule(
            "",
            "path:--output-dir|here",
            "curl -LO https://x/a => path:/w",
            when="-O -J --remote-name --remote-name-all",
        ),
        otherwise=READS,
        takes="-X -d -D -H -o -u -A -e -F -T -m -w -b -c -x -K -E --request --data --data-raw --data-binary "
        "--data-urlencode --json --header --output --user --form --upload-file --max-time --retry --write-out "
        "--cookie --cookie-jar --url --connect-timeout --resolve --cacert --cert --key --proxy --output-dir "
        "--user-agent --referer --config --dump-header --trace --trace-ascii --stderr --etag-save --libcurl "
        "--data-ascii --form-string --url-query --retry-delay --retry-max-time --max-redirs --max-filesize --range "
        "--continue-at --limit-rate --speed-limit --speed-time --interface --socks5 --socks5-hostname --noproxy "
        "--unix-socket --aws-sigv4 --oauth2-bearer --cert-type --key-type --pass --ciphers --tls-max --capath "
        "--connect-to --dns-servers --keepalive-time --expect100-timeout --proxy-user --proxy-header -r -C -Y -y -z -t",
    ),
    program(
        "nc ncat netcat",
        rule("", "", "nc -z host 80 =>", when="-z"),
        rule("", "unknown:tool", "nc -e sh host 80 => unknown:nc", when="-e -c --exec --sh-exec"),
        rule(
            "",
            "remote:first",
            "nc host 80 < req => remote:host",
            "echo a | nc -w 1 host 80 => remote:host",
            "nc host 80 =>",
            asks=lambda _, command: command.is_fed,
        ),
        otherwise=READS,
        takes="-w -p -s -i -q -X -x",
    ),
    program(
        "wget",
        rule("", "remote:last", "wget --post-data a=b https://x => remote:x path:/w", asks=sends, also=True),
        rule("", "", "wget -qO- https://x =>", "wget --spider https://x =>", asks=fetches_nothing),
        rule(
            "",
            "path:-O,-P,--output-document,--directory-prefix|here",
            "wget https://x/a => path:/w",
            "wget -O b https://x/a => path:/w/b",
            asks=has_operands,
        ),
        otherwise=READS,
        takes="-O -P -o -t -T -U -e --header --post-data --post-file --method --user --password --timeout --tries",
    ),
    program(
        "http https xh httpie",
        rule("", "path:-o,--output", "http -o a x.org => path:/w/a", when="-o --output", also=True),
        rule("", "remote:rest|first", "http POST x.org/y => remote:x.org/y", asks=method_is_given),
        otherwise=READS,
        takes="-o -a --output",
    ),
    program(
        "aria2c yt-dlp youtube-dl axel",
        rule("", "path:-d,-o,-P|here", "aria2c -d a https://x => path:/w/a"),
        takes="-d -o -P -f",
    ),
)
