"""Tellings: tasks of a session have ended, and whoever tells it so is killed before every system call.

The endings are made once and copied for every point. After the kill come others who tell, each
whole and undisturbed; what all of them printed is what the session got.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Final

from outlive.cli.main import load, main
from outlive.domain.command import from_shell_text
from outlive.domain.notice import OPEN
from outlive.service import (
    boundary,
    follow_inbox,  # noqa: F401 - warm, as everything that tells
)
from outlive.service.clock import tick, utc_now
from outlive.service.run import run
from tests.crash.invariants import Point
from tests.crash.life import GATED, NOWHERE, ORDINARY, PATIENCE_S, Life
from tests.crash.remains import damage_in
from tests.crash.sweep import Sweep
from tests.crash.tree import Trace, run_traced

DELIVERER: Final = "0"
INBOX: Final = "inbox --session s-1"
IN_JSON: Final = "inbox --session s-1 --json"
AT_ONCE: Final = "inbox --session s-1 --ack"
# The session that goes on where s-1 was: its hand-off tells what s-1 is owed.
HAND_OFF: Final = "session begin --session s-2 --continues s-1 --source resume"

_ENDED: Final = (
    ("s-1", GATED, "g"),
    ("s-1", GATED, "g"),
    ("s-1", ORDINARY, None),
    ("other", ORDINARY, None),
)
# Who comes after the one that was killed. To the last of them nothing is left to tell, and its
# being there shows that the session got the rest.
_AFTERWARDS: Final = {HAND_OFF: (HAND_OFF, "inbox --session s-2", "inbox --session s-2")}
_TASK_TOLD: Final = re.compile(r"^(?:- |  )(t[2-9a-z]{7}) ", re.MULTILINE)
_NOTICE_TOLD: Final = re.compile(r"\(notice (\w+)\)")


@dataclass(frozen=True)
class Said:
    """What one of those who tell has printed, as far as its reader can read it."""

    tasks: Counter[str]
    notices: Counter[str]
    exit_code: int


@dataclass(frozen=True)
class Owed:
    """What the sessions are owed: notice -> its task; and what one of them must never hear."""

    notices: dict[str, str]
    foreign: str


class Telling(Life):
    """A place where three tasks of s-1 have ended, two of them as a group, and one of somebody else."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words
        self._others = _AFTERWARDS.get(words, (words, words))
        os.environ["OUTLIVE_HOME"] = str(self._now / "state")
        os.environ.pop("OUTLIVE_TRACE", None)
        for verb in ("inbox", "session"):
            load(verb)
        # Told twice it is one boundary if it is told soon, and how soon must not depend on this machine.
        now = tick()
        vars(boundary)["tick"] = lambda: now
        run_traced(self._prepare, kill=NOWHERE, stdout=self._stdout, timeout_s=PATIENCE_S)
        self.home.drop_ballast()  # 4 MB that would be copied for every point
        self.fold_log()
        self.freeze()
        states = self.notices()
        self.owed = Owed(
            {name: task for name, (task, session, _) in states.items() if session == "s-1"},
            next(name for name, (_, session, _) in states.items() if session == "other"),
        )

    def _prepare(self) -> None:
        os.chdir(self._now / "place")
        for session, script, group in _ENDED:
            request = self._request.but(session=session, key=None, group=group, command=from_shell_text(script))
            run(self.home, request, utc_now())
        os.write(self._gate, b"\n\n")

    def launch(self) -> int:
        """Tell, as the command line does."""
        return self._tell(self._words)

    def _tell(self, words: str) -> int:
        os.chdir(self._now / "place")
        return main(words.split())

    def notices(self) -> dict[str, tuple[str, str | None, str]]:
        """Every notice with its task, the session it was made for and its state."""
        return {
            notice.id: (notice.task, notice.session, notice.state)
            for _, history in self.snapshot()
            for notice in history.notices
        }

    def go_on(self) -> list[Said]:
        """Read what the one that was killed has printed; then let the others tell, one after the other."""
        said = [self._read(self._stdout.read_text(), 0)]
        for words in self._others:
            with redirect_stdout(StringIO()) as printed:
                code = self._tell(words)
            said.append(self._read(printed.getvalue(), code))
        return said

    def _read(self, text: str, exit_code: int) -> Said:
        text = "\n".join(_texts(text)) if self._words == IN_JSON else text
        return Said(Counter(_TASK_TOLD.findall(text)), Counter(_NOTICE_TOLD.findall(text)), exit_code)


def _texts(printed: str) -> Iterator[str]:
    """Yield what a reader of JSON can read: half a document is none."""
    try:
        yield from (notice["text"] for notice in json.loads(printed)["notices"])
    except ValueError:
        return


@dataclass(frozen=True)
class Delivery(Sweep):
    """A sweep over somebody who tells; `script` is its command line."""

    role: str = DELIVERER
    script: str = INBOX

    def stage(self) -> Life:
        """Make the place, with the endings in it."""
        return Telling(self.script)

    def judge(self, life: Life, trace: Trace, _: Point | None) -> tuple[str, list[str]]:
        """Let others tell the rest, and compare what was told with what was owed."""
        assert isinstance(life, Telling)
        found = life.notices()
        said = life.go_on()
        told = [sum(one.tasks.values()) for one in said]
        states = Counter(state for name, (_, _, state) in found.items() if name in life.owed.notices)
        outcome = f"told {', '.join(map(str, told))}; left {' '.join(f'{n} {s}' for s, n in sorted(states.items()))}"
        return outcome, [
            *([f"hung: {trace.hung}"] if trace.hung else []),
            *_of_telling(life.owed, found, said),
            *_of_the_end(life.owed, life.notices()),
            *(f"damage: {text}" for text in damage_in(life.home, life.snapshot())),
        ]


def _of_telling(owed: Owed, found: dict[str, tuple[str, str | None, str]], said: list[Said]) -> Iterator[str]:
    tasks = set(owed.notices.values())
    # What the one that was killed had put on record: only what it had not may be told again.
    on_record = {owed.notices[name] for name in owed.notices if found[name][2] not in ("pending", "claimed")}
    for number, one in enumerate(said):
        if one.exit_code != 0:
            yield f"teller {number} failed: {one.exit_code}"
        if strange := (set(one.tasks) - tasks) | (set(one.notices) - set(owed.notices)):
            yield f"told what it is not owed: {sorted(strange)}"
        if twice := [task for task, count in one.tasks.items() if count > 1]:
            yield f"told twice in one breath: {twice}"
    for task in tasks:
        tellers = [number for number, one in enumerate(said) if task in one.tasks]
        if not tellers:
            yield f"lost: nobody told of {task}"
        if len(tellers) > 1 and (0 not in tellers or task in on_record or len(tellers) > 2):
            yield f"told again although it was on record: {task} by {tellers}"
        if len(said) - 1 in tellers:
            yield f"told only after a turn: {task} by {tellers}"


def _of_the_end(owed: Owed, states: dict[str, tuple[str, str | None, str]]) -> Iterator[str]:
    for name in owed.notices:
        state = states[name][2] if name in states else "gone"
        if state != "acked":
            yield f"{name} is {state} in the end"
    if states[owed.foreign][2] not in OPEN:
        yield f"another session's notice is {states[owed.foreign][2]}"
