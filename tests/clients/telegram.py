"""Telegram's Bot API on loopback, with one user who writes to the bot.

Every message that the bot sends is kept.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from typing import Any, Self
from urllib.parse import parse_qsl

TOKEN = "7:of-this-test-only"  # noqa: S105 - only this test can reach the server
_POLL_S = 1.0


class Telegram:
    """The server of the Bot API. As a context manager, it runs in a thread."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        """The messages of the bot, each with its chat and its text."""
        self.updates: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.telegram = self
        self._count = 0
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def channel(self) -> str:
        """The configuration with which OpenClaw's agent `main` answers every user."""
        given = {"enabled": True, "botToken": TOKEN, "apiRoot": self.url, "dmPolicy": "open", "allowFrom": ["*"]}
        binding = {"agentId": "main", "match": {"channel": "telegram", "accountId": "default"}}
        return f'"channels": {json.dumps({"telegram": given})}, "bindings": {json.dumps([binding])},'

    def write(self, chat: int, text: str) -> None:
        """Send a message from the user to the bot, in a private chat."""
        self._count += 1
        person = {"id": chat, "is_bot": False, "first_name": "Ada"}
        message = {
            "message_id": self._count,
            "date": 1_800_000_000 + self._count,
            "from": person,
            "chat": {"id": chat, "type": "private", "first_name": "Ada"},
            "text": text,
        }
        self.updates.put({"update_id": self._count, "message": message})

    def answer(self, method: str, given: dict[str, Any]) -> object:
        """Return the result of one method of the Bot API."""
        if method == "getMe":
            return {"id": 7, "is_bot": True, "first_name": "bot", "username": "outlive_test_bot"}
        if method == "getUpdates":
            try:
                return [self.updates.get(timeout=_POLL_S)]
            except Empty:
                return []
        if method in ("sendMessage", "editMessageText"):
            self.sent.append(given)
            chat = {"id": int(given["chat_id"]), "type": "private"}
            number = 10_000 + len(self.sent)
            return {"message_id": number, "date": 1_800_000_000, "chat": chat, "text": given["text"]}
        if method == "getWebhookInfo":
            return {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
        return True

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    telegram: Telegram


class _Exchange(BaseHTTPRequestHandler):
    """One HTTP request for a method of the Bot API."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, *_: object) -> None:
        """Do not log requests on stderr."""

    def do_GET(self) -> None:
        """Answer a request for a method without arguments."""
        self.do_POST()

    def do_POST(self) -> None:
        """Answer a request for a method whose arguments are JSON or a form."""
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode("utf-8", "replace")
        try:
            given = json.loads(content or "{}")
        except ValueError:
            given = dict(parse_qsl(content))
        method = self.path.partition("?")[0].rpartition("/")[2]
        answer = json.dumps({"ok": True, "result": self.server.telegram.answer(method, given)}).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except OSError:
            pass  # The test has killed the gateway while the gateway was waiting for updates.
