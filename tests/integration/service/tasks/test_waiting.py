"""`wait`, `output` and `list`: they wait without polling, and print the complete output."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from outlive.bundle import record
from outlive.keeper.output.cap import OutputCap
from tests.support import open_files, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_wait_returns_at_the_end_or_at_its_timeout(bench: Bench) -> None:
    """`wait` returns when the task ends. If the task still runs at the timeout, it exits with 4 and names the task.

    Rows 21 and 39 of the acceptance scenarios.
    """
    task = bench.launch("sleep 30")
    done = bench.run("wait", task, "--timeout", "200ms")
    assert done.returncode == 4
    assert f"still running: {task}" in done.stderr
    assert bench.json("wait", task, "--timeout", "10ms")["timed_out"] is True
    quick = bench.launch("true")
    assert bench.run("wait", quick, "--timeout", "20s").returncode == 0


def test_wait_returns_for_all_tasks_or_for_any(bench: Bench) -> None:
    """`wait` returns when all tasks have ended, and exits with 0 only if all have succeeded. `--any` waits for one."""
    slow = bench.launch("sleep 30")
    good, bad = bench.launch("sleep 0.2"), bench.launch("sleep 0.1; exit 2")
    assert bench.run("wait", good, bad).returncode == 1
    assert bench.run("wait", good).returncode == 0
    done = bench.run("wait", "--any", slow, good)
    assert done.returncode == 0
    assert good in done.stdout
    assert slow not in done.stdout


def test_wait_sleeps_while_its_tasks_run(bench: Bench) -> None:
    """`wait`, the keepers and the witnesses have no context switch during a second of waiting."""
    tasks = [bench.launch("sleep 5") for _ in range(3)]
    launched = time.monotonic()
    waiter = subprocess.Popen(
        bench.command("wait", *tasks), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: _is_waiting(waiter.pid), "`wait` to sleep")
    pids = [waiter.pid, *(bench.keeper(task) for task in tasks), *(bench.process(task, "witness") for task in tasks)]
    # Soon after the start, a keeper loads the code that it needs at the end of its task. Then it sleeps.
    wait_until(lambda: time.monotonic() > launched + 0.5)
    before = [_switches(pid) for pid in pids]
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert [_switches(pid) for pid in pids] == before
    assert waiter.wait() == 0


def _is_waiting(pid: int) -> bool:
    """Return whether a process sleeps in poll() and has the FIFO open by which a keeper reports the end of its task."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and any(path.endswith("/done") for path in open_files(pid))


