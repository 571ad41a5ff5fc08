"""The stage that measures how fast secrets in a large log are replaced by a mask.

Escape sequences are removed from the log as well. The stage measures processor time, which other programs on the
machine hardly affect, and takes the best of several rounds.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from realistic_log import realistic_log

from outlive.domain.text.redact import MASK, _mask_large, finders
from outlive.domain.text.sanitize import plain
from outlive.domain.text.secret_lines import Prefilter

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 10 << 20
GOALS_MB_S = {"re": 10.0, "re2": 50.0}
_ROUNDS = 5


class Masking(NamedTuple):
    """The speed of masking in MB per second of processor time, and the masked secrets.

    `mb_per_s` has the speed of each library for regular expressions, and `secrets` is the number of masked secrets.
    """

    mb_per_s: dict[str, float]
    secrets: int


def masking(share: float, say: Callable[[str], None]) -> Masking:
    """Mask one log with each library for regular expressions, and compare the results.

    Raises `RuntimeError` if the results differ.
    """
    say(f"masking a log of {SIZE >> 20} MB")
    text = realistic_log(SIZE)
    found: dict[str, float] = {}
    masked: set[str] = set()
    for prefilter in (Prefilter(finders(), wants_re2=False), Prefilter(finders())):
        best = float("inf")
        for _ in range(max(2, int(_ROUNDS * share))):
            began = time.process_time()
            masked.add(_mask_large(plain(text), prefilter))
            best = min(best, time.process_time() - began)
        found[prefilter.engine] = len(text) / 1e6 / best
    if len(masked) != 1:
        raise RuntimeError("the engines of masking do not agree")
    return Masking(found, masked.pop().count(MASK))


if __name__ == "__main__":
    print(masking(1.0, lambda what: print(what, file=sys.stderr)))
