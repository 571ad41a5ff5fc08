"""The stage that measures how long a launch takes.

A launch ends when the call that submits a task returns. The command is `true`. It has ended before the next measurement
begins.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from measure import Samples, spawn, turns
from peers.protocol import which

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peers.protocol import Peer

BARE = "`python -I -c pass`"
DIRECT = "the command itself, no supervisor"
TRUE = which("true")  # the full path, because a shell would run its built-in `true` and start no process
_SETTLING = 0.15


def launch(
    peers: Sequence[Peer], env: Mapping[str, str], rounds: int, say: Callable[[str], None]
) -> dict[str, Samples]:
    """Measure each round every peer, a bare Python interpreter and a bare command."""
    samples = {name: Samples() for name in (BARE, DIRECT, *(peer.name for peer in peers))}
    for turn in range(rounds):
        if turn % 10 == 0:
            say(f"launch, round {turn + 1} of {rounds}")
        for name, argv in ((BARE, [sys.executable, "-I", "-c", "pass"]), (DIRECT, [TRUE])):
            began = time.perf_counter()
            spawn(argv, env)
            samples[name].add(time.perf_counter() - began, turn)
        for peer in peers:
            if turn in turns(rounds, slow=peer.is_slow):
                began = time.perf_counter()
                ticket = peer.submit([TRUE])
                samples[peer.name].add(time.perf_counter() - began, turn)
                peer.wait(ticket, _SETTLING)
    return samples
