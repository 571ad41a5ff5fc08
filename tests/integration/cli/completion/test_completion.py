"""Completion in bash, zsh and fish: which candidates a shell offers, and what completion must never do.

Bash and zsh run at a terminal. There, a key inserts all candidates into the line, and the shell executes the line. So
the test gets the words as the shell reads them, without quotes.
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

from outlive.cli.commands.completion import SHELLS
from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.parser import HELP, JSON
from outlive.domain.tasks.lifecycle import STATES
from outlive.ledger.open_ledger import PATIENCE_S, SCHEMA_VERSION, apsw
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from outlive.service.tasks.launch_context import project_of
from tests.conformance.steps import enqueued
from tests.support import SCRIPT, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support import Bench

BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"
# The arguments with which the current scripts ask for ids, and those with which older scripts ask for ids and groups.
ASKED = (("candidates", "--", "outlive", "show", ""), ("tasks",), ("groups",))
INSERT_ALL = "\x18a"  # the keys Control-X a, which `BASH` binds to a command below

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
# In the shell, `outlive` is a function that writes its arguments to a file. `command outlive` is the program.
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
        rc = bench.root / ".zshrc"  # Zsh finds the file by its name. Bash gets the file as an option.
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
        """Type keys, and discard what the terminal has shown before."""
        self._read()
        self.seen = ""
        os.write(self._ours, keys.encode())

    def wait_for(self, text: str) -> None:
        """Wait until the terminal shows a text."""

        def is_seen() -> bool:
            self._read()
            return text in self.seen

        wait_until(is_seen, f"{text!r} at the terminal")

    def offers(self, line: str) -> list[str]:
        """Return the candidates for the last word of a line, or the word itself if there are no candidates."""
        self.answer.unlink(missing_ok=True)
        self.press(f"{line}{INSERT_ALL}\r")

        def has_answered() -> bool:
            self._read()
            return self.answer.exists()

        wait_until(has_answered, f"an answer to {line!r}")
        before = shlex.split(line.rpartition(" ")[0])
        return self.answer.read_text().split("\0")[len(before) - 1 : -1]

    def close(self) -> None:
        """Kill the shell and close its terminal."""
        self._process.kill()
        self._process.wait()
        os.close(self._ours)


class Fish:
    """The fish shell, which prints candidates without a terminal.

    The completion script is installed in the directory that the help names.
    """

    name = "fish"

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._env = {**_environment(bench), "XDG_CONFIG_HOME": str(bench.root / "config")}
        place = bench.root / "config" / "fish" / "completions" / "outlive.fish"
        place.parent.mkdir(parents=True)
        place.write_text(bench.ok("completion", "fish"))

    def described(self, line: str) -> dict[str, str]:
        """Return the candidates of a line with their descriptions."""
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
        """Return the candidates of a line."""
        return list(self.described(line))

    def close(self) -> None:
        """Do nothing, because fish was called without a terminal."""


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
    """Yield each of the three shells in turn, opened in the directory of the project."""
    opened = _open(bench, request.param)
    yield opened
    opened.close()


def _candidates(bench: Bench, *words: str) -> list[str]:
    """Return the candidates, without descriptions, that `outlive` gives to the scripts for a line of these words."""
    lines = bench.ok("completion", "candidates", "--", "outlive", *words).splitlines()
    return [line.partition("\t")[0] for line in lines]


def test_candidates_include_every_verb_option_and_choice(bench: Bench) -> None:
    """The candidates that `outlive` gives to the scripts contain every verb, alias, option and choice.

    This test needs no shell.
    """
    assert set(_candidates(bench, "")) == {"candidates", *VERBS, *ALIASES, "help"}
    for verb in (*VERBS, *ALIASES):
        options = (*load(verb).options, JSON, HELP)
        assert set(_candidates(bench, verb, "-")) - {"--"} == {"candidates", *(option.name for option in options)}
        for option in options:
            if option.choices:
                assert _candidates(bench, verb, option.name, "") == ["candidates", *option.choices]


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("no-verb", ""), ["candidates"]),
        (("run", "--cwd", ""), ["directories"]),
        (("run", "--cwd=a"), ["directories"]),
        (("run", "--timeout", ""), ["candidates"]),
        (("run", "--env", "A", "=", ""), ["candidates"]),
        (("run", "--", "git", ""), ["command 3"]),
        (("run", "--group", "--", "--", "x"), ["command 5"]),
        (("show", "--", ""), ["candidates"]),
        (("guard", "--", "x"), ["candidates"]),
    ],
)
def test_candidates_of_an_unusual_line_are_left_to_the_shell_or_empty(
    bench: Bench, words: tuple[str, ...], answer: list[str]
) -> None:
    """For a directory or for a command after `--`, the shell completes the word by itself.

    An unknown command, or an option with a free value, gets no candidates.
    """
    assert _candidates(bench, *words) == answer


def test_verbs_and_options_declare_what_completes_them() -> None:
    """Each command that takes ids declares how ids are completed.

    So does each option for a group, a task or a directory.
    """
    for command in map(load, VERBS):
        assert (command.takes == "task") == bool(re.search(r"\bID\b", command.usage)), command.name
        for option in command.options:
            expected = {"--group": "group", "--after": "task", "--after-any": "task"}.get(option.name)
            if option.metavar == "DIR":
                expected = "directory"
            assert option.takes == expected, f"{command.name} {option.name}"


def test_shell_offers_the_verbs(shell: Terminal | Fish) -> None:
    """A shell offers all commands and aliases, or those that begin with the typed letters.

    It does so after `help`, too.
    """
    every = {*VERBS, *ALIASES}
    assert set(shell.offers("outlive ")) == {*every, "help"}
    assert shell.offers("outlive sho") == ["show"]
    assert set(shell.offers("outlive help ")) == every
    assert set(shell.offers("outlive completion ")) == set(SHELLS)
    assert set(shell.offers("outlive --")) == {"--help", "--version"}


def test_shell_offers_the_options_of_each_verb(shell: Terminal | Fish) -> None:
    """A shell offers the options of the typed command. If an alias was typed, it offers the options of the command."""
    for verb in (*VERBS, *ALIASES):
        expected = {option.name for option in (*load(verb).options, JSON, HELP)}
        assert set(shell.offers(f"outlive {verb} -")) - {"--"} == expected, verb
    assert shell.offers("outlive logs t7 --fo") == ["--follow"]


def test_shell_offers_the_choices_of_an_option(bench: Bench, shell: Terminal | Fish) -> None:
    """A shell offers the choices of an option.

    For a duration or a pattern, a shell offers no candidates and no files.
    """
    (bench.project / "file").touch()
    for verb in VERBS:
        for option in load(verb).options:
            if option.metavar and option.takes is None:
                offered = shell.offers(f"outlive {verb} {option.name} ")
                assert set(offered) == set(option.choices), f"{verb} {option.name}"
    assert set(shell.offers("outlive ps --all --state ")) == set(STATES)
    assert shell.offers("outlive list --state=succ") == ["--state=succeeded"]
    assert shell.offers("outlive run --env A=") in ([], ["A="])


def test_shell_offers_directories_for_a_directory_option(bench: Bench, shell: Terminal | Fish) -> None:
    """For `--cwd`, a shell offers directories and no files, and a name with a blank stays one word."""
    (bench.project / "a place").mkdir()
    (bench.project / "a file").touch()
    assert [name.rstrip("/") for name in shell.offers("outlive run --cwd ")] == ["a place"]
    assert [name.rstrip("/") for name in shell.offers("outlive run --cwd=a")] == ["--cwd=a place"]


def test_shell_offers_the_ids_of_the_projects_tasks(bench: Bench, shell: Terminal | Fish) -> None:
    """Each command that takes an id is completed with the ids of the project's tasks, even after other options."""
    tasks = {bench.launch("true"), bench.launch("echo 'a: b' [c] $(true)")}
    other = bench.root / "other"
    other.mkdir()
    bench.launch("true", cwd=other)
    for verb in (*VERBS, *ALIASES):
        if load(verb).takes == "task":
            assert set(shell.offers(f"outlive {verb} ")) == tasks, verb
    one = tasks.pop()
    assert shell.offers(f"outlive output --tail 3 {one[:-1]}") == [one]


