"""Which files and resources a command touches according to its text.

The tests use examples and a large collection of commands.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.effects.predicted import Declared
from outlive.observe.predict.predict import declare
from outlive.observe.shell import bash_grammar, commands
from tests.unit.observe.predict.changing_commands import CHANGES
from tests.unit.observe.predict.reading_commands import OPAQUE, READS

HOME = "/home/dev"
CWD = "/home/dev/shop"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the same home and temporary directory on every machine."""
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.delenv("TMPDIR", raising=False)


@pytest.fixture
def no_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the shell grammar, as if its packages could not be loaded."""
    monkeypatch.setattr(commands, "_grammar", lambda: None)


def of_text(text: str, cwd: str = "/w") -> Declared:
    """Return the files and resources that a shell text declares to touch."""
    return declare(("/bin/sh", "-c", text), cwd)


def touched(text: str) -> str:
    """Return everything that a text touches when it runs in /w, each written as `kind:what`."""
    return " ".join(f"{touch.kind}:{touch.what}" for touch in of_text(text).touches)


def differing(expected: dict[str, str]) -> dict[str, str]:
    """Return the texts that do not touch what is expected, with what they touch."""
    return {text: touched(text) for text, wanted in expected.items() if touched(text) != wanted}


# --- the parts of a text ------------------------------------------------------------------------


def test_redirection_belongs_to_the_command_before_it_and_its_directory() -> None:
    """A redirection belongs to the command before it, and to the directory of this command.

    After `cd sub && echo a > b`, the file b is in sub. The grammar assigns the redirection to both commands.
    """
    assert not differing(
        {
            "cd sub && echo a > b": "path:/w/sub/b",
            "cd sub && echo a > b && cat b": "path:/w/sub/b",
            "mkdir -p /tmp/x && cd /tmp/x && echo a > b": "",
            "cd a && cd b && ls > c || ls > d": "path:/w/a/b/c path:/w/a/b/d",
            "(cd sub && ls > c); ls > c": "path:/w/sub/c path:/w/c",
            "cd sub && make 2>&1 | tee log": "unknown:make path:/w/sub/log",
            "cd sub && cat a | sort > b": "path:/w/sub/b",
            "ls > a && cd sub && ls > b && cd .. && ls > c": "path:/w/a path:/w/sub/b path:/w/c",
            "cd sub && cat > b <<'E'\nx\nE": "path:/w/sub/b",
            "cd sub && cat <<'E' > b && rm c\nx\nE": "path:/w/sub/b path:/w/sub/c",
            "cd sub && psql shop < a.sql": "database:shop",
            "cd sub && bash <<'E'\nrm x\nE": "path:/w/sub/x",
            "{ cd sub && ls; } > b": "path:/w/b",
            "if true; then cd sub && ls; fi > b": "path:/w/b",
            "cd sub && { ls; } > b": "path:/w/sub/b",
        }
    )


def test_commands_are_found_however_they_are_wrapped() -> None:
    """Shells, wrapper programs, substitutions, loops and functions all run the same `rm`, which is found."""
    wrapped = (
        "bash -c 'rm x'",
        "bash -lc 'rm x'",
        "/usr/bin/env bash -c \"sh -c 'rm x'\"",
        "eval 'rm x'",
        'eval "rm" "x"',
        "env -i A=1 rm x",
        "sudo -u bob A=1 rm x",
        "nice -n 5 timeout -s KILL 9s nohup rm x",
        "time rm x",
        "command rm x",
        "exec rm x",
        "A=1 rm x",
        "\\rm x",
        "'r'm x",
        ": $(rm x)",
        "echo `rm x`",
        'echo "a $(rm x) b"',
        "cat <(rm x)",
        "cat <<EOF\n$(rm x)\nEOF",
        "bash <<'EOF'\nrm x\nEOF",
        "bash -s <<< 'rm x'",
        "bash -s arg <<'E'\nrm x\nE",
        "bash -c 'bash' <<'E'\nrm x\nE",
        "env -S 'rm x'",
        "env -S'A=1 rm' x",
        "env '--split-string=-i rm x'",
        "runuser -u bob -- rm x",
        "runuser -l bob -c 'rm x'",
        "script -qc 'rm x' /dev/null",
        "echo 'rm x' | sh",
        "cat <<'EOF' | bash\nrm x\nEOF",
        "(rm x)",
        "{ rm x; }",
        "if true; then rm x; fi",
        "while false; do :; done; rm x",
        "case a in a) rm x;; esac",
        "true && false || rm x",
        "ls | rm x",
        "rm x &",
        "! rm x",
        "f() { rm x; }; f",
        "trap 'rm x' EXIT",
        "X=x; rm $X",
        'C="rm x"; $C',
        "for f in x; do rm $f; done",
        "watch -n 1 rm x",
        "flock /tmp/lock rm x",
        "su -c 'rm x'",
        "find x -exec rm {} +",
        "find x -type f -delete",
        "2>/dev/null rm x",
        "rm 2>/dev/null x",
        '[ -n "$(rm x)" ]',
        "[[ -n $(rm x) ]]",
        "echo $((1 + $(rm x))) ${A:-b}",
        "echo ${A:-$(rm x)}",
        "a=($(rm x))",
        "a=$(b=$(rm x))",
        "export A=$(rm x)",
        "for i in $(rm x); do :; done",
        "for ((i = 0; i < 3; i++)); do rm x; done",
        "ls > /tmp/$(rm x)",
        "coproc rm x",
        "rm x |& cat",
        "f () { g; }; g () (rm x); f",
        "while read -r l; do rm x; done < <(ls)",
        "cat <<-EOF\n\ta\n\tEOF\nrm x",
        "sudo sh <<EOF\nrm x\nEOF",
    )
    assert not differing(dict.fromkeys(wrapped, "path:/w/x"))


def test_effects_of_a_wrapper_count_with_those_of_its_command() -> None:
    """What a wrapper program itself changes is found together with what its command changes.

    For example, `script` writes a log, and `git submodule foreach` runs its command in unknown directories.
    """
    assert not differing(
        {
            "script -c ls out.log": "path:/w/out.log",
            "script -qc 'rm x'": "path:/w/typescript path:/w/x",
            "time --output=a ls": "path:/w/a",
            "git submodule foreach git status": "",
            "git submodule foreach --recursive 'git checkout main; rm x'": "git:/w/… path:/w/…/x",
            "git bisect run make": "unknown:make git:/w",
            "git -C a bisect run sh -c 'rm x && git push'": "path:/w/a/x git:/w/a remote:git git:/w/a",
            "git bisect start": "git:/w",
            "git rebase -x 'make test; rm x' -x ls --onto a b": "unknown:make path:/w/x git:/w",
            "git rebase --exec='npm ci' main > log": "packages:npm path:/w/log git:/w",
            "git rebase main": "git:/w",
            "env -C a -S 'rm x'": "path:/w/a/x",
            'env -S "rm \'x"': "unknown:…",
            "python -X dev -W error -m pip install x": "packages:pip",
            "python -X dev x.py -m pip": "unknown:python",
        }
    )


def test_argument_from_stdin_or_a_variable_is_an_unknown_path() -> None:
    """An argument from stdin or from a variable counts as an unknown path."""
    assert not differing(
        {
            "ls | xargs rm": "path:…",
            "ls | xargs -I{} mv {} old/{}": "path:… path:/w/old/…",
            "rm -rf $DIR/build": "path:$DIR/build",
            'rm "$1"': "path:$1",
            "cd $DIR && rm x": "path:$DIR/x",
            "$CMD x": "unknown:$CMD",
            'eval "$CMD"': "unknown:$CMD",
        }
    )
    assert of_text('eval "$CMD"').level == "unknown"


def test_cd_changes_the_directory_until_its_shell_ends() -> None:
    """A `cd` holds until its shell ends: in a subshell only there, and in a pipe not at all for later commands."""
    assert not differing(
        {
            "cd a && rm x": "path:/w/a/x",
            "cd a; cd ../b; rm x": "path:/w/b/x",
            "cd a; cd -; rm x": "path:/w/x",
            "pushd a; popd; rm x": "path:/w/x",
            "(cd a; rm x); rm x": "path:/w/a/x path:/w/x",
            "cd a | cat; rm x": "path:/w/x",
            "cd; rm x": f"path:{HOME}/x",
            "sh -c 'cd a'; rm x": "path:/w/x",
            "env -C a rm x": "path:/w/a/x",
            "git -C ../lib add .": "git:/lib",
            "cd ~/lib && git commit -m x": f"git:{HOME}/lib",
            "for d in a b; do (cd $d && rm x); done": "path:/w/a/x path:/w/b/x",
        }
    )


def test_repository_of_git_follows_from_options_and_variables_before_the_directory() -> None:
    """The repository of a git command follows from its options and from GIT_DIR, which come before the directory.

    Several `-C` are joined.
    """
    assert not differing(
        {
            "GIT_DIR=../o/.git git stash": "git:/o",
            "GIT_DIR=../o/.git GIT_WORK_TREE=../p git stash": "git:/o",
            "export GIT_DIR=../o/.git; git stash": "git:/o",
            "export GIT_DIR=../o/.git GIT_WORK_TREE=../o; git stash": "git:/o",
            "env GIT_DIR=../o/.git git stash": "git:/o",
            "GIT_DIR=../o/.git timeout 9 git stash": "git:/o",
            "GIT_DIR=../o/.git bash -c 'git stash'": "git:/o",
            "GIT_DIR=$O/.git git stash": "git:$O",
            "GIT_DIR=.git git stash": "git:/w",
            "GIT_DIR=../o/.git ls; git stash": "git:/w",
            "GIT_DIR=../o/.git ssh h git stash": "remote:h",
            "GIT_DIR=../o/.git git archive -o a HEAD": "path:/w/a",
            "git --git-dir ../o/.git --work-tree ../p stash": "git:/o",
            "git --git-dir=/srv/o.git gc": "git:/srv/o.git",
            "git -C a -C b stash": "git:/w/a/b",
            "git -C a -C /b stash": "git:/b",
            "git commit -C HEAD~1": "git:/w",
            "env --chdir=lib git stash": "git:/w/lib",
            "env --chdir lib git stash": "git:/w/lib",
            "sudo --chdir=/lib git stash": "git:/lib",
        }
    )


def test_directory_is_unknown_after_a_cd_that_may_not_have_run() -> None:
    """After a `cd` that may not have run, as in `cd a || cd b`, the directory is unknown.

    A `cd` in the background changes only its own shell.
    """
    assert not differing(
        {
            "cd a & git stash": "git:/w",
            "cd a && ls & git stash": "git:/w",
            "(cd a & rm x); { cd b & rm y; }": "path:/w/x path:/w/y",
            "cd a & cd b; rm x": "path:/w/b/x",
            "cd a || cd b; git stash": "git:…",
            "cd a || cd b; rm x /y": "path:…/x path:/y",
            "cd a || exit 1; rm x": "path:/w/a/x",
            "cd a || { mkdir a; cd a; }; rm x": "path:/w/a path:/w/a/x",
            "cd a || rm x": "path:/w/x",
            "cd a || cd b || exit 1; cd /c; rm x": "path:/c/x",
            "test -d b || cd b; rm x": "path:…/x",
        }
    )


def test_redirection_writes_a_file() -> None:
    """A redirection into a file is a write. A redirection into a descriptor or into /dev/null is not."""
    assert not differing(
        {
            "ls > x": "path:/w/x",
            "ls >> x 2>&1": "path:/w/x",
            "ls &> x": "path:/w/x",
            "ls 2> x": "path:/w/x",
            "> x": "path:/w/x",
            "{ ls; pwd; } > x": "path:/w/x",
            "sudo ls > x": "path:/w/x",
            "tee <<'E' x\na\nE": "path:/w/x",
            "cat <<'E' | tee x\n\\a b\nE": "path:/w/x",
            "bash <<'E'\n\\rm x\nE": "path:/w/x",
            "ls > /dev/null 2>&1": "",
            "echo > /dev/tcp/web/80": "remote:web",
            "ls >&2": "",
            "wc < x": "",
            "exec > >(tee x)": "path:/w/x",
        }
    )


def test_command_for_another_machine_or_container_touches_nothing_here() -> None:
    """A command for another machine or container touches no local file, except by a redirection of the local shell."""
    assert not differing(
        {
            "ssh me@web 'rm x'": "remote:web",
            "ssh web uptime": "",
            "ssh web 'cat x' > y": "path:/w/y",
            "ssh web <<'EOF'\nrm x\nEOF": "remote:web",
            "docker exec -it db rm x": "container:db",
            "docker exec db ls": "",
            "docker compose exec -T db psql -c 'drop table a'": "container:db database:psql",
            "kubectl exec -n a pod -- rm x": "remote:pod",
            "ssh web ./deploy.sh": "unknown:./deploy.sh",
            "ssh web bash <<'E'\nrm x\nE": "remote:web",
            "ssh web 'sudo bash -s' a <<'E'\nrm x\nE": "remote:web",
            "ssh web 'cd /srv && bash' <<'E'\nrm x\nE": "unknown:bash",
            "ssh web psql shop < a.sql": "remote:web database:shop",
        }
    )


def test_temporary_paths_do_not_count_unless_the_task_runs_there() -> None:
    """Temporary paths do not count, because they do not concern other sessions. In a project below /tmp they do."""
    assert touched("rm -rf /tmp/x; echo a > /var/tmp/b; D=$(mktemp -d); cp a $D/b; rm -r $D") == ""
    assert touched("rm ${TMPDIR:-/tmp}/x; T=$(mktemp -t a.XXX); rm $T; T=`mktemp /tmp/a.XXX`; rm $T") == ""
    assert touched("cp a /tmp; cd /tmp && curl -O https://x/a; cd /tmp/lib && git init && git commit -m x") == ""
    assert touched("rm /tmp/x{1..9} /tmp/{a,b/c} /tmp/{..a,b..}") == ""
    assert touched("rm /tmp/{a,../root/b}; rm /tmp/{..,a}/b") == "path:/root/b path:/b"
    assert touched("T=$(mktemp ./a.XXX); rm $T") == "path:/w/a.XXX path:/w/a.XXX"
    project = "/tmp/project"  # noqa: S108 - the test only names this path
    inside = of_text("rm x; rm /tmp/y", project)
    assert [touch.what for touch in inside.touches] == [project + "/x"]


def test_address_is_named_without_its_password() -> None:
    """An address is recorded as its host, without user name and password."""
    assert touched("psql postgres://me:hunter2@db/x -c 'drop table a'") == "database:db"
    assert touched("curl -d a=b https://me:hunter2@x.org/y") == "remote:x.org"


def test_words_in_quotes_and_comments_are_not_commands() -> None:
    """Words in quotes and comments are not taken for commands."""
    for text in (
        "echo 'rm x'",
        "# rm x",
        "cat <<'EOF'\nrm x\nEOF",
        "grep 'git push' a",
        "f() { rm x; }",
        "cat <<< 'rm x'",
    ):
        assert of_text(text) == Declared(level="declared"), text


def test_argv_is_read_without_a_shell() -> None:
    """In an argument list without a shell, no character has a special meaning."""
    declared = declare(("rm", "a b", "$X", ";", "ls"), "/w")
    assert [touch.what for touch in declared.touches] == ["/w/a b", "$X", "/w/;", "/w/ls"]
    assert declared.touches[0].by == "rm 'a b' '$X' ';' ls"


def test_touch_names_its_simple_command() -> None:
    """Each touched path has the text of the command that touches it, in one line of limited length."""
    by = [touch.by for touch in of_text("ls && git  commit -m \\\n 'x' && sudo rm y").touches]
    assert by == ["git commit -m \\ 'x'", "rm y"]
    assert len(of_text("rm " + "x" * 5000).touches[0].by) == 200


# --- privileges and windows ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        *("sudo ls", "ls | sudo tee x", "bash -c 'sudo ls'", "su -c ls", "doas ls", "ping -c 1 a", "mount /mnt"),
        *(
            "tmux new -d",
            "screen -dm x",
            "eval $(ssh-agent)",
            "pkexec ls",
            "newgrp docker",
            "crontab -l",
            "xargs sudo rm",
        ),
        *("python -c 'os.system(\"ping x\")'", "./install.sh --with sudo", "find . -exec sudo rm {} +", "echo 'sudo x"),
    ],
)
def test_programs_that_need_privileges_are_found(text: str) -> None:
    """Programs that need privileges, such as sudo, are found in commands, even in texts that cannot be parsed."""
    assert of_text(text).needs_privileges


@pytest.mark.parametrize("text", ["ls", "git commit -m 'mount the screen at su'", "echo ping", "make all", "docker ps"])
def test_other_programs_need_no_privileges(text: str) -> None:
    """A text that only mentions a program such as sudo, for example in a message, needs no privileges."""
    assert not of_text(text).needs_privileges


# --- texts that cannot be parsed ----------------------------------------------------------------


def test_unknown_programs_scripts_and_malformed_texts_are_open() -> None:
    """Unknown programs, scripts and malformed texts may change any file, so `is_open` is true."""
    for text in (
        "frobnicate",
        "./x.sh",
        "bash x.sh",
        "curl a | bash",
        ". ./x",
        "python x.py",
        "alias ls='rm x'",
        "if rm",
        "a 'b",
        "cat <<'E' | psql\n\\i x\nE",
        "cat <<'E' | bash\n\\rm x\nE",
    ):
        assert of_text(text).is_open, text
    for argv in ((), ("",), ("bash",), ("/opt/x",)):
        assert declare(argv, "/w").is_open, argv


def test_text_with_syntax_errors_is_read_as_far_as_possible() -> None:
    """A text with syntax errors is read as far as possible: by the grammar, and by a split without the grammar."""
    declared = of_text("rm x; if then; git push; ((")
    assert declared.level == "unknown"
    assert {"path", "git", "remote"} <= {touch.kind for touch in declared.touches}


BAD = {
    "a lone surrogate": "rm \ud800",
    "a NUL": "rm a\0b",
    "a megabyte of commands": "rm x; " * 170_000,
    "a megabyte of one word": "rm " + "x" * 1_000_000,
    "an open quote": "rm 'x",
    "an open substitution": 'rm "$(x',
    "substitutions": "$(" * 1000 + "rm x" + ")" * 1000,
    "subshells": "(" * 1000 + "rm x" + ")" * 1000,
    "groups": "{ " * 1000 + "rm x" + "; }" * 1000,
    "conditions": "if true; then " * 1000 + "rm x" + "; fi" * 1000,
    "shells in shells": "eval " * 1000 + "rm x",
    "wrappers": "env " * 1000 + "rm x",
    "a long list": " && ".join(["rm x"] * 3000),
    "a long pipe": " | ".join(["rm x"] * 3000),
    "here-documents without end": "cat <<A " * 10_000,
    "words in words": 'echo "$(' * 1000 + "rm x" + ')" | cat' * 1000,
    "loops in loops": "for a in 1 2 3 4 5 6 7 8; do " * 12 + "rm $a" + "; done" * 12,
    "nonsense": "'\"`$(){}<>;&|\\ " * 9000,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_unknown_within_ten_seconds(name: str) -> None:
    """Bad input is read in less than ten seconds, without an error, and has the level `unknown`."""
    before = time.process_time()
    assert of_text(BAD[name]).level == "unknown"
    assert time.process_time() - before < 10


@pytest.mark.parametrize(
    "text",
    [
        *("f() { g; g; }; g() { f; f; }; f", ":(){ :|:& };:", 'A=rm; A="$A $A"; A="$A $A"; $A', "X='eval $X'; eval $X"),
        *("awk '" + "print " * 20_000 + "'", "psql -c '" + "/* " * 30_000 + "'", "rm " + "../" * 30_000),
    ],
    ids=["functions", "a bomb", "a variable", "an eval", "awk", "psql", "a path"],
)
def test_endless_recursion_in_a_text_ends(text: str) -> None:
    """Functions that call each other without end, variables that grow, and long scripts are read in limited time."""
    of_text(text)


def test_undecodable_bytes_in_a_name_are_kept() -> None:
    """A touched path keeps its bytes, even if they are no valid UTF-8."""
    assert touched("rm 'a\udcff'") == "path:/w/a\udcff"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *"rm x;&|()<>{}'\"`$\\\n#=*~![]",
                *("<<E", "\nE\n", "$(", "bash -c ", "xargs ", "find . -exec ", "sudo ", "if ", "fi "),
            ]
        ),
        max_size=40,
    )
)
def test_declare_raises_no_error_for_random_texts(parts: list[str]) -> None:
    """Random sequences of shell words and signs raise no error."""
    of_text("".join(parts))


# --- without the grammar ------------------------------------------------------------------------


@pytest.mark.usefixtures("no_grammar")
def test_declared_level_is_unknown_without_the_grammar() -> None:
    """Without the grammar, the paths that a text names are found, but the list never counts as complete."""
    declared = of_text("cd a && sudo rm -rf x; ls | tee y > z; git commit -m 'a; b'")
    assert declared.level == "unknown"
    assert declared.needs_privileges
    assert [f"{touch.kind}:{touch.what}" for touch in declared.touches] == [
        *("path:/w/a/x", "path:/w/a/z", "path:/w/a/y", "git:/w/a"),
    ]
    assert of_text("rm 'x").is_open
    assert of_text("echo 'rm x'") == Declared(level="unknown")
    assert declare(("rm", "x"), "/w").level == "declared", "an argv needs no grammar"


def test_grammar_is_loaded_only_when_a_shell_text_is_read() -> None:
    """The grammar is loaded only when a shell text is read. Loading takes longer than a launch may take."""
    program = (
        "import sys, outlive.observe.predict.predict as d; name = 'outlive.observe.shell.bash_grammar';"
        "d.declare(('ls',), '/'); assert name not in sys.modules; d.declare(('sh', '-c', 'ls'), '/');"
        "assert name in sys.modules; assert 'tree_sitter' not in sys.modules, 'only its compiled part is needed'"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    launch = (
        "import sys, outlive.cli.main, outlive.service.tasks.run;"
        "assert 'outlive.observe.shell.commands' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", launch], check=True)


def test_grammar_package_is_imported_when_its_compiled_part_has_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the compiled part of the grammar's package has another name, the package itself is imported.

    A later version may rename this part, which is not public.
    """

    def fail(package: str, name: str) -> None:
        raise ImportError(f"{package} has no {name}")

    monkeypatch.setattr(bash_grammar, "load_compiled", fail)
    language = bash_grammar._binding("tree_sitter").Language(bash_grammar._binding("tree_sitter_bash").language())
    assert language.name == "bash"


