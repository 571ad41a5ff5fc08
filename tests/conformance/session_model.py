"""A model of sessions, tasks and notices that predicts what the ledger must return.

The model uses neither SQL nor locks. It has a list of notices, a plain search for recipients, and for each session a
list of heirs. An heir is a session that replaced the session or was forked from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive.domain.tasks.evidence import Intent
from outlive.linux.syscalls import boot_id, pid_namespace
from tests.unit.values import NOW, exited, vanished

if TYPE_CHECKING:
    from outlive.domain.tasks.evidence import Evidence
    from outlive.domain.tasks.task import Launch
    from outlive.service.notices import inbox

MINTED = "0b8f6b1e-6a4c-4d1b-9d6e-2f3a"  # An id of this form means the same session in every project.
_HERE = f"{boot_id()} {pid_namespace()}"
ENDINGS: dict[str, tuple[Evidence, Intent | None]] = {
    "succeeded": (exited(0), None),
    "failed": (exited(1), None),
    "cancelled": (exited(1), Intent(kind="cancel", at=NOW)),
    "lost": (vanished(), None),
}


class Talk:
    """A session of the model."""

    def __init__(self, name: str, project: str) -> None:
        self.name = name
        self.project = project
        self.successors: list[Talk] = []
        self.forks: list[Talk] = []
        self.parent: Talk | None = None
        self.boundary = 0
        self.begun_at: int | None = None  # `None` after any action of the session
        self.is_told = False
        self.is_ended = False
        self.clues: dict[str, str | None] = dict.fromkeys(("source", "client", "process", "transcript", "terminal"))

    @property
    def heirs(self) -> list[Talk]:
        """The sessions that replaced this session, then the sessions that were forked from it."""
        return [*self.successors, *self.forks]

    def __repr__(self) -> str:
        return f"{self.name}@{self.project}"


class Work:
    """A task of the model."""

    def __init__(self, asked: Launch, origin: Talk | None) -> None:
        self.launch = asked
        self.origin = origin
        self.states = ["running"]
        self.shown: list[Talk] = []

    @property
    def is_wanted(self) -> bool:
        """Whether the launcher asked for a notice when the task reaches its present state."""
        policy, state = self.launch.notify, self.states[-1]
        return {"all": True, "end": True, "output": True, "failure": state != "succeeded", "never": False}[policy]


class Word:
    """A notice of the model."""

    def __init__(self, work: Work, kind: str, *, is_wanted: bool) -> None:
        self.work = work
        self.kind = kind
        self.attempt = len(work.states)
        self.state = "pending" if is_wanted else "dismissed"
        self.tries = 0
        self.teller: Teller | None = None
        self.presented_to: Talk | None = None

    @property
    def id(self) -> str:
        """The id of the notice in the ledger."""
        return f"n{self.work.launch.id}{self.attempt:02}{self.kind.replace('_', '')}"

    @property
    def is_open(self) -> bool:
        """Whether the notice is neither acknowledged nor dismissed."""
        return self.state not in ("acked", "dismissed")

    def close(self, state: str) -> None:
        """Close the notice in the given state if it is open."""
        if self.is_open:
            self.state, self.teller = state, None


class Teller:
    """A process that has claimed notices and will report them, until it releases them or is killed."""

    def __init__(self, real: inbox.Claim, told: Talk) -> None:
        self.real = real
        self.told = told
        self.lives = True


class World:
    """The whole model: its sessions, tasks and notices, and the predicted results of queries."""

    def __init__(self) -> None:
        self.talks: list[Talk] = []
        self.by_beginning: list[Talk] = []
        self.works: dict[str, Work] = {}
        self.words: list[Word] = []
        self.born = dict.fromkeys((1, 2, 3), 0)

    def mark(self, pid: int | None) -> str | None:
        """Return the text that identifies the process with this pid. A session stores this text."""
        return None if pid is None else f"{pid} {pid} {self.born[pid]} {_HERE}"

    def lives(self, talk: Talk) -> bool:
        """Return whether a session is alive.

        A session is alive if it has not ended and its process exists or is unknown.
        """
        process = talk.clues["process"]
        return not talk.is_ended and (process is None or process in map(self.mark, self.born))

    def exact(self, name: str, project: str) -> Talk | None:
        """Return the session of this name in exactly this project."""
        return next((talk for talk in self.talks if (talk.name, talk.project) == (name, project)), None)

    def find(self, name: str, project: str) -> Talk | None:
        """Return the session that a client means by a name in a project, or None if there is none."""
        everywhere = [talk for talk in self.talks if talk.name == name == MINTED]
        return self.exact(name, project) or (everywhere[-1] if everywhere else None)

    def heard_of(self, name: str, project: str) -> Talk:
        """Add a session to the model, and return it."""
        talk = Talk(name, project)
        self.talks.append(talk)
        self.by_beginning.append(talk)
        return talk

    def kin(self, talk: Talk | None) -> list[Talk]:
        """Return a session with all sessions that it continues, or that continue it, directly or indirectly."""
        found = [] if talk is None else [talk]
        for one in found:
            found += [each for each in self.talks if each not in found and (each in one.heirs or one in each.heirs)]
        return found

    def told_of(self, origin: Talk, asker: Talk | None = None, seen: list[Talk] | None = None) -> Talk | None:
        """Return the session that is told of the endings of `origin`'s tasks, or None.

        A living session is told of its own endings. Otherwise the first living session that continues it is told.
        """
        if origin is asker or self.lives(origin):
            return origin
        seen = [] if seen is None else seen
        seen.append(origin)
        for heir in origin.heirs:
            found = None if heir in seen else self.told_of(heir, asker, seen)
            if found is not None:
                return found
        return None

    def recipients(self, origin: Talk, shown: list[Talk], asker: Talk | None = None) -> list[Talk]:
        """Return the sessions that are told of the ending of a task of `origin`.

        This is the session that `told_of` returns for `origin`, or else for its parent, and so on. If there is none,
        the sessions that were shown the task are told.
        """
        line: list[Talk] = []
        one: Talk | None = origin
        while one is not None and one not in line:
            if (found := self.told_of(one, asker)) is not None:
                return [found]
            line.append(one)
            one = one.parent
        return [found for each in shown if (found := self.told_of(each, asker)) is not None]

    def hears(self, asker: Talk, origin: Talk, shown: list[Talk]) -> bool:
        """Return whether `asker` receives the notices of `origin`'s tasks.

        A session that has ended receives them only if no living session does.
        """
        living = self.recipients(origin, shown)
        return asker in self.recipients(origin, shown, asker) and (not living or asker in living)

    def below(self, asker: Talk) -> list[Talk]:
        """Return all sessions that continue a session, or that it continues, and those that began inside their tasks.

        Sessions inside tasks of such inner sessions are included.
        """
        found = self.kin(asker)
        for one in found:
            found += [each for each in self.talks if each.parent is one and each not in found]
        return found

    def is_busy(self, talk: Talk) -> bool:
        """Return whether a session has a running task or an open notice."""
        runs = any(work.origin is talk and work.states[-1] == "running" for work in self.works.values())
        return runs or any(word.is_open and word.work.origin is talk for word in self.words)

    def origins_of(self, asker: Talk) -> set[Talk]:
        """Return the sessions whose endings `asker` receives.

        A session that began inside a task is included only if it is busy.
        """
        kin = self.kin(asker)
        candidates = (each for each in self.below(asker) if each in kin or self.is_busy(each))
        return {origin for origin in candidates if self.hears(asker, origin, [])}

    def witnesses(self, work: Work) -> list[Talk]:
        """Return the sessions that were shown a task as running, or to which its ending was presented."""
        told = [word.presented_to for word in self.words if word.is_open and word.work is work]
        return [*work.shown, *(each for each in told if each is not None)]

    def owed(self, asker: Talk) -> list[Word]:
        """Return the open notices that a session receives when it asks, oldest first."""
        origins, below, kin = self.origins_of(asker), self.below(asker), self.kin(asker)
        return [
            word
            for word in self.words
            if word.is_open
            and word.work.origin is not None
            and (
                word.work.origin in origins
                or (
                    word.work.origin not in below
                    and any(each in kin for each in word.work.shown)
                    and self.hears(asker, word.work.origin, self.witnesses(word.work))
                )
            )
        ]

    def may_acknowledge(self, talk: Talk | None, work: Work) -> bool:
        """Return whether a session may acknowledge the notices of a task.

        A session may if it receives the ending, if it launched the task, or if one of it and the launcher continues the
        other. If no session receives the ending, every session of the project may.
        """
        if talk is None or work.origin is None:
            return False
        if work.origin in self.kin(talk) or self.hears(talk, work.origin, self.witnesses(work)):
            return True
        return work.origin.project == talk.project and not self.recipients(work.origin, self.witnesses(work))

    def asker(self, which: int) -> Talk | None:
        """Return a recipient of the open notice with this number, or else the session of its task.

        Returns None if there are fewer open notices, counted from 0.
        """
        waiting = [word.work.origin for word in self.words if word.is_open and word.work.origin is not None]
        if which >= len(waiting):
            return None
        return next(iter(self.recipients(waiting[which], [])), waiting[which])

    def group(self, work: Work) -> list[Work]:
        """Return the tasks of the group of a task, including the task itself."""
        asked, kin = work.launch, self.kin(work.origin)
        alike = [each for each in self.works.values() if each.launch.group == asked.group is not None]
        return [each for each in alike if each.origin in kin]
