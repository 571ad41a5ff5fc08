"""Watching: woken by the kernel, every byte once, holes told of."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support import open_files, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_waiting_is_bounded(bench: Bench) -> None:
    """Rows 21 and 39: `wait --timeout` returns on the end, or says that time was up (exit 4)."""
    task = bench.launch("sleep 30")
    done = bench.run("wait", task, "--timeout", "200ms")
    assert done.returncode == 4
    assert f"still running: {task}" in done.stderr
    assert bench.json("wait", task, "--timeout", "10ms")["timed_out"] is True
    quick = bench.launch("true")
    assert bench.run("wait", quick, "--timeout", "20s").returncode == 0


def test_waiting_for_all_and_for_any(bench: Bench) -> None:
    """All: 0 only if every one succeeded. Any: the first to end is enough."""
    slow = bench.launch("sleep 30")
    good, bad = bench.launch("sleep 0.2"), bench.launch("sleep 0.1; exit 2")
    assert bench.run("wait", good, bad).returncode == 1
    assert bench.run("wait", good).returncode == 0
    done = bench.run("wait", "--any", slow, good)
    assert done.returncode == 0
    assert good in done.stdout
    assert slow not in done.stdout


def test_a_waiter_makes_no_system_call(bench: Bench) -> None:
    """While it waits it sleeps in one poll(): over a second its switch count does not move."""
    tasks = [bench.launch("sleep 5") for _ in range(3)]
    launched = time.monotonic()
    waiter = subprocess.Popen(
        bench.command("wait", *tasks), env=bench.env, cwd=bench.project, stdout=subprocess.DEVNULL
    )
    wait_until(lambda: _is_waiting(waiter.pid), "the waiter to sleep")
    pids = [waiter.pid, *(bench.keeper(task) for task in tasks), *(bench.process(task, "witness") for task in tasks)]
    # A keeper rehearses its task's end once, soon after the beginning; from then on it sleeps.
    wait_until(lambda: time.monotonic() > launched + 0.5)
    before = [_switches(pid) for pid in pids]
    until = time.monotonic() + 1
    while time.monotonic() < until:
        assert [_switches(pid) for pid in pids] == before
    assert waiter.wait() == 0


def _is_waiting(pid: int) -> bool:
    """Whether it sleeps with a done FIFO open; so it looks in poll() and nowhere else."""
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S" and any(path.endswith("/done") for path in open_files(pid))


def _switches(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return sum(int(line.split()[1]) for line in status.splitlines() if "ctxt_switches" in line)


def test_waiting_for_hundreds_at_once(bench: Bench) -> None:
    """More tasks than the usual limit of open files allows at once, and each is told."""
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


def test_waiting_for_a_line_of_output(bench: Bench) -> None:
    """`--until` returns at the line, finished or not; 1 if the task ended without it, 4 if time was up."""
    task = bench.launch("echo begin; sleep 0.2; printf 'listening on 8080'; sleep 30")
    done = bench.run("wait", task, "--until", r"listening on \d+")
    assert (done.returncode, done.stdout.strip()) == (0, "listening on 8080")
    assert bench.run("wait", task, "--until", "never", "--timeout", "200ms").returncode == 4
    short = bench.launch("echo bye")
    assert bench.run("wait", short, "--until", "never").returncode == 1
    assert bench.run("wait", short, "--until", "(").returncode == 2


def test_a_pattern_that_takes_ages_is_given_up_in_time(bench: Bench) -> None:
    """Some patterns need exponential time; the limit holds for them too."""
    task = bench.launch("echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!; sleep 60")
    wait_until(lambda: bench.ok("output", task))
    assert bench.run("wait", task, "--until", "(a+)+$", "--timeout", "200ms").returncode == 4


def test_polling_the_output_loses_and_repeats_nothing(bench: Bench) -> None:
    """Row 43: `next` of one call is `--since` of the next; the parts are the whole."""
    task = bench.launch("for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.05; done")
    parts, offset = [], 0
    while True:
        document = bench.json("output", task, "--since", str(offset))
        parts.append(document["content"])
        offset = document["next"]
        if document["state"] != "running" and offset == document["bytes"]:
            break
    assert "".join(parts) == "".join(f"line {i}\n" for i in range(1, 9))


def test_following_ends_with_the_task(bench: Bench) -> None:
    """`--follow` prints every byte as it comes and returns when the task has ended."""
    task = bench.launch("for i in 1 2 3; do echo $i; sleep 0.1; done; printf end")
    assert bench.run("output", task, "--follow").stdout == "1\n2\n3\nend"


def test_tail_counts_lines(bench: Bench) -> None:
    """The last N lines, also when the last one is unfinished."""
    task = bench.launch("printf 'a\\nb\\nc\\nd'")
    bench.ok("wait", task)
    assert bench.run("output", task, "--tail", "2").stdout == "c\nd"
    assert bench.run("output", task, "--tail", "9").stdout == "a\nb\nc\nd"
    assert bench.run("output", task, "--tail", "0").stdout == ""


def test_bytes_that_are_not_text_survive(bench: Bench) -> None:
    """Output is kept byte for byte; JSON shows a replacement."""
    task = bench.launch(r"printf '\377\376\000ok\n'")
    bench.ok("wait", task)
    raw = subprocess.run(
        bench.command("output", task), env=bench.env, cwd=bench.project, capture_output=True, check=True
    )
    assert raw.stdout == b"\xff\xfe\x00ok\n"
    assert bench.json("output", task)["content"].endswith("ok\n")


def test_a_runaway_output_costs_its_cap(bench: Bench) -> None:
    """Head and tail stay, the middle is given back, and how much is gone is told."""
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


def test_the_cap_holds_while_the_command_writes(bench: Bench) -> None:
    """A command that never stops printing never has much more than its cap on disk."""
    task = bench.launch("yes 0123456789012345678901234567890123456789", "--max-output", "1M")
    path = bench.files(task).output
    wait_until(lambda: os.stat(path).st_size > 200 << 20, "200 MB of output")
    wait_until(lambda: os.stat(path).st_blocks * 512 < 150 << 20, "the hole")
    bench.ok("cancel", task)
    assert os.stat(path).st_blocks * 512 <= (1 << 20) + 8192


def test_a_command_that_truncates_its_output_is_told_of(bench: Bench) -> None:
    """`tee /dev/stderr` truncates the file under everybody; the record says so."""
    task = bench.launch("seq 1 20000; sleep 0.6; echo x | tee /dev/stderr >/dev/null; sleep 0.6")
    bench.ok("wait", task)
    assert bench.show(task)["output"]["truncated"] is True


def test_output_cannot_harm_a_terminal(bench: Bench) -> None:
    """On a terminal escape sequences are taken out, unless `--raw` is asked for."""
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


def test_the_list_is_of_this_project(bench: Bench) -> None:
    """Newest first, this project only, narrowed by state, session, group and number."""
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
    assert bench.json("list", "--limit", "1") | {"tasks": 0} == {"tasks": 0, "more": True}
    assert ids("--since", "1h") == [new, old]
    assert new in bench.ok("list")