# --- the large collection of commands -----------------------------------------------------------


def lines(text: str) -> list[str]:
    """Return the lines of the collection as shell texts."""
    return [line.replace("⏎", "\n") for line in text.strip().splitlines()]


def is_flagged(declared: Declared) -> bool:
    """Return whether the rules name a path or resource that a text will certainly change."""
    return any(touch.kind != "unknown" for touch in declared.touches)


CHANGING = [tuple(line.split(" | ", 1)) for line in lines(CHANGES)]


def test_corpus_is_large_enough_and_has_no_duplicates() -> None:
    """The collection of commands has enough lines, and no line twice. Otherwise its rates would mean little."""
    texts = [text for _, text in CHANGING] + lines(READS) + lines(OPAQUE)
    assert len(CHANGING) + len(lines(READS)) >= 300
    assert sorted({text for text in texts if texts.count(text) > 1}) == []


def test_95_percent_of_changing_commands_are_flagged() -> None:
    """For 95 percent of the commands that change something, the rules find every kind of change."""
    missed = [text for _, text in CHANGING if not is_flagged(of_text(text, CWD))]
    assert len(missed) <= 0.05 * len(CHANGING), missed
    wrong = [
        (kinds, text)
        for kinds, text in CHANGING
        if not {*kinds.split()} <= {t.kind for t in of_text(text, CWD).touches}
    ]
    assert len(wrong) <= 0.05 * len(CHANGING), wrong


