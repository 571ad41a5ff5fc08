"""What trying to observe has shown, in this boot: one word for each way of being confined.

A sandbox may forbid what is allowed outside of it, and one home serves both: neither answers for the other.
"""

from __future__ import annotations

import os

from outlive.bundle.kernel import boot_id, confinement, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home

_MOST_KNOWN = 8


def answer_known(home: Home, *, keep_privileges: bool) -> bool | None:
    """Whether it worked for somebody who is confined as we are; None if nobody tried."""
    known, word = _read(home), _word(keep_privileges=keep_privileges)
    return True if f"{word}:yes" in known else False if f"{word}:no" in known else None


def remember(home: Home, works: bool, *, keep_privileges: bool) -> None:
    """Keep an answer for the others."""
    answer = f"{_word(keep_privileges=keep_privileges)}:{'yes' if works else 'no'}"
    words = (boot_id(), answer, *_read(home)[: _MOST_KNOWN - 1])
    path = home.path + "/observing"
    fresh = f"{path}.{os.getpid()}"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, (" ".join(words) + "\n").encode("ascii"))
    finally:
        os.close(fd)
    os.rename(fresh, path)


def _word(*, keep_privileges: bool) -> str:
    return f"{'with' if keep_privileges else 'without'}-{confinement()}"


def _read(home: Home) -> Sequence[str]:
    try:
        boot, *found = read_small(home.path + "/observing").decode("ascii").split()
    except (OSError, ValueError):
        return ()
    return found if boot == boot_id() else ()
