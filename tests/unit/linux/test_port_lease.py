"""Leases of ports: who can take a leased port, and who cannot."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from errno import EADDRINUSE
from typing import TYPE_CHECKING

import pytest

from outlive.linux.port_lease import ephemeral_ports, lease_one_of
from tests.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def leased() -> Iterator[int]:
    """Lease a port, and free it afterwards."""
    found = lease_one_of([free_port()])
    assert found is not None
    yield found[0]
    for fd in found[1]:
        os.close(fd)


def test_leased_port_is_not_leased_again(leased: int) -> None:
    """A second lease gets the next port, also in another process."""
    other = free_port()
    found = lease_one_of([leased, other])
    assert found is not None
    assert found[0] == other
    for fd in found[1]:
        os.close(fd)
    code = f"from outlive.linux.port_lease import lease_one_of; print(lease_one_of([{leased}]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "None"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])  # noqa: S104
def test_server_listens_on_a_leased_port_when_it_sets_so_reuseaddr(leased: int, address: str) -> None:
    """Such a server can bind the port on every address, and then listen."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, leased))
        server.listen()
        assert lease_one_of([leased]) is None


def test_server_cannot_take_a_leased_port_when_it_does_not_set_so_reuseaddr(leased: int) -> None:
    """Such a server gets EADDRINUSE. The documentation names this limit."""
    with socket.socket() as server, pytest.raises(OSError, match="in use") as refused:
        server.bind(("127.0.0.1", leased))
    assert refused.value.errno == EADDRINUSE


def test_port_is_free_again_when_the_last_holder_ends() -> None:
    """The kernel frees the lease when all copies of its descriptors are closed."""
    port = free_port()
    found = lease_one_of([port])
    assert found is not None
    child = subprocess.Popen(["sleep", "60"], pass_fds=found[1])
    for fd in found[1]:
        os.close(fd)
    assert lease_one_of([port]) is None
    child.kill()
    child.wait()
    again = lease_one_of([port])
    assert again is not None
    for fd in again[1]:
        os.close(fd)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"])  # noqa: S104
def test_port_is_not_leased_when_a_process_listens_on_it(address: str) -> None:
    """A listener on any address makes the port taken."""
    port = free_port()
    with socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
        assert lease_one_of([port]) is None


def test_ephemeral_ports_are_those_of_the_kernel() -> None:
    """A socket without a chosen port gets one of these ports."""
    low, high = ephemeral_ports()
    assert low <= free_port() <= high
