"""Real servers on leased ports: those that set SO_REUSEADDR, and one that does not."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.servers import PYTHON

if TYPE_CHECKING:
    from tests.support import Bench

NODE = "require('http').createServer((_, answer) => answer.end('ok')).listen(process.env.PORT{host})"
TCP_SERVER = "import os, socketserver as s; s.TCPServer(('127.0.0.1', int(os.environ['PORT'])), s.StreamRequestHandler)"


@pytest.mark.parametrize(
    "words",
    [
        ("node", "-e", NODE.format(host="")),
        ("node", "-e", NODE.format(host=", '127.0.0.1'")),
        (PYTHON, "-m", "http.server", "{port:web}"),
        (PYTHON, "-m", "http.server", "--bind", "127.0.0.1", "{port:web}"),
    ],
    ids=["node-any", "node-127.0.0.1", "http.server-any", "http.server-127.0.0.1"],
)
def test_server_answers_on_its_leased_port(bench: Bench, words: tuple[str, ...]) -> None:
    """The server listens although the lease has bound the port, and it answers on an address of `localhost`."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    task = bench.ok("run", "--port", "web", "--", *words)
    done = bench.run("wait", task, "--until", "http://localhost:{port:web}/", "--timeout", "60s")
    assert done.returncode == 0, done.stderr
    assert f":{bench.show(task)['ports']['web']}" in done.stdout


def test_server_without_so_reuseaddr_cannot_listen_on_its_leased_port(bench: Bench) -> None:
    """The documentation names this limit, and the output says why the server ended."""
    task = bench.ok("run", "--port", "web", "--", PYTHON, "-c", TCP_SERVER)
    done = bench.run("wait", task, "--until", "port:web", "--timeout", "60s")
    assert done.returncode == 1
    assert "Address already in use" in done.stderr
