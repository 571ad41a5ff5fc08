"""Sentences about files whose changes are not fully known."""

from __future__ import annotations

from outlive.domain.effects.replay.path_history import ABSENT
from outlive.domain.text.units import show_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from outlive.domain.effects.replay.path_history import PathHistory


def doubts_of(histories: Collection[PathHistory], unseen: int, late: int) -> Iterator[str]:
    """Yield a sentence for each kind of uncertainty about files.

    `unseen` is the number of files that could not be read. `late` is the number of files that other processes changed
    after the task's end and before the check.
    """
    # Large files are compared by size and time. A new time alone does not prove that the content has changed.
    sizes = ((history.baseline.partition(":")[0], history) for history in histories)
    found = sum(size[:1] == "u" and history.state.startswith(size + ":") and history.is_open for size, history in sizes)
    if found:
        yield f"{show_files(found)} too large to be compared: written, perhaps with the same content"
    untold = sum(history.untold for history in histories if history.baseline != ABSENT)
    if untold:
        yield f"{untold:,} more windows of files that were changed and restored very often"
    if unseen:
        yield f"{show_files(unseen)} that could not be read: written, perhaps with the same content"
    if late:
        them = "it" if late == 1 else "them"
        yield f"it is not known how it left {show_files(late)}: another process changed {them} right after its end"
