"""A ledger that is damaged, emptied, deleted or replaced while processes use it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tests.session_steps import until
from tests.support import is_alive, kept_in_log, open_files, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


def test_keeper_leaves_a_damaged_ledger_to_the_next_command(bench: Bench) -> None:
    """A keeper does not move a damaged ledger aside. The next command moves it aside and prints a warning."""
    task = bench.launch("while ! [ -e go ]; do sleep 0.05; done; exit 7")
    keeper = bench.keeper(task)
    for suffix in ("", "-wal", "-shm"):
        path = Path(bench.home.ledger + suffix)
        if path.exists():
            path.write_bytes(b"no database " * 1000)
    (bench.project / "go").touch()
    wait_until(lambda: not is_alive(keeper), "the keeper's end")
    done = bench.run("list")
    assert (done.returncode, "is damaged" in done.stderr) == (3, True)
    bench.ok("audit", "--rebuild")
    assert bench.show(task)["exit_code"] == 7


def test_emptied_or_deleted_ledger_is_restored_and_reported_once(bench: Bench) -> None:
    """If the ledger was emptied or deleted, the next command restores its tasks and prints one warning."""
    tasks = []
    for damage in ("empty", "delete"):
        tasks.append(bench.launch("true"))
        bench.ok("wait", tasks[-1])
        ledger = Path(bench.home.ledger)
        for suffix in ("-wal", "-shm"):
            ledger.with_name(ledger.name + suffix).unlink(missing_ok=True)
        ledger.write_bytes(b"") if damage == "empty" else ledger.unlink()
        done = bench.run("list")
        assert (done.returncode, done.stderr.count("had to be restored")) == (0, 1)
        assert {task["id"] for task in bench.json("list")["tasks"]} == set(tasks)


def test_wait_continues_when_the_ledger_is_replaced(bench: Bench) -> None:
    """If the ledger is deleted and restored, `wait` finds its task in the restored ledger and waits for its end."""
    task = bench.launch(until("go"))
    waiter = subprocess.Popen(
        bench.command("wait", task), env=bench.env, cwd=bench.project, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: any("/done" in path for path in open_files(waiter.pid)), "`wait` to open the FIFO of the task")
    for suffix in ("", "-wal", "-shm"):
        Path(bench.home.ledger + suffix).unlink(missing_ok=True)
    bench.run("list")
    bench.run("list")
    (bench.project / "go").touch()
    waiter.communicate()
    assert waiter.returncode == 0


def test_damaged_write_ahead_log_is_moved_aside(bench: Bench) -> None:
    """If a bit of the ledger's write-ahead log is flipped, a command moves the log aside and restores all tasks."""
    tasks = [bench.launch("exit 0")]
    with kept_in_log(bench):
        tasks += [bench.launch(f"exit {code}") for code in (1, 2)]
        bench.run("wait", *tasks)
    log = Path(bench.home.ledger + "-wal")
    content = bytearray(log.read_bytes())
    content[32 + 24 + 100] ^= 1
    log.write_bytes(content)
    refused = bench.run("list")
    assert (refused.returncode, "was moved to" in refused.stderr) == (3, True), refused.stderr
    aside = [path for path in Path(bench.home.path).iterdir() if ".broken-" in path.name and path.name.endswith("-wal")]
    assert [path.read_bytes() for path in aside] == [bytes(content)]
    assert [bench.show(task)["exit_code"] for task in tasks] == [0, 1, 2]
