"""The stage that measures how long a task takes to start and to be reported.

The start is measured from the submit to the command's first instruction, and the completion from the command's last
instruction until the waiting process returns. The command itself reads the clock at its first and last instruction, so
the result does not depend on what a peer reports.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from measure import Samples, spawn, turns
from peers.protocol import which

from stages.launch import DIRECT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peers.protocol import Peer


class Life(NamedTuple):
    """The measured times of the start and of the completion, by the name of the peer."""

    start: dict[str, Samples]
    completion: dict[str, Samples]


def life(peers: Sequence[Peer], env: Mapping[str, str], rounds: int, say: Callable[[str], None]) -> Life:
    """Measure every peer once per round, and a command that runs without a peer."""
    names = (DIRECT, *(peer.name for peer in peers))
    lives = Life({name: Samples() for name in names}, {name: Samples() for name in names})
    for turn in range(rounds):
        if turn % 10 == 0:
            say(f"start and completion, round {turn + 1} of {rounds}")
        _one(lives, DIRECT, turn, lambda argv: (spawn(argv, env), "told")[1])
        for peer in peers:
            if turn in turns(rounds, slow=peer.is_slow):
                _one(lives, peer.name, turn, lambda argv, peer=peer: peer.wait(peer.submit(argv)))  # type: ignore[misc]
    return lives


def _one(lives: Life, name: str, turn: int, live: Callable[[list[str]], str]) -> None:
    first, last = Path(f"first-{turn}").absolute(), Path(f"last-{turn}").absolute()
    script = f"date +%s%N >{first}; sleep 0.2; exec date +%s%N >{last}"
    began = time.time_ns()
    heard = live([which("sh"), "-c", script])
    told = time.time_ns()
    if heard != "told":
        raise RuntimeError(f"{name}: the waiter was not notified: {heard}")
    if not last.exists():
        raise RuntimeError(f"{name}: the waiter was notified, but the command has not run")
    lives.start[name].add((int(first.read_text()) - began) / 1e9, turn)
    lives.completion[name].add((told - int(last.read_text())) / 1e9, turn)
    first.unlink()
    last.unlink()
