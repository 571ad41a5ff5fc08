"""Which commands would miss privileges: what names a program, and what is only a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.observe import privileges
from outlive.observe.foreseeing import Foreseen

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CALLED = (
    *("sudo make install", "echo x | sudo tee y", 'git commit -m "needs sudo"', "x=sudo; $x ls"),
    *("su - postgres -c psql", "mount /mnt", "ping -c1 host", "echo make | at now", "screen -dm top", "passwd"),
    *(
        "cd x && mount .",
        "x=$(ping -c1 host)",
        "true; ping host",
        "if ! ping -c1 host; then :; fi",
        "{ mount x; }",
        "f() { mount; }",
        "(mount)",
    ),
    *("timeout -k 5s 10s ping host", "env A=b ping host", "A=b nice -n 5 ping host", "nohup ping host &", "time batch"),
    *(
        "find . -name x -exec ping {} +",
        "ls | xargs -n1 ping",
        "bash -c 'ping host'",
        "`mount`",
        "while ping x; do :; done",
    ),
    *(
        "for i in 1 2; do (ping -c1 10.0.0.$i | grep ttl &); done",
        "if true; then (mount x); fi",
        "case $1 in\n  check) ping -c1 host ;;\nesac",
        'case $1 in -u | "user") su - app -c run ;; esac',
    ),
)
SAID = (
    *('git commit -m "look at it"', "python train.py --batch 32", "grep -r screen src", "echo mount the volume"),
    *(
        "npm run batch",
        "cat /etc/passwd",
        "pytest -k 'test at once'",
        "ls at",
        "# at the end",
        "echo it is; echo up at 5",
    ),
)
CALLED_BY_A_PROGRAM = (
    *(
        'subprocess.run(["ping", "-c1", host])',
        "os.system('mount /mnt')",
        "execFile('ping', ['-c1'])",
        "run(`mount /mnt`)",
    ),
)
SAID_BY_A_PROGRAM = (
    *("# looks at each batch\nfor batch in batches:\n    print(batch)", "batch = 32\nscreen = open(1)\nat += 1"),
    *(
        "import { screen } from 'x'\nmount(App)\n  mount(App)\nawait mount(App)",
        "def mount(self) -> None:\n  return at\n",
        "if (batch) {\n while (at < 5) {}\n // calls load() at the end (it) at once\n",
    ),
)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where programs are: of those that are words as well, here all."""
    for name in ("at", "batch", "mount", "passwd", "ping", "screen", "su"):
        (tmp_path / name).touch()
    monkeypatch.setattr(privileges, "_PROGRAMS", (str(tmp_path),))
    return tmp_path


def would_miss(
    argv: tuple[str, ...], cwd: str, met_before: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
) -> bool:
    """Whether such a command is not observed."""
    return privileges.would_miss_privileges(Foreseen(argv, cwd, environ or {}), met_before)


def is_gated(text: str) -> bool:
    """Whether such a text of shell is not observed."""
    return would_miss(("/bin/sh", "-c", text), "/")


@pytest.mark.parametrize("text", CALLED)
def test_what_a_text_calls_is_found(text: str) -> None:
    """Wherever a command begins, and whatever starts it; what is no word of any language counts wherever it stands."""
    assert is_gated(text)


@pytest.mark.parametrize("text", SAID)
def test_a_word_that_is_no_command_is_only_a_word(text: str) -> None:
    """Nobody should go unobserved because a message says "at"."""
    assert not is_gated(text)


@pytest.mark.parametrize(
    ("text", "is_called"), [(t, True) for t in CALLED_BY_A_PROGRAM] + [(t, False) for t in SAID_BY_A_PROGRAM]
)
def test_a_program_in_any_language_may_call_some(tmp_path: Path, text: str, is_called: bool) -> None:
    """What it says to itself is no reason; a text that begins so may be a command."""
    (tmp_path / "work").write_text(text)
    assert would_miss(("node", f"{tmp_path}/work"), "/") is is_called


def test_an_argument_of_one_word_is_no_command() -> None:
    """Unless it is the first one, a whole text of shell, or what the first one starts."""
    for argv, is_called in (
        (("ping", "host"), True),
        (("sh", "-c", "mount"), True),
        (("timeout", "5", "ping", "host"), True),
        (("grep", "-r", "screen", "src"), False),
        (("npm", "run", "batch"), False),
        (("git", "commit", "-m", "at"), False),
    ):
        assert would_miss(argv, "/") is is_called


def test_what_is_not_installed_cannot_be_called(installed: Path) -> None:
    """Then the text means something else. What was met before counts wherever it stands."""
    (installed / "at").unlink()
    assert not is_gated("at now")
    assert would_miss(("sh", "-c", "echo look at it"), "/", ("at",))
    assert would_miss(("at", "now"), "/") is False
    assert would_miss(("ping", "host"), "/")


def test_a_directory_that_gives_its_group_to_what_is_made_in_it_gains_nothing(tmp_path: Path) -> None:
    """Many share their projects so. A program with that bit runs as its group."""
    shared, program = tmp_path / "shared", tmp_path / "program"
    shared.mkdir()
    program.touch()
    for path in (shared, program):
        path.chmod(0o2755)
    assert not is_gated(f"ls {shared}/ {shared}")
    assert not would_miss(("ls", "./shared"), str(tmp_path))
    assert is_gated(f"{program} x")


@pytest.mark.parametrize(
    "text", ["bash deploy", "mydeploy --now", "true && nice -n 5 mydeploy", "sh ~/bin/mydeploy", ". $HOME/bin/mydeploy"]
)
def test_a_script_is_read_however_it_is_named(tmp_path: Path, text: str) -> None:
    """In the directory that the command runs in, found where programs are, or below one's own directory."""
    cwd, programs = tmp_path / "cwd", tmp_path / "home" / "bin"
    cwd.mkdir()
    programs.mkdir(parents=True)
    for path in (cwd / "deploy", programs / "mydeploy"):
        path.write_text("#!/bin/sh\nsudo true\n")
        path.chmod(0o755)
    places = {"HOME": f"{tmp_path}/home", "PATH": f"/nowhere::{programs}:/usr/bin"}
    for argv in (("/bin/sh", "-c", text), tuple(text.split())):
        is_expanded = "~" in text or "$" in text  # a command without a shell has no such thing
        assert would_miss(argv, str(cwd), (), places) or (argv[0] != "/bin/sh" and is_expanded)
    (cwd / "deploy").write_text("true")
    (programs / "mydeploy").write_text("true")
    assert not would_miss(("/bin/sh", "-c", text), str(cwd), (), places)


def test_a_program_that_gains_something_is_known_wherever_it_is(tmp_path: Path) -> None:
    """By its path below one's own directory, or only by its name."""
    (tmp_path / "sid").touch()
    (tmp_path / "sid").chmod(0o4755)
    for text in ("~/sid x", "echo; ${HOME}/sid", "sid x", "true | sid"):
        for place, is_there in ((str(tmp_path), True), ("/nowhere", False)):
            assert would_miss(("/bin/sh", "-c", text), "/", (), {"HOME": place, "PATH": place}) is is_there
