"""The results of self-tests since the last boot, one for each confinement.

A confinement is the combination of a process's no_new_privs flag and seccomp filters. A process in a sandbox may use
the same state directory as a process outside the sandbox, although the sandbox forbids observation.
"""

from __future__ import annotations

from outlive.bundle.atomic_file import write_whole
from outlive.linux.syscalls import boot_id, confinement, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home

_MOST_KNOWN = 8


def answer_known(home: Home, *, keep_privileges: bool) -> bool | None:
    """Return the stored self-test result for this process's seccomp restrictions.

    Returns None if no self-test ran under these restrictions. `keep_privileges` selects the test in which observed
    programs can gain privileges when they are executed.
    """
    known, word = _read(home), _word(keep_privileges=keep_privileges)
    return True if f"{word}:yes" in known else False if f"{word}:no" in known else None


def remember(home: Home, works: bool, *, keep_privileges: bool) -> None:
    """Store the result of a self-test for later processes.

    `works` is the result. `keep_privileges` means that observed programs could gain privileges in this test.
    """
    answer = f"{_word(keep_privileges=keep_privileges)}:{'yes' if works else 'no'}"
    words = (boot_id(), answer, *_read(home)[: _MOST_KNOWN - 1])
    path = home.path + "/observing"
    write_whole(path, (" ".join(words) + "\n").encode("ascii"))


def _word(*, keep_privileges: bool) -> str:
    return f"{'with' if keep_privileges else 'without'}-{confinement()}"


def _read(home: Home) -> Sequence[str]:
    try:
        boot, *found = read_small(home.path + "/observing").decode("ascii").split()
    except (OSError, ValueError):
        return ()
    return found if boot == boot_id() else ()
