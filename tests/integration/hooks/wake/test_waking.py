"""A hook that runs in the background, wakes an idle session and reports an ending.

It is called the waking hook or watcher.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
from fcntl import LOCK_SH, LOCK_UN, flock
from resource import RUSAGE_CHILDREN, getrusage
from threading import Timer
from typing import TYPE_CHECKING

import pytest

from tests.hook_steps import SESSION, call, context, ended, launch, said, state
from tests.session_steps import begin, is_watched, until
from tests.support import PATIENCE_S, open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.session_steps import Clients
    from tests.support import Bench


class Watchers:
    """The waking hooks of a session. The client runs such a hook in the background while the session is idle."""

    def __init__(self, bench: Bench, client: str) -> None:
        self.bench = bench
        self.env = {"CLAUDE_PID": client, "CLAUDE_CODE_ENTRYPOINT": "cli"}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, source: str = "startup", **env: str) -> subprocess.Popen[str]:
        """Start another waking hook and return its process."""
        watcher = subprocess.Popen(
            self.bench.command("hook", "claude", "Wake"),
            env={**self.bench.env, **self.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert watcher.stdin is not None
        watcher.stdin.write(json.dumps({"session_id": SESSION, "cwd": str(self.bench.project), "source": source}))
        watcher.stdin.close()
        watcher.stdin = None
        self._started.append(watcher)
        return watcher

    def start_elsewhere(self, client: str) -> subprocess.Popen[str]:
        """Start a waking hook for another client of the session, and wait until the waking hook sleeps."""
        watcher = self.start(CLAUDE_PID=client)
        wait_until(lambda: len(os.listdir(f"/proc/{watcher.pid}/task")) > 1, "the watcher to wait for the lock")
        return watcher

    def until_there(self) -> None:
        """Wait until one of the waking hooks watches the session."""
        wait_until(lambda: is_watched(self.bench.home, SESSION), "the watcher")

    def end(self, watcher: subprocess.Popen[str]) -> tuple[int, str, str]:
        """Wait for a waking hook's end, and return its exit code, stdout and stderr."""
        out, err = watcher.communicate(timeout=PATIENCE_S)
        return watcher.returncode, out, err

    def clean(self) -> None:
        """Kill all waking hooks that still run."""
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


@pytest.fixture
def watchers(bench: Bench, clients: Clients) -> Iterator[Watchers]:
    """Begin a session of a living client, and yield its waking hooks."""
    found = Watchers(bench, clients.start())
    said(call(bench, "claude", "SessionStart", source="startup", env=found.env))
    yield found
    found.clean()


def test_watcher_reports_an_ending_once(bench: Bench, watchers: Watchers) -> None:
    """The waking hook exits with 2 and prints the notice.

    The hooks of the turn that then begins do not repeat the notice.
    """
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start()
    watchers.until_there()
    (bench.project / "go").touch()
    code, out, err = watchers.end(watcher)
    assert (code, out) == (2, "")
    assert f"n{task}01ended" in err
    assert state(bench, task) == "presented"
    assert said(call(bench, "claude", "UserPromptSubmit", prompt=err, env=watchers.env)) == {}
    assert said(call(bench, "claude", "Stop", stop_hook_active=True, env=watchers.env)) == {}
    assert state(bench, task) == "acked"


def test_only_one_watcher_of_a_client_watches(bench: Bench, watchers: Watchers) -> None:
    """At every end of a turn, the client starts a waking hook. It exits if the client has another waking hook."""
    task = launch(bench, until("go"))
    first = watchers.start()
    watchers.until_there()
    assert [watchers.end(watchers.start()) for _ in range(3)] == [(0, "", "")] * 3
    (bench.project / "go").touch()
    assert watchers.end(first)[0] == 2
    assert state(bench, task) == "presented"


