"""Sessions: which session continues which one, which endings a session receives, and which tasks end with it."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now
from tests.session_steps import begin, ended, told, until
from tests.support import is_alive, wait_until

if TYPE_CHECKING:
    from tests.session_steps import Clients
    from tests.support import Bench


# --- lineage --------------------------------------------------------------------------------------


def test_resumed_session_continues_the_lineage_under_a_new_id(bench: Bench, clients: Clients) -> None:
    """A resumed session, which has a new id, receives only the endings that were not reported before."""
    first = clients.start()
    begin(bench, "s-1", "--client", "claude", "--pid", first)
    seen, unseen = ended(bench, "s-1"), None
    assert told(bench, "s-1") == [seen]
    assert told(bench, "s-1") == []
    unseen = ended(bench, "s-1")
    clients.kill(first)
    second = begin(bench, "s-2", "--client", "claude", "--source", "resume", "--pid", clients.start())
    assert (second["continues"], second["evidence"]) == ("s-1", "recency")
    assert second["session"]["lineage"] == bench.show(seen)["lineage"]
    assert [task["id"] for task in second["hand_off"]["ended"]] == [unseen]
    assert told(bench, "s-2") == []
    assert told(bench, "s-1") == []


@pytest.mark.parametrize(
    ("evidence", "options"),
    [
        ("named", ("--continues", "s-1")),
        ("transcript", ("--transcript", "/t.jsonl")),
        ("terminal", ("--terminal", "7")),
    ],
)
def test_session_continues_the_session_that_the_evidence_of_its_client_identifies(
    bench: Bench, clients: Clients, evidence: str, options: tuple[str, ...]
) -> None:
    """A new session continues the session that the client names, or that has the same transcript or terminal."""
    pids = {name: clients.start() for name in ("s-0", "s-1", "s-9")}
    begin(bench, "s-0", "--pid", pids["s-0"], "--transcript", "/other.jsonl", "--terminal", "6")
    begin(bench, "s-1", "--pid", pids["s-1"], "--transcript", "/t.jsonl", "--terminal", "7")
    begin(bench, "s-9", "--pid", pids["s-9"])
    for pid in pids.values():
        clients.kill(pid)
    begun = begin(bench, "s-2", "--source", "resume", *options)
    assert (begun["continues"], begun["evidence"]) == ("s-1", evidence)


def test_cleared_session_is_continued_by_the_next_one_of_its_process(bench: Bench, clients: Clients) -> None:
    """After a clear, the next session of the same client process continues the cleared session."""
    process = clients.start()
    begin(bench, "s-0", "--pid", clients.start())
    begin(bench, "s-1", "--pid", process)
    task = bench.launch(f"{until('go')}; exit 3", "--session", "s-1")
    begun = begin(bench, "s-2", "--source", "clear", "--pid", process)
    assert (begun["continues"], begun["evidence"]) == ("s-1", "process")
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert told(bench, "s-1") == []
    assert told(bench, "s-2") == [task]


def test_notice_shows_whether_its_task_was_launched_before_the_compaction(bench: Bench, clients: Clients) -> None:
    """In a notice, `crossed_boundary` is true only if the task was launched before the session was compacted."""
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    before = ended(bench, "s-1")
    handed = begin(bench, "s-1", "--pid", process, "--source", "compact")
    assert handed["session"]["boundary"] == 2
    assert [task["id"] for task in handed["hand_off"]["ended"]] == [before]
    after = ended(bench, "s-1")
    notices = bench.json("inbox", "--session", "s-1")["notices"]
    assert [(n["task"]["id"], n["crossed_boundary"]) for n in notices] == [(after, False)]
    late = bench.launch(until("go"), "--session", "s-1")
    begin(bench, "s-1", "--pid", process, "--source", "compact")
    (bench.project / "go").touch()
    bench.run("wait", late)
    notices = bench.json("inbox", "--session", "s-1")["notices"]
    assert [(n["task"]["id"], n["crossed_boundary"]) for n in notices] == [(late, True)]


def test_first_fork_receives_endings_when_the_launching_session_is_dead(bench: Bench, clients: Clients) -> None:
    """Forks of a living session receive no endings. If the session dies, only the first fork receives them."""
    parent = clients.start()
    begin(bench, "s-1", "--pid", parent)
    begin(bench, "f-1", "--source", "fork", "--continues", "s-1", "--pid", clients.start())
    begin(bench, "f-2", "--source", "fork", "--continues", "s-1", "--pid", clients.start())
    task = ended(bench, "s-1")
    assert told(bench, "f-1", "--peek") == told(bench, "f-2", "--peek") == []
    assert told(bench, "s-1", "--peek") == [task]
    clients.kill(parent)
    assert told(bench, "f-2") == []
    assert told(bench, "f-1") == [task]
    assert told(bench, "f-2") == []


def test_third_session_of_a_lineage_receives_the_ending_of_the_first(bench: Bench, clients: Clients) -> None:
    """If two sessions continue a session one after the other, and only the last one lives, it receives the endings."""
    first, second = clients.start(), clients.start()
    begin(bench, "s-1", "--pid", first)
    task = ended(bench, "s-1")
    clients.kill(first)
    begin(bench, "s-2", "--source", "resume", "--continues", "s-1", "--pid", second)
    clients.kill(second)
    handed = begin(bench, "s-3", "--source", "resume", "--continues", "s-2", "--pid", clients.start())["hand_off"]
    assert [each["id"] for each in handed["ended"]] == [task]


def test_session_that_is_resumed_receives_the_endings_of_its_successor(bench: Bench) -> None:
    """If s-2 continued s-1, and s-1 is resumed and continues s-2, s-1 receives the endings.

    The links between the two sessions then form a circle.
    """
    begin(bench, "s-1")
    begin(bench, "s-2", "--source", "clear", "--continues", "s-1")
    task = bench.launch(until("go"), "--session", "s-2")
    bench.ok("session", "end", "--session", "s-2")
    begin(bench, "s-1", "--source", "resume", "--continues", "s-2")
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert told(bench, "s-1") == [task]
    assert told(bench, "s-2") == []


def test_sessions_of_two_projects_receive_only_their_own_endings(bench: Bench, clients: Clients) -> None:
    """Sessions of two projects receive only their own endings, even if they have the same id, client and terminal.

    The tasks end at the same time.
    """
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    tasks = {}
    for place in (bench.project, elsewhere):
        pid = clients.start()
        begin(bench, "main", "--client", "c", "--pid", pid, "--terminal", "1", cwd=place)
        tasks[place] = bench.launch("sleep 0.5; exit 1", "--session", "main", cwd=place)
    for task in tasks.values():
        bench.run("wait", task)
    for place, task in tasks.items():
        assert told(bench, "main", cwd=place) == [task]
        assert told(bench, "main", cwd=place) == []
    begun = begin(bench, "other", "--source", "resume", "--continues", "main", cwd=bench.project)
    assert begun["continues"] == "main"
    assert begin(bench, "x", "--source", "resume", "--continues", "s-unknown", cwd=elsewhere)["continues"] is None
    lineages = {each["project"]: each["lineage"] for each in bench.json("session", "list", "--all")["sessions"]}
    assert len(set(lineages.values())) == 2


def test_session_with_a_uuid_is_the_same_session_in_every_directory(bench: Bench) -> None:
    """A session whose id is a UUID is the same session in every directory, and receives all its endings."""
    name = "0f7c2a52-7d0e-4f0a-9f5e-3f1b1c5d9a77"
    below = bench.root / "elsewhere"
    below.mkdir()
    begin(bench, name)
    task = bench.launch("true", "--session", name, cwd=below)
    apart = bench.launch("true", "--session", name, "--cwd", str(below))
    bench.run("wait", task, apart)
    assert told(bench, name) == [task, apart]


def test_session_is_over_when_its_process_has_died(bench: Bench, clients: Clients) -> None:
    """`session list` shows a session as not alive as soon as its process has died, even without `session end`."""
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    begin(bench, "s-2")
    alive = {each["id"]: each["alive"] for each in bench.json("session", "list")["sessions"]}
    assert alive == {"s-1": True, "s-2": None}
    clients.kill(process)
    alive = {each["id"]: each["alive"] for each in bench.json("session", "list")["sessions"]}
    assert alive == {"s-1": False, "s-2": None}


def test_hand_off_is_printed_once_when_hooks_begin_a_session_at_once(bench: Bench, clients: Clients) -> None:
    """If four `session begin` run at once for a session, one of them prints the hand-off."""
    process = clients.start()
    ended(bench, "s-1")
    with ThreadPoolExecutor(4) as pool:
        words = ("session", "begin", "--session", "s-1", "--pid", process)
        printed = [done.stdout for done in pool.map(lambda _: bench.run(*words), range(4))]
    assert sorted(map(bool, printed)) == [False, False, False, True]


def test_hand_off_is_printed_again_when_its_process_was_killed(bench: Bench, clients: Clients) -> None:
    """If `session begin` was killed while it printed the hand-off, the next call prints the hand-off."""
    process = clients.start()
    running = bench.launch("sleep 401", "--session", "s-1")
    words = ("session", "begin", "--session", "s-1", "--pid", process)
    assert running in bench.ok(*words)
    assert bench.ok(*words) == ""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger, ledger.write():
        # The column has the name of a lock file. A killed process leaves this name and the file.
        ledger.db.execute("UPDATE session SET begun_by = 'nobody'")
    assert running in bench.ok(*words)


def test_sweep_deletes_old_lease_files_of_killed_processes(bench: Bench) -> None:
    """`sweep` deletes old lock files that killed processes left. A process may be about to lock a young one."""
    begin(bench, "s-1")
    for name, age in (("old", 4000), ("young", 10)):
        path = Path(bench.home.leases) / name
        path.touch()
        os.utime(path, (time.time() - age, time.time() - age))
    bench.ok("sweep", "--apply")
    assert os.listdir(bench.home.leases) == ["young"]


# --- the end of a session -------------------------------------------------------------------------


def test_end_of_a_session_ends_only_its_foreground_tasks(bench: Bench, clients: Clients) -> None:
    """The end of a session ends its foreground tasks with their children.

    Background tasks and other sessions' tasks run on.
    """
    begin(bench, "s-1", "--pid", clients.start())
    begin(bench, "s-2", "--pid", clients.start())
    front = bench.launch("sleep 301 & sleep 302", "--foreground", "--session", "s-1")
    back = bench.launch("sleep 303", "--session", "s-1")
    peer = bench.launch("sleep 304", "--foreground", "--session", "s-2")
    leader = bench.process(front)
    inner = wait_until(lambda: _children(leader), "the tree")
    for _ in range(2):
        bench.ok("session", "end", "--session", "s-1", "--reason", "exit")
    shown = bench.show(front)
    assert (shown["state"], shown["reason"]) == ("cancelled", "session_ended")
    assert not any(is_alive(pid) for pid in (leader, *inner))
    assert bench.show(back)["state"] == bench.show(peer)["state"] == "running"
    assert bench.json("list", "--state", "running")["tasks"]
    # Another session of the project may cancel the background task.
    bench.ok("cancel", back, env={"OUTLIVE_SESSION": "s-2"})
    assert bench.show(back)["output"]["path"]


def test_foreground_task_ends_when_its_client_is_killed(bench: Bench, clients: Clients) -> None:
    """If the client is killed, its foreground task ends.

    The task's keeper watches the client, which calls no hook then.
    """
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    front = bench.launch("sleep 305", "--foreground", "--session", "s-1")
    back = bench.launch("sleep 306", "--session", "s-1")
    clients.kill(process)
    bench.run("wait", front)
    assert bench.show(front)["reason"] == "session_ended"
    assert bench.show(back)["state"] == "running"


def test_next_session_ends_foreground_tasks_of_a_session_that_was_not_ended(bench: Bench, clients: Clients) -> None:
    """If `session end` was never called, the client's next session ends the foreground tasks of the earlier session."""
    process = clients.start()
    begin(bench, "s-1", "--pid", process)
    front = bench.launch("sleep 307", "--foreground", "--session", "s-1")
    begin(bench, "s-2", "--source", "clear", "--pid", process)
    assert bench.show(front)["reason"] == "session_ended"


