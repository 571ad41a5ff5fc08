"""Waking an idle session: one watcher beside it, one message, and nothing left behind."""

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

from tests.integration.test_hooks import SESSION, call, context, ended, launch, said, state
from tests.session_steps import until
from tests.support import PATIENCE_S, open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.session_steps import Clients
    from tests.support import Bench


class Watchers:
    """Hooks that a client keeps running beside an idle session."""

    def __init__(self, bench: Bench, client: str) -> None:
        self.bench = bench
        self.env = {"CLAUDE_PID": client, "CLAUDE_CODE_ENTRYPOINT": "cli"}
        self._started: list[subprocess.Popen[str]] = []

    def start(self, source: str = "startup", **env: str) -> subprocess.Popen[str]:
        """One more."""
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
        """One beside another client that has the same session; it sleeps, as it has to wait for its turn."""
        watcher = self.start(CLAUDE_PID=client)
        wait_until(lambda: len(os.listdir(f"/proc/{watcher.pid}/task")) > 1, "the one who waits for its turn")
        return watcher

    def until_there(self) -> None:
        """One of them watches."""
        from outlive.hooks.marks import is_watched

        wait_until(lambda: is_watched(self.bench.home, SESSION), "the watcher")

    def end(self, watcher: subprocess.Popen[str]) -> tuple[int, str, str]:
        """How one ended, and what it said."""
        out, err = watcher.communicate(timeout=PATIENCE_S)
        return watcher.returncode, out, err

    def clean(self) -> None:
        """None is left."""
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


@pytest.fixture
def watchers(bench: Bench, clients: Clients) -> Iterator[Watchers]:
    """A session that has begun, in a client that lives."""
    found = Watchers(bench, clients.start())
    said(call(bench, "claude", "SessionStart", source="startup", env=found.env))
    yield found
    found.clean()


def test_an_ending_wakes_the_session_once(bench: Bench, watchers: Watchers) -> None:
    """By exit code 2 and the text; the hook that follows has nothing more to say, and confirms it at the end."""
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


def test_of_many_watchers_one_watches(bench: Bench, watchers: Watchers) -> None:
    """Every turn that ends starts one; the others go at once, and the session is woken once."""
    task = launch(bench, until("go"))
    first = watchers.start()
    watchers.until_there()
    assert [watchers.end(watchers.start()) for _ in range(3)] == [(0, "", "")] * 3
    (bench.project / "go").touch()
    assert watchers.end(first)[0] == 2
    assert state(bench, task) == "presented"


