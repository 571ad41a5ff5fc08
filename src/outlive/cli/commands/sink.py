"""`outlive sink`: manage sinks, which receive endings in addition to sessions."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import Conflict, UserError
from outlive.domain.tasks.sink_config import POLICIES, Sink, check_sink, shown_target
from outlive.domain.text.sanitize import shown
from outlive.ledger.sinks import Sinks
from outlive.ledger.sqlite import SqliteLedger
from outlive.service.clock import utc_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.home import Home
    from outlive.domain.tasks.sink_config import Kind

_VERBS = ("add", "list", "remove")


def act(given: Given) -> int:
    """Run `add`, `list` or `remove`, as the first word says."""
    verb = given.words[0] if given.words else ""
    if verb not in _VERBS or len(given.words) != (1 if verb == "list" else 2):
        raise UserError("sink takes add NAME, list, or remove NAME", "`outlive sink --help` shows what each takes")
    home = context.here()
    if verb == "list":
        return _list(home, given)
    return _add(home, given) if verb == "add" else _remove(home, given)


def _add(home: Home, given: Given) -> int:
    targets: dict[Kind, str | None] = {"run": given.run, "webhook": given.webhook, "apprise": given.apprise}
    named = [(kind, target) for kind, target in targets.items() if target is not None]
    if len(named) != 1:
        raise UserError("a sink has one target", "--run COMMAND, --webhook URL or --apprise URL")
    sink = check_sink(
        Sink(
            name=given.words[1],
            kind=named[0][0],
            target=named[0][1],
            secret=None if given.secret_file is None else _read_secret(given.secret_file),
            policy=given.on or "end",
            project=context.project() if given.here else None,
        )
    )
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        if not Sinks(ledger).add(sink, utc_now()):
            raise Conflict(f"there is a sink {sink.name} already", f"outlive sink remove {sink.name}")
    if given.json:
        print_json({"sink": _sink_json(sink)})
    return 0


def _read_secret(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the secret cannot be read: {error}", "a text file with the secret in it") from error
    if not secret:
        raise UserError(f"{path} is empty", "a text file with the secret in it")
    return secret


def _remove(home: Home, given: Given) -> int:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        if not Sinks(ledger).remove(given.words[1]):
            raise UserError(f"there is no sink {given.words[1]!r}", "`outlive sink list` shows them")
    if given.json:
        print_json({"removed": given.words[1]})
    return 0


def _list(home: Home, given: Given) -> int:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        sinks = Sinks(ledger).all()
    if given.json:
        print_json({"sinks": [_sink_json(sink) for sink in sinks]})
    elif not sinks:
        print("no sinks; `outlive sink add` makes one")
    else:
        rows = [(sink.name, sink.policy, sink.project or "-", sink.kind, shown(shown_target(sink))) for sink in sinks]
        print("\n".join(table(("NAME", "ON", "PROJECT", "KIND", "TARGET"), rows, may_go=("PROJECT",))))
    return 0


def _sink_json(sink: Sink) -> dict[str, object]:
    return {
        "name": sink.name,
        "kind": sink.kind,
        "target": shown(shown_target(sink)),
        "signed": sink.secret is not None,
        "on": sink.policy,
        "project": sink.project,
    }


COMMAND = Command(
    name="sink",
    summary="add places that are told of endings: a command, a webhook, a chat or desktop",
    usage="outlive sink add NAME --run COMMAND | --webhook URL | --apprise URL;  sink list;  sink remove NAME",
    takes=_VERBS,
    details=(
        "Notices of tasks that end at the same time are sent together, as JSON. A command reads them on\n"
        "its input, and exits with 75 if it is busy. A webhook is signed as the Standard Webhooks\n"
        "specification says.\n\n"
        "A failed delivery is recorded (see `outlive show`) and tried again. The inbox has the notice in\n"
        "any case. --apprise needs: pip install 'outlive[apprise]'."
    ),
    options=(
        Option(name="--run", metavar="COMMAND", help="add: a line of shell to run"),
        Option(name="--webhook", metavar="URL", help="add: an address to post to"),
        Option(name="--apprise", metavar="URL", help="add: any of Apprise's channels, such as slack:// or gnome://"),
        Option(name="--secret-file", metavar="PATH", help="add: a file with the secret that signs webhooks"),
        Option(name="--on", metavar="WHEN", help="add: which endings to tell (default end)", choices=POLICIES),
        Option(name="--here", help="add: only endings of tasks of this project"),
    ),
    examples=(
        (
            "outlive sink add desk --run 'notify-send \"$OUTLIVE_NOTICES\"' --on failure",
            "shows failures on the desktop",
        ),
        (
            "outlive sink add ci --webhook https://example.org/hook --secret-file key",
            "posts every ending, with a signature",
        ),
    ),
    act=act,
)
