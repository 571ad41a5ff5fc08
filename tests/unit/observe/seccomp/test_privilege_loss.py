"""Commands that need privileges, which they would lose if they were observed.

The tests check which words of a text are such programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from outlive.observe.seccomp import privilege_loss
from outlive.observe.shell.program_scan import ProgramScan

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
    """Create programs whose names are also ordinary words."""
    for name in ("at", "batch", "mount", "passwd", "ping", "screen", "su"):
        (tmp_path / name).touch()
    monkeypatch.setattr(privilege_loss, "_PROGRAMS", (str(tmp_path),))
    return tmp_path


def would_miss(
    argv: tuple[str, ...], cwd: str, met_before: tuple[str, ...] = (), environ: Mapping[str, str] | None = None
) -> bool:
    """Return whether a command is left unobserved, so that it keeps its privileges."""
    return privilege_loss.would_miss_privileges(ProgramScan(argv, cwd, environ or {}), met_before)


def is_gated(text: str) -> bool:
    """Return whether a shell text is left unobserved, so that it keeps its privileges."""
    return would_miss(("/bin/sh", "-c", text), "/")


@pytest.mark.parametrize("text", CALLED)
def test_privileged_program_is_found_wherever_a_text_calls_it(text: str) -> None:
    """A program such as sudo, whose name is no English word, is found wherever a text contains it."""
    assert is_gated(text)


@pytest.mark.parametrize("text", SAID)
def test_word_with_the_name_of_a_privileged_program_is_no_call(text: str) -> None:
    """An ordinary word that is also the name of such a program is no call, for example "at" in a message."""
    assert not is_gated(text)


@pytest.mark.parametrize(
    ("text", "is_called"), [(t, True) for t in CALLED_BY_A_PROGRAM] + [(t, False) for t in SAID_BY_A_PROGRAM]
)
def test_script_in_any_language_may_call_a_privileged_program(tmp_path: Path, text: str, is_called: bool) -> None:
    """A script in any language may call a program with privileges. Comments and identifiers are no calls.

    A text in quotes may be a command.
    """
    (tmp_path / "work").write_text(text)
    assert would_miss(("node", f"{tmp_path}/work"), "/") is is_called


def test_argument_of_one_word_is_no_privileged_program() -> None:
    """A single word is such a program only if it is called, is a whole shell text, or follows a wrapper."""
    for argv, is_called in (
        (("ping", "host"), True),
        (("sh", "-c", "mount"), True),
        (("timeout", "5", "ping", "host"), True),
        (("grep", "-r", "screen", "src"), False),
        (("npm", "run", "batch"), False),
        (("git", "commit", "-m", "at"), False),
    ):
        assert would_miss(argv, "/") is is_called


def test_word_is_no_privileged_program_when_the_program_is_not_installed(installed: Path) -> None:
    """A word such as `at` counts only if the program is installed, or is known from an earlier run."""
    (installed / "at").unlink()
    assert not is_gated("at now")
    assert would_miss(("sh", "-c", "echo look at it"), "/", ("at",))
    assert would_miss(("at", "now"), "/") is False
    assert would_miss(("ping", "host"), "/")


def test_set_gid_directory_is_no_privileged_program(tmp_path: Path) -> None:
    """A set-gid directory is no program with privileges, and many projects are in one. A set-gid program is."""
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
def test_script_is_read_for_privileged_programs_however_it_is_named(tmp_path: Path, text: str) -> None:
    """A script is read if it has a relative path, is found in PATH, or lies below HOME."""
    cwd, programs = tmp_path / "cwd", tmp_path / "home" / "bin"
    cwd.mkdir()
    programs.mkdir(parents=True)
    for path in (cwd / "deploy", programs / "mydeploy"):
        path.write_text("#!/bin/sh\nsudo true\n")
        path.chmod(0o755)
    places = {"HOME": f"{tmp_path}/home", "PATH": f"/nowhere::{programs}:/usr/bin"}
    for argv in (("/bin/sh", "-c", text), tuple(text.split())):
        is_expanded = "~" in text or "$" in text  # Only a shell expands `~` and `$`.
        assert would_miss(argv, str(cwd), (), places) or (argv[0] != "/bin/sh" and is_expanded)
    (cwd / "deploy").write_text("true")
    (programs / "mydeploy").write_text("true")
    assert not would_miss(("/bin/sh", "-c", text), str(cwd), (), places)


def test_set_uid_program_is_found_by_path_or_name(tmp_path: Path) -> None:
    """A set-uid program is found by a path below HOME, or by a name in PATH."""
    (tmp_path / "sid").touch()
    (tmp_path / "sid").chmod(0o4755)
    for text in ("~/sid x", "echo; ${HOME}/sid", "sid x", "true | sid"):
        for place, is_there in ((str(tmp_path), True), ("/nowhere", False)):
            assert would_miss(("/bin/sh", "-c", text), "/", (), {"HOME": place, "PATH": place}) is is_there
