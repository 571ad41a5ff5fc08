"""Rules: editors of text and data, formatters, builds that say where they write."""

from __future__ import annotations

from outlive.observe.dialects import (
    awk_edits_in_place,
    awk_runs,
    awk_writes,
    edits_in_place,
    script_only_prints,
    sed_runs,
    sed_writes,
)
from outlive.observe.rules import READS, has_three_operands, has_two_operands, program, rule

TEXTS = (
    program(
        "sed gsed",
        rule("", "path:each", "sed -i -e s/a/b/ x => path:/w/x", when="-e -f --expression --file", asks=edits_in_place),
        rule(
            "",
            "path:rest",
            "sed -i s/a/b/ x y => path:/w/x path:/w/y",
            "sed -i.bak s/a/b/ /tmp/x =>",
            when="-i --in-place",
        ),
        rule("", "unknown:tool", "sed -f a.sed x => unknown:sed", when="-f --file"),
        rule("", "unknown:tool", "sed '1e date' x => unknown:sed", asks=sed_runs),
        rule("", "path:=…", "sed 'w out' x => path:…", "sed s/a/b/ x =>", "sed -n 1,9p x =>", asks=sed_writes),
        takes="-e -f -l --expression --file",
        otherwise=READS,
    ),
    program(
        "awk gawk mawk nawk",
        rule("", "path:rest", "gawk -i inplace 1 x => path:/w/x", asks=awk_edits_in_place),
        rule("", "unknown:tool", "awk -f a.awk x => unknown:awk", when="-f --file"),
        rule("", "unknown:tool", "awk '{system($1)}' x => unknown:awk", asks=awk_runs),
        rule("", "path:=…", "awk '{print > $1}' x => path:…", "awk '$3 > 1 || $4' x =>", asks=awk_writes),
        takes="-F -v -f -i --include --file --assign --field-separator",
        otherwise=READS,
    ),
    program(
        "perl ruby",
        rule("", "path:each", "perl -pi -e s/a/b/ x => path:/w/x", "perl -i.bak -pe s/a/b/ x => path:/w/x", when="-i"),
        rule("", "", "perl -ne 'print if /x/' a =>", "ruby -v =>", asks=script_only_prints),
        takes="-e -E -I -M -r",
    ),
    program(
        "sort",
        rule("", "path:-o,--output", "sort -uo a b => path:/w/a", when="-o --output"),
        takes="-o -k -t -T -S --output --key --field-separator",
        otherwise=READS,
    ),
    program(
        "uniq", rule("", "path:last", "uniq a b => path:/w/b", asks=has_two_operands), takes="-f -s -w", otherwise=READS
    ),
    program("sd", rule("", "path:last", "sd a b x => path:/w/x", asks=has_three_operands), otherwise=READS),
    program(
        "yq dasel",
        rule("", "path:rest", "yq -i .a=1 x.yml => path:/w/x.yml", when="-i --inplace --in-place"),
        otherwise=READS,
        takes="-o -p",
    ),
    program(
        "xmllint iconv",
        rule("", "path:-o,--output", "xmllint -o b.xml a.xml => path:/w/b.xml", when="-o --output"),
        takes="-o --output --xpath -f -t --encode --schema",
        otherwise=READS,
        clusters=False,
    ),
    program(
        "black isort autopep8 yapf docformatter autoflake pyupgrade add-trailing-comma",
        rule(
            "",
            "",
            "black --check . =>",
            "isort --check-only . =>",
            "black --diff . =>",
            when="--check --diff --check-only -c -d --check-only",
        ),
        rule("", "path:each|here", "black src tests => path:/w/src path:/w/tests", "isort => path:/w"),
        takes="-l -t --line-length --target-version --config --profile",
    ),
    program(
        "ruff",
        rule(
            "check",
            "path:each|here",
            "ruff check --fix . => path:/w",
            when="--fix --fix-only --unsafe-fixes --add-noqa",
        ),
        rule(
            "format",
            "path:each|here",
            "ruff format src => path:/w/src",
            "ruff format --check src =>",
            "ruff format --diff =>",
            unless="--check --diff",
        ),
        otherwise=READS,
        takes="--config --select --ignore --line-length",
    ),
    program(
        "prettier biome oxfmt dprint",
        rule(
            "",
            "path:each|here",
            "prettier --write src => path:/w/src",
            "biome check --write src => path:/w/check path:/w/src",
            when="--write -w --fix",
        ),
        rule("", "", "prettier --check src =>", when="--check -c -l --list-different"),
        rule("fmt format", "path:each|here", "dprint fmt => path:/w"),
        otherwise=READS,
        takes="--config --parser",
    ),
    program(
        "eslint stylelint rubocop standard oxlint golangci-lint swiftlint ktlint clang-tidy",
        rule(
            "",
            "path:each|here",
            "eslint --fix src => path:/w/src",
            when="--fix -a -A --autocorrect --autocorrect-all -F",
        ),
        otherwise=READS,
        takes="--config -c --ext --format -f -o",
    ),
    program(
        "gofmt goimports shfmt clang-format rustfmt",
        rule("", "path:each", "gofmt -w . => path:/w", "clang-format -i a.c => path:/w/a.c", when="-w -i -write"),
        rule("", "", "gofmt -l . =>", "rustfmt --check a.rs =>", when="-l -d --check -n --dry-run"),
        otherwise=READS,
        takes="--style -r --edition -local",
        clusters=False,
    ),
    program(
        "go",
        rule("fmt generate fix", "path:here", "go fmt ./... => path:/w", unless="-n"),
        rule(
            "mod_tidy mod_init mod_vendor mod_edit work_init work_use work_sync", "path:here", "go mod tidy => path:/w"
        ),
        rule("build", "path:-o|here", "go build -o bin/a ./cmd => path:/w/bin/a"),
        rule("get install", "packages:=go", "go get x@latest => packages:go", "go install x@v1 => packages:go"),
        rule("mod_download clean", "packages:=go", "go mod download => packages:go"),
        rule(
            "version env list doc vet help mod_graph mod_why mod_verify",
            "",
            "go list ./... =>",
            "go env GOPATH =>",
            unless="-w -u",
        ),
        rule("env", "path:=~/.config/go/env", "go env -w A=b => path:~/.config/go/env"),
        takes="-o -C -tags -ldflags -p -mod -run -timeout",
        directory="-C",
        clusters=False,
    ),
    program(
        "cargo",
        rule("fmt", "", "cargo fmt --check =>", when="--check"),
        rule("fmt fix generate-lockfile update", "path:here", "cargo fmt => path:/w"),
        rule(
            "build b doc package vendor init new clean check c clippy",
            "path:--target-dir|here",
            "cargo build --release => path:/w",
            "cargo clippy => path:/w",
        ),
        rule("add remove rm install uninstall fetch", "packages:=cargo", "cargo add serde => packages:cargo"),
        rule(
            "publish yank owner login", "remote:=crates.io", "cargo publish => remote:crates.io", unless="--dry-run -n"
        ),
        rule(
            "tree metadata search version help locate-project pkgid read-manifest outdated audit info",
            "",
            "cargo tree =>",
            "cargo metadata --format-version 1 =>",
        ),
        rule("", "", "cargo --list =>", "cargo -V =>", when="--list -V"),
        takes="--target-dir --manifest-path --features -F -p --package -j --bin",
    ),
    program(
        "cmake",
        rule(
            "",
            "path:--build,-B,--install|here",
            "cmake -S . -B out => path:/w/out",
            "cmake --build out => path:/w/out",
            "cmake .. => path:/w",
        ),
        takes="-S -B -G -D -j --build --install --target --config --preset --parallel",
    ),
    program(
        "make gmake ninja",
        rule("", "", "make -n all =>", when="-n --dry-run --just-print -q --question -p --print-data-base"),
        takes="-C -f -j -k --directory",
    ),
    program(
        "openssl",
        rule(
            "",
            "path:-out,-keyout,-writerand",
            "openssl genrsa -out k.pem 2048 => path:/w/k.pem",
            "openssl req -new -keyout k -out c => path:/w/k path:/w/c",
            when="-out -keyout",
        ),
        takes="-out -keyout -in -inkey -CA -CAkey -days -subj -config -connect -servername",
        otherwise=READS,
        clusters=False,
    ),
    program(
        "ssh-keygen",
        rule("", "", "ssh-keygen -lf k.pub =>", when="-l -F -y -e"),
        rule("", "path:-f", "ssh-keygen -t ed25519 -f k => path:/w/k", when="-f"),
        rule("", "path:=~/.ssh", "ssh-keygen -t ed25519 => path:~/.ssh"),
        takes="-f -t -b -N -C -P -R -F",
    ),
    program(
        "gpg",
        rule("", "", "gpg --verify a.sig =>", when="--verify --list-keys -k -K --list-secret-keys --fingerprint"),
        rule("", "path:-o,--output|=~/.gnupg", "gpg --import k => path:~/.gnupg"),
        takes="-o --output -r -u --recipient",
    ),
    program("pip-compile", rule("", "path:-o,--output-file|here", "pip-compile => path:/w"), takes="-o --output-file"),
    program(
        "sphinx-build mkdocs jekyll hugo",
        rule("serve server", "unknown:tool", "mkdocs serve => unknown:mkdocs"),
        rule("", "path:-d,-D,--destination,--site-dir|here", "mkdocs build -d out => path:/w/out"),
        takes="-d -D -s -b --destination --site-dir",
    ),
    program(
        "direnv",
        rule(
            "allow deny",
            "path:=~/.local/share/direnv",
            "direnv allow => path:~/.local/share/direnv",
        ),
        otherwise=READS,
    ),
    program(
        "pre-commit",
        rule("install uninstall", "git:here", "pre-commit install => git:/w"),
        rule("clean gc validate-config", "", "pre-commit validate-config =>"),
    ),
)
