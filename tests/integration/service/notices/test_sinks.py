"""Sinks: Outlive sends notices to commands, webhooks and Apprise."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from outlive.service.notices.sink_transport import message_id, signature
from tests.session_steps import ended, told
from tests.support import kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Bench


def got(path: Path) -> list[Any]:
    """Return the messages that a sink's command has written to a file, one per line."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sink_states(bench: Bench, task: str) -> dict[str, tuple[str, int, str | None]]:
    """Return the state, the number of tries and the last error of a task's deliveries, by sink."""
    (notice,) = bench.show(task)["notices"]
    return {each["sink"]: (each["state"], each["tries"], each["last_error"]) for each in notice["sinks"]}


class Receiver(HTTPServer):
    """A server on loopback that receives the requests of a webhook sink."""

    answers: list[int]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.answers = []
        self.received: list[tuple[dict[str, str], bytes]] = []

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.server_port}/hook"


class _Request(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Record the request, and answer with the next planned status."""
        body = self.rfile.read(int(self.headers["content-length"]))
        status = self.server.answers.pop(0) if self.server.answers else 204
        self.server.received.append(({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(status)
        if status == 302:
            self.send_header("location", self.server.url + "/elsewhere")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Yield a running server for webhooks."""
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_sink_command_gets_several_notices_in_one_call(bench: Bench) -> None:
    """The command of a sink gets several notices in one call, and each notice once. The inbox has all of them, too.

    Row 36 of the acceptance scenarios.
    """
    log = bench.root / "got"
    bench.ok("sink", "add", "log", "--run", f"cat >> {log}; echo >> {log}")
    tasks = [bench.launch("true", "--session", "s-1") for _ in range(10)]
    bench.run("wait", *tasks, "--no-ack")
    wait_until(lambda: sum(len(each["notices"]) for each in got(log)) >= 10, "all ten notices")
    found = [notice["task"]["id"] for each in got(log) for notice in each["notices"]]
    assert sorted(found) == sorted(tasks)
    assert len(got(log)) < 10
    assert sorted(told(bench, "s-1")) == sorted(tasks)


def test_failed_delivery_leaves_the_notice_in_the_inbox(bench: Bench) -> None:
    """If a delivery fails, it is tried again, and its error is recorded. The inbox and other sinks have the notice.

    Rows 32 and 38 of the acceptance scenarios.
    """
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


def test_delivery_is_tried_again_when_a_sink_is_busy(bench: Bench) -> None:
    """If the command of a sink exits with 75, it is busy, and is called again later. This does not count as a try.

    Row 35 of the acceptance scenarios.
    """
    log, gate = bench.root / "got", bench.root / "free"
    bench.ok("sink", "add", "log", "--run", f"[ -e {gate} ] || exit 75; cat >> {log}; echo >> {log}")
    task = ended(bench, "s-1")
    wait_until(lambda: sink_states(bench, task)["log"][2], "the sink to be busy")
    assert sink_states(bench, task)["log"][:2] == ("pending", 0)
    gate.touch()
    wait_until(lambda: got(log), "the delivery")
    assert wait_until(lambda: sink_states(bench, task)["log"][0] == "delivered")


def test_sink_gets_only_the_notices_of_its_policy_and_project(bench: Bench) -> None:
    """A sink gets only the notices that `--on`, `--here` and the task's `--notify` allow."""
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


def test_webhook_sends_the_same_signed_message_again_when_it_is_refused(bench: Bench, receiver: Receiver) -> None:
    """If a receiver refuses a message, the webhook sends it again with the same message id and a signature.

    The receiver refuses by an error and by a redirection.
    """
    secret = bench.root / "secret"
    secret.write_text("whsec_c2VjcmV0IGJ5dGVz\n")
    receiver.answers = [500, 302]
    bench.ok("sink", "add", "hook", "--webhook", receiver.url, "--secret-file", str(secret))
    task = ended(bench, "s-1", "exit 1")
    wait_until(lambda: sink_states(bench, task)["hook"][0] == "delivered", "the delivery")
    assert len(receiver.received) == 3  # Outlive did not follow the redirection.
    assert len({headers["webhook-id"] for headers, _ in receiver.received}) == 1
    for headers, body in receiver.received:
        expected = signature(secret.read_text().strip(), headers["webhook-id"], int(headers["webhook-timestamp"]), body)
        assert headers["webhook-signature"] == expected
        (notice,) = json.loads(body)["notices"]
        assert (notice["task"]["id"], headers["webhook-id"]) == (task, message_id([notice]))
    assert sink_states(bench, task)["hook"][1] == 3


def test_signature_matches_the_standard_webhooks_specification() -> None:
    """For the example in the specification, Outlive computes the signature that the specification gives."""
    body = b'{"test": 2432232314}'
    found = signature("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_apprise_sink_sends_to_its_channel(bench: Bench, receiver: Receiver) -> None:
    """An Apprise sink sends a notice to its channel. If Apprise does not know the URL, this is recorded as an error."""
    bench.ok("sink", "add", "chat", "--apprise", receiver.url.replace("http://", "json://"))
    bench.ok("sink", "add", "odd", "--apprise", "nosuchscheme://x")
    task = ended(bench, "s-1", "exit 7", "--description", "try it")
    wait_until(lambda: receiver.received, "the message")
    message = json.loads(receiver.received[0][1])
    assert all(part in message["message"] for part in (task, "failed", "exit 7", "try it", str(bench.project)))
    wait_until(lambda: sink_states(bench, task)["odd"][2], "the outcome")
    assert "does not understand" in (sink_states(bench, task)["odd"][2] or "")


def test_notice_is_delivered_when_the_deliverer_was_killed(bench: Bench) -> None:
    """If the process that delivers notices was killed, the next command that reads the ledger starts another one."""
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
def test_sink_command_refuses_invalid_arguments(bench: Bench, words: tuple[str, ...]) -> None:
    """Invalid arguments exit with 2 and a hint, and no sink is recorded."""
    done = bench.run("sink", *words)
    assert (done.returncode, done.stderr.splitlines()[-1].startswith("hint: ")) == (2, True)
    assert bench.json("sink", "list")["sinks"] == []


def test_sink_list_shows_no_secrets(bench: Bench) -> None:
    """`sink list` masks paths, passwords and tokens in addresses, because they often are secrets."""
    secret = bench.root / "secret"
    secret.write_text("quite secret")
    bench.ok("sink", "add", "hook", "--webhook", "https://u:p@h.example/T0K3N?k=v", "--secret-file", str(secret))
    bench.ok("sink", "add", "chat", "--apprise", "slack://T0K3N/x/y")
    shown = bench.ok("sink", "list") + bench.ok("sink", "list", "--json")
    assert not any(part in shown for part in ("T0K3N", "u:p", "k=v", "quite secret"))
    assert "h.example" in shown


def test_deliverer_does_not_import_apprise_at_its_start() -> None:
    """The process that delivers notices imports Apprise only for an Apprise sink, because the import takes long."""
    loaded = "import sys, outlive.service.notices.deliver; sys.exit('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
