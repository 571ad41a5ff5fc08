"""Sinks: endings told elsewhere too, with the inbox as the only truth."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from outlive.service.sending import message_id, signature
from tests.session_steps import ended, told
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Bench


def got(path: Path) -> list[Any]:
    """The messages that a command has written down, one a line."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sink_states(bench: Bench, task: str) -> dict[str, tuple[str, int, str | None]]:
    """What came of the deliveries of a task's ending."""
    (notice,) = bench.show(task)["notices"]
    return {each["sink"]: (each["state"], each["tries"], each["last_error"]) for each in notice["sinks"]}


class Receiver(HTTPServer):
    """A webhook's other end, on loopback."""

    answers: list[int]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.answers = []
        self.received: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Request(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Take it down, and answer as planned."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        self.server.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(status)
        if status == 302:
            self.send_header("location", self.server.url + "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A webhook's other end."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_command_gets_what_ends_together_in_one_call(bench: Bench) -> None:
    """Row 36: ten endings in a moment, few calls, each notice in one of them; and the inbox has all."""
    log = bench.root / "got"
    bench.ok("sink", "add", "log", "--run", f"cat >> {log}; echo >> {log}")
    tasks = [bench.launch("true", "--session", "s-1") for _ in range(10)]
    bench.run("wait", *tasks, "--no-ack")
    wait_until(lambda: sum(len(each["notices"]) for each in got(log)) >= 10, "all of them")
    found = [notice["task"]["id"] for each in got(log) for notice in each["notices"]]
    assert sorted(found) == sorted(tasks)
    assert len(got(log)) < 10
    assert sorted(told(bench, "s-1")) == sorted(tasks)


def test_a_sink_that_fails_leaves_the_notice_in_the_inbox(bench: Bench) -> None:
    """Rows 32 and 38: tried again, the outcome on record, the other sink not held up."""
    log = bench.root / "got"
    bench.ok("sink", "add", "bad", "--run", "echo not now >&2; exit 3")
    bench.ok("sink", "add", "log", "--run", f"cat >> {log}; echo >> {log}")
    task = ended(bench, "s-1", "exit 1")
    wait_until(lambda: sink_states(bench, task)["bad"][1] >= 2, "a second try")
    assert sink_states(bench, task)["bad"][::2] == ("pending", "exit 3: not now")
    assert sink_states(bench, task)["log"] == ("delivered", 1, None)
    assert told(bench, "s-1") == [task]
    bench.ok("sink", "remove", "bad")
    assert set(sink_states(bench, task)) == {"log"}


def test_a_busy_sink_is_asked_again_and_that_is_no_failure(bench: Bench) -> None:
    """Row 35: exit code 75 defers."""
    log, gate = bench.root / "got", bench.root / "free"
    bench.ok("sink", "add", "log", "--run", f"[ -e {gate} ] || exit 75; cat >> {log}; echo >> {log}")
    task = ended(bench, "s-1")
    wait_until(lambda: sink_states(bench, task)["log"][2], "it to be found busy")
    assert sink_states(bench, task)["log"][:2] == ("pending", 0)
    gate.touch()
    wait_until(lambda: got(log), "the delivery")
    assert wait_until(lambda: sink_states(bench, task)["log"][0] == "delivered")


def test_policies_and_projects_narrow_a_sink(bench: Bench) -> None:
    """Failures only; this project only; what its task keeps silent is silent here too."""
    log = bench.root / "got"
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    bench.ok("sink", "add", "log", "--run", f"cat >> {log}; echo >> {log}", "--on", "failure", "--here")
    bench.ok("sink", "add", "rest", "--run", "true", "--on", "all")
    fine, bad = ended(bench, "s-1"), ended(bench, "s-1", "exit 1")
    silent = ended(bench, "s-1", "exit 1", "--notify", "never")
    other = bench.launch("exit 1", cwd=elsewhere)
    bench.run("wait", other)
    wait_until(lambda: got(log), "the delivery")
    assert [set(sink_states(bench, task)) for task in (fine, bad, silent, other)] == [
        {"rest"}, {"log", "rest"}, set(), {"rest"},
    ]  # fmt: skip


def test_a_webhook_is_signed_and_tried_again(bench: Bench, receiver: Receiver) -> None:
    """Twice refused, then taken: the same message under the same name, and a signature that holds."""
    secret = bench.root / "secret"
    secret.write_text("whsec_c2VjcmV0IGJ5dGVz\n")
    receiver.answers = [500, 302]
    bench.ok("sink", "add", "hook", "--webhook", receiver.url, "--secret-file", str(secret))
    task = ended(bench, "s-1", "exit 1")
    wait_until(lambda: sink_states(bench, task)["hook"][0] == "delivered", "the delivery")
    assert len(receiver.received) == 3  # the redirection was not followed
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1
    for headers, body in receiver.received:
        expected = signature(secret.read_text().strip(), headers["webhook-id"], int(headers["webhook-timestamp"]), body)
        assert headers["webhook-signature"] == expected
        (notice,) = json.loads(body)["notices"]
        assert (notice["task"]["id"], headers["webhook-id"]) == (task, message_id([notice]))
    assert sink_states(bench, task)["hook"][1] == 3


def test_the_signature_is_the_standards_own() -> None:
    """The example of the Standard Webhooks specification."""
    body = b'{"test": 2432232314}'
    found = signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_apprise_reaches_its_channels(bench: Bench, receiver: Receiver) -> None:
    """The real library, its JSON channel; an address that it does not know is recorded."""
    bench.ok("sink", "add", "chat", "--apprise", receiver.url.replace("http://", "json://"))
    bench.ok("sink", "add", "odd", "--apprise", "nosuchscheme://x")
    task = ended(bench, "s-1", "exit 7", "--description", "try it")
    wait_until(lambda: receiver.received, "the message")
    message = json.loads(receiver.received[0][1])
    assert all(part in message["message"] for part in (task, "failed", "exit 7", "try it", str(bench.project)))
    wait_until(lambda: sink_states(bench, task)["odd"][2], "the outcome")
    assert "does not understand" in (sink_states(bench, task)["odd"][2] or "")


def test_a_deliverer_that_was_killed_is_made_up_for(bench: Bench) -> None:
    """Killed while it sends: the next reader of anything starts another, under the same message name."""
    log, pid = bench.root / "got", bench.root / "pid"
    bench.ok(
        "sink",
        "add",
        "log",
        "--run",
        f"[ -e {pid} ] || {{ echo $PPID > {pid}; sleep 60; }}; cat >> {log}; echo >> {log}",
    )
    task = ended(bench, "s-1")
    wait_until(lambda: pid.exists() and pid.read_text().strip(), "the deliverer")
    kill(int(pid.read_text()))
    wait_until(lambda: (bench.run("list"), got(log))[1], "the delivery")
    assert [notice["task"]["id"] for notice in got(log)[0]["notices"]] == [task]


@pytest.mark.parametrize(
    "words",
    [
        ("add", "a"),
        ("add", "a", "--run", ""),
        ("add", "a/b", "--run", "true"),
        ("add", "a", "--run", "true", "--webhook", "https://x"),
        ("add", "a", "--webhook", "ftp://x"),
        ("add", "a", "--run", "true", "--secret-file", "/dev/null"),
        ("add", "a", "--webhook", "https://x", "--secret-file", "/no/such"),
        ("add", "a", "--run", "true", "--on", "never"),
        ("remove", "a"),
        ("remove",),
        (),
    ],
)
def test_nonsense_is_refused(bench: Bench, words: tuple[str, ...]) -> None:
    """In two lines, and no sink is made."""
    done = bench.run("sink", *words)
    assert (done.returncode, done.stderr.splitlines()[-1].startswith("hint: ")) == (2, True)
    assert bench.json("sink", "list")["sinks"] == []


def test_addresses_and_secrets_are_not_shown(bench: Bench) -> None:
    """An address is often a key."""
    secret = bench.root / "secret"
    secret.write_text("quite secret")
    bench.ok("sink", "add", "hook", "--webhook", "https://u:p@h.example/T0K3N?k=v", "--secret-file", str(secret))
    bench.ok("sink", "add", "chat", "--apprise", "slack://T0K3N/x/y")
    shown = bench.ok("sink", "list") + bench.ok("sink", "list", "--json")
    assert not any(part in shown for part in ("T0K3N", "u:p", "k=v", "quite secret"))
    assert "h.example" in shown


def test_apprise_is_loaded_late() -> None:
    """Heavy, optional: nobody without such a sink pays for it."""
    loaded = "import sys, outlive.service.deliver; sys.exit('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
