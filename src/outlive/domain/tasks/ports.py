"""The named ports of a task: their names, variables and placeholders."""

from __future__ import annotations

from outlive.domain.errors import UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LONGEST_NAME = 40
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