def test_second_client_of_a_session_is_woken_when_the_first_is_killed(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """If two clients have a session open and the first is killed, the waking hook of the second wakes the session."""
    task = launch(bench, f"{until('go')}; exit 3")
    first = watchers.start()
    watchers.until_there()
    other = clients.start()
    second = watchers.start_elsewhere(other)
    assert [watchers.end(watchers.start(CLAUDE_PID=other)) for _ in range(2)] == [(0, "", "")] * 2
    clients.kill(watchers.env["CLAUDE_PID"])
    assert watchers.end(first) == (0, "", "")
    watchers.until_there()
    (bench.project / "go").touch()
    code, _, told = watchers.end(second)
    assert code == 2
    assert f"n{task}01ended" in told


def test_only_one_of_two_clients_of_a_session_is_woken(bench: Bench, watchers: Watchers, clients: Clients) -> None:
    """If the first client's waking hook has reported the ending, that of the second client exits without output."""
    task = launch(bench, f"{until('go')}; exit 3")
    first = watchers.start()
    watchers.until_there()
    second = watchers.start_elsewhere(clients.start())
    (bench.project / "go").touch()
    assert [watchers.end(first)[0], watchers.end(second)] == [2, (0, "", "")]
    assert state(bench, task) == "presented"


def test_watcher_that_waits_for_its_turn_ends_when_its_client_is_killed(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """A second client's waking hook exits when its client is killed.

    The first client's waking hook still reports the ending.
    """
    task = launch(bench, until("go"))
    first = watchers.start()
    watchers.until_there()
    other = clients.start()
    second = watchers.start_elsewhere(other)
    clients.kill(other)
    assert watchers.end(second) == (0, "", "")
    (bench.project / "go").touch()
    assert watchers.end(first)[0] == 2
    assert state(bench, task) == "presented"


def test_hook_and_watcher_together_report_an_ending_once(bench: Bench, watchers: Watchers) -> None:
    """If the waking hook and another hook report at once, only the one that has claimed the notice prints it."""
    server = launch(bench, "sleep 600", "--notify", "failure")
    watcher = watchers.start()
    watchers.until_there()
    task = ended(bench)
    by_hook = context(said(call(bench, "claude", "PostToolBatch", env=watchers.env)))
    wait_until(lambda: state(bench, task) == "presented", "the hook or the watcher to report the ending")
    watcher.terminate()
    by_watcher = watchers.end(watcher)[2]
    assert (by_hook + by_watcher).count(f"n{task}01ended") == 1
    bench.run("cancel", server)


def test_watcher_ends_when_its_client_is_killed(bench: Bench, watchers: Watchers, clients: Clients) -> None:
    """If the client is killed, its waking hook exits, and the notice stays pending."""
    task = launch(bench, "sleep 600")
    watcher = watchers.start()
    watchers.until_there()
    clients.kill(watchers.env["CLAUDE_PID"])
    assert watchers.end(watcher) == (0, "", "")
    bench.run("cancel", task)
    assert state(bench, task) == "pending"


@pytest.mark.parametrize("kind", ["pipe", "socket", "half a socket"])
def test_watcher_ends_when_the_input_of_its_client_is_closed(bench: Bench, watchers: Watchers, kind: str) -> None:
    """If the client's input is closed, the waking hook exits. Otherwise Claude Code would wait half a minute for it."""
    task = launch(bench, until("go"))
    ours, theirs = os.pipe()[::-1] if kind == "pipe" else (end.detach() for end in socket.socketpair())
    client = subprocess.Popen(["sleep", "600"], stdin=theirs)
    os.close(theirs)
    try:
        watcher = watchers.start(CLAUDE_PID=str(client.pid))
        watchers.until_there()
        if kind == "half a socket":
            with socket.socket(fileno=ours) as other_end:
                other_end.shutdown(socket.SHUT_WR)
                assert watchers.end(watcher) == (0, "", "")
        else:
            os.close(ours)
            assert watchers.end(watcher) == (0, "", "")
    finally:
        client.kill()
        client.wait()
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    assert state(bench, task) == "pending"


def test_watcher_ends_when_its_session_has_ended(bench: Bench, watchers: Watchers) -> None:
    """If the session has ended, the waking hook exits, because its client may wait for it."""
    task = launch(bench, until("go"))
    watcher = watchers.start()
    watchers.until_there()
    said(call(bench, "claude", "SessionEnd", reason="other", env=watchers.env))
    assert watchers.end(watcher) == (0, "", "")
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    assert state(bench, task) == "pending"


def test_watching_begins_although_another_process_checks_the_lock(bench: Bench, watchers: Watchers) -> None:
    """The waking hook starts even if another process holds its lock for a short time, to check whether it is free."""
    from outlive.hooks.state import session_files

    client = int(watchers.env["CLAUDE_PID"])
    life = os.pidfd_open(client)
    place = bench.home.path + "/hooks"
    first = session_files.watch(bench.home, SESSION, client, life)
    assert first is not None
    os.close(first)
    [file] = [name for name in os.listdir(place) if name.endswith(".watch")]
    with open(f"{place}/{file}", encoding="utf-8") as looking:
        flock(looking, LOCK_SH)
        leaving = Timer(0.05, lambda: flock(looking, LOCK_UN))
        leaving.start()
        watch = session_files.watch(bench.home, SESSION, client, life)
        leaving.join()
    assert watch is not None
    assert session_files.watch(bench.home, SESSION, client, life) is None
    os.close(watch)
    os.close(life)


def test_resumed_session_is_watched_when_its_beginning_is_recorded(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """In a resumed session, the waking hook sleeps until another hook has recorded that the session begins."""
    other = clients.start()
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start("resume", CLAUDE_PID=other)
    wait_until(lambda: "anon_inode:inotify" in open_files(watcher.pid), "the watcher to wait for the beginning")
    said(call(bench, "claude", "SessionStart", source="resume", env={**watchers.env, "CLAUDE_PID": other}))
    watchers.until_there()
    (bench.project / "go").touch()
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert f"n{task}01ended" in told


def test_watcher_sleeps_and_gives_up_when_no_beginning_is_recorded(watchers: Watchers, clients: Clients) -> None:
    """If no hook records that the session begins, the waking hook sleeps without polling, and then exits."""
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    assert watchers.end(watchers.start("resume", CLAUDE_PID=clients.start())) == (0, "", "")
    assert getrusage(RUSAGE_CHILDREN).ru_nvcsw - before < 50, "a process polls every few milliseconds"


def test_watcher_ends_when_a_hook_has_reported_all_endings(bench: Bench, watchers: Watchers) -> None:
    """If a hook has reported all endings and no task runs, the waking hook exits.

    Otherwise it would run as long as the client.
    """
    task = launch(bench, until("go"))
    watcher = watchers.start()
    watchers.until_there()
    bench.run("cancel", task)
    said(call(bench, "claude", "PostToolBatch", env=watchers.env))
    code, _, err = watchers.end(watcher)
    assert code == 0 or f"n{task}01ended" in err
    assert state(bench, task) == "presented"


def test_watcher_ends_when_another_session_continues_its_session(bench: Bench, watchers: Watchers) -> None:
    """If another session continues the session, the waking hook exits. The new session has a waking hook of its own."""
    task = launch(bench, "sleep 600")
    watcher = watchers.start()
    watchers.until_there()
    call(bench, "claude", "SessionEnd", reason="clear", env=watchers.env)
    call(bench, "claude", "SessionStart", session_id="another-session-of-it", source="clear", env=watchers.env)
    assert watchers.end(watcher) == (0, "", "")
    assert bench.row(task).state == "running"
    bench.run("cancel", task)


@pytest.mark.parametrize("env", [{"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"CLAUDE_PID": ""}])
def test_watcher_ends_at_once_when_its_client_cannot_be_woken(
    bench: Bench, watchers: Watchers, env: dict[str, str]
) -> None:
    """If the client answers a single prompt, the waking hook exits at once.

    The client would wait for it before exiting.
    """
    task = launch(bench, "sleep 600")
    assert watchers.end(watchers.start(**env)) == (0, "", "")
    bench.run("cancel", task)


def test_watcher_ends_at_once_when_no_task_runs(bench: Bench, watchers: Watchers) -> None:
    """If no task runs and no notice is pending, the waking hook exits at once."""
    assert watchers.end(watchers.start()) == (0, "", "")
    task = ended(bench)
    said(call(bench, "claude", "PostToolBatch", env=watchers.env))
    assert watchers.end(watchers.start()) == (0, "", "")
    assert state(bench, task) == "presented"


def test_parent_is_woken_when_a_session_that_outlived_its_turn_leaves_a_task(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """A parent session is woken by the ending of a task that a session inside its own task has launched and left.

    The inner session still lives when its parent becomes idle. Then the client of the inner session dies.
    """
    client, outlive = clients.start(), "env OUTLIVE_SESSION=child " + " ".join(bench.command())
    begins = f"{outlive} session begin --session child --pid {client} > begun"
    outer = launch(bench, f"{begins}; {outlive} run --session child '{until('go')}; exit 3' > inner")
    bench.run("wait", outer, "--session", SESSION)
    task = (bench.project / "inner").read_text().strip()
    watcher = watchers.start()
    watchers.until_there()
    clients.kill(client)
    (bench.project / "go").touch()
    code, _, err = watchers.end(watcher)
    assert (code, f"n{task}01ended" in err) == (2, True)


def test_session_is_woken_when_the_launcher_of_a_task_that_it_was_shown_dies(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """A session that was shown another session's task is woken by the task's ending if the launching session dies.

    The launching session is alive when the other session becomes idle, and dies after the task has failed.
    """
    client = clients.start()
    begin(bench, "launcher", "--pid", client)
    task = bench.launch(f"{until('go')}; exit 3 && git stash", "--session", "launcher")
    assert task in context(said(call(bench, "claude", "SessionStart", source="resume", env=watchers.env)))
    watcher = watchers.start()
    watchers.until_there()
    (bench.project / "go").touch()
    bench.run("wait", task)
    assert watcher.poll() is None, "the session was woken although the launcher is alive"
    clients.kill(client)
    code, _, err = watchers.end(watcher)
    assert (code, f"n{task}01ended" in err) == (2, True)


class Door:
    """The socket on which a client takes messages."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen()
        self._socket.settimeout(PATIENCE_S)
        self.env = {"CLAUDE_CODE_MESSAGING_SOCKET": str(path), "CLAUDE_CODE_MESSAGING_TOKEN": "t0ken"}

    def message(self) -> str:
        """Accept a connection, check its token, and return the message that it sends."""
        connection, _ = self._socket.accept()
        with connection, connection.makefile() as lines:
            auth, message = (json.loads(line) for line in lines)
        assert auth == {"type": "auth", "token": "t0ken"}
        return str(message["message"]["content"])

    def close(self) -> None:
        """Stop listening, and leave the file of the socket on the disk."""
        self._socket.close()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """Yield the socket of a client that takes messages."""
    found = Door(tmp_path / "door")
    yield found
    found.close()


def test_message_wakes_the_session_and_its_prompt_hook_reports_the_ending(
    bench: Bench, watchers: Watchers, door: Door
) -> None:
    """A message wakes the session, and the hook of the prompt reports the ending.

    The message does not name the task. The waking hook exits when this hook has stored the message's nonce.
    """
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    message = door.message()
    assert task not in message
    told = context(said(call(bench, "claude", "UserPromptSubmit", prompt=message)))
    assert f"n{task}01ended" in told
    assert watchers.end(watcher) == (0, "", "")
    assert said(call(bench, "claude", "UserPromptSubmit", prompt=message)) == {}, "the ending was reported twice"
    said(call(bench, "claude", "Stop"))
    assert state(bench, task) == "acked"


def test_message_wakes_only_one_of_two_clients(bench: Bench, watchers: Watchers, clients: Clients, door: Door) -> None:
    """If two clients have the session open, only one of them gets a message.

    The waking hook of the other exits without output.
    """
    task = launch(bench, f"{until('go')}; exit 3")
    first = watchers.start(**door.env)
    watchers.until_there()
    second = watchers.start_elsewhere(clients.start())
    (bench.project / "go").touch()
    told = context(said(call(bench, "claude", "UserPromptSubmit", prompt=door.message(), env=watchers.env)))
    assert f"n{task}01ended" in told
    assert [watchers.end(first), watchers.end(second)] == [(0, "", "")] * 2


@pytest.mark.usefixtures("watchers")
def test_message_counts_as_received_after_its_notice_was_reported(bench: Bench) -> None:
    """A message counts as received after its notice was reported.

    The sender then exits, and no waking hook reports it again.
    """
    from outlive.hooks.event import Event
    from outlive.hooks.state import session_files
    from outlive.hooks.wake.claude_message import hear, message

    event = Event(client="claude", kind="prompt", session=SESSION, cwd=str(bench.project), text=message("m4rk"))
    heard: list[str] = []
    hear(bench.home, event, lambda _: None, lambda *_: heard.append(session_files.word(bench.home, SESSION, "heard")))
    assert [*heard, session_files.word(bench.home, SESSION, "heard")] == ["", "m4rk"]


def test_watcher_reports_the_ending_itself_when_its_message_is_not_taken(
    bench: Bench, watchers: Watchers, door: Door
) -> None:
    """If its message is not taken, the waking hook reports the ending itself.

    If the message arrives later, a hook blocks it.
    """
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    message = door.message()
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert getrusage(RUSAGE_CHILDREN).ru_nvcsw - before < 150, "a process polls every few milliseconds"
    assert f"n{task}01ended" in told
    late = said(call(bench, "claude", "UserPromptSubmit", prompt=message))
    assert late == {"decision": "block", "reason": "outlive: this session has received the notices already"}
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="[outlive wakes nobody] says a person")) == {}


def test_watcher_reports_the_ending_itself_when_no_client_listens(bench: Bench, watchers: Watchers, door: Door) -> None:
    """If the client was killed, so that no process listens on its socket, the waking hook reports the ending itself."""
    task = launch(bench, f"{until('go')}; exit 3")
    door.close()
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert f"n{task}01ended" in told
