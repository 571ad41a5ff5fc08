"""The number of commits between two commits.

Only this module of Outlive runs git. Git executes helpers, filters and transports that a repository configures. So git
runs in an empty temporary repository without configuration, which uses only the objects of the task's repository. Git
must not use a network protocol, and inherits only the variable PATH.
"""

from __future__ import annotations

import os

from outlive.domain.effects.drift import Distance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.git.snapshot import GitState

TIMEOUT_S = 1.0
_MOST_MEMORY = "256m"
_HEX = frozenset("0123456789abcdef")


def measure_distance(then: GitState, now: GitState, timeout_s: float = TIMEOUT_S) -> Distance | None:
    """Return how many commits one HEAD is ahead of another, and how many behind.

    The two HEADs are those of two snapshots. Returns None if the numbers are unknown.
    """
    old, new = then.head or "", now.head or ""
    if len(old) not in (40, 64) or len(old) != len(new) or not _HEX.issuperset(old + new):
        return None
    if old == new:
        return Distance(ahead=0, behind=0)
    from subprocess import SubprocessError  # noqa: PLC0415 - this module is only needed if HEAD has moved
    from tempfile import TemporaryDirectory  # noqa: PLC0415

    try:
        with TemporaryDirectory(prefix="outlive-", ignore_cleanup_errors=True) as place:
            answer = _ask(place, now.common_dir, f"{new}...{old}", timeout_s)
    except (OSError, ValueError, SubprocessError):
        return None
    counts = answer.split()
    if len(counts) != 2 or not all(count.isdigit() for count in counts):
        return None
    return Distance(ahead=int(counts[0]), behind=int(counts[1]))


def _ask(place: str, common_dir: str, span: str, timeout_s: float) -> bytes:
    from subprocess import DEVNULL, PIPE, run  # noqa: PLC0415

    os.mkdir(place + "/refs")
    with open(place + "/HEAD", "w", encoding="ascii") as head:
        head.write("ref: refs/heads/none\n")
    with open(place + "/config", "w", encoding="ascii") as config:
        is_sha256 = len(span) > 2 * 40 + len("...")
        config.write("[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n")
        config.write("[extensions]\n\tobjectFormat = sha256\n" if is_sha256 else "")
    environ = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "GIT_DIR": place,
        "GIT_OBJECT_DIRECTORY": common_dir + "/objects",
        # The commits at which a shallow clone ends. The file is a list of ids, so git can execute nothing from it.
        "GIT_SHALLOW_FILE": common_dir + "/shallow" if os.path.lexists(common_dir + "/shallow") else "",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_ALLOC_LIMIT": _MOST_MEMORY,
    }
    answer: bytes = run(
        ["git", "--no-pager", "rev-list", "--count", "--left-right", span, "--"],
        cwd=place,
        env=environ,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=DEVNULL,
        timeout=timeout_s,
        check=True,
    ).stdout
    return answer