def test_queued_foreground_task_ends_with_its_session(bench: Bench) -> None:
    """If its session ends, a queued foreground task is cancelled with the reason `session_ended`."""
    begin(bench, "s-1")
    bench.launch("sleep 308", "--lock", "l")
    front = bench.launch("sleep 309", "--foreground", "--session", "s-1", "--lock", "l")
    bench.ok("session", "end", "--session", "s-1")
    assert bench.show(front)["reason"] == "session_ended"


def test_session_end_refuses_an_unknown_session(bench: Bench) -> None:
    """`session end` of an unknown session exits with 2, and records no session."""
    done = bench.run("session", "end", "--session", "nobody")
    assert (done.returncode, "is not known in" in done.stderr) == (2, True)
    assert bench.json("session", "list")["sessions"] == []


@pytest.mark.parametrize(
    "words",
    [
        ("session",),
        ("session", "dance"),
        ("session", "begin"),
        ("session", "begin", "--session", ""),
        ("session", "begin", "--session", "s" * 501),
        ("session", "begin", "--session", "s-1", "--pid", "4194305"),
        ("session", "begin", "--session", "s-1", "--source", "birth"),
        ("inbox",),
        ("inbox", "--session", "s-1", "--follow", "--peek"),
        ("ack", "n1"),
        ("ack", "n1", "--session", "s-1"),
        ("dismiss",),
        ("dismiss", "../../etc"),
        ("hand-off", "--session", "s-1"),
        ("gate", "now"),
        ("gate", "--session", "s-1", "--ceiling", "soon"),
    ],
)
def test_session_commands_refuse_invalid_arguments(bench: Bench, words: tuple[str, ...]) -> None:
    """Invalid arguments of the session commands exit with 2, and the last line of the error is a hint."""
    done = bench.run(*words)
    assert done.returncode == 2, done
    assert done.stderr.splitlines()[-1].startswith("hint: ")


