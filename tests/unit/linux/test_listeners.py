"""Who listens on which port."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from outlive.linux.listeners import all_listeners, listeners_of, listeners_on, sockets_on
from tests.servers import free_port, listening
from tests.support import wait_until


def test_listener_has_its_address_port_and_owner() -> None:
    """Listeners of both address families are found by their owner and by their port."""
    port = free_port()
    with listening(f"127.0.0.1:{port}", f"::1:{port}", f"127.0.0.2:{port}") as pid:
        found = listeners_of([pid])
        assert [each.endpoint for each in found] == [f"127.0.0.1:{port}", f"127.0.0.2:{port}", f"[::1]:{port}"]
        assert listeners_on(port) == found
        assert {each.inode for each in found} == sockets_on(port)
        assert {(each.pids, each.user) for each in found} == {((pid,), os.getuid())}
        assert [each for each in all_listeners() if each.port == port] == found
    assert listeners_on(port) == []


def test_socket_is_no_listener_when_it_is_only_bound_or_connected() -> None:
    """Only a socket that waits for connections is a listener."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert sockets_on(bound.getsockname()[1]) == set()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert sockets_on(client.getsockname()[1]) == set()
        assert [each.port for each in listeners_of([os.getpid()])] == [server.getsockname()[1]]


def test_listener_has_several_owners_when_a_child_inherits_it() -> None:
    """A child process that has the socket open is an owner, too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = subprocess.Popen(["sleep", "60"], pass_fds=(server.fileno(),))
        try:
            (found,) = listeners_on(server.getsockname()[1])
            assert set(found.pids) == {os.getpid(), child.pid}
            assert listeners_of([child.pid])[0].pids == (child.pid,)
        finally:
            child.kill()
            child.wait()


def test_owner_is_known_by_its_uid_when_its_descriptors_are_hidden() -> None:
    """A listener whose process may not be inspected has no pids, but the uid of its maker."""
    if os.getuid() != 0:
        pytest.skip("only root can start a process of another user")
    port = free_port()
    look = f"from outlive.linux.listeners import *; (l,) = listeners_on({port}); print(l.pids, l.user)"
    with listening(f"127.0.0.1:{port}"):
        done = subprocess.run(
            [sys.executable, "-c", f"import os, outlive.linux.listeners; os.setgid(65534); os.setuid(65534); {look}"],
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.strip() == "() 0"


def test_listener_in_another_network_namespace_is_found_by_its_process() -> None:
    """The listeners of a process are those of its own network namespace."""
    if subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespaces here")
    port = free_port()
    code = f"import socket, time; s = socket.create_server(('', {port})); time.sleep(60)"
    server = subprocess.Popen(["unshare", "-n", sys.executable, "-c", code])
    try:
        found = wait_until(lambda: listeners_of([server.pid]), "the server to listen")
        assert [each.endpoint for each in found] == [f"0.0.0.0:{port}"]
        assert listeners_on(port) == []
    finally:
        server.kill()
        server.wait()
