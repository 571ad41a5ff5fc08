"""The note about a command whose keeper and witness are both dead.

The command's calls that change files fail from then on, because no process is left that can answer them. The note is
written into the attempt's file of observed changes, which is called the journal.
"""

from __future__ import annotations

import os
import re
from mmap import ACCESS_READ, mmap

from outlive.domain.tasks.evidence import UNANSWERED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.bundle.attempt import AttemptFiles

_OBSERVED = re.compile(rb"^\d+\t(?:begin|unobserved)\t", re.MULTILINE)
_NOT_OBSERVED = re.compile(rb"^\d+\tunseen\t", re.MULTILINE)
_SINCE = re.compile(rb"^\d+\tunobserved\t", re.MULTILINE)


def note_unanswered(files: AttemptFiles) -> str | None:
    """Note that the attempt's calls are not answered any more.

    Returns the sentence to record with the attempt's end, or None if the calls were not observed. The note is a line in
    the file of observed changes. It has the time of the last line there, because it is unknown when the keeper and the
    witness died. A keeper that does not observe calls writes an `unseen` line first, so an empty file belongs to an
    observed command.
    """
    try:
        fd = os.open(files.effects, os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        last_line_at = os.fstat(fd).st_mtime_ns // 1000
        operation, is_told = "unobserved", False
        if os.fstat(fd).st_size:
            with mmap(fd, 0, access=ACCESS_READ) as journal:
                if _NOT_OBSERVED.search(journal) is not None and _OBSERVED.search(journal) is None:
                    return None
                operation = "unobserved" if _SINCE.search(journal) is None else "gap"
                is_told = journal.find(UNANSWERED.encode("ascii")) >= 0
        if not is_told:
            # The keeper may have been killed while it wrote a line. The NUL ends this line and makes it invalid.
            os.write(fd, f"\0\n{last_line_at}\t{operation}\t0\t-\t{UNANSWERED}\n".encode("ascii"))
    except OSError:
        pass  # the disk is full, but the caller still records the sentence
    finally:
        os.close(fd)
    return UNANSWERED
