"""Small servers for tests, and free ports for them."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from outlive.linux.listeners import listeners_of
from tests.support import wait_until

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

PYTHON = sys.executable
# Listens on each ADDRESS:PORT after the delay DELAY, and answers nothing.
LISTEN = """
import socket, sys, time
time.sleep(float(sys.argv[1]))
held = []
for each in sys.argv[2:]:
    address, _, port = each.rpartition(":")
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, int(port)))
    server.listen()
    held.append(server)
time.sleep(600)
"""
# Answers each HTTP request with the status of its path, such as /503. The path /silent is never answered.
ANSWER = """
import http.server, sys, time
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/silent":
            time.sleep(600)
        self.send_response(int(self.path.strip("/") or 200))
        self.end_headers()
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""


def free_ports(number: int) -> list[int]:
    """Return ports on which no process listens at this moment."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    found = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


def free_port() -> int:
    """Return a port on which no process listens at this moment."""
    return free_ports(1)[0]


@contextmanager
def listening(*endpoints: str, cwd: str | os.PathLike[str] | None = None) -> Iterator[int]:
    """Run a process that listens on the endpoints, and yield its pid."""
    server = subprocess.Popen([PYTHON, "-c", LISTEN, "0", *endpoints], cwd=cwd)
    try:
        wait_until(lambda: len(listeners_of([server.pid])) == len(endpoints), "the server to listen")
        yield server.pid
    finally:
        server.kill()
        server.wait()
