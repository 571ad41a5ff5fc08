"""Sending notices to one sink: a command, a webhook, or a service of Apprise."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import signal
import subprocess
import tempfile
import time
from threading import Thread
from typing import TYPE_CHECKING

from outlive.domain.tasks.sink_config import BUSY_EXIT_CODE
from outlive.domain.text.sanitize import shown, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from outlive.domain.tasks.sink_config import Outcome, Sink

    Sent = tuple[Outcome, str | None]

_PATIENCE_S = 30.0
_BUSY_STATUS = (429, 503)
_FAILED_STATUS = 300
_LONGEST_ERROR = 300
_MOST_SAID = 4096
_LAST_WORDS_S = 0.05


def send(sink: Sink, notices: Sequence[dict[str, Any]], *, force: bool = False) -> Sent:
    """Send notices to a sink in one call, and return the outcome and the error."""
    if not notices:
        return "delivered", None  # the tasks of all notices were deleted
    senders = {"run": _run, "webhook": _post, "apprise": _notify}
    before = signal.signal(signal.SIGALRM, _give_up)
    # A signal limits the time of the whole call. With a time limit for each read, a call to a receiver that answers one
    # byte at a time would never end.
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S + 1)
    try:
        return senders[sink.kind](sink, notices, force)
    except Exception as error:  # noqa: BLE001 - a failing sink must not stop the delivery to other sinks
        return "failed", _short(f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _give_up(*_: object) -> None:
    raise TimeoutError(f"the sink did not answer within {_PATIENCE_S:.0f} s")


def signature(secret: str, name: str, timestamp: int, body: bytes) -> str:
    """Return the HMAC-SHA256 of id, time and body, as Standard Webhooks defines it."""
    key = base64.b64decode(secret.removeprefix("whsec_")) if secret.startswith("whsec_") else secret.encode("utf-8")
    digest = hmac.new(key, f"{name}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    return "v1," + base64.b64encode(digest).decode("ascii")


def message_id(notices: Sequence[dict[str, Any]]) -> str:
    """Return the id of a message, made from the ids of its notices.

    Messages with the same notices have the same id, so that a receiver recognises repetitions.
    """
    names = " ".join(sorted(str(notice["id"]) for notice in notices))
    return "msg_" + hashlib.sha256(names.encode("ascii")).hexdigest()[:24]


def _body(notices: Sequence[dict[str, Any]]) -> bytes:
    return to_json({"notices": list(notices)}).encode("ascii")


def _run(sink: Sink, notices: Sequence[dict[str, Any]], force: bool) -> Sent:
    environ = {
        **os.environ,
        "OUTLIVE_MESSAGE": message_id(notices),
        "OUTLIVE_NOTICES": " ".join(str(notice["id"]) for notice in notices),
        "OUTLIVE_FORCE": "1" if force else "0",
    }
    with tempfile.TemporaryFile() as body:
        body.write(_body(notices))
        body.seek(0)
        command = subprocess.Popen(
            ["/bin/sh", "-c", sink.target],
            stdin=body,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environ,
            cwd="/",
            start_new_session=True,
        )
    # Wait until the command exits. Its output may stay open longer, because a background process may still have it
    # open.
    said = bytearray()
    Thread(target=_listen, args=(command.stdout, said), daemon=True).start()
    try:
        code = command.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(command.pid, signal.SIGKILL)
        command.wait()
        return "failed", f"the command did not end within {_PATIENCE_S:.0f} s"
    if code == 0:
        return "delivered", None
    time.sleep(_LAST_WORDS_S)
    words = bytes(said).decode("utf-8", "replace").strip()
    outcome: Outcome = "busy" if code == BUSY_EXIT_CODE else "failed"
    return outcome, _short(f"exit {code}{f': {words}' if words else ''}")


def _listen(pipe: Any, said: bytearray) -> None:
    while piece := os.read(pipe.fileno(), 65536):
        said += piece[: _MOST_SAID - len(said)]


def _post(sink: Sink, notices: Sequence[dict[str, Any]], _: bool) -> Sent:
    from urllib.error import HTTPError  # noqa: PLC0415 - imported here, because only webhooks need it
    from urllib.request import HTTPRedirectHandler, Request, build_opener  # noqa: PLC0415

    class NoRedirect(HTTPRedirectHandler):
        """A handler that follows no redirect: only the configured URL gets the notices."""

        def redirect_request(self, *_: Any) -> None:
            """Return None, so that no redirect is followed."""

    body, name, timestamp = _body(notices), message_id(notices), int(time.time())
    headers = {"content-type": "application/json", "webhook-id": name, "webhook-timestamp": str(timestamp)}
    if sink.secret is not None:
        headers["webhook-signature"] = signature(sink.secret, name, timestamp, body)
    request = Request(sink.target, data=body, headers=headers, method="POST")  # noqa: S310 - `check_sink` has checked that the URL is http or https
    try:
        with build_opener(NoRedirect).open(request, timeout=_PATIENCE_S) as answer:
            status = answer.status
    except HTTPError as error:
        status = error.code
    if status < _FAILED_STATUS:
        return "delivered", None
    return ("busy" if status in _BUSY_STATUS else "failed"), f"HTTP {status}"


def _notify(sink: Sink, notices: Sequence[dict[str, Any]], _: bool) -> Sent:
    try:
        import apprise  # noqa: PLC0415 - imported here, because it is optional and slow to import
    except ImportError:
        return "failed", "Apprise is not installed; install it with: pip install 'outlive[apprise]'"
    channel = apprise.Apprise()
    if not channel.add(sink.target):
        return "failed", "Apprise does not understand the address of this sink"
    lines = [_line(notice) for notice in notices]
    title = lines[0] if len(lines) == 1 else f"{len(lines)} background tasks ended"
    done = channel.notify(title=f"outlive: {title}", body="\n".join(lines))
    return ("delivered", None) if done else ("failed", "Apprise could not deliver the notices")


def _line(notice: dict[str, Any]) -> str:
    task = notice["task"]
    what = shown(task["description"] or task["command"])
    how = task["reason"] or (f"exit {task['exit_code']}" if task["exit_code"] is not None else "")
    return f"{task['id']} {task['state']}{f' ({how})' if how else ''}: {what[:120]} in {task['cwd']}"


def _short(text: str) -> str:
    return " ".join(shown(text).split())[:_LONGEST_ERROR]