def test_when_one_of_two_clients_of_a_session_is_killed_the_other_is_woken(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """One at a time watches for both, and each of them has one who will, however often its turns end."""
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


def test_of_two_clients_of_a_session_one_is_woken(bench: Bench, watchers: Watchers, clients: Clients) -> None:
    """What it was woken for is not told to the other, and nobody stays who would wait for nothing."""
    task = launch(bench, f"{until('go')}; exit 3")
    first = watchers.start()
    watchers.until_there()
    second = watchers.start_elsewhere(clients.start())
    (bench.project / "go").touch()
    assert [watchers.end(first)[0], watchers.end(second)] == [2, (0, "", "")]
    assert state(bench, task) == "presented"


def test_who_waits_to_watch_ends_with_its_own_client(bench: Bench, watchers: Watchers, clients: Clients) -> None:
    """The one who watches goes on."""
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


def test_a_hook_and_a_watcher_tell_it_once_between_them(bench: Bench, watchers: Watchers) -> None:
    """The inbox is the only truth: what was claimed there is told by whoever claimed it."""
    server = launch(bench, "sleep 600", "--notify", "failure")
    watcher = watchers.start()
    watchers.until_there()
    task = ended(bench)
    by_hook = context(said(call(bench, "claude", "PostToolBatch", env=watchers.env)))
    wait_until(lambda: state(bench, task) == "presented", "one of them to tell it")
    watcher.terminate()
    by_watcher = watchers.end(watcher)[2]
    assert (by_hook + by_watcher).count(f"n{task}01ended") == 1
    bench.run("cancel", server)


def test_the_gate_lets_be_who_is_watched_and_holds_who_is_not(bench: Bench, watchers: Watchers) -> None:
    """A person can go on; nobody waits for a model that waits."""
    task = launch(bench, "sleep 600")
    assert said(call(bench, "claude", "Stop", env=watchers.env))["decision"] == "block"
    watchers.start()
    watchers.until_there()
    assert said(call(bench, "claude", "Stop", env=watchers.env)) == {}
    bench.run("cancel", task)


def test_the_end_of_the_client_ends_its_watcher(bench: Bench, watchers: Watchers, clients: Clients) -> None:
    """SIGKILL, and nobody claims anything for a session that is gone."""
    task = launch(bench, "sleep 600")
    watcher = watchers.start()
    watchers.until_there()
    clients.kill(watchers.env["CLAUDE_PID"])
    assert watchers.end(watcher) == (0, "", "")
    bench.run("cancel", task)
    assert state(bench, task) == "pending"


def test_whoever_only_looks_keeps_nobody_from_watching(bench: Bench, watchers: Watchers) -> None:
    """The gate looks again and again whether the watcher is there that was started beside it."""
    from outlive.hooks import marks

    client = int(watchers.env["CLAUDE_PID"])
    life = os.pidfd_open(client)
    place = bench.home.path + "/hooks"
    first = marks.watch(bench.home, SESSION, client, life)
    assert first is not None
    os.close(first)
    [file] = [name for name in os.listdir(place) if name.endswith(".watch")]
    with open(f"{place}/{file}", encoding="utf-8") as looking:
        flock(looking, LOCK_SH)
        leaving = Timer(0.05, lambda: flock(looking, LOCK_UN))
        leaving.start()
        watch = marks.watch(bench.home, SESSION, client, life)
        leaving.join()
    assert watch is not None
    assert marks.watch(bench.home, SESSION, client, life) is None
    os.close(watch)
    os.close(life)


def test_a_session_that_goes_on_is_watched_once_it_is_known_to(
    bench: Bench, watchers: Watchers, clients: Clients
) -> None:
    """Its beginning is recorded by another hook, which wakes the one who waits for that."""
    other = clients.start()
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start("resume", CLAUDE_PID=other)
    wait_until(lambda: "anon_inode:inotify" in open_files(watcher.pid), "the one who waits for the beginning")
    said(call(bench, "claude", "SessionStart", source="resume", env={**watchers.env, "CLAUDE_PID": other}))
    watchers.until_there()
    (bench.project / "go").touch()
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert f"n{task}01ended" in told


def test_who_waits_for_a_beginning_that_never_comes_sleeps(watchers: Watchers, clients: Clients) -> None:
    """Until it is given up on."""
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    assert watchers.end(watchers.start("resume", CLAUDE_PID=clients.start())) == (0, "", "")
    assert getrusage(RUSAGE_CHILDREN).ru_nvcsw - before < 50, "somebody looks every few milliseconds"


def test_a_watcher_leaves_when_all_was_told_by_a_hook(bench: Bench, watchers: Watchers) -> None:
    """With nothing left to come it would only be one process more, for as long as the client lives."""
    task = launch(bench, until("go"))
    watcher = watchers.start()
    watchers.until_there()
    bench.run("cancel", task)
    said(call(bench, "claude", "PostToolBatch", env=watchers.env))
    code, _, err = watchers.end(watcher)
    assert code == 0 or f"n{task}01ended" in err
    assert state(bench, task) == "presented"


def test_a_watcher_leaves_when_another_session_has_taken_the_place(bench: Bench, watchers: Watchers) -> None:
    """The client lives on, and what the first has launched is told to the second: whoever watches that wakes it."""
    task = launch(bench, "sleep 600")
    watcher = watchers.start()
    watchers.until_there()
    call(bench, "claude", "SessionEnd", reason="clear", env=watchers.env)
    call(bench, "claude", "SessionStart", session_id="another-session-of-it", source="clear", env=watchers.env)
    assert watchers.end(watcher) == (0, "", "")
    assert bench.row(task).state == "running"
    bench.run("cancel", task)


@pytest.mark.parametrize("env", [{"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}, {"CLAUDE_PID": ""}])
def test_who_cannot_be_woken_is_not_watched(bench: Bench, watchers: Watchers, env: dict[str, str]) -> None:
    """A client that answers one prompt would wait for us, and end all the same."""
    task = launch(bench, "sleep 600")
    assert watchers.end(watchers.start(**env)) == (0, "", "")
    bench.run("cancel", task)


def test_with_nothing_to_wait_for_nobody_watches(bench: Bench, watchers: Watchers) -> None:
    """It costs nothing while nothing runs."""
    assert watchers.end(watchers.start()) == (0, "", "")
    task = ended(bench)
    said(call(bench, "claude", "PostToolBatch", env=watchers.env))
    assert watchers.end(watchers.start()) == (0, "", "")
    assert state(bench, task) == "presented"


class Door:
    """The socket on which a client takes messages."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen()
        self._socket.settimeout(PATIENCE_S)
        self.env = {"CLAUDE_CODE_MESSAGING_SOCKET": str(path), "CLAUDE_CODE_MESSAGING_TOKEN": "t0ken"}

    def message(self) -> str:
        """What somebody says, after showing the token."""
        connection, _ = self._socket.accept()
        with connection, connection.makefile() as lines:
            auth, message = (json.loads(line) for line in lines)
        assert auth == {"type": "auth", "token": "t0ken"}
        return str(message["message"]["content"])

    def close(self) -> None:
        """Nobody listens any more."""
        self._socket.close()


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """A client that takes messages."""
    found = Door(tmp_path / "door")
    yield found
    found.close()


def test_a_message_wakes_the_session_and_its_prompt_is_told(bench: Bench, watchers: Watchers, door: Door) -> None:
    """The message itself tells nothing; the watcher knows by its mark that it has come."""
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    message = door.message()
    assert task not in message
    told = context(said(call(bench, "claude", "UserPromptSubmit", prompt=message)))
    assert f"n{task}01ended" in told
    assert watchers.end(watcher) == (0, "", "")
    assert said(call(bench, "claude", "UserPromptSubmit", prompt=message)) == {}, "as where it is installed twice"
    said(call(bench, "claude", "Stop"))
    assert state(bench, task) == "acked"


def test_a_message_to_one_of_two_clients_wakes_that_one_alone(
    bench: Bench, watchers: Watchers, clients: Clients, door: Door
) -> None:
    """The other's watcher comes to its turn when the message has been heard, and finds that all was told."""
    task = launch(bench, f"{until('go')}; exit 3")
    first = watchers.start(**door.env)
    watchers.until_there()
    second = watchers.start_elsewhere(clients.start())
    (bench.project / "go").touch()
    told = context(said(call(bench, "claude", "UserPromptSubmit", prompt=door.message(), env=watchers.env)))
    assert f"n{task}01ended" in told
    assert [watchers.end(first), watchers.end(second)] == [(0, "", "")] * 2


@pytest.mark.usefixtures("watchers")
def test_a_message_counts_as_heard_when_what_it_is_about_was_told(bench: Bench) -> None:
    """Whoever sent it leaves then: the next who watches must not find it untold."""
    from outlive.hooks import marks
    from outlive.hooks.event import Event
    from outlive.hooks.poke import hear, message

    event = Event(client="claude", kind="prompt", session=SESSION, cwd=str(bench.project), text=message("m4rk"))
    heard: list[str] = []
    hear(bench.home, event, lambda _: None, lambda *_: heard.append(marks.word(bench.home, SESSION, "heard")))
    assert [*heard, marks.word(bench.home, SESSION, "heard")] == ["", "m4rk"]


def test_a_message_that_is_not_taken_is_followed_by_a_hook(bench: Bench, watchers: Watchers, door: Door) -> None:
    """Held back by the client it tells nothing, and when it comes after all, it is taken back; until then all sleep."""
    task = launch(bench, f"{until('go')}; exit 3")
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    message = door.message()
    before = getrusage(RUSAGE_CHILDREN).ru_nvcsw
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert getrusage(RUSAGE_CHILDREN).ru_nvcsw - before < 150, "somebody looks every few milliseconds"
    assert f"n{task}01ended" in told
    late = said(call(bench, "claude", "UserPromptSubmit", prompt=message))
    assert late == {"decision": "block", "reason": "outlive: what this was about has been told already"}
    assert said(call(bench, "claude", "UserPromptSubmit", prompt="[outlive wakes nobody] says a person")) == {}


def test_a_socket_that_nobody_listens_on_keeps_nobody_waiting(bench: Bench, watchers: Watchers, door: Door) -> None:
    """Clients that were killed leave theirs behind."""
    task = launch(bench, f"{until('go')}; exit 3")
    door.close()
    watcher = watchers.start(**door.env)
    watchers.until_there()
    (bench.project / "go").touch()
    code, _, told = watchers.end(watcher)
    assert code == 2
    assert f"n{task}01ended" in told
