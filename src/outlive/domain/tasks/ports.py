"""The named ports of a task: their names, variables and placeholders."""

from __future__ import annotations

from itertools import chain
from zlib import crc32

from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LONGEST_NAME = 40
# Below the ports that Linux gives to clients, and clear of the well-known ports of databases and of Kubernetes.
_FIRST, _NUMBER = 20_000, 4_000
_LOWEST, _HIGHEST = 1_024, 65_535
MOST_PORTS = 20


def check_port_names(names: Sequence[str]) -> None:
    """Raise `UserError` if a name is not usable, or if two names are the same."""
    for name in names:
        if not is_port_name(name):
            raise UserError(
                f"{name!r} is not the name of a port",
                f"begin with a letter, and use letters, digits, `-` and `_`, at most {_LONGEST_NAME} characters",
            )
    if len({variable_of(name) for name in names}) < len(names):
        raise UserError("two ports have the same name", "give each port a name of its own")
    if len(names) > MOST_PORTS:
        raise UserError(f"{len(names)} ports are too many", f"give at most {MOST_PORTS}")


def is_port_name(text: str) -> bool:
    """Return whether a text may name a port."""
    rest = text.replace("-", "").replace("_", "")
    return len(text) <= _LONGEST_NAME and text[:1].isalpha() and rest.isalnum() and text.isascii()


def variable_of(name: str) -> str:
    """Return the environment variable of a named port, such as `PORT_WEB`."""
    return "PORT_" + name.upper().replace("-", "_")


def port_variables(ports: Mapping[str, int]) -> dict[str, str]:
    """Return the variables that tell a command its ports.

    `PORT` has the number of the first port.
    """
    found = {variable_of(name): str(number) for name, number in ports.items()}
    return {"PORT": str(next(iter(ports.values()))), **found} if ports else {}


def with_ports(text: str, ports: Mapping[str, int]) -> str:
    """Return a text in which each placeholder `{port:NAME}` is the number."""
    for name, number in ports.items():
        text = text.replace(f"{{port:{name}}}", str(number))
    return text


def candidates(project: str, name: str, ephemeral: tuple[int, int]) -> Iterator[int]:
    """Yield the ports to try for a name, in an order that is stable for a project.

    Two worktrees of a repository are two projects, so each worktree gets ports of its own. `ephemeral` are the lowest
    and the highest port that the kernel gives to clients. These ports are left out, because a client may have any of
    them at any time.
    """
    span = _leasable(*ephemeral)
    first = crc32(f"{project}\0{name}".encode("utf-8", "surrogateescape")) % len(span)
    yield from chain(span[first:], span[:first])


def _leasable(low: int, high: int) -> range:
    """Return the ports that may be leased.

    These are the usual ones, or others if the usual ones are ephemeral.
    """
    usual = range(_FIRST, _FIRST + _NUMBER)
    if high < usual[0] or low > usual[-1]:
        return usual
    below, above = range(max(_LOWEST, low - _NUMBER), low), range(high + 1, _HIGHEST + 1)[:_NUMBER]
    found = max(below, above, key=len)
    return found if len(found) >= MOST_PORTS else usual  # almost all ports are ephemeral, so nothing better is left
