"""What a command's text says it will touch: rules by their examples, nesting, bad input, a corpus and its rates."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.declared import TOUCH_KINDS, Declared
from outlive.observe import shell
from outlive.observe.declared import declare
from outlive.observe.touching import PROGRAMS
from outlive.observe.window import may_open
from tests.unit.declared_corpus import CHANGES, OPAQUE, READS

HOME = "/home/dev"
CWD = "/home/dev/shop"


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same home for everybody, and no other place for temporary files than the usual."""
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.delenv("TMPDIR", raising=False)


@pytest.fixture
def no_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra `shell` were not installed."""
    monkeypatch.setattr(shell, "_grammar", lambda: None)


def of_text(text: str, cwd: str = "/w") -> Declared:
    """What a shell text declares."""
    return declare(("/bin/sh", "-c", text), cwd)


def touched(text: str) -> str:
    """Every `kind:what` of a text run in /w."""
    return " ".join(f"{touch.kind}:{touch.what}" for touch in of_text(text).touches)


def differing(expected: dict[str, str]) -> dict[str, str]:
    """The texts that touch something else than expected, and what that is."""
    return {text: touched(text) for text, wanted in expected.items() if touched(text) != wanted}


# --- rules -------------------------------------------------------------------------------------


def test_every_rule_does_what_its_examples_say() -> None:
    """The tables are executed, line by line."""
    examples = {text: wanted for each in PROGRAMS for rule in each.rules for text, wanted in rule.examples}
    assert not differing({text: wanted.replace(":~", ":" + HOME) for text, wanted in examples.items()})


def test_every_rule_has_an_example_and_names_known_kinds() -> None:
    """A rule nobody has seen working is none."""
    rules = [rule for each in PROGRAMS for rule in each.rules]
    assert [rule for rule in rules if not rule.examples] == []
    assert {kind for rule in rules for kind, _ in rule.touches} <= set(TOUCH_KINDS)


def test_a_name_stands_in_one_table() -> None:
    """Two tables for one program would hide each other."""
    names = [name for each in PROGRAMS for name in each.names]
    assert sorted({name for name in names if names.count(name) > 1}) == []


# --- what a text consists of --------------------------------------------------------------------


def test_a_redirection_is_of_the_command_before_it_and_where_that_runs() -> None:
    """The grammar takes it for one of the whole chain; `cd` comes first all the same, and the last one is fed."""
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
    """Shells, wrappers, substitutions, loops, functions: it is the same `rm` everywhere."""
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


def test_what_a_wrapper_does_beside_what_it_runs_counts() -> None:
    """It writes a log, or goes where only it knows."""
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


def test_words_that_others_supply_are_unknown_and_so_is_their_place() -> None:
    """What is going to be changed is certain there, only not what it is called."""
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


def test_a_directory_holds_as_long_as_the_shell_is_in_it() -> None:
    """`cd` counts from there on, in a subshell only inside, in a pipe not at all."""
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


def test_where_git_works_is_told_by_options_and_variables_before_its_directory() -> None:
    """One `-C` after the other, and the repository that it is told rather than the one it stands in."""
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


def test_what_runs_aside_or_instead_leads_nowhere_for_sure() -> None:
    """A `cd` in the background is of its own shell; of two, only one may have been done."""
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


def test_redirections_write() -> None:
    """To files, wherever they stand; not to other descriptors, nor to devices that keep nothing."""
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


def test_what_runs_elsewhere_is_touched_there() -> None:
    """On another machine or in a container; and here only what is redirected here."""
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


def test_temporary_paths_do_not_count_unless_the_task_lives_there() -> None:
    """A scratch file is nobody's business; a project under /tmp is."""
    assert touched("rm -rf /tmp/x; echo a > /var/tmp/b; D=$(mktemp -d); cp a $D/b; rm -r $D") == ""
    assert touched("rm ${TMPDIR:-/tmp}/x; T=$(mktemp -t a.XXX); rm $T; T=`mktemp /tmp/a.XXX`; rm $T") == ""
    assert touched("cp a /tmp; cd /tmp && curl -O https://x/a; cd /tmp/lib && git init && git commit -m x") == ""
    assert touched("rm /tmp/x{1..9} /tmp/{a,b/c} /tmp/{..a,b..}") == ""
    assert touched("rm /tmp/{a,../root/b}; rm /tmp/{..,a}/b") == "path:/tmp/{a,../root/b} path:/tmp/{..,a}/b"
    assert touched("T=$(mktemp ./a.XXX); rm $T") == "path:/w/a.XXX path:/w/a.XXX"
    project = "/tmp/project"  # noqa: S108 - named, not used
    inside = of_text("rm x; rm /tmp/y", project)
    assert [touch.what for touch in inside.touches] == [project + "/x"]


