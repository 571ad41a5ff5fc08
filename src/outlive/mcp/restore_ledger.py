"""Restoring a ledger that lacks tasks.

The next answer of a tool reports which tasks were restored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.service.maintenance.rebuild import restore_incomplete, restored_sentences

if TYPE_CHECKING:
    from outlive.mcp.answer import Answer

_restored: list[str] = []


def restore(ledger: str) -> None:
    """Restore the ledger at this path.

    The next answer of a tool names the restored tasks.
    """
    _restored.extend(restore_incomplete(ledger))


def with_restored(answer: Answer) -> Answer:
    """Add to an answer the tasks that were restored since the previous answer."""
    if not _restored:
        return answer
    restored = _restored[:]
    del _restored[: len(restored)]
    fact, hint = restored_sentences(restored)
    return answer.but(
        text=f"outlive: {fact}\nhint: {hint}\n\n{answer.text}", document={**answer.document, "restored": restored}
    )
