"""`outlive doctor`: test with small tasks whether launches and hooks work."""

from __future__ import annotations

import os

from outlive.cli.formatting import print_json, table
from outlive.cli.parser import Command, Given, option
from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import one_line
from outlive.install.clients.registry import CLIENTS
from outlive.install.doctor.checks import Canary, check_settings
from outlive.service.tasks.launch_context import current_directory, project_of

_LONGEST_REASON = 4000
_WORDS = {True: "works", False: "BLOCKED", None: "-"}


def act(given: Given) -> int:
    """Test launches, the observing of changes and the clients' hooks. Print results."""
    if given.words:
        raise UserError("doctor takes no words", "name a client with --client NAME")
    found = [check_settings(os.environ, project_of(current_directory(os.environ)))]
    with Canary(os.environ) as canary:
        found += canary.look_here()
        for client in CLIENTS if given.client is None else (given.client,):
            found += canary.look_at(client)
    if given.json:
        print_json({"findings": [each.__dict__ for each in found]})
    else:
        rows = [(each.of, each.what, _WORDS[each.works], each.why) for each in found]
        head, *lines = table(("OF", "CHECK", "", "WHY"), rows, may_go=())
        print("\n".join((head, *lines)))
        for each, line in zip(found, lines, strict=True):
            if each.works is False and line.endswith("…"):  # the reason often stands at the end
                print(f"reason: {each.of} {each.what}: {one_line(each.why, _LONGEST_REASON)}")
        for each in found:
            if each.hint and each.works is not True:
                print(f"hint: {each.of} {each.what}: {each.hint}")
    return 1 if any(each.works is False and each.what != "observing" for each in found) else 0


COMMAND = Command(
    name="doctor",
    summary="test with small tasks whether launches and the clients' hooks work here",
    usage="outlive doctor [options]",
    details=(
        "This command checks every client into which Outlive was installed. It starts each client once, to see\n"
        "whether the client calls Outlive's hooks. The client runs in an empty directory, with a local model server\n"
        "that refuses to answer. The command also checks whether tasks that the client's shell launches survive the\n"
        "client. Then it calls the hooks itself. It checks whether a new session gets a hand-off, whether endings are\n"
        "reported, whether the gate keeps a session from stopping, and whether an idle session is woken. The exit\n"
        "code is 1 if a launch or a hook is blocked."
    ),
    options=(option("--client NAME", "check only this client", choices=tuple(CLIENTS)),),
    examples=(("outlive doctor", "print one line for each check, and hints for the checks that fail"),),
)