def test_a_password_in_an_address_is_not_named() -> None:
    """Only the host is."""
    assert touched("psql postgres://me:hunter2@db/x -c 'drop table a'") == "database:db"
    assert touched("curl -d a=b https://me:hunter2@x.org/y") == "remote:x.org"


def test_words_in_quotes_and_comments_are_not_commands() -> None:
    """Naming a command is not running it."""
    for text in (
        "echo 'rm x'",
        "# rm x",
        "cat <<'EOF'\nrm x\nEOF",
        "grep 'git push' a",
        "f() { rm x; }",
        "cat <<< 'rm x'",
    ):
        assert of_text(text) == Declared(level="declared"), text


def test_an_argv_is_read_as_it_is() -> None:
    """No shell sees it, so nothing in it is special."""
    declared = declare(("rm", "a b", "$X", ";", "ls"), "/w")
    assert [touch.what for touch in declared.touches] == ["/w/a b", "$X", "/w/;", "/w/ls"]
    assert declared.touches[0].by == "rm 'a b' '$X' ';' ls"


def test_a_touch_says_which_simple_command_it_is() -> None:
    """On one line, of bounded length."""
    by = [touch.by for touch in of_text("ls && git  commit -m \\\n 'x' && sudo rm y").touches]
    assert by == ["git commit -m \\ 'x'", "rm y"]
    assert len(of_text("rm " + "x" * 5000).touches[0].by) == 200


# --- the two gates ------------------------------------------------------------------------------


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
def test_programs_that_no_new_privs_would_disarm_are_seen(text: str) -> None:
    """Where they are called, and where something unread might call them."""
    assert of_text(text).needs_privileges


@pytest.mark.parametrize("text", ["ls", "git commit -m 'mount the screen at su'", "echo ping", "make all", "docker ps"])
def test_other_programs_need_no_privileges(text: str) -> None:
    """A word in a message is no call."""
    assert not of_text(text).needs_privileges


@pytest.mark.parametrize(
    "text",
    [
        *(
            "git stash && make; git stash pop",
            "git stash push -u -m x; (make); git stash apply",
            "git stash -q; git stash pop",
            "trap 'git stash pop' EXIT; git stash; make",
        ),
        *("git checkout v1 && make && git checkout -", "git switch v1; make; git switch main", "git bisect run make"),
        *("mv a b; make; mv b a", "cp a /tmp/b; make > a; cp /tmp/b a", "sed -i s/a/b/ x; make; git checkout x"),
        *("git apply x; make; git apply -R x", "patch -p1 < x; make; patch -R -p1 < x", "git rebase -x make main"),
        "for v in 1 2; do git checkout v$v; make; done",
        *(
            "git reset --hard HEAD~1 && pytest; git reset --hard ORIG_HEAD",
            "git merge --no-commit a; git merge --abort",
        ),
        *("git revert -n HEAD && pytest; git reset --hard", "perl -pi -e s/a/b/ x; pytest; git reset --hard"),
        *("git rebase main || git rebase --abort", "sed -E -i s/a/b/ x; pytest; git reset -q --hard"),
    ],
)
def test_a_window_is_foretold(text: str) -> None:
    """What is taken away and brought back in one text; one look at its letters must not keep it from being read."""
    assert may_open(text)
    assert of_text(text).opens_window


@pytest.mark.parametrize(
    "text",
    [
        *("git stash", "git stash pop", "git checkout x", "mv a b; mv c d", "git stash list; git stash pop"),
        *("sed -i s/a/b/ x", "cd a && git checkout x; cd ../b && git checkout y"),
        *("git fetch && git reset --hard origin/main", "git reset -q; git add a; git reset -q b", "git merge a"),
    ],
)
def test_no_window_without_a_way_back(text: str) -> None:
    """A change that stays is no window."""
    assert not of_text(text).opens_window


# --- what cannot be read ------------------------------------------------------------------------


def test_what_cannot_be_read_is_never_called_safe() -> None:
    """Programs nobody has described, scripts, and texts that are no shell."""
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