def test_shell_describes_an_id_with_state_and_command(bench: Bench) -> None:
    """Fish and zsh show each id with its task's state and command, the newest task first."""
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


def test_shell_offers_group_names_without_executing_them(bench: Bench, shell: Terminal | Fish) -> None:
    """A group's name that contains shell syntax is inserted unchanged and never executed."""
    groups = ["$(touch owned)", "`touch owned`", "it's; touch owned", 'a:b=c@"d" \\e *', "-x", "ü"]
    for group in groups:
        bench.launch("true", f"--group={group}")
    for verb in ("run", "list", "wait", "cancel"):
        assert set(shell.offers(f"outlive {verb} --group ")) == set(groups), verb
    assert shell.offers("outlive list --group a") == [groups[3]]
    assert shell.offers(r"outlive list --group a\:b\=") == [groups[3]]
    assert shell.offers("outlive list --group=a") == [f"--group={groups[3]}"]
    assert not (bench.project / "owned").exists()


def test_shell_completes_the_command_after_two_dashes(bench: Bench, shell: Terminal | Fish) -> None:
    """After `--`, the shell completes commands and their arguments by itself. Before `--`, the shell offers `--`."""
    (bench.project / "some-file").touch()
    assert "--" in shell.offers("outlive run ")
    assert "sleep" in shell.offers("outlive run --timeout 3s -- slee")
    assert shell.offers("outlive run -- cat some-f") == ["some-file"]
    if shell.name != "bash":  # Without bash-completion, bash completes only names of commands and files.
        assert shell.offers("outlive run --json -- outlive sho") == ["show"]


