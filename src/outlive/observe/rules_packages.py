"""Rules: package managers, and the programs that only run what others wrote."""

from __future__ import annotations

from outlive.observe.dialects import script_writes
from outlive.observe.rules import (
    READS,
    SEARCHES,
    TAKES,
    has_operands,
    has_two_operands,
    is_called,
    names_goal,
    program,
    rule,
)

_PIP_READS = (
    "list show freeze check search index inspect debug help config_list config_get config_debug cache_list cache_info"
)
_NPM_READS = (
    "ls list ll la view v info show outdated audit search ping whoami root prefix bin docs fund explain why query "
    "help config_get config_list config_ls get owner_ls dist-tag_ls doctor diff pkg_get licenses"
)

PACKAGES = (
    program(
        "pip pipx",
        rule(_PIP_READS, "", "pip list =>", "pip show a =>", "pip install --help =>"),
        rule("", "", "pip -V =>", "pip install --dry-run a =>", when="-V --dry-run"),
        rule("download wheel", "path:-d,-w,--dest,--wheel-dir|here", "pip download -d lib a => path:/w/lib"),
        rule("run", "unknown:first", "pipx run a => unknown:a"),
        rule(
            "install uninstall inject upgrade upgrade-all reinstall ensurepath cache config",
            "packages:=pip",
            "pip install -r a.txt => packages:pip",
            "python3 -m pip uninstall -y a => packages:pip",
        ),
        takes="-r -c -e -i -t -d -w --target --dest --wheel-dir --index-url --python",
    ),
    program(
        "uv",
        rule(
            "pip_list pip_show pip_freeze pip_check pip_tree tree help tool_list tool_dir python_list "
            "python_find python_dir cache_dir",
            "",
            "uv pip list =>",
            "uv tree =>",
        ),
        rule("export", "path:-o,--output-file", "uv export -o a.txt => path:/w/a.txt", when="-o --output-file"),
        rule("version", "path:here", "uv version --bump minor => path:/w", when="--bump"),
        rule("version", "path:here", "uv version 1.2 => path:/w", "uv version =>", asks=has_operands),
        rule("export version", "", "uv export =>", unless="--bump"),
        rule("venv", "path:first|=.venv", "uv venv env => path:/w/env", "uv venv => path:/w/.venv"),
        rule("lock init format pip_compile build", "path:-o,--output-file|here", "uv lock => path:/w"),
        rule("publish", "remote:=pypi", "uv publish => remote:pypi"),
        rule(
            "pip sync add remove tool python cache self",
            "packages:=uv",
            "uv sync => packages:uv",
            "uv add a => packages:uv",
        ),
        takes="-p -r -o --python --output-file --index-url --extra --group --directory",
        directory="--directory",
        tree=TAKES,
    ),
    program(
        "poetry pdm pipenv hatch rye",
        rule("version", "path:here", "poetry version patch => path:/w", "hatch version =>", asks=has_operands),
        rule("config", "path:=~/.config", "pdm config a b => path:~/.config", asks=has_two_operands),
        rule("config", "path:=~/.config", "poetry config --unset a => path:~/.config", when="--unset -d --delete"),
        rule("export", "path:-o,--output", "poetry export -o a.txt => path:/w/a.txt", when="-o --output"),
        rule("show check version env_info env_list list search graph config about export", "", "poetry show =>"),
        rule("publish", "remote:=pypi", "poetry publish => remote:pypi", unless="--dry-run"),
        rule("build init new lock", "path:here", "poetry build => path:/w"),
        rule(
            "install add remove update sync uninstall self upgrade", "packages:tool", "poetry add a => packages:poetry"
        ),
        takes="-o --output",
        directory="-C --directory",
        tree=TAKES,
    ),
    program(
        "conda mamba micromamba",
        rule("env_export", "path:-f,--file", "conda env export -f a.yml => path:/w/a.yml", when="-f --file"),
        rule("list info search config_--show env_list env_export", "", "conda list =>"),
        rule("activate deactivate", "", "conda activate a =>"),
        rule("", "packages:tool", "conda install -y a => packages:conda", asks=has_operands),
        takes="-n -p -c -f",
    ),
    program(
        "npm pnpm cnpm",
        rule("audit_fix", "packages:tool", "npm audit fix => packages:npm"),
        rule("audit", "packages:tool", "pnpm audit --fix => packages:pnpm", when="--fix"),
        rule(_NPM_READS, "", "npm ls =>", "npm view a version =>", "npm audit =>"),
        rule("", "", "npm install --dry-run =>", "npm -v =>", when="--dry-run -v"),
        rule(
            "publish unpublish deprecate dist-tag owner access token login logout team",
            "remote:=npm",
            "npm publish => remote:npm",
        ),
        rule(
            "version",
            "git:here path:here",
            "npm version patch => git:/w path:/w",
            "npm version =>",
            asks=has_operands,
            unless="--no-git-tag-version",
        ),
        rule("version", "", "npm version =>", asks=lambda call, _: not call.operands),
        rule(
            "pack init version create shrinkwrap pkg",
            "path:here",
            "npm version patch --no-git-tag-version => path:/w",
        ),
        rule(
            "install i ci add uninstall remove rm un r update up upgrade dedupe prune link ln unlink rebuild import "
            "install-test it clean-install cache config set fetch store",
            "packages:tool",
            "npm ci => packages:npm",
            "npm i -D a => packages:npm",
            "pnpm add a => packages:pnpm",
        ),
        takes="-C --prefix --filter -F -w --workspace",
        directory="-C --prefix",
        tree=TAKES,
    ),
    program(
        "yarn bun",
        rule("list info why outdated audit versions licenses config_list config_get pm_ls help", "", "yarn list =>"),
        rule("", "", "bun -v =>", when="-v"),
        rule(
            "workspace",
            "packages:tool",
            "yarn workspace web add a => packages:yarn",
            "yarn workspace web build => unknown:yarn",
            asks=names_goal("add", "remove", "up", "upgrade"),
        ),
        rule("publish npm_publish", "remote:=npm", "yarn publish => remote:npm"),
        rule(
            "install add remove upgrade upgrade-interactive up import link unlink dedupe set cache autoclean update",
            "packages:tool",
            "yarn add a => packages:yarn",
            "yarn upgrade-interactive => packages:yarn",
            "bun install => packages:bun",
        ),
        rule(
            "",
            "packages:tool",
            "yarn => packages:yarn",
            "yarn build => unknown:yarn",
            asks=lambda call, command: not call.operands and command.words[0].text.endswith("yarn"),
        ),
        takes="--cwd",
        directory="--cwd",
        tree=TAKES,
    ),
    program(
        "gem",
        rule("list search info query contents env environment which outdated specification", "", "gem list =>"),
        rule("push yank owner", "remote:=rubygems", "gem push a.gem => remote:rubygems"),
        rule("build", "path:here", "gem build a.gemspec => path:/w"),
        rule("", "packages:tool", "gem install a => packages:gem", asks=has_operands),
    ),
    program(
        "bundle bundler",
        rule("config_set config_unset", "path:here", "bundle config set path a => path:/w"),
        rule("list show info outdated check config platform", "", "bundle list =>"),
        rule("install update add remove lock clean package", "packages:tool", "bundle install => packages:bundle"),
        rule("", "packages:tool", "bundle => packages:bundle", asks=lambda call, _: not call.operands),
        tree=TAKES,
    ),
    program(
        "composer",
        rule("show info outdated validate status why depends licenses diagnose search", "", "composer show =>"),
        rule(
            "install update require remove global create-project dump-autoload",
            "packages:tool",
            "composer require a => packages:composer",
        ),
        tree=TAKES,
    ),
    program(
        "apt apt-get aptitude apt-cache apt-mark dpkg-query",
        rule("list show search policy depends rdepends madison showpkg stats changelog", "", "apt list =>"),
        rule("", "", "apt-get -s install a =>", when="-s --simulate --dry-run --just-print"),
        rule(
            "update install remove purge upgrade full-upgrade dist-upgrade autoremove autoclean clean build-dep "
            "reinstall hold unhold satisfy",
            "packages:tool",
            "apt-get install -y a => packages:apt-get",
        ),
        rule("download source", "path:here", "apt-get download a => path:/w"),
        otherwise=READS,
        takes="-o -t -c",
    ),
    program(
        "dpkg rpm",
        rule(
            "",
            "packages:tool",
            "dpkg -i a.deb => packages:dpkg",
            "rpm -e a => packages:rpm",
            "rpm -qa =>",
            when="-i -r -P --install --remove --purge --configure --unpack -U -e -F --upgrade --erase",
            unless="-q --query",
        ),
        otherwise=READS,
    ),
    program(
        "dnf yum zypper apk pacman brew port snap flatpak choco winget emerge nix-env pkg opkg xbps-install mas",
        rule(
            "list info search show repolist provides leaves deps outdated config doctor home desc log cat stats "
            "repoquery check-update dot policy services_list remotes find lr se if",
            "",
            "brew list =>",
            "apk info =>",
        ),
        rule("", "", "pacman -Q =>", "pacman -Ss a =>", when="-Q -Qi -Qs -Ql -Ss -Si"),
        rule(
            "",
            "packages:tool",
            "dnf install -y a => packages:dnf",
            "pacman -S a => packages:pacman",
            asks=lambda call, _: bool(call.operands or call.names & {"-S", "-R", "-U"}),
        ),
        otherwise=READS,
        takes="-t",
    ),
    program(
        "rustup nvm fnm volta pyenv rbenv nodenv asdf mise sdk corepack n",
        rule(
            "show list ls current which versions version where whence toolchain_list target_list component_list "
            "ls-remote check outdated doctor help root",
            "",
            "rustup show =>",
            "pyenv versions =>",
        ),
        rule("use", "path:here packages:tool", "mise use node@20 => path:/w packages:mise", asks=is_called("mise")),
        rule("use shell", "", "nvm use 20 =>"),
        rule("run exec x", "unknown:tool", "pyenv exec a => unknown:pyenv"),
        rule("", "packages:tool", "rustup update => packages:rustup", asks=has_operands),
    ),
    program(
        "helm-plugin krew luarocks cabal stack opam cpanm cpan mix rebar3 pod carthage vcpkg conan",
        rule("list show search info outdated", "", "opam list =>"),
        rule(
            "ecto.migrate ecto.rollback ecto.create ecto.drop ecto.reset ecto.setup",
            "database:tool",
            "mix ecto.migrate => database:mix",
            tree=TAKES,
        ),
        rule(
            "install update remove add upgrade deps.get pin",
            "packages:tool",
            "opam install a => packages:opam",
            "mix deps.get => packages:mix",
        ),
    ),
    program(
        "venv virtualenv",
        rule("", "path:each", "python -m venv .venv => path:/w/.venv", "virtualenv env => path:/w/env"),
        takes="-p --python --prompt",
    ),
    program(
        "twine flit maturin",
        rule("check", "", "twine check dist/a =>"),
        rule("upload publish register", "remote:=pypi", "twine upload dist/a => remote:pypi"),
        rule("build develop", "path:here", "maturin build => path:/w"),
        takes="-r --repository -u -p",
    ),
    # What these do is written elsewhere; only a question for the version is answered here.
    program(
        "python pypy node php lua Rscript java julia erl ghci swift bash sh zsh dash ksh ash fish pwsh",
        rule(
            "",
            "",
            "python -V =>",
            "node -v =>",
            "bash -n a.sh =>",
            "python a.py => unknown:python",
            asks=lambda call, _: [word.text for word in call.words] in (["-V"], ["-v"], ["-version"]),
        ),
        rule(
            "",
            "",
            "bash -n a.sh =>",
            "python -n => unknown:python",
            when="-n",
            asks=lambda _, command: command.words[0].text.endswith("sh"),
        ),
        rule(
            "",
            "path:here unknown:tool",
            'python -c \'open("a", "w")\' => path:/w unknown:python',
            "node -e 'fs.writeFileSync(\"a\", b)' => path:/w unknown:node",
            "python -c 'open(\"a\").read()' => unknown:python",
            'python -c \'open("/tmp/a", "w")\' => unknown:python',
            'python -c \'open(join(a, "b"), "w")\' => path:/w unknown:python',
            "php -r 'file_put_contents(\"a\", 1);' => path:/w unknown:php",
            asks=script_writes,
        ),
        rule("setup.py", "path:here unknown:tool", "python setup.py sdist => path:/w unknown:python"),
        rule(
            "artisan_migrate artisan_db:seed artisan_db:wipe artisan_migrate:fresh artisan_migrate:rollback",
            "database:=artisan",
            "php artisan migrate => database:artisan",
            tree=TAKES,
        ),
        rule("", "", "php -l a.php =>", when="-l", asks=lambda _, command: command.words[0].text == "php"),
        takes="-c -e -p -r -W -X --eval --print",
        clusters=False,
    ),
    program(
        "deno",
        rule("", "", "deno -V =>", when="-V"),
        rule("info doc types check completions help outdated", "", "deno check a.ts =>", tree=TAKES),
        rule("fmt", "", "deno fmt --check =>", when="--check", tree=TAKES),
        rule("fmt", "path:each|here", "deno fmt => path:/w", "deno fmt src => path:/w/src"),
        rule("lint", "path:each|here", "deno lint --fix => path:/w", when="--fix"),
        rule("lint", "", "deno lint =>", tree=SEARCHES),
        rule("compile", "path:-o,--output|here", "deno compile -o a b.ts => path:/w/a"),
        rule("init", "path:first|here", "deno init lib => path:/w/lib"),
        rule("add remove install uninstall cache upgrade", "packages:tool", "deno add a => packages:deno"),
        rule("publish", "remote:=jsr", "deno publish => remote:jsr", "deno task x => unknown:deno", unless="--dry-run"),
        takes="-o --output -c --config",
        tree=TAKES,
    ),
    program(
        "json.tool compileall pydoc tokenize ast dis timeit this site",
        rule(
            "",
            "path:each",
            "python -m compileall src => path:/w/src",
            asks=lambda _, command: command.words[0].text == "compileall",
        ),
        rule("", "path:last", "python -m json.tool a b => path:/w/b", asks=lambda call, _: len(call.operands) > 1),
        otherwise=READS,
    ),
    program(
        "pytest",
        rule(
            "",
            "path:here unknown:tool",
            "pytest --snapshot-update => path:/w unknown:pytest",
            when="--snapshot-update --force-regen --regen-all",
        ),
        rule(
            "",
            "",
            "pytest --collect-only -q =>",
            "pytest -q => unknown:pytest",
            when="--collect-only --co --fixtures",
            tree=TAKES,
        ),
        takes="-k -m -n -p -c -o",
    ),
)
