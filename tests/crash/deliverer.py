"""Crash tests of a process that reports endings: it is killed before each of its system calls.

The endings are recorded once, and the state directory is copied for every kill. After the kill, further processes
report the remaining endings and are not killed. The session gets the output of all these processes.
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
from outlive.domain.notices.notice import OPEN
from outlive.domain.tasks.command import from_shell_text
from outlive.service.clock import tick, utc_now
from outlive.service.sessions import start
from outlive.service.tasks.run import run
from tests.crash.invariants import Point
from tests.crash.life import GATED, NOWHERE, ORDINARY, PATIENCE_S, Life
from tests.crash.remains import damage_in
from tests.crash.sweep import Sweep
from tests.crash.tree import Trace, run_traced

DELIVERER: Final = "0"
INBOX: Final = "inbox --session s-1"
IN_JSON: Final = "inbox --session s-1 --json"
AT_ONCE: Final = "inbox --session s-1 --ack"
# The session that continues the session s-1. Its hand-off has the endings that s-1 has not received.
HAND_OFF: Final = "session begin --session s-2 --continues s-1 --source resume"

_ENDED: Final = (
    ("s-1", GATED, "g"),
    ("s-1", GATED, "g"),
    ("s-1", ORDINARY, None),
    ("other", ORDINARY, None),
)
# The commands that run after the kill. The last command must report no ending. Its call also tells Outlive that the
# session has received the output of the command before.
_AFTERWARDS: Final = {HAND_OFF: (HAND_OFF, "inbox --session s-2", "inbox --session s-2")}
_TASK_TOLD: Final = re.compile(r"^(?:- |  )(t[2-9a-z]{7}) ", re.MULTILINE)
_NOTICE_TOLD: Final = re.compile(r"\(notice (\w+)\)")


@dataclass(frozen=True)
class Said:
    """The tasks and notices in the output of one reporting process, and the exit code of the process."""

    tasks: Counter[str]
    notices: Counter[str]
    exit_code: int


@dataclass(frozen=True)
class Owed:
    """The notices that must be reported to session s-1, with their tasks.

    `foreign` is a notice of another session, which must not be reported.
    """

    notices: dict[str, str]
    foreign: str


class Telling(Life):
    """A state directory in which three tasks of session s-1 and one task of another session have ended.

    Two of the three tasks form a group.
    """

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words
        self._others = _AFTERWARDS.get(words, (words, words))
        os.environ["OUTLIVE_HOME"] = str(self._now / "state")
        os.environ.pop("OUTLIVE_TRACE", None)
        for verb in ("inbox", "session"):
            load(verb)
        # Two calls within a short time count as one beginning of a session. The clock stands still here, because the
        # time between the calls varies with the load of the machine.
        now = tick()
        vars(start)["tick"] = lambda: now
        run_traced(self._prepare, kill=NOWHERE, stdout=self._stdout, timeout_s=PATIENCE_S)
        self.home.drop_ballast()  # Otherwise 4 MB would be copied for every kill.
        self.fold_log()
        self.freeze()
        self._load_what_is_loaded_late()
        states = self.notices()
        self.owed = Owed(
            {name: task for name, (task, session, _) in states.items() if session == "s-1"},
            next(name for name, (_, session, _) in states.items() if session == "other"),
        )

    def _load_what_is_loaded_late(self) -> None:
        """Report the endings once in this process, so that all modules are imported before the runs.

        Otherwise only some traces would contain the system calls of an import.
        """
        with redirect_stdout(StringIO()):
            for words in (self._words, *self._others):
                self._tell(words)
        self._reset()

    def _prepare(self) -> None:
        os.chdir(self._now / "place")
        for session, script, group in _ENDED:
            request = self._request.but(session=session, key=None, group=group, command=from_shell_text(script))
            run(self.home, request, utc_now())
        os.write(self._gate, b"\n\n")

    def launch(self) -> int:
        """Run the command line that reports the endings."""
        return self._tell(self._words)

    def _tell(self, words: str) -> int:
        os.chdir(self._now / "place")
        return main(words.split())

    def notices(self) -> dict[str, tuple[str, str | None, str]]:
        """Return each notice id with its task, its session and its state."""
        return {
            notice.id: (notice.task, notice.session, notice.state)
            for _, history in self.snapshot()
            for notice in history.notices
        }

    def go_on(self) -> list[Said]:
        """Yield what the killed process has printed, and then the output of each later process."""
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
    """Yield the texts of all notices in a JSON document, or none if the document is incomplete."""
    try:
        yield from (notice["text"] for notice in json.loads(printed)["notices"])
    except ValueError:
        return


@dataclass(frozen=True)
class Delivery(Sweep):
    """A series of crash tests of a process that reports endings. `script` is the command line of this process."""

    role: str = DELIVERER
    script: str = INBOX

    def stage(self) -> Life:
        """Create the state directory in which the tasks have ended."""
        return Telling(self.script)

    def judge(self, life: Life, trace: Trace, _: Point | None) -> tuple[str, list[str]]:
        """Run the other reporting processes, and compare all output with the notices."""
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
    # The tasks whose endings the killed process had recorded as reported. Only other endings may be reported again.
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