def test_of_a_text_with_errors_the_rest_is_read() -> None:
    """The grammar's partial tree, and a look without it."""
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
def test_bad_input_ends_soon_and_is_unknown(name: str) -> None:
    """Nothing raises, nothing runs away, nothing is believed."""
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
def test_what_winds_around_itself_ends(text: str) -> None:
    """Functions that call each other, variables that grow, scripts that slow a pattern down."""
    of_text(text)


def test_undecodable_bytes_in_a_name_are_kept() -> None:
    """A path need not be UTF-8."""
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
def test_no_text_raises(parts: list[str]) -> None:
    """Whatever the parts of a shell are thrown together to."""
    of_text("".join(parts))


# --- without the grammar ------------------------------------------------------------------------


@pytest.mark.usefixtures("no_grammar")
def test_without_the_grammar_it_is_unknown_and_says_what_it_sees() -> None:
    """The extra is optional; certainty is not."""
    declared = of_text("cd a && sudo rm -rf x; ls | tee y > z; git commit -m 'a; b'")
    assert declared.level == "unknown"
    assert declared.needs_privileges
    assert [f"{touch.kind}:{touch.what}" for touch in declared.touches] == [
        *("path:/w/a/x", "path:/w/a/z", "path:/w/a/y", "git:/w/a"),
    ]
    assert of_text("rm 'x").is_open
    assert of_text("echo 'rm x'") == Declared(level="unknown")
    assert declare(("rm", "x"), "/w").level == "declared", "an argv needs no grammar"


def test_the_grammar_is_loaded_when_a_text_is_read_and_not_before() -> None:
    """It costs more than a launch may."""
    program = (
        "import sys, outlive.observe.declared as d; assert 'tree_sitter' not in sys.modules; d.declare(('ls',), '/');"
        "assert 'tree_sitter' not in sys.modules; d.declare(('sh', '-c', 'ls'), '/');"
        "assert 'tree_sitter' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    launch = "import sys, outlive.cli.main, outlive.service.run; assert 'outlive.observe.shell' not in sys.modules"
    subprocess.run([sys.executable, "-c", launch], check=True)


# --- the corpus ---------------------------------------------------------------------------------


def lines(text: str) -> list[str]:
    """The lines of the corpus as shell texts."""
    return [line.replace("⏎", "\n") for line in text.strip().splitlines()]


CHANGING = [tuple(line.split(" | ", 1)) for line in lines(CHANGES)]


def test_the_corpus_is_large_enough_and_says_nothing_twice() -> None:
    """Its rates mean something only then."""
    texts = [text for _, text in CHANGING] + lines(READS) + lines(OPAQUE)
    assert len(CHANGING) + len(lines(READS)) >= 300
    assert sorted({text for text in texts if texts.count(text) > 1}) == []


def test_of_those_that_change_something_95_percent_are_flagged() -> None:
    """... and with every kind that the label names."""
    missed = [text for _, text in CHANGING if not of_text(text, CWD).is_flagged]
    assert len(missed) <= 0.05 * len(CHANGING), missed
    wrong = [
        (kinds, text)
        for kinds, text in CHANGING
        if not {*kinds.split()} <= {t.kind for t in of_text(text, CWD).touches}
    ]
    assert len(wrong) <= 0.05 * len(CHANGING), wrong


def test_of_those_that_only_read_3_percent_are_flagged_at_most() -> None:
    """... and few are called unknown, which would be true of everything and help nobody."""
    flagged = [text for text in lines(READS) if of_text(text, CWD).is_flagged]
    assert len(flagged) <= 0.03 * len(lines(READS)), flagged
    unknown = [text for text in lines(READS) if of_text(text, CWD).is_open]
    assert len(unknown) <= 0.05 * len(lines(READS)), unknown


def test_those_that_do_not_say_are_unknown_without_exception() -> None:
    """Not safe, and not flagged either: they count in neither rate."""
    declared = {text: of_text(text, CWD) for text in lines(OPAQUE)}
    assert [text for text, each in declared.items() if not each.is_open] == []
    assert [text for text, each in declared.items() if each.is_flagged] == []


@pytest.mark.usefixtures("no_grammar")
def test_without_the_grammar_most_changes_are_still_flagged() -> None:
    """Less is seen, and nothing is called safe."""
    missed = [text for _, text in CHANGING if not of_text(text, CWD).is_flagged]
    assert len(missed) <= 0.15 * len(CHANGING), missed
    assert all(of_text(text, CWD).is_open for text in lines(READS))
