"""`outlive wait --until` with a condition: a port, an answer, a file or a command."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from outlive.linux.processes import opened_by
from tests.servers import ANSWER, LISTEN, PYTHON, free_port, free_ports, listening
from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def launch_python(bench: Bench, code: str, *words: str) -> str:
    """Launch a task that runs a Python program."""
    return bench.ok("run", "--", PYTHON, "-c", code, *words)


def test_wait_until_a_port_ends_when_the_task_listens(bench: Bench) -> None:
    """The exit code is 0, and the address is printed, also when the keeper was killed."""
    port = free_port()
    task = launch_python(bench, LISTEN, "0.3", f"127.0.0.1:{port}")
    bench.kill(task, "keeper")
    done = bench.run("wait", task, "--until", f"port:{port}", "--timeout", "30s")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"listens on 127.0.0.1:{port}\n", "")
    answer = bench.json("wait", task, "--until", f"port:{port}")
    assert (answer["matched"], answer["missing"], answer["timed_out"]) == (done.stdout.strip(), None, False)


def test_wait_until_a_port_fails_at_once_when_another_task_holds_the_port(bench: Bench) -> None:
    """The exit code is 1, and the error names the port of the task and the task that holds the wanted port."""
    taken, moved = free_ports(2)
    other = launch_python(bench, LISTEN, "0", f"127.0.0.1:{taken}")
    bench.ok("wait", other, "--until", f"port:{taken}")
    task = launch_python(bench, LISTEN, "0", f"127.0.0.1:{moved}")
    done = bench.run("wait", task, "--until", f"port:{taken}", "--timeout", "10m")
    assert done.returncode == 1
    assert f"{task} listens on {moved}; {taken} is held by task {other} " in done.stderr
    assert "hint: the task goes on" in done.stderr
    assert bench.show(task)["state"] == "running"
    answer = bench.json("wait", task, "--until", f"port:{taken}")
    assert (answer["matched"], answer["timed_out"]) == (None, False)
    assert answer["missing"].startswith(f"listens on {moved}; ")


def test_wait_until_a_port_says_so_when_the_task_goes_on_after_the_timeout(bench: Bench) -> None:
    """The exit code is 4, the owner of the port is named, and the task is not ended."""
    port = free_port()
    task = bench.launch("echo starting; sleep 60")
    with listening(f"127.0.0.1:{port}", cwd=bench.project) as other:
        done = bench.run("wait", task, "--until", f"port:{port}", "--timeout", "500ms")
    assert done.returncode == 4
    first, *_, last = done.stderr.splitlines()
    assert first.startswith(f"{task}: port {port} is held by pid {other} ")
    assert "starting" in done.stderr
    assert (
        f"{task} is still running after 500ms, and does not fulfil port:{port}: no process of the task listens"
        in done.stderr
    )
    assert last == f"the task goes on; wait again, or end the task: outlive cancel {task}"
    assert bench.show(task)["state"] == "running"


def test_wait_until_a_port_shows_the_end_of_the_output_when_the_task_dies(bench: Bench) -> None:
    """The death of the task is told at once, with the last lines that it printed."""
    task = bench.launch("sleep 0.3; echo Error: no such module; exit 3")
    done = bench.run("wait", task, "--until", f"port:{free_port()}", "--timeout", "10m")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Error: no such module"
    assert f"{task} ended (failed), and " in done.stderr


def test_wait_until_a_condition_of_each_other_kind(bench: Bench) -> None:
    """A URL, a file, a command and a line of the output are awaited in the same way."""
    port = free_port()
    task = launch_python(bench, f"open('made', 'w'); print('begun', flush=True){ANSWER}", str(port))
    for condition in (f"http://localhost:{port}/200", "file:made", "cmd:test -s /etc/passwd -a -e made", "log:^beg"):
        assert bench.run("wait", task, "--until", condition, "--timeout", "30s").returncode == 0, condition
    short = bench.run("wait", task, "--until", f"http://localhost:{port}/503", "--timeout", "1s")
    assert short.returncode == 4
    assert f"127.0.0.1:{port} answers 503" in short.stderr


def test_wait_until_a_file_holds_when_the_task_has_made_it_and_ended(bench: Bench) -> None:
    """A file is not lost when its task ends."""
    task = bench.launch("touch made")
    assert bench.run("wait", task, "--until", "file:made").returncode == 0
    assert bench.run("wait", task, "--until", "file:other").returncode == 1


def test_wait_until_refuses_a_condition_that_is_not_valid(bench: Bench) -> None:
    """A text with a known prefix is never taken for a pattern by mistake."""
    task = bench.launch("sleep 60")
    for text in ("port:99999", "http:nowhere", "port:web", "log:("):
        done = bench.run("wait", task, "--until", text, "--timeout", "5s")
        assert (done.returncode, done.stdout) == (2, ""), text
        assert "hint: " in done.stderr


def test_wait_until_a_port_goes_on_with_the_next_attempt(bench: Bench) -> None:
    """If the task is retried automatically, the wait ends when the next attempt is ready."""
    port = free_port()
    script = f'[ -e tried ] || {{ touch tried; exit 1; }}; exec "{PYTHON}" -c "$LISTEN" 0 127.0.0.1:{port}'
    task = bench.launch(script, "--retries", "1", env={"LISTEN": LISTEN})
    assert bench.run("wait", task, "--until", f"port:{port}", "--timeout", "30s").returncode == 0


def test_wait_until_a_port_ends_when_the_task_is_cancelled(bench: Bench) -> None:
    """The end of the task wakes the waiting command, whatever ended the task."""
    task = bench.launch("sleep 60")
    waiting = subprocess.Popen(
        bench.command("wait", task, "--until", f"port:{free_port()}"),
        env=bench.env, cwd=bench.project, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until(lambda: _polls(waiting.pid), "the wait to begin")
    bench.ok("cancel", task)
    assert "ended (cancelled)" in waiting.communicate(timeout=30)[1]
    assert waiting.returncode == 1


def _polls(pid: int) -> bool:
    """Return whether a process has the done FIFO of a task open."""
    return any(path.endswith("/done") for path in opened_by(pid))
