"""Systems that lack a feature which Outlive needs: commands are refused, or the doctor names the problem."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.install.doctor.system_limits import is_wsl
from tests.confined import PIDFD_OPEN

if TYPE_CHECKING:
    from tests.support import Bench

ROOT = Path(__file__).resolve().parents[2]
CONFINED = [sys.executable, str(ROOT / "tests" / "confined.py"), str(PIDFD_OPEN)]
# On macOS, the module that calls the Linux kernel cannot be imported.
ELSEWHERE = """
import sys
sys.platform = "darwin"
sys.modules["outlive.linux.syscalls"] = None
sys.argv = ["outlive", "list"]
"""
STARTS = {
    "script": f"{ELSEWHERE}exec(compile(open({str(ROOT / 'bin' / 'outlive')!r}).read(), 'outlive', 'exec'))",
    "module": f"{ELSEWHERE}import runpy; runpy.run_module('outlive', run_name='__main__')",
}


@pytest.mark.parametrize("start", STARTS)
def test_command_line_reports_that_it_needs_linux(bench: Bench, start: str) -> None:
    """On another system, the command line prints an error and a hint and exits with 3, without a traceback."""
    done = subprocess.run(
        [sys.executable, "-c", STARTS[start]], env=bench.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    fact, hint = done.stderr.splitlines()
    assert fact == "outlive: Outlive needs Linux (also as WSL2 or in a container), and this is darwin"
    assert hint.startswith("hint: ")


@pytest.mark.parametrize("name", ["Outlive", "AsyncOutlive", "Session", "Task"])
def test_sdk_reports_that_it_needs_linux(bench: Bench, name: str) -> None:
    """On another system, importing a client class raises an `OutliveError`, and the error class can be imported."""
    program = f"{ELSEWHERE}from outlive import OutliveError\ntry:\n    from outlive import {name}\n"
    program += "except OutliveError as error:\n    print(error.message, '|', error.hint)"
    done = subprocess.run([sys.executable, "-c", program], env=bench.env, capture_output=True, text=True, check=False)
    assert "needs Linux" in done.stdout, done.stderr


def test_launch_is_refused_when_pidfd_open_is_missing(bench: Bench) -> None:
    """If the system call pidfd_open is missing, a launch is refused with this reason, and `list` still works."""
    assert bench.run("run", "--wait", "30s", "true").returncode == 0
    refused = bench.run("run", "true", before=CONFINED)
    assert refused.returncode == 3
    assert "pidfd_open" in refused.stderr
    assert "Linux 5.3" in refused.stderr
    listed = bench.json("list", before=CONFINED)["tasks"]
    assert [task["state"] for task in listed] == ["succeeded"]
    retried = bench.run("retry", listed[0]["id"], before=CONFINED)
    assert (retried.returncode, "pidfd_open" in retried.stderr) == (3, True)


def test_doctor_names_the_missing_pidfd_open(bench: Bench, tmp_path: Path) -> None:
    """The doctor shows the same error and hint as a launch."""
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    findings = bench.json("doctor", "--client", "cursor", before=CONFINED, env=env)["findings"]
    launch = next(each for each in findings if each["of"] == "outlive" and each["what"] == "launch")
    assert launch["works"] is False
    assert "pidfd_open" in launch["why"]
    assert "seccomp profile" in launch["hint"]


def test_state_directory_is_refused_when_its_path_is_not_utf8(bench: Bench) -> None:
    """If the path of the state directory is not UTF-8, it is refused, because SQLite needs UTF-8. It is not created."""
    home = os.fsencode(bench.root) + b"/\xff\xe9state"
    for words in (("run", "true"), ("list",)):
        refused = bench.run(*words, env={"OUTLIVE_HOME": os.fsdecode(home)})
        assert refused.returncode == 3
        assert "\\xff\\xe9state" in refused.stderr
        assert "is not UTF-8" in refused.stderr
    assert not os.path.exists(home)
    assert bench.run("run", "--wait", "30s", "true", env={"OUTLIVE_HOME": str(bench.root / "état")}).returncode == 0


def test_doctor_recognises_wsl() -> None:
    """The doctor recognises WSL by the kernel's version text."""
    assert is_wsl(b"Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9c826d3017f)")
    assert is_wsl(b"Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)")
    assert not is_wsl(b"Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)")


@pytest.mark.parametrize(
    ("init", "expected"), [("p.wait()", "python"), ("\nwhile os.wait()[0] != p.pid: pass", "None")]
)
def test_doctor_recognises_a_process_1_that_reaps_nothing(bench: Bench, init: str, expected: str) -> None:
    """The doctor names a process 1 that waits only for its own child, because it leaves ended orphans as zombies."""
    if subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot make a PID namespace here")
    question = "from outlive.install.doctor.system_limits import init_that_reaps_nothing as f; print(f())"
    program = f"import os, subprocess, sys; p = subprocess.Popen([sys.executable, '-c', {question!r}]); {init}"
    done = subprocess.run(
        ["unshare", "-pf", "--mount-proc", sys.executable, "-c", program],
        env=bench.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip().startswith(expected)
