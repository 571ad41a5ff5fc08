"""Which paths the guard finds in the text of a command.

There are many texts, so these tests call the guard in their own process. The tests in `test_guard_windows.py` use the
command line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import NAMES, git, guarded, window_on
from tests.session_steps import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def test_guard_finds_paths_that_a_command_names_indirectly(bench: Bench, repo: Path) -> None:
    """`guard` finds paths in wildcards, redirections, options and default values of a command.

    It names each task once.
    """
    (repo / "link").symlink_to("other.py")
    git(bench, "add", "link")
    git(bench, "commit", "-q", "-m", "link", "link")
    task = bench.launch(f"git stash push -q; ln -sfn nowhere link; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES, "link")
    away = bench.root / "away"
    away.mkdir()
    held = (
        *("cat dir/*.py", "sed -i s/a/b/ ?.py", "cat {a,other}.py", "wc -l **/*.py", "cat < a.py", "cat link"),
        *("while read x; do :; done < dir/c.py", "dd if=x of=a.py", "rg word", "grep -rn word", "ruff check"),
        *("echo $(<a.py)", "x=$(< dir/c.py)", "[ -f a.py ]", "if [[ -n $x && other.py -nt b.py ]]; then :; fi"),
        *(
            "docker run -v $PWD:/x alpine ls /x",
            "docker run -v./dir:/x:ro alpine ls",
            "podman run --volume=$(pwd):/x a",
        ),
        *("docker run --mount type=bind,src=dir,target=/x a", "docker build .", "grep -e word a.py", "sed -n 1p a.py"),
        *(f"(cd {away} && make) && {command}" for command in ("git log", "make test")),
        *(f"cd {away} && {command}" for command in (f"git -C{repo} log", f"env -C {repo} make", "cat ../project/a.*")),
    )
    for command in held:
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    (repo / "mypy.ini").touch()
    for command in (
        *(
            "mypy --config-file mypy.ini",
            "ruff check --config=mypy.ini",
            "eslint -c mypy.ini",
            "flake8 --config mypy.ini",
        ),
        *("pyright -p mypy.ini", "gcc -o /x other.c", "javac -d out Other.java", "tsc --outDir dist"),
        *("go build -o /x/y ./cmd", "esbuild other.ts --bundle --outfile=y.js", "mkdocs build -d /x/y"),
        *("rg --max-columns 9 /api/users", "rg -j 4 word", "du -d 1"),
    ):
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    for command in (
        *(
            f"ls {away}/*.log",
            f"ls -la {away}/nothing",
            f"du -sh {away}/$X",
            f"rg word {away}/*.txt",
            "ls /var/log/*.gz",
        ),
        *('outlive wait "$ID"', "outlive output $T --tail 20", "outlive result $(cat /etc/id)"),
        "cat o*.py",
        "rg word other.py",
        "grep word",
        "awk '{print $1}' other.py",
        "ls -la other.py",
        "[ a.py = b.py ]",
        "grep a.py other.py",
        "echo a.py",
        "docker run -v cache:/x alpine ls a",
        f"git -C {away} status",
        f"git --git-dir={away}/.git --work-tree={away} status",
        f"npm --prefix {away} ci",
        f"git -c a.b=c -C ../{away.name} commit -C HEAD~1",
        f"cd {away} && git pull && make test",
        "ssh host git pull",
        "docker exec web git log",
    ):
        assert guarded(bench, command)["clear"], command
    assert not bench.json("guard", "link")["clear"]
    assert len(guarded(bench, "cp a.py /")["holders"]) == 1
    for command in (
        f"make --directory={repo}",
        f"GIT_WORK_TREE={repo} git status",
        f"export GIT_WORK_TREE={repo}; git status",
        f"env GIT_WORK_TREE={repo} git status",
        f"GIT_DIR={repo}/.git git log",
        f"git --git-dir={repo}/.git log",
        f"git -C / -C {repo} log",
        f"env --chdir={repo} git log",
        f"npm --prefix {repo} ci",
    ):
        elsewhere = guarded(bench, command, away)
        assert [each["task"] for each in elsewhere["holders"]] == [task], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_checks_the_redirections_of_remote_commands(bench: Bench, repo: Path) -> None:
    """For `ssh h 'cat > x' < a.py`, `guard` checks the local file `a.py`. The file `x` is on the remote host."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *(
            "docker exec -i db psql < a.py",
            "ssh h 'cat > x' < a.py",
            "ssh h bash -s < dir/c.py",
            "sudo -n tee x < a.py",
        ),
        *("kubectl exec -i pod -- tee x < a.py", "bash -c 'wc -l' < a.py", "xargs -a a.py echo", "timeout 9 wc < a.py"),
        *("parallel --arg-file=dir/c.py echo", "docker compose exec -T db sh -c 'psql x' < a.py", "ssh h < a.py"),
    ):
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    for command in (
        *("docker exec -i db psql < other.py", "ssh h 'cat a.py' < other.py", "xargs -a other.py echo a.py"),
        *("kubectl exec -i pod -- cat a.py < other.py", "ssh h 'wc < a.py'", "docker exec db sh -c 'cat < a.py'"),
    ):
        assert guarded(bench, command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_finds_files_in_the_arguments_of_clients_and_databases(bench: Bench, repo: Path) -> None:
    """`guard` finds files in `@a.py` for curl, in `file://` addresses, and in the commands of database shells."""
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("curl -d @a.py https://x", "curl -d@a.py https://x", "curl --data-binary @dir/c.py https://x"),
        *("curl --json @a.py https://x", "curl --json=@a.py https://x", "curl -F f=@a.py https://x"),
        *("curl -F 'f=@a.py;type=text/plain' https://x", "curl -F 'f=<a.py' https://x", "http POST x @a.py"),
        *("http POST x f@dir/c.py", f"curl file://{repo}/a.py", f"curl file://localhost{repo}/a.py"),
        *("aws lambda update-function-code --zip-file fileb://a.py", "psql -c '\\i a.py'", "sqlite3 x.db '.read a.py'"),
        *("sqlite3 x.db '.import --csv a.py t'", "psql -c \"\\copy t from 'a.py' csv\"", "psql <<'E'\n\\i dir/c.py\nE"),
        *("duckdb -c \"select * from 'a.py'\"", "mysql -e 'source a.py'"),
    ):
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    for command in (
        *("curl -d @other.py https://x", "curl -d a.py@x https://x", "curl https://x/a.py", "http x f@other.py"),
        *("rsync me@dir:/x other.py", "psql -c 'select a from dir'", "psql -c 'select 1 from \"dir\"'"),
        *("sqlite3 x.db .schema", "echo '.read a.py'", "cat > x <<'E'\n\\i a.py\nE", "curl file:///usr/a.py"),
    ):
        assert guarded(bench, command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_is_not_clear_for_commands_that_publish_or_install_the_project(bench: Bench, repo: Path) -> None:
    """If a task has changed a file, `guard` names it for commands that publish, install, check or list files.

    It answers `clear` for commands that do not use the project's files.
    """
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("npm publish", "npm ci", "cargo publish", "uv sync", "docker compose up -d", "cmake --build build"),
        *("docker compose up -d web", "docker compose run web", "docker-compose build", "pytest --collect-only"),
        *(
            "pytest --co -q",
            "terraform plan",
            "terraform validate",
            "heroku container:push web",
            "go vet",
            "tsc --noEmit",
        ),
        *("ls", "find -name x", "tree -L 1", "flake8", "eslint", "biome check", "mypy"),
    ):
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    (away := bench.root / "away").mkdir()
    for command in (
        *("npm view x", "docker compose logs", "docker rm x", "gh pr comment 1 -b x", f"cd {away}; npm ci"),
        *("heroku restart", "terraform output", "go version", "npm publish --help", "shuf", f"mypy {away}", "sar 1 5"),
    ):
        assert guarded(bench, command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_is_not_clear_for_commands_that_migrate_a_database(bench: Bench, repo: Path) -> None:
    """If a task has changed a migration, `guard` names the task for commands that read the project's migrations.

    It answers `clear` for commands that only query a database.
    """
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command in (
        *("alembic upgrade head", "npx prisma migrate deploy", "bundle exec rails db:migrate", "flask db upgrade"),
        *("python manage.py migrate", "php artisan migrate", "mix ecto.migrate", "supabase db push"),
        *("dotnet ef database update", "drizzle-kit push", "gcloud app deploy"),
    ):
        assert [each["task"] for each in guarded(bench, command)["holders"]] == [task], command
    for command in ("alembic current", "supabase status", "createdb shop", "psql -c 'drop table a'", "gcloud info"):
        assert guarded(bench, command)["clear"], command
    (repo / "go").touch()
    bench.run("wait", task)


def test_guard_names_words_of_a_command_that_it_cannot_read(bench: Bench, repo: Path) -> None:
    """If a variable may stand for a file that a task has changed, `guard` names the variable and the task."""
    unreadable = {
        "cat $FILE": ["$FILE"],
        "echo $(<$FILE)": ["$FILE"],
        'while read -r x; do cat "$x"; done < names': ["$x"],
        "xargs cat < names": ["…"],
        "wc -l < $FILE": ["$FILE"],
        "grep -n word --file=$FILE other.py": ["--file=$FILE"],
        "cat dir/$NAME": ["dir/$NAME"],
        "sudo -n env A=1 cat $FILE": ["$FILE"],
        "bash -c 'cat $1' _ a.py": ["$1"],
        '[ -f "$FILE" ]': ["$FILE"],
        "cd $PLACE && cat c.py": ["$PLACE"],
        "cd $PLACE && git status": ["$PLACE"],
        "git -C $PLACE status": ["$PLACE"],
        'bash -c "cat $FILE"': ["all of it", "$FILE"],
        "cat $A $B $C $D": ["$A", "$B", "$C"],
        "rm $FILE": ["$FILE"],
        "echo x > $FILE": ["$FILE"],
        "sed 'w out' other.py": ["…"],
        'grep "$P" "$FILE"': ["$FILE"],
        "grep -e $P $FILE": ["$FILE"],
        "grep -f $FILE other.py": ["$FILE"],
        "sort names | xargs grep": ["…"],
        "docker run -v $DIR:/x alpine ls": ["$DIR:/x"],
    }
    for command in unreadable:
        assert guarded(bench, command)["clear"], command
    task = bench.launch(f"git stash push -q; {until('go')}; git stash pop -q")
    window_on(bench, task, *NAMES)
    for command, words in unreadable.items():
        found = guarded(bench, command)
        assert [(each["task"], each["unread"]) for each in found["holders"]] == [(task, words)], command
        assert not found["clear"], command
    (held,) = guarded(bench, "cat $FILE a.py")["holders"]
    assert held["unread"] == [], "`unread` names the variable although another word names a held file"
    (repo / "lib").mkdir()
    for command in (
        *("echo $X", "kill $!", "sleep $N", "export A=$B", "A=$(date)", "cat lib/$NAME", "curl -s https://x/$ID"),
        *(
            "cat '$FILE' other.py",
            "cat <<E\n$X\nE",
            "T=$(mktemp); cat $T",
            "cat <(echo x)",
            "cd $PLACE && echo",
            "[ $? = 0 ]",
        ),
        *('grep "$P" other.py', "grep -c --include=$P -e $Q other.py", "sed -n ${N}p other.py", "head -n $N other.py"),
        *('awk -v n=$N "$SCRIPT" other.py', "find lib -name $P", "jq $QUERY other.py", "tail -n$N other.py"),
        *("for x in other.py lib; do ls $x; done", "cat $HOME/x", "ssh host 'cat $X'"),
    ):
        assert guarded(bench, command)["clear"], command
    said = bench.run("guard", "--exit-code", "--command", "cat $FILE")
    assert said.returncode == 1
    assert said.stdout.startswith(
        "cannot tell whether the command touches this, because $FILE cannot be interpreted:"
        f" task {task} has changed a.py, b.py"
    )
    (repo / "go").touch()
    bench.run("wait", task)
    assert bench.json("guard", "--command", "cat $FILE")["clear"]