def test_launch_is_refused_when_tasks_are_nested_too_deeply(bench: Bench) -> None:
    """A fourth nested task is refused. So is a task inside another one whose nesting depth is not known.

    Row 7 of the acceptance scenarios.
    """
    outlive = " ".join(bench.command("run", "--wait", "20s"))
    nested = f"{outlive} \"{outlive} '{outlive} true; echo code \\$?' ; echo second \\$?\""
    task = bench.launch(nested + "; echo first $?")
    bench.run("wait", task)
    said = bench.ok("output", task)
    assert "inside 3 nested tasks" in said, said
    refused = bench.run("run", "true", env={"OUTLIVE_TASK": "t2345678"})
    assert (refused.returncode, "the depth of nested tasks is not known" in refused.stderr) == (2, True)


def test_twelve_launches_at_once_are_all_recorded(bench: Bench) -> None:
    """If twelve tasks are launched at once, each is recorded with its session, and each ending is reported once."""
    begin(bench, "s-1")
    with ThreadPoolExecutor(12) as pool:
        tasks = list(pool.map(lambda n: bench.launch(f"exit {n % 3}", "--session", "s-1"), range(12)))
    bench.run("wait", *tasks, "--no-ack")
    assert sorted(told(bench, "s-1")) == sorted(tasks)
    assert told(bench, "s-1") == []


