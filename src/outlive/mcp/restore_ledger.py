"""The restoring of missing records in a ledger, for the MCP server.

The next reply of a tool names the tasks whose records were restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.service.maintenance.rebuild import restore_incomplete, restored_sentences

if TYPE_CHECKING:
    from outlive.mcp.answer import Answer

_restored: list[str] = []


def restore(ledger: str) -> None:
    """Restore missing records in the ledger at this path.

    The next reply of a tool names the tasks whose records were restored.
    """
    _restored.extend(restore_incomplete(ledger))


def with_restored(answer: Answer) -> Answer:
    """Add to a tool's reply the names of the tasks whose records were restored."""
    if not _restored:
        return answer
    restored = _restored[:]
    del _restored[: len(restored)]
    fact, hint = restored_sentences(restored)
    return answer.but(
        text=f"outlive: {fact}\nhint: {hint}\n\n{answer.text}", document={**answer.document, "restored": restored}
    )
