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
    summary="test every configured path with a task, and print which paths work",
    usage="outlive doctor [options]",
    details=(
        "The command checks each client that Outlive was installed into. It starts the client once, in an\n"
        "empty directory and with a model on loopback that refuses to answer, and checks whether the\n"
        "client calls the hooks. It checks whether a task lasts that the client's shell launches. It then\n"
        "calls the hooks as the client does, and checks whether a new session gets the hand-off, endings\n"
        "are delivered, the gate holds and an idle session is woken.\n\n"
        "The exit code is 1 if something is blocked."
    ),
    options=(Option(name="--client", metavar="NAME", help="only this client", choices=tuple(CLIENTS)),),
    examples=(("outlive doctor", "one line for each path, with a hint if the path is blocked"),),
    act=act,
)
