"""Output that is capped, truncated or endless, and commands that wait for output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import kill, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_output_cap_holds_when_the_launcher_blocks_signals(bench: Bench) -> None:
    """The keeper caps a growing output even if the launcher had blocked all signals."""
    script = (
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, range(1, 32));"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    text = "sleep 0.3; head -c 50000000 /dev/zero; sleep 30"
    done = subprocess.run(
        [sys.executable, "-c", script, *bench.command("run", "--max-output", "1M", text)],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=True,
    )
    output = bench.files(done.stdout.strip()).output
    wait_until(lambda: os.stat(output).st_size == 50_000_000 and os.stat(output).st_blocks * 512 < 2 << 20, "the hole")


def test_wait_until_ends_at_its_timeout_when_the_output_never_stops(bench: Bench) -> None:
    """`wait --until` exits with 4 at its timeout, although the command never stops printing."""
    task = bench.launch("yes abc", "--max-output", "1M")
    assert bench.run("wait", task, "--until", "nomatch", "--timeout", "500ms").returncode == 4


@pytest.mark.parametrize("ended", ["while it is cancelled", "by leaving somebody behind"])
def test_output_cap_holds_during_a_cancel_and_after_the_end(bench: Bench, ended: str) -> None:
    """The output stays capped during a cancel, and while a process that the task left running writes to it."""
    write = "while :; do head -c 1000000 /dev/zero; sleep 0.02; done"
    if ended == "while it is cancelled":
        task = bench.launch(f"trap '' INT TERM; {write}", "--max-output", "1M")
        output = Path(bench.files(task).output)
        wait_until(lambda: output.stat().st_size > 2 << 20)
        cancelling = subprocess.Popen(bench.command("cancel", task), env=bench.env, cwd=bench.project)
        while cancelling.poll() is None:
            assert output.stat().st_blocks * 512 < 24 << 20
    else:
        task = bench.launch(f"({write}) & sleep 0.2", "--max-output", "1M")
        bench.ok("wait", task)
        output = Path(bench.files(task).output)
        wait_until(lambda: output.stat().st_size > 40 << 20, "a lot of output")
        assert output.stat().st_blocks * 512 < 24 << 20
        for left in bench.show(task)["left_running"]:
            kill(left["pid"])


def test_output_follow_continues_after_a_truncation(bench: Bench) -> None:
    """If a command truncates its output, `output --follow` reports this, and shows what is written afterwards."""
    task = bench.launch("echo 0123456789; sleep 0.6; echo ab > /dev/stdout; sleep 0.6; echo cd")
    done = bench.run("output", task, "--follow")
    assert done.stdout.split() == ["0123456789", "ab", "cd"]
    assert "truncated its own output" in done.stderr


def test_wait_until_does_not_match_across_the_hole_of_a_capped_output(bench: Bench) -> None:
    """`wait --until` finds no match that begins before the removed middle of a capped output and ends after it."""
    head = (1 << 20) // 8
    script = (
        f"head -c {head - 2} /dev/zero | tr '\\0' x; printf FO; yes Y | tr -d '\\n' | head -c 3000000; echo; sleep 1"
    )
    task = bench.launch(script, "--max-output", "1M")
    bench.ok("wait", task)
    assert bench.run("wait", task, "--until", "FOY").returncode == 1
