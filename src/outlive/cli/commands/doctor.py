"""`outlive doctor`: test with canary tasks whether launches and hooks work here."""

from __future__ import annotations

import os

from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, Option
from outlive.domain.errors import UserError
from outlive.install.clients.registry import CLIENTS
from outlive.install.doctor.checks import Canary

_WORDS = {True: "works", False: "BLOCKED", None: "-"}


def act(given: Given) -> int:
    """Test launching and observing, then the hooks of clients, and print the results."""
    if given.words:
        raise UserError("doctor takes no words", "--client NAME says which client")
    with Canary(os.environ) as canary:
        found = list(canary.look_here())
        for client in CLIENTS if given.client is None else (given.client,):
            found += canary.look_at(client)
    if given.json:
        print_json({"findings": [each.__dict__ for each in found]})
    else:
        rows = [(each.of, each.what, _WORDS[each.works], each.why) for each in found]
        print("\n".join(table(("OF", "PATH", "", "WHY"), rows, may_go=())))
        for each in found:
            if each.hint and each.works is not True:
                print(f"hint: {each.of} {each.what}: {each.hint}")
    return 1 if any(each.works is False and each.what != "observing" for each in found) else 0


COMMAND = Command(
    name="doctor",
    summary="send a task through every path that is configured, and say which of them work here",
    usage="outlive doctor [options]",
    details=(
        "For each client that Outlive was installed into: whether it calls our hooks (it is started once, in an empty\n"
        "directory, with a model on loopback that refuses to answer), whether what its shell launches lasts, and by\n"
        "calling what it calls, whether a beginning session is handed over, endings are delivered, the gate holds and\n"
        "an idle session is woken. Exit code 1 if something is blocked."
    ),
    options=(Option(name="--client", metavar="NAME", help="only this one", choices=tuple(CLIENTS)),),
    examples=(("outlive doctor", "a line for each path, with what to do about those that are blocked"),),
    act=act,
)
