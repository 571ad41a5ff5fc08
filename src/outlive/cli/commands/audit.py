"""`outlive audit`: print inconsistencies in the records, and how to repair them."""

from __future__ import annotations

import sys

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import Command, Given, option
from outlive.domain.text.sanitize import shown
from outlive.service.clock import utc_now
from outlive.service.maintenance.audit import audit, by_kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.service.maintenance.audit import Finding

_MOST_OF_A_KIND = 20


def act(given: Given) -> int:
    """Print contradictions between records. With `--rebuild`, restore missing records."""
    home, now = context.here(), utc_now()
    rebuilt: list[str] = []
    if given.rebuild:
        from outlive.service.maintenance.rebuild import rebuild

        rebuilt, hopeless = rebuild(home, now)
        for task in hopeless:
            sys.stderr.write(
                f"{task} cannot be rebuilt: its spec.json cannot be read, or the task was never launched\n"
            )
    findings = audit(home, now)
    if given.json:
        kinds = by_kind(findings)
        most = None if given.all else _MOST_OF_A_KIND
        listed = [
            {"kind": f.kind, "task": f.task, "what": f.what, "mend": f.mend}
            for kind in kinds.values()
            for f in kind[:most]
        ]
        counts = {kind: len(found) for kind, found in kinds.items()}
        print_json({"findings": listed, "counts": counts, "rebuilt": rebuilt})
        return 1 if findings else 0
    if given.rebuild:
        print(f"rebuilt {len(rebuilt)} records" if rebuilt else "every task has its record: nothing to rebuild")
    for kind, found in by_kind(findings).items():
        _print_kind(kind, found, None if given.all else _MOST_OF_A_KIND)
    if not findings:
        print("everything is consistent")
    return 1 if findings else 0


def _print_kind(kind: str, found: list[Finding], most: int | None) -> None:
    for finding in found[:most]:
        name = f"{finding.task} " if finding.task else ""
        print(f"{kind}: {name}{shown(finding.what)}\n    repair: {shown(finding.mend)}")
    if most is not None and len(found) > most:
        print(f"{kind}: {len(found) - most} more tasks\n    outlive audit --all names all of them")


COMMAND = Command(
    name="audit",
    summary="print the inconsistent records, and how to repair them",
    usage="outlive audit [--rebuild] [--all]",
    refuses_words=True,
    details="Without --rebuild, this command changes nothing. The exit code is 1 if a record is inconsistent.",
    options=(
        option("--rebuild", "restore the missing records of a lost ledger from the tasks' files"),
        option("--all", "name every task, not only the first 20 of each kind of inconsistency"),
    ),
    examples=(
        ("outlive audit", "check all records, and change nothing"),
        ("outlive audit --rebuild", "restore the records after the ledger was lost or moved away"),
    ),
)