def _switches(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def test_wait_accepts_more_tasks_than_open_files_are_allowed(bench: Bench) -> None:
    """With a limit of 256 open files, `wait` can still wait for 300 tasks."""
    script = (
        "from outlive import Outlive\n"
        "o = Outlive()\n"
        "tasks = [o.run(['sh', '-c', 'read x < gate']) for _ in range(300)]\n"
        "print(' '.join(t.id for t in tasks))"
    )
    os.mkfifo(bench.project / "gate")
    launched = subprocess.run(
        [bench.command()[0], "-c", script], env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
    )
    ids = launched.stdout.split()
    waiter = subprocess.Popen(
        ["sh", "-c", f"ulimit -Sn 256; exec {' '.join(bench.command('wait', '--json', *ids))}"],
        env=bench.env,
        cwd=bench.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    for task in ids:
        os.kill(bench.process(task), 15)
    answer = json.loads(waiter.communicate()[0])
    assert len(answer["tasks"]) == 300
    assert {task["signal"] for task in answer["tasks"]} == {15}


def test_wait_until_returns_at_a_matching_line(bench: Bench) -> None:
    """`wait --until` returns when a line matches.

    It exits with 1 if the task ends without the line, with 4 after the timeout, and with 2 for an invalid pattern.
    """
    task = bench.launch("echo begin; sleep 0.2; printf 'listening on 8080'; sleep 30")
    done = bench.run("wait", task, "--until", r"listening on \d+")
    assert (done.returncode, done.stdout.strip()) == (0, "listening on 8080")
    assert bench.run("wait", task, "--until", "never", "--timeout", "200ms").returncode == 4
    short = bench.launch("echo bye")
    assert bench.run("wait", short, "--until", "never").returncode == 1
    assert bench.run("wait", short, "--until", "(").returncode == 2


def test_wait_until_keeps_its_timeout_when_a_pattern_takes_exponential_time(bench: Bench) -> None:
    """If a pattern takes exponential time, `wait --until` still exits with 4 at its timeout."""
    task = bench.launch("echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!; sleep 60")
    wait_until(lambda: bench.ok("output", task))
    assert bench.run("wait", task, "--until", "(a+)+$", "--timeout", "200ms").returncode == 4


def test_output_pages_together_are_the_whole_output(bench: Bench) -> None:
    """If each call of `output` begins with the `next` of the call before, the pages together are the whole output.

    Row 43 of the acceptance scenarios.
    """
    task = bench.launch("for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.05; done")
    parts, offset = [], 0
    while True:
        document = bench.json("output", task, "--since", str(offset))
        parts.append(document["content"])
        offset = document["next"]
        if document["state"] != "running" and offset == document["bytes"]:
            break
    assert "".join(parts) == "".join(f"line {i}\n" for i in range(1, 9))


def test_follow_returns_when_the_task_has_ended(bench: Bench) -> None:
    """`output --follow` prints every byte, including an unfinished last line."""
    task = bench.launch("for i in 1 2 3; do echo $i; sleep 0.1; done; printf end")
    assert bench.run("output", task, "--follow").stdout == "1\n2\n3\nend"


def test_tail_prints_the_last_lines(bench: Bench) -> None:
    """`output --tail` counts an unfinished last line as a line."""
    task = bench.launch("printf 'a\\nb\\nc\\nd'")
    bench.ok("wait", task)
    assert bench.run("output", task, "--tail", "2").stdout == "c\nd"
    assert bench.run("output", task, "--tail", "9").stdout == "a\nb\nc\nd"
    assert bench.run("output", task, "--tail", "0").stdout == ""


def test_output_prints_bytes_that_are_not_text_unchanged(bench: Bench) -> None:
    """`output` prints bytes that are not text unchanged. Only JSON output replaces them."""
    task = bench.launch(r"printf '\377\376\000ok\n'")
    bench.ok("wait", task)
    raw = subprocess.run(
        bench.command("output", task), env=bench.env, cwd=bench.project, capture_output=True, check=True
    )
    assert raw.stdout == b"\xff\xfe\x00ok\n"
    assert bench.json("output", task)["content"].endswith("ok\n")


def test_large_output_keeps_its_beginning_and_end_up_to_the_cap(bench: Bench) -> None:
    """If a large output exceeds the cap, its middle is removed, and the number of removed bytes is shown."""
    task = bench.launch("seq 1 3000000", "--max-output", "256K")
    bench.ok("wait", task)
    shown = bench.show(task)["output"]
    whole = "".join(f"{n}\n" for n in range(1, 3000001)).encode()
    assert shown["bytes"] == len(whole)
    on_disk = os.stat(shown["path"]).st_blocks * 512
    assert on_disk <= (256 << 10) + 8192
    assert shown["dropped_bytes"] >= len(whole) - (256 << 10) - 4096
    document = bench.json("output", task)
    assert document["dropped_bytes"] == shown["dropped_bytes"]
    assert len(document["content"]) == len(whole) - shown["dropped_bytes"]
    assert document["content"].startswith("1\n2\n3\n")
    assert document["content"].endswith("2999999\n3000000\n")
    at = len(whole) - 1000
    assert bench.json("output", task, "--since", str(at))["content"].encode() == whole[at:]


def test_output_stays_near_its_cap_while_the_command_writes(bench: Bench) -> None:
    """While a command writes 200 MB, its file occupies less than 150 MB, and at the end no more than its cap."""
    task = bench.launch("yes 0123456789012345678901234567890123456789", "--max-output", "1M")
    path = bench.files(task).output
    wait_until(lambda: os.stat(path).st_size > 200 << 20, "200 MB of output")
    wait_until(lambda: os.stat(path).st_blocks * 512 < 150 << 20, "the hole")
    bench.ok("cancel", task)
    assert os.stat(path).st_blocks * 512 <= (1 << 20) + 8192


def test_output_is_marked_as_truncated_when_its_command_truncates_it(bench: Bench) -> None:
    """If a command truncates its own output file, the output is marked as truncated. `tee /dev/stderr` does so."""
    task = bench.launch("seq 1 20000; sleep 0.6; echo x | tee /dev/stderr >/dev/null; sleep 0.6")
    bench.ok("wait", task)
    assert bench.show(task)["output"]["truncated"] is True


def test_escape_sequences_are_removed_on_a_terminal(bench: Bench) -> None:
    """On a terminal, escape sequences of a task are removed. Only `output --raw` prints them."""
    task = bench.launch(r"printf 'a\033[31mb\033]0;title\007c\n'")
    bench.ok("wait", task)
    assert _on_a_terminal(bench, "output", task) == "abc"
    assert "\x1b[31m" in _on_a_terminal(bench, "output", task, "--raw")
    assert "\x1b" not in _on_a_terminal(bench, "show", task)


def _on_a_terminal(bench: Bench, *words: str) -> str:
    import pty

    leader, follower = pty.openpty()
    done = subprocess.Popen(bench.command(*words), env=bench.env, cwd=bench.project, stdout=follower, stdin=follower)
    os.close(follower)
    done.wait()
    printed = os.read(leader, 65536).decode()
    os.close(leader)
    return printed.strip()


def test_list_shows_the_tasks_of_this_project(bench: Bench) -> None:
    """`list` shows the tasks of this project, newest first. Options select by state, session, group, number and age."""
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    old = bench.launch("true", "--group", "g")
    other = bench.launch("true", cwd=elsewhere)
    new = bench.launch("sleep 30", "--session", "s-7")
    bench.ok("wait", old)

    def ids(*words: str) -> list[str]:
        return [task["id"] for task in bench.json("list", *words)["tasks"]]

    assert ids() == [new, old]
    assert set(ids("--all")) == {new, old, other}
    assert ids("--state", "running") == [new]
    assert ids("--group", "g") == [old]
    assert ids("--session", "s-7") == [new]
    assert bench.json("list", "--limit", "1") | {"tasks": 0} == {"tasks": 0, "foreign": [], "more": True}
    assert ids("--since", "1h") == [new, old]
    assert new in bench.ok("list")


def test_growing_output_is_not_marked_as_truncated(tmp_path: Path) -> None:
    """An output that grows while its size is measured is not marked as truncated."""
    fd = os.open(tmp_path / "output", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    record_fd = record.preallocate(str(tmp_path / "record"))
    watch = OutputCap(str(tmp_path), fd, record_fd, cap=1 << 20, can_punch=True)
    printer = subprocess.Popen(["yes"], stdout=fd)
    try:
        wait_until(lambda: os.fstat(fd).st_size, "the first line")
        seen = [watch.final().truncated for _ in range(3000)]
    finally:
        printer.kill()
        printer.wait()
    assert not any(seen)
    os.ftruncate(fd, 0)
    assert watch.final().truncated is True
    os.close(fd)
    os.close(record_fd)
