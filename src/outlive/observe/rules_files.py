"""Rules: files and directories, archives, compilers."""

from __future__ import annotations

from outlive.observe.dialects import (
    archive_is_made,
    archive_is_read,
    assigns,
    changes_only_this_shell,
    dd_writes,
    is_remote,
    mode_is_an_option,
)
from outlive.observe.rules import READS, SEARCHES, TAKES, has_operands, has_two_operands, is_called, program, rule

_OWNER = "--reference --from -m -x --modify"

FILES = (
    # Nothing but reading, whatever their options; those that write by an option are further down.
    program(
        "cat tac nl less more zcat bzcat xzcat zless wc file stat readlink realpath pwd df "
        "locate paste join comm cmp diff diff3 colordiff expand unexpand col fold fmt column rev md5sum sha1sum "
        "sha256sum sha512sum shasum md5 b2sum cksum sum strings od nm objdump readelf size ldd bat test [ "
        "cal arch who w groups users tty locale getconf lscpu lsblk lsusb lspci lsmod free vmstat "
        "iostat mpstat ps pstree lsof netstat yes pv pr finger ipcs uuidgen top htop whereis getent env "
        "traceroute tracepath mtr last lastlog help man info apropos clear reset stty bc dc numfmt getopt dirs "
        "shopt local declare typeset readonly export unalias times disown command builtin compgen complete bind "
        "shellcheck hadolint yamllint pyflakes vulture actionlint nvidia-smi sw_vers system_profiler mdfind "
        "vm_stat look spell gron fx delta difft ffprobe mediainfo identify basenc base64 base32 hexdump hd tldr "
        "time nohup timeout nice xargs npx pmap pdfinfo pdffonts otool lsns findmnt blkid csvlook csvstat envsubst "
        "ssh-keyscan squeue sinfo sacct rocm-smi xdpyinfo stern depcheck tfsec kubeval kubeconform",
        otherwise=READS,
    ),
    program("ls dir vdir ll du eza exa lsd tokei scc", rule("", "", "ls -la =>", tree=SEARCHES), otherwise=READS),
    # What these are given names no file at all.
    program(
        "basename dirname tr seq factor echo printf true false sleep uptime uname whoami id nproc pgrep pidof jobs "
        "wait which type printenv dig nslookup host whois ping ping6 tput expr getopts cd pushd popd exit return "
        "break continue shift : let read set unset umask ulimit hash fg bg trap",
        otherwise=READS,
        says="each",
    ),
    program(
        "grep egrep fgrep rg ag ack zgrep",
        rule("", "", "rg word =>", asks=is_called("rg", "ag", "ack"), tree=SEARCHES),
        rule("", "", "grep -rn word =>", when="-r -R --recursive --dereference-recursive", tree=SEARCHES),
        otherwise=READS,
        takes="-e -f -m -A -B -C -d -D -g -t -T --regexp --file --include --exclude --exclude-dir --glob --type",
        says="first -e -m -A -B -C -g -t -T --regexp --include --exclude --exclude-dir --glob --type --max-count",
    ),
    program(
        "head tail", otherwise=READS, takes="-n -c -s --lines --bytes --pid", says="-n -c -s --lines --bytes --pid"
    ),
    program("cut", otherwise=READS, takes="-d -f -c -b", says="-d -f -c -b --delimiter --fields"),
    program("jq", otherwise=READS, takes="-f --from-file --indent", says="first --indent"),
    # It may call something for every few lines that it reads.
    program(
        "mapfile readarray",
        rule("", "unknown:tool", "mapfile -C ./x -c 9 a => unknown:mapfile", "mapfile -t a < b =>", when="-C"),
        otherwise=READS,
        takes="-C -c -d -n -O -s -u",
        says="each",
    ),
    # After it a name no longer means what these tables say.
    program(
        "alias",
        rule("", "unknown:tool", "alias ls='rm -r' => unknown:alias", "alias =>", asks=assigns),
        otherwise=READS,
    ),
    program("fd fdfind", rule("", "", "fd word =>", tree=SEARCHES), otherwise=READS, takes="-e -t -d -E"),
    program(
        "shuf tree",
        rule("", "path:-o,--output", "tree -o a.txt => path:/w/a.txt", when="-o --output", also=True),
        rule("", "", "tree -L 2 =>", asks=is_called("tree"), tree=SEARCHES),
        takes="-o -n -L -I -P --output",
        otherwise=READS,
    ),
    program(
        "xxd", rule("", "path:last", "xxd -r a b => path:/w/b", asks=has_two_operands), takes="-l -s", otherwise=READS
    ),
    program(
        "codespell markdownlint",
        rule("", "path:each|here", "codespell -w docs => path:/w/docs", when="-w --write-changes --fix -f"),
        otherwise=READS,
    ),
    program(
        "rm rmdir unlink shred srm trash rimraf del-cli",
        rule("", "path:each", "rm -rf build a => path:/w/build path:/w/a"),
        takes="-n -s --iterations --size",
    ),
    program(
        "mkdir mkfifo mknod touch mkdirp",
        rule("", "path:each", "mkdir -p src/a => path:/w/src/a", "touch /tmp/x =>"),
        takes="-m -r -d -t --mode --reference --date",
    ),
    program(
        "rename prename",
        rule("", "", "rename -n s/a/b/ x =>", when="-n --nono --dry-run"),
        rule("", "path:rest|=…", "rename s/a/b/ x => path:/w/x", "ls | rename s/a/b/ => path:…"),
        takes="-e",
    ),
    program(
        "mv",
        rule(
            "",
            "path:-t,--target-directory path:each",
            "mv -t d a b => path:/w/d path:/w/a path:/w/b",
            when="-t --target-directory",
        ),
        rule("", "path:each", "mv a d/b => path:/w/a path:/w/d/b"),
        takes="-t -S --target-directory --suffix",
    ),
    program(
        "cp install ln ditto",
        rule("", "path:-t,--target-directory", "cp -t d a b => path:/w/d", when="-t --target-directory"),
        rule("", "path:each", "install -d a b => path:/w/a path:/w/b", when="-d --directory"),
        rule(
            "",
            "path:last",
            "cp a b d => path:/w/d",
            "ln -s a /tmp/b =>",
            "cp -r a $OUT => path:$OUT",
            "cp a b --no-preserve mode => path:/w/b",
        ),
        takes="-t -S -m -o -g --target-directory --suffix --mode --owner --group --no-preserve --sparse",
    ),
    program(
        "chmod chattr",
        rule("", "path:each", "chmod -x a => path:/w/a", "chmod --reference=a b => path:/w/b", asks=mode_is_an_option),
        rule("", "path:rest", "chmod -R +x bin => path:/w/bin", "chmod 600 /tmp/k =>"),
        takes="--reference",
    ),
    program(
        "chown chgrp setfacl xattr",
        rule("", "path:each", "chown --reference=a b => path:/w/b", "setfacl -m u:me:r a => path:/w/a", when=_OWNER),
        rule("", "path:rest", "chown -R me:me . => path:/w"),
        takes="-m -x --modify --reference --from",
    ),
    program(
        "truncate fallocate",
        rule("", "path:each", "truncate -s 0 app.log => path:/w/app.log"),
        takes="-s -r -o -l --size --reference --offset --length",
    ),
    program("dd", rule("", "path:of=", "dd if=a of=b => path:/w/b", asks=dd_writes), otherwise=READS),
    program("tee sponge", rule("", "path:each", "tee -a a b => path:/w/a path:/w/b", "tee /dev/null =>", "tee =>")),
    program(
        "find",
        rule("", "path:starts", "find a -delete => path:/w/a", when="-delete"),
        rule(
            "",
            "path:-fprint,-fprintf,-fls,-fprint0",
            "find . -fprint all.txt => path:/w/all.txt",
            when="-fprint -fprintf -fls -fprint0",
            also=True,
        ),
        rule("", "", "find -name a =>", tree=SEARCHES),
        takes="-fprint -fprintf -fls -fprint0 -name -iname -path -type -newer -size -mtime -user -regex -maxdepth",
        otherwise=READS,
        says="-name -iname -path -type -size -mtime -user -regex -maxdepth",
        clusters=False,
    ),
    program(
        "tar bsdtar gtar",
        rule("", "", "tar tzf a.tgz =>", "tar -tvf a.tar =>", asks=archive_is_read),
        rule("", "path:-f,--file", "tar czf a.tgz src => path:/w/a.tgz", "tar -cf - src =>", asks=archive_is_made),
        rule(
            "",
            "path:-C,--directory,--one-top-level|here",
            "tar xf a.tar => path:/w",
            "tar -xzf a.tgz -C lib => path:/w/lib",
            "tar xzf a.tgz -C /tmp/x =>",
            unless="-O --to-stdout",
        ),
        takes="-f -C -T -X -b -I --file --directory --exclude --files-from --strip-components --one-top-level",
        otherwise=READS,
        dashless=True,
    ),
    program("zip", rule("", "path:first", "zip -r a.zip src => path:/w/a.zip"), takes="-x -i"),
    program(
        "unzip",
        rule("", "", "unzip -l a.zip =>", when="-l -t -p -Z -v -z"),
        rule("", "path:-d|here", "unzip a.zip -d lib => path:/w/lib", "unzip a.zip => path:/w"),
        takes="-d -x",
    ),
    program(
        "7z 7za 7zr",
        rule("l t i h", "", "7z l a.7z =>"),
        rule("x e", "path:-o|here", "7z x a.7z -olib => path:/w/lib"),
        rule("a u d rn", "path:first", "7z a a.7z src => path:/w/a.7z"),
        takes="-o",
    ),
    program(
        "gzip gunzip bzip2 bunzip2 xz unxz zstd unzstd lz4 compress uncompress pigz",
        rule("", "", "gzip -dc a.gz =>", "xz -l a.xz =>", when="-c -l -t --stdout --list --test"),
        rule("", "path:each", "gzip app.log => path:/w/app.log", asks=has_operands),
        otherwise=READS,
    ),
    program(
        "split",
        rule("", "path:rest|here", "split -l 9 a part_ => path:/w/part_", "split a => path:/w"),
        takes="-l -b -n -C -a --lines --bytes --number --additional-suffix",
    ),
    program(
        "csplit",
        rule("", "path:-f,--prefix|here", "csplit a /x/ => path:/w", "csplit -f b a /x/ => path:/w/b"),
        takes="-f -b -n --prefix --suffix-format --digits",
    ),
    program(
        "rsync",
        rule("", "", "rsync -avn a/ b/ =>", when="-n --dry-run --list-only"),
        rule("", "path:--log-file", "rsync -a --log-file a b/ /tmp/c => path:/w/a", when="--log-file", also=True),
        rule(
            "",
            "remote:last",
            "rsync -az a/ me@web:/srv => remote:web",
            "rsync -az a/ web:/srv --chmod F644 --out-format %n => remote:web",
            asks=is_remote,
        ),
        rule("", "path:last", "rsync -a a/ b => path:/w/b", "rsync -a web:/x /tmp/x =>"),
        takes="-e -f -B -T -M --rsh --exclude --include --filter --files-from --exclude-from --include-from --port "
        "--bwlimit --chmod --chown --usermap --groupmap --out-format --log-file --log-file-format --rsync-path "
        "--backup-dir --suffix --partial-dir --temp-dir --compare-dest --copy-dest --link-dest --max-size --min-size "
        "--timeout --contimeout --password-file --block-size --info --debug --compress-level --compress-choice "
        "--skip-compress --modify-window --max-delete --remote-option --iconv",
    ),
    program(
        "scp sftp",
        rule("", "remote:last", "scp a me@web:/srv => remote:web", asks=is_remote),
        rule("", "path:last", "scp web:/x . => path:/w"),
        takes="-P -i -o -F -J -c -l -S",
    ),
    program(
        "patch",
        rule("", "", "patch --dry-run -p1 < a.diff =>", when="--dry-run -C --check"),
        rule("", "path:-o,--output", "patch -o b a a.diff => path:/w/b", when="-o --output"),
        rule("", "path:-d,--directory|first|here", "patch -p1 < a.diff => path:/w", "patch a.c a.diff => path:/w/a.c"),
        takes="-p -i -d -o -F -B --input --directory --output --strip",
    ),
    program("source .", rule("", "", ". venv/bin/activate =>", "source ~/.cargo/env =>", asks=changes_only_this_shell)),
    program(
        "gcc g++ clang clang++ cc c++ ld ar rustc ghc javac tsc gfortran nasm protoc swiftc",
        rule("", "", "gcc -fsyntax-only a.c =>", when="-fsyntax-only -E -M -MM", tree=TAKES),
        rule("", "", "tsc --noEmit =>", when="--noEmit", tree=TAKES),
        rule(
            "",
            "path:-o,-d,--outDir,--out-dir,--outFile,--python_out,--go_out,--js_out,--java_out,--cpp_out|here",
            "gcc -o a a.c => path:/w/a",
            "tsc --outDir dist => path:/w/dist",
            "javac A.java => path:/w",
            tree=TAKES,
        ),
        takes="-o -d -I -L -l -include --outDir --out-dir --outFile -p --project --target -x -std",
        clusters=False,
    ),
    program(
        "mktemp",
        rule("", "", "mktemp -t a.XXX =>", "mktemp -u =>", when="-t -u --tmpdir --dry-run"),
        rule("", "path:-p", "mktemp -p lib => path:/w/lib", when="-p"),
        rule("", "path:first", "mktemp -d ./x.XXX => path:/w/x.XXX", "mktemp -d =>", "mktemp --suffix .a =>"),
        takes="-p --suffix",
    ),
    program(
        "cpio pax",
        rule("", "", "cpio -t < a =>", when="-t --list"),
        rule("", "path:first|here", "cpio -id < a => path:/w"),
    ),
    program(
        "dos2unix unix2dos nbstripout sort-package-json",
        rule("", "path:each|here", "dos2unix a.txt => path:/w/a.txt", "npx sort-package-json => path:/w"),
    ),
    program(
        "pdftotext",
        rule(
            "",
            "path:last",
            "pdftotext a.pdf b.txt => path:/w/b.txt",
            "pdftotext a.pdf - =>",
            asks=has_two_operands,
        ),
        rule("", "path:here", "pdftotext a.pdf => path:/w"),
        takes="-f -l -r -x -y -W -H -enc",
        clusters=False,
    ),
    program(
        "dot neato mmdc plantuml latexmk pdflatex xelatex lualatex doxygen typedoc jsdoc",
        rule("", "", "dot -Tsvg a.dot =>", unless="-o -O", asks=is_called("dot", "neato")),
        rule(
            "",
            "path:-o,--output,--out,-d,-output-directory,-outdir|here",
            "dot -Tpng a.dot -o a.png => path:/w/a.png",
            "pdflatex a.tex => path:/w",
        ),
        takes="-o -i -d --output --input --out -output-directory -outdir",
        clusters=False,
    ),
    program("htpasswd", rule("", "path:first", "htpasswd -bc a me x => path:/w/a", unless="-n")),
    program(
        "sops",
        rule("", "path:-o,--output|each", "sops -e -i a.yml => path:/w/a.yml", when="-i --in-place --output"),
        rule("", "", "sops -d a.yml =>", when="-d --decrypt"),
        takes="--output --age --pgp --kms",
    ),
    program(
        "mkfs mkfs.ext mkfs.xfs mkfs.vfat mkfs.btrfs mke2fs mkswap fdisk parted wipefs",
        rule("", "", "fdisk -l =>", when="-l --list -n"),
        rule("", "path:first", "wipefs -a /dev/sdb => path:/dev/sdb"),
        takes="-t -L",
    ),
    program(
        "mkisofs genisoimage convert magick ffmpeg pandoc",
        rule("", "path:-o,--output", "pandoc a.md -o a.pdf => path:/w/a.pdf", when="-o --output"),
        rule("", "path:last", "convert a.png b.jpg => path:/w/b.jpg", asks=has_operands),
        takes="-o --output -i -vf -c:v -f -t --from --to -resize -quality",
        clusters=False,
    ),
)