@pytest.mark.skipif(not os.path.exists(BASH_COMPLETION), reason="needs bash-completion")
def test_bash_completion_loads_the_script_and_completes_the_command(bench: Bench) -> None:
    """bash-completion loads the script from the file that the help names, and completes the command after `--`."""
    place = bench.root / "data" / "bash-completion" / "completions" / "outlive"
    place.parent.mkdir(parents=True)
    place.write_text(bench.ok("completion", "bash"))
    bash = _open(bench, "bash", BASH_WITH_PACKAGE)
    try:
        assert bash.offers("outlive sho") == ["show"]
        assert bash.offers("outlive run --json -- outlive sho") == ["show"]
    finally:
        bash.close()


def test_zsh_loads_the_script_from_fpath(bench: Bench) -> None:
    """If the script is in a directory of `fpath`, zsh completes a word with the first and the second Tab."""
    place = bench.root / "functions" / "_outlive"
    place.parent.mkdir()
    place.write_text(bench.ok("completion", "zsh"))
    zsh = _open(bench, "zsh", ZSH_WITH_FILE)
    try:
        assert [zsh.offers("outlive sho"), zsh.offers("outlive sho")] == [["show"], ["show"]]
    finally:
        zsh.close()


def test_completion_creates_no_state_directory(bench: Bench) -> None:
    """If no task was ever launched, completion prints nothing and creates no state directory."""
    for words in ASKED:
        done = bench.run("completion", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not bench.state.exists()


def _connection(ledger: Path) -> apsw.Connection:
    """Return a connection to the ledger that waits if an ending keeper has locked the file."""
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
def test_completion_ignores_a_ledger_that_cannot_be_read(bench: Bench, damage: Callable[[Path], None]) -> None:
    """If the ledger cannot be read, completion prints no candidates and leaves the file unchanged.

    The next command can then move the damaged ledger aside and report this.
    """
    bench.ok("wait", bench.launch("true", "--group=g"))
    ledger = Path(bench.home.ledger)
    # Copy the write-ahead log into the file, so that only the file can be damaged. The query makes SQLite open the log.
    db = _connection(ledger)
    assert db.execute("SELECT count(*) FROM task").get == 1
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    db.close()
    damage(ledger)
    before = ledger.read_bytes() if ledger.is_file() else None
    for words in ASKED:
        done = bench.run("completion", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (ledger.read_bytes() if ledger.is_file() else None) == before
    assert not list(ledger.parent.glob("*broken*"))


def test_completion_does_not_wait_for_a_locked_ledger(bench: Bench) -> None:
    """If another process has locked the ledger, completion soon ends and prints no candidates."""
    bench.launch("true")
    holder = _connection(Path(bench.home.ledger))
    holder.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE").fetchall()
    began = time.monotonic()
    done = bench.run("completion", *ASKED[0])
    assert time.monotonic() - began < PATIENCE_S
    holder.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert bench.ok("completion", "tasks")


def test_completion_prints_nothing_when_the_working_directory_is_gone(bench: Bench) -> None:
    """Without a working directory or a home directory, completion prints no candidates and no error."""
    gone = bench.root / "gone"
    gone.mkdir()
    line = f'rmdir "{gone}"; exec "$@"'
    for env in ({}, {"OUTLIVE_HOME": "", "XDG_STATE_HOME": "", "HOME": ""}):
        gone.mkdir(exist_ok=True)
        done = subprocess.run(
            ["sh", "-c", line, "sh", *bench.command("completion", *ASKED[0])],
            env={**bench.env, **env},
            cwd=gone,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_completion_offers_the_fifty_newest_tasks_in_one_line_each(bench: Bench) -> None:
    """Completion prints the fifty newest tasks of this project, each in one line.

    The text of a task's command cannot add a line or move the cursor.
    """
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
def test_completion_script_of_an_unknown_shell_is_refused(bench: Bench, words: tuple[str, ...]) -> None:
    """`completion` exits with 2 unless it gets the name of one known shell, and the hint lists these shells."""
    done = bench.run("completion", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert all(name in done.stderr for name in SHELLS)