def test_task_is_reported_as_succeeded_when_its_client_restarts(bench: Bench, clients: Clients) -> None:
    """If a task ends while its client is killed and the session is resumed, it is reported once, as succeeded."""
    for _ in range(5):
        process = clients.start()
        begin(bench, "s-1", "--pid", process)
        task = bench.launch("sleep 0.1", "--session", "s-1")
        clients.kill(process)
        handed = begin(bench, "s-1", "--source", "resume", "--pid", clients.start())["hand_off"]
        bench.run("wait", task, "--no-ack")
        notices = bench.json("inbox", "--session", "s-1")["notices"]
        heard = [*handed["ended"], *(notice["task"] for notice in notices)]
        assert [(each["id"], each["state"]) for each in heard] == [(task, "succeeded")]
        assert told(bench, "s-1") == []  # This call acknowledges the notice.


def test_trace_records_every_decision(bench: Bench) -> None:
    """With `--trace` or `OUTLIVE_TRACE=1`, each session has a private trace file of limited size.

    Otherwise there is none.
    """
    begin(bench, "s/1")
    assert not Path(bench.home.traces).exists()
    begin(bench, "s/1", "--source", "compact", "--trace")
    task = ended(bench, "s/1", "exit 1")
    bench.ok("inbox", "--session", "s/1", env={"OUTLIVE_TRACE": "1"})
    bench.ok("inbox", "--session", "s/1", "--trace")
    bench.ok("gate", "--session", "s/1", "--trace")
    (path,) = Path(bench.home.traces).iterdir()
    assert path.stat().st_mode & 0o777 == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["decision"] for line in lines] == ["began", "claimed", "presented", "acknowledged", "gate"]
    assert {line["notice"] for line in lines if "notice" in line} == {f"n{task}01ended"}
    path.write_text("x" * (1 << 20) + "\n")
    bench.ok("gate", "--session", "s/1", "--trace")
    bench.ok("gate", "--session", "s/1", "--trace")
    assert sum(each.stat().st_size for each in Path(bench.home.traces).iterdir()) < 2 << 20


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]
