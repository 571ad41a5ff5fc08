"""Completion in the real shells: what they offer, and what pressing a key must never do.

Bash and zsh sit at a terminal of their own. There a key inserts every candidate into the line, and
the line is entered: what the shell then understands is what a user would have got, quotes included.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import subprocess
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.cli.completion import SHELLS
from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.options import HELP, JSON
from outlive.domain.lifecycle import STATES
from outlive.ledger.opening import PATIENCE_S, SCHEMA_VERSION, apsw
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.origin import project_of
from tests.conformance.steps import enqueued
from tests.support import SCRIPT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Bench

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
INSERT_ALL = "\x18a"  # Control-X a, bound below

BASH = r"""
bind '"\C-xa": insert-completions'
eval "$(command outlive completion bash)"
"""
BASH_WITH_PACKAGE = rf"""
bind '"\C-xa": insert-completions'
. {BASH_COMPLETION}
"""
ZSH_KEY = r"""
zle -C all-matches complete-word _generic
bindkey '^Xa' all-matches
zstyle ':completion:all-matches:*' completer _all_matches _complete
zstyle ':completion:all-matches:*' insert yes
"""
ZSH = rf"""
autoload -Uz compinit && compinit -u -D
eval "$(command outlive completion zsh)"
{ZSH_KEY}
"""
ZSH_WITH_FILE = rf"""
fpath=($ZDOTDIR/functions $fpath)
autoload -Uz compinit && compinit -u -D
{ZSH_KEY}
"""
# The shell's own `outlive` tells what it was called with; the script's `command outlive` is the real one.
TELL = r"""
outlive() { printf '%s\0' "$@" >"$ANSWER.part"; command mv "$ANSWER.part" "$ANSWER"; }
PS1='ready> '
"""


class Terminal:
    """A shell at a terminal of its own."""

    def __init__(self, bench: Bench, shell: str, start: str) -> None:
        self.name = shell
        self.answer = bench.root / "answer"
        self.seen = ""
        env = {**_environment(bench), "ANSWER": str(self.answer), "ZDOTDIR": str(bench.root), "TERM": "dumb"}
        rc = bench.root / ".zshrc"  # where zsh looks for it; bash is told
        rc.write_text(start + TELL)
        argv = {
            "bash": ["bash", "--noprofile", "--rcfile", str(rc), "-i"],
            "zsh": ["zsh", "-d", "-i"],
        }[shell]
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (50, 250))
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *argv], stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=bench.project
        )
        os.close(theirs)
        self.wait_for("ready> ")

    def _read(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")

    def press(self, keys: str) -> None:
        """Type, and forget what was seen before."""
        self._read()
        self.seen = ""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Until the terminal shows it."""

        def is_seen() -> bool:
            self._read()
            return text in self.seen

        wait_until(is_seen, f"{text!r} at the terminal")

    def offers(self, line: str) -> list[str]:
        """What the last word of the line may become; itself if there is nothing that begins so."""
        self.answer.unlink(missing_ok=True)
        self.press(f"{line}{INSERT_ALL}\r")

        def has_answered() -> bool:
            self._read()
            return self.answer.exists()

        wait_until(has_answered, f"an answer to {line!r}")
        before = shlex.split(line.rpartition(" ")[0])
        return self.answer.read_text().split("\0")[len(before) - 1 : -1]

    def close(self) -> None:
        """Hang up."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


class Fish:
    """Fish tells its candidates without a terminal. The script lies where the help says it should."""

    name = "fish"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._env = {**_environment(bench), "XDG_CONFIG_HOME": str(bench.root / "config")}
        place = bench.root / "config" / "fish" / "completions" / "outlive.fish"
        place.parent.mkdir(parents=True)
        place.write_text(bench.ok("completion", "fish"))

    def described(self, line: str) -> dict[str, str]:
        """The candidates with what is said of each."""
        done = subprocess.run(
            ["fish", "-c", "complete -C $LINE"],
            env={**self._env, "LINE": line},
            cwd=self._bench.project,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return {name: said for name, _, said in (each.partition("\t") for each in done.stdout.splitlines())}

    def offers(self, line: str) -> list[str]:
        """The candidates."""
        return list(self.described(line))

    def close(self) -> None:
        """Nothing is open."""


def _environment(bench: Bench) -> dict[str, str]:
    path = f"{SCRIPT.parent}{os.pathsep}{bench.env['PATH']}"
    private = {"HOME": str(bench.root), "XDG_DATA_HOME": str(bench.root / "data")}
    return {**bench.env, **private, "PATH": path, "LC_ALL": "C.UTF-8"}


def _open(bench: Bench, shell: str, start: str = "") -> Terminal | Fish:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    if shell == "fish":
        return Fish(bench)
    return Terminal(bench, shell, start or {"bash": BASH, "zsh": ZSH}[shell])


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest, bench: Bench) -> Iterator[Terminal | Fish]:
    """Each shell in its turn, in the project."""
    opened = _open(bench, request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", SHELLS)
def test_the_whole_table_is_in_each_script(bench: Bench, name: str) -> None:
    """Every verb, alias, option and choice; also where the shell itself is not installed."""
    script = bench.ok("completion", name)
    words = set(re.findall(r"[\w-]+", script))
    for verb in VERBS:
        command = load(verb)
        assert verb in words
        for option in command.options:
            assert f" -l {option.name[2:]} " in script if name == "fish" else option.name in words
            assert words >= set(option.choices)
    assert words >= set(ALIASES)


def test_the_marks_for_completion_are_set() -> None:
    """Whoever adds a verb that takes ids, or an option that takes a group or a directory, says so."""
    for command in map(load, VERBS):
        assert (command.takes == "task") == bool(re.search(r"\bID\b", command.usage)), command.name
        for option in command.options:
            expected = {"--group": "group", "--after": "task", "--after-any": "task"}.get(option.name)
            if option.metavar == "DIR":
                expected = "directory"
            assert option.takes == expected, f"{command.name} {option.name}"


def test_verbs_are_offered(shell: Terminal | Fish) -> None:
    """All of them with their aliases, those that begin so, and again after `help`."""
    every = {*VERBS, *ALIASES}
    assert set(shell.offers("outlive ")) == {*every, "help"}
    assert shell.offers("outlive sho") == ["show"]
    assert set(shell.offers("outlive help ")) == every
    assert set(shell.offers("outlive completion ")) == set(SHELLS)
    assert set(shell.offers("outlive --")) == {"--help", "--version"}


def test_options_of_each_verb_are_offered(shell: Terminal | Fish) -> None:
    """Each has its own, and an alias has those of its verb."""
    for verb in (*VERBS, *ALIASES):
        expected = {option.name for option in (*load(verb).options, JSON, HELP)}
        assert set(shell.offers(f"outlive {verb} -")) - {"--"} == expected, verb
    assert shell.offers("outlive logs t7 --fo") == ["--follow"]


def test_values_are_offered_where_they_are_known(bench: Bench, shell: Terminal | Fish) -> None:
    """The choices of an option; nothing for a duration or a pattern, least of all files."""
    (bench.project / "file").touch()
    for verb in VERBS:
        for option in load(verb).options:
            if option.metavar and option.takes is None:
                offered = shell.offers(f"outlive {verb} {option.name} ")
                assert set(offered) == set(option.choices), f"{verb} {option.name}"
    assert set(shell.offers("outlive ps --all --state ")) == set(STATES)
    assert shell.offers("outlive list --state=succ") == ["--state=succeeded"]
    assert shell.offers("outlive run --env A=") in ([], ["A="])


def test_directories_are_offered_for_a_directory(bench: Bench, shell: Terminal | Fish) -> None:
    """Directories only, and a name with a blank in it is still one word."""
    (bench.project / "a place").mkdir()
    (bench.project / "a file").touch()
    assert [name.rstrip("/") for name in shell.offers("outlive run --cwd ")] == ["a place"]
    assert [name.rstrip("/") for name in shell.offers("outlive run --cwd=a")] == ["--cwd=a place"]


def test_ids_are_offered_where_a_task_is_meant(bench: Bench, shell: Terminal | Fish) -> None:
    """The tasks of this project, for every verb that takes one, also after an option with a value."""
    tasks = {bench.launch("true"), bench.launch("echo 'a: b' [c] $(true)")}
    other = bench.root / "other"
    other.mkdir()
    bench.launch("true", cwd=other)
    for verb in (*VERBS, *ALIASES):
        if load(verb).takes == "task":
            assert set(shell.offers(f"outlive {verb} ")) == tasks, verb
    one = tasks.pop()
    assert shell.offers(f"outlive output --tail 3 {one[:-1]}") == [one]


def test_an_id_is_told_with_its_state_and_command(bench: Bench) -> None:
    """In fish and zsh, newest first, whatever is in the command."""
    if not shutil.which("fish") or not shutil.which("zsh"):
        pytest.skip("needs fish and zsh")
    first = bench.launch("sleep 60 # a: b [c]")
    second = bench.launch("exit 3")
    bench.run("wait", second)
    expected = {second: "failed: exit 3", first: "running: sleep 60 # a: b [c]"}
    told = Fish(bench).described("outlive show ")
    assert (told, list(told)) == (expected, list(expected))
    zsh = Terminal(bench, "zsh", ZSH)
    try:
        zsh.press("outlive show \t\t")
        for task, said in expected.items():
            zsh.wait_for(f"{task}  -- {said}")
        assert zsh.seen.index(second) < zsh.seen.index(first)
    finally:
        zsh.close()


def test_a_group_is_offered_and_never_obeyed(bench: Bench, shell: Terminal | Fish) -> None:
    """Names are text: what looks like shell in them arrives as it is and is not executed."""
    groups = ["$(touch owned)", "`touch owned`", "it's; touch owned", 'a:b=c@"d" \\e *', "-x", "ü"]
    for group in groups:
        bench.launch("true", f"--group={group}")
    for verb in ("run", "list", "wait", "cancel"):
        assert set(shell.offers(f"outlive {verb} --group ")) == set(groups), verb
    assert shell.offers("outlive list --group a") == [groups[3]]
    assert shell.offers(r"outlive list --group a\:b\=") == [groups[3]]
    assert shell.offers("outlive list --group=a") == [f"--group={groups[3]}"]
    assert not (bench.project / "owned").exists()


def test_after_the_dashes_the_shell_completes_by_itself(bench: Bench, shell: Terminal | Fish) -> None:
    """Commands, then what they take; before the dashes a command would be wrong, and they are offered."""
    (bench.project / "some-file").touch()
    assert "--" in shell.offers("outlive run ")
    assert "sleep" in shell.offers("outlive run --timeout 3s -- slee")
    assert shell.offers("outlive run -- cat some-f") == ["some-file"]
    if shell.name != "bash":  # which knows only names and files, without the package of the next test
        assert shell.offers("outlive run --json -- outlive sho") == ["show"]


@pytest.mark.skipif(not os.path.exists(BASH_COMPLETION), reason="needs bash-completion")
def test_bash_completion_finds_the_script_and_is_asked_for_the_rest(bench: Bench) -> None:
    """From the file that the help names, and for the command after the dashes."""
    place = bench.root / "data" / "bash-completion" / "completions" / "outlive"
    place.parent.mkdir(parents=True)
    place.write_text(bench.ok("completion", "bash"))
    bash = _open(bench, "bash", BASH_WITH_PACKAGE)
    try:
        assert bash.offers("outlive sho") == ["show"]
        assert bash.offers("outlive run --json -- outlive sho") == ["show"]
    finally:
        bash.close()


def test_zsh_finds_the_script_in_its_path(bench: Bench) -> None:
    """From a file in `fpath` it completes at the first key and at the second."""
    place = bench.root / "functions" / "_outlive"
    place.parent.mkdir()
    place.write_text(bench.ok("completion", "zsh"))
    zsh = _open(bench, "zsh", ZSH_WITH_FILE)
    try:
        assert [zsh.offers("outlive sho"), zsh.offers("outlive sho")] == [["show"], ["show"]]
    finally:
        zsh.close()


def test_a_key_makes_no_state_directory(bench: Bench) -> None:
    """Where nothing was ever launched there is nothing to offer, and nothing is left behind."""
    for what in ("tasks", "groups"):
        done = bench.run("completion", what)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not bench.state.exists()


def _connection(ledger: Path) -> apsw.Connection:
    """One of our own, patient with a keeper that is just ending."""
    db = apsw.Connection(str(ledger))
    db.set_busy_timeout(10_000)
    return db


def _corrupt(ledger: Path) -> None:
    ledger.write_bytes(b"not a database" * 1000)


def _half(ledger: Path) -> None:
    content = ledger.read_bytes()
    ledger.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def _empty(ledger: Path) -> None:
    ledger.write_bytes(b"")


def _newer(ledger: Path) -> None:
    db = _connection(ledger)
    db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    db.close()


def _fifo(ledger: Path) -> None:
    ledger.unlink()
    os.mkfifo(ledger)


def _directory(ledger: Path) -> None:
    ledger.unlink()
    ledger.mkdir()


@pytest.mark.parametrize("damage", [_corrupt, _half, _empty, _newer, _fifo, _directory])
def test_a_key_neither_fails_nor_mends(bench: Bench, damage: Callable[[Path], None]) -> None:
    """A ledger that cannot be read offers nothing, and lies there as it did: the next command will tell."""
    bench.ok("wait", bench.launch("true", "--group=g"))
    ledger = Path(bench.home.ledger)
    # Fold the log into the file, so that the file is all there is to damage. SQLite finds it by reading.
    db = _connection(ledger)
    assert db.execute("SELECT count(*) FROM task").get == 1
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    damage(ledger)
    before = ledger.read_bytes() if ledger.is_file() else None
    for what in ("tasks", "groups"):
        done = bench.run("completion", what)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (ledger.read_bytes() if ledger.is_file() else None) == before
    assert not list(ledger.parent.glob("*broken*"))


def test_a_key_waits_for_no_lock(bench: Bench) -> None:
    """A ledger that somebody else holds alone offers nothing; ten seconds would be for a command."""
    bench.launch("true")
    holder = _connection(Path(bench.home.ledger))
    holder.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE").fetchall()
    began = time.monotonic()
    done = bench.run("completion", "tasks")
    assert time.monotonic() - began < PATIENCE_S
    holder.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bench.ok("completion", "tasks")


def test_a_key_in_a_place_that_is_gone_offers_nothing(bench: Bench) -> None:
    """No current directory, no home: no words either."""
    gone = bench.root / "gone"
    gone.mkdir()
    line = f'rmdir "{gone}"; exec "$@"'
    for env in ({}, {"OUTLIVE_HOME": "", "XDG_STATE_HOME": "", "HOME": ""}):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", line, "sh", *bench.command("completion", "tasks")],
            env={**bench.env, **env},
            cwd=gone,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_only_the_newest_are_offered_each_in_one_line(bench: Bench) -> None:
    """Fifty ids of this project, and no command can add a line or move the cursor."""
    project = project_of(str(bench.project))
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        for number in range(60):
            enqueued(ledger, f"task{number:04}", project=project, command="a\nb\t\x1b[31mc", group=f"g{number % 3}")
        enqueued(ledger, "elsewhere", project="/elsewhere", group="other")
        enqueued(ledger, "strange1", project=project, group="two\nlines")
    lines = bench.ok("completion", "tasks").splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["strange1", *(f"task{n:04}" for n in range(59, 10, -1))]
    assert lines[1] == "task0059\tqueued: a b c"
    assert bench.ok("completion", "groups").splitlines() == ["g2", "g1", "g0"]


@pytest.mark.parametrize("words", [(), ("tcsh",), ("bash", "zsh")])
def test_only_a_shell_that_we_know(bench: Bench, words: tuple[str, ...]) -> None:
    """Anything else is wrong usage, and the hint names the three."""
    done = bench.run("completion", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in SHELLS)
