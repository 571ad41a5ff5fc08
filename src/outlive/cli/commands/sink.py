"""`outlive sink`: manage sinks, to which Outlive reports the end of tasks.

A sink is a command, a webhook, or a URL of the notification library Apprise.
"""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, option
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
    """Run `add`, `list` or `remove`, which is the first word after `sink`."""
    verb = given.words[0] if given.words else ""
    if verb not in _VERBS or len(given.words) != (1 if verb == "list" else 2):
        raise UserError("sink takes add NAME, list, or remove NAME", "`outlive sink --help` explains these words")
    home = context.here()
    if verb == "list":
        return _list(home, given)
    return _add(home, given) if verb == "add" else _remove(home, given)


def _add(home: Home, given: Given) -> int:
    targets: dict[Kind, str | None] = {"run": given.run, "webhook": given.webhook, "apprise": given.apprise}
    named = [(kind, target) for kind, target in targets.items() if target is not None]
    if len(named) != 1:
        raise UserError("a sink needs exactly one target", "give --run COMMAND, --webhook URL or --apprise URL")
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
            raise Conflict(
                f"there is a sink {sink.name} already",
                f"choose another name, or remove that sink: outlive sink remove {sink.name}",
            )
    if given.json:
        print_json({"sink": _sink_json(sink)})
    return 0


def _read_secret(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            secret = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the secret cannot be read: {error}", "name a text file that contains the secret") from error
    if not secret:
        raise UserError(f"{path} is empty", "name a text file that contains the secret")
    return secret


def _remove(home: Home, given: Given) -> int:
    with SqliteLedger(home.ledger, utc_now()) as ledger:
        if not Sinks(ledger).remove(given.words[1]):
            raise UserError(f"there is no sink {given.words[1]!r}", "`outlive sink list` lists the sinks")
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
    summary="add or remove sinks: commands, webhooks, chats or desktops that receive endings",
    usage="outlive sink add NAME --run COMMAND | --webhook URL | --apprise URL;  sink list;  sink remove NAME",
    takes=_VERBS,
    details=(
        "A sink receives notices as JSON. Notices that are due at the same time are sent together. A command gets the\n"
        "notices on its standard input. If the command exits with 75, the sink counts as busy. A webhook is signed as\n"
        "the specification Standard Webhooks requires. A failed delivery is retried, and `outlive show` prints it.\n"
        "Every notice is in the inbox too. --apprise needs: pip install 'outlive[apprise]'."
    ),
    options=(
        option("--run COMMAND", "add: run this line of shell for notices"),
        option("--webhook URL", "add: post notices to this URL"),
        option("--apprise URL", "add: send notices to this URL of Apprise, such as slack:// or gnome://"),
        option("--secret-file PATH", "add: sign webhooks with the secret in this file"),
        option("--on WHEN", "add: choose which endings are sent (default end)", choices=POLICIES),
        option("--here", "add: send only endings of this project's tasks"),
    ),
    examples=(
        ("outlive sink add desk --run 'notify-send \"$OUTLIVE_NOTICES\"' --on failure", "show failures on the desktop"),
        (
            "outlive sink add ci --webhook https://example.org/hook --secret-file key",
            "post every ending to this URL, signed",
        ),
    ),
)
