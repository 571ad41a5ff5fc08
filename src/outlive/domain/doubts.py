"""What is told of files with less than certainty, said as gaps."""

from __future__ import annotations

from outlive.domain.quantity import show_files
from outlive.domain.story import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from outlive.domain.story import Story


def doubts_of(stories: Collection[Story], unseen: int, late: int) -> Iterator[str]:
    """The gaps; so many files could not be looked at, and so many others had been changed when they were."""
    # Large files are known by size and time: a new time alone does not tell another content.
    sizes = ((story.baseline.partition(":")[0], story) for story in stories)
    found = sum(size[:1] == "u" and story.state.startswith(size + ":") and story.is_open for size, story in sizes)
    if found:
        yield f"{show_files(found)} too large to be compared: written, perhaps with the same content"
    untold = sum(story.untold for story in stories if story.baseline != ABSENT)
    if untold:
        yield f"{untold:,} more windows, of files that were away and back very often"
    if unseen:
        yield f"{show_files(unseen)} that could not be looked at: changed, perhaps to the same content"
    if late:
        them = "it" if late == 1 else "them"
        yield f"of {show_files(late)} it is not known how it left {them}: somebody changed {them} right after its end"
