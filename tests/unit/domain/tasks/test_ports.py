"""The names of leased ports, and the order in which ports are tried."""

from __future__ import annotations

from itertools import islice

import pytest

from outlive.domain.errors import UserError
from outlive.domain.tasks.ports import candidates, check_port_names, port_variables, with_ports

LINUX = (32768, 60999)


@pytest.mark.parametrize("names", [("",), ("1a",), ("a b",), ("ä",), ("a" * 41,), ("web", "WEB"), ("a-b", "a_b")])
def test_port_name_is_refused_when_it_makes_no_variable_of_its_own(names: tuple[str, ...]) -> None:
    """A name must give a variable that no other port of the task has."""
    with pytest.raises(UserError):
        check_port_names(names)
    check_port_names(("web", "api-2", "db_x"))


def test_command_gets_its_ports_as_variables_and_placeholders() -> None:
    """The first port is also `PORT`, and unknown placeholders stay."""
    ports = {"web": 20001, "api-2": 20002}
    assert port_variables(ports) == {"PORT": "20001", "PORT_WEB": "20001", "PORT_API_2": "20002"}
    assert port_variables({}) == {}
    assert with_ports("--port={port:web} {port:api-2} {port:db} {port}", ports) == "--port=20001 20002 {port:db} {port}"


def test_ports_of_a_worktree_are_stable_and_differ_from_those_of_another() -> None:
    """The same project and name give the same order, and each port is tried once."""
    first = list(candidates("/home/u/app", "web", LINUX))
    assert first == list(candidates("/home/u/app", "web", LINUX))
    assert len(set(first)) == len(first) > 1000
    others = {next(candidates(f"/home/u/app-{number}", "web", LINUX)) for number in range(50)}
    assert len(others) > 45
    assert next(candidates("/home/u/app", "api", LINUX)) != first[0]


@pytest.mark.parametrize("ephemeral", [LINUX, (1024, 65535), (10000, 65535), (1024, 40000), (20000, 60999), (2, 3)])
def test_port_is_outside_of_the_ephemeral_ports(ephemeral: tuple[int, int]) -> None:
    """No port is tried that the kernel may give to a client, if there is any other port."""
    low, high = ephemeral
    found = list(islice(candidates("/p", "web", ephemeral), 5000))
    assert all(1024 <= port <= 65535 for port in found)
    if ephemeral != (1024, 65535):
        assert not any(low <= port <= high for port in found)
