"""`outlive audit`: what is inconsistent, and what would mend it."""

from __future__ import annotations

import sys

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.text import shown
from outlive.service.audit import audit
from outlive.service.clock import utc_now


def act(given: Given) -> int:
    """Look; and if asked, rebuild first."""
    home, now = place.here(), utc_now()
    rebuilt: list[str] = []
    if given.rebuild:
        from outlive.service.rebuild import rebuild

        rebuilt, hopeless = rebuild(home, now)
        for task in hopeless:
            sys.stderr.write(f"{task} cannot be rebuilt: its spec.json cannot be read, or it was never launched\n")
    findings = audit(home, now)
    if given.json:
        listed = [{"kind": f.kind, "task": f.task, "what": f.what, "mend": f.mend} for f in findings]
        print_json({"findings": listed, "rebuilt": rebuilt})
        return 1 if findings else 0
    if given.rebuild:
        print(f"rebuilt {len(rebuilt)} records" if rebuilt else "every task has its record: nothing to rebuild")
    for finding in findings:
        name = f"{finding.task} " if finding.task else ""
        print(f"{finding.kind}: {name}{shown(finding.what)}\n    mend: {shown(finding.mend)}")
    if not findings:
        print("everything is consistent")
    return 1 if findings else 0


COMMAND = Command(
    name="audit",
    summary="what is inconsistent, and what would mend it",
    usage="outlive audit [--rebuild]",
    details="Changes nothing, unless --rebuild. Exit code 1 if there is something to tell.",
    options=(Option(name="--rebuild", help="restore the records of a lost ledger from the tasks' files"),),
    examples=(("outlive audit", "look"), ("outlive audit --rebuild", "after a ledger was lost or moved aside")),
    act=act,
)
