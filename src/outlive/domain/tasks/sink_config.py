"""Sinks: programs and addresses that receive notices in addition to the inbox."""

from __future__ import annotations

from outlive.domain.errors import UserError
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["run", "webhook", "apprise"]
    Policy = Literal["all", "end", "failure"]
    Outcome = Literal["delivered", "busy", "failed"]

KINDS = ("run", "webhook", "apprise")
POLICIES = ("all", "end", "failure")
MOST_TRIES = 8
_LONGEST_PAUSE_S = 60.0
_LONGEST_NAME = 40
# A sink's command exits with this code to ask for a later delivery. It is EX_TEMPFAIL of sysexits.h.
BUSY_EXIT_CODE = 75


class Sink(Value):
    """A receiver of notices, and the rules that select its notices."""

    name: str
    kind: Kind
    target: str
    secret: str | None = None
    policy: Policy = "end"
    project: str | None = None
    """The project about whose tasks the sink receives notices. None means all projects."""


class Delivery(Value):
    """The delivery of one notice to one sink, with the result of all tries up to now."""

    notice: str
    sink: str
    state: str
    tries: int = 0
    last_error: str | None = None


def pause_after(tries: int) -> float:
    """Return the number of seconds before the next try: 1, 2, 4 and so on, up to 60."""
    return float(min(2 ** (tries - 1), _LONGEST_PAUSE_S))


def check_sink(sink: Sink) -> Sink:
    """Return the sink, or raise `UserError` if its configuration is not valid."""
    if not 0 < len(sink.name) <= _LONGEST_NAME or not sink.name.replace("-", "").replace("_", "").isalnum():
        raise UserError(f"{sink.name[:60]!r} is not a name for a sink", "use at most 40 letters, digits, - and _")
    if not sink.target.strip() or "\0" in sink.target:
        raise UserError("the sink has no target", "give --run COMMAND, --webhook URL or --apprise URL")
    if sink.kind == "webhook" and not sink.target.startswith(("https://", "http://")):
        raise UserError(f"{sink.target[:60]!r} is not a web address", "a web address begins with https:// or http://")
    if sink.secret is not None and sink.kind != "webhook":
        raise UserError("only a webhook can be signed", "leave out --secret-file")
    return sink


def shown_target(sink: Sink) -> str:
    """Return the sink's target as it may be shown.

    Of a URL, only the beginning is shown, because the rest often contains a secret.
    """
    if sink.kind == "run":
        return sink.target
    scheme, mark, rest = sink.target.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2].partition("?")[0]
    return f"{scheme}://{host}/…" if sink.kind == "webhook" else f"{scheme}{mark}…"