def test_at_most_3_percent_of_reading_commands_are_flagged() -> None:
    """At most 3 percent of the commands that only read are taken for changing ones, and at most 5 are unknown."""
    flagged = [text for text in lines(READS) if is_flagged(of_text(text, CWD))]
    assert len(flagged) <= 0.03 * len(lines(READS)), flagged
    unknown = [text for text in lines(READS) if of_text(text, CWD).is_open]
    assert len(unknown) <= 0.05 * len(lines(READS)), unknown


def test_every_opaque_command_is_open_and_not_flagged() -> None:
    """A command that runs code from elsewhere may change any file, so it is open and names no change."""
    declared = {text: of_text(text, CWD) for text in lines(OPAQUE)}
    assert [text for text, each in declared.items() if not each.is_open] == []
    assert [text for text, each in declared.items() if is_flagged(each)] == []


@pytest.mark.usefixtures("no_grammar")
def test_85_percent_of_changing_commands_are_flagged_without_the_grammar() -> None:
    """Without the grammar, 85 percent of the changing commands are found. Commands that only read are unknown."""
    missed = [text for _, text in CHANGING if not is_flagged(of_text(text, CWD))]
    assert len(missed) <= 0.15 * len(CHANGING), missed
    assert all(of_text(text, CWD).is_open for text in lines(READS))
