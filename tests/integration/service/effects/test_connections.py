"""The effects list the network connections of a task."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from outlive.linux.seccomp import is_known_machine
from tests.effects_steps import paths, touched

if TYPE_CHECKING:
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")


def test_connections_are_listed_with_address_and_port(bench: Bench) -> None:
    """A TCP connection that the task makes is listed with its address and port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = touched(
            bench, f"{sys.executable} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}))'"
        )
    assert f"127.0.0.1:{port}" in found["remotes"]


CONNECTS = """
import ctypes, socket
def connect(name):
    with socket.socket(socket.AF_UNIX) as made:
        try:
            made.connect(name)
        except OSError as error:
            print(error)
there = socket.socket(socket.AF_UNIX)
there.bind("door")
there.listen()
for name in ("door", "nobody", "no/such/directory"):
    connect(name)
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
assert ctypes.CDLL(None).connect(one.fileno(), bytes(16), 16) == 0
"""


@pytest.mark.usefixtures("repo")
def test_connect_to_a_missing_socket_is_not_listed(bench: Bench) -> None:
    """A connect to a path without a socket, or without an address, is not listed as a connection.

    Most programs try to connect to a name service daemon, and most machines have none.
    """
    program = bench.root / "connects.py"
    program.write_text(CONNECTS)
    found = touched(bench, f"{sys.executable} -B {program}")
    assert (found["remotes"], found["level"], found["gaps"]) == (["unix:door"], "observed", [])


TRIES = """
import os, socket, sys
for name in sys.argv[1:]:
    where = ("127.0.0.1", int(name)) if name.isdecimal() else name
    with socket.socket(socket.AF_INET if name.isdecimal() else socket.AF_UNIX) as one:
        one.connect_ex(where)
"""


def test_connections_are_summarized_as_made_or_tried(bench: Bench) -> None:
    """The summary calls connections "made or tried", because the observer does not see whether a server answered."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as door:
        port = server.getsockname()[1]
        door.bind(str(bench.project / "door"))
        door.listen()
        (bench.project / "link").symlink_to("door")
        (bench.root / "tries.py").write_text(TRIES)
        names = ("door", f"{bench.project}/link", "no/door", "/nowhere/socket", str(port))
        found = touched(bench, f"{sys.executable} -B {bench.root}/tries.py {' '.join(names)}")
    assert found["remotes"] == ["unix:door", f"unix:{bench.project}/link", f"127.0.0.1:{port}"]
    assert "connections, made or tried: unix:door, " in found["summary"]


SOCKETCALL = """
import ctypes, mmap, socket, struct, sys
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)  # where 32 bits reach
here = ctypes.addressof(ctypes.c_char.from_buffer(page))
def call(which, fd, address):
    page[512:512 + len(address)] = address
    page[256:268] = struct.pack("<3I", fd, here + 512, len(address))
    code = b"\\x53\\xb8\\x66\\0\\0\\0\\xbb" + struct.pack("<I", which) + b"\\xb9" + struct.pack("<I", here + 256)
    page[:len(code) + 4] = code + b"\\xcd\\x80\\x5b\\xc3"
    assert ctypes.CFUNCTYPE(ctypes.c_int)(here)() == 0
address = struct.pack("<H", 2) + struct.pack(">H", int(sys.argv[1])) + bytes([127, 0, 0, 1]) + bytes(8)
call(3, (one := socket.socket()).fileno(), address)
call(2, (two := socket.socket(socket.AF_UNIX)).fileno(), struct.pack("<H", 1) + b"dir/door\\0")
"""
"""A connect and a bind by socketcall, the one call that a 32-bit program uses for every socket operation."""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only there 32-bit programs have that call")
@pytest.mark.usefixtures("repo")
def test_socket_calls_of_a_32_bit_program_are_reported(bench: Bench) -> None:
    """The effects list the address that a 32-bit program connects to, and the name that its bind creates."""
    program = bench.root / "socketcall.py"
    program.write_text(SOCKETCALL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        task = bench.launch(f"{sys.executable} -B {program} {port}")
        bench.run("wait", task)
    shown, found = bench.show(task), bench.json("effects", task)
    if shown["exit_code"] == 128 + signal.SIGSEGV:
        pytest.skip("this kernel runs no 32-bit calls")
    assert shown["exit_code"] == 0, bench.ok("output", task)
    assert (found["remotes"], found["created"]) == ([f"127.0.0.1:{port}"], paths(bench, "dir/door"))
    assert (found["level"], found["gaps"]) == ("observed", [])
