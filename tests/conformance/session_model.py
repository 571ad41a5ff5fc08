"""A model of sessions, tasks and notices, and the results that it expects of the ledger.

The model uses neither SQL nor locks. It has a list of notices, a plain search for recipients, and for each session a
list of its heirs, which have replaced the session or were forked from it.
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

MINTED = "0b8f6b1e-6a4c-4d1b-9d6e-2f3a"  # a client generates such an id, which means the same session in every project
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
        self.begun_at: int | None = None  # None after an action of the session
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
        """Whether the launcher asked for a notice of the task's present state."""
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
    """A process that has claimed notices, until it releases them or is killed."""

    def __init__(self, real: inbox.Claim, told: Talk) -> None:
        self.real = real
        self.told = told
        self.lives = True


class World:
    """The whole model, and the results that it expects of the ledger."""

    def __init__(self) -> None:
        self.talks: list[Talk] = []
        self.by_beginning: list[Talk] = []
        self.works: dict[str, Work] = {}
        self.words: list[Word] = []
        self.born = dict.fromkeys((1, 2, 3), 0)

    def mark(self, pid: int | None) -> str | None:
        """Return the identity of the process that has this pid now, as a session stores it."""
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
        """Return the session that a name means in a project."""
        everywhere = [talk for talk in self.talks if talk.name == name == MINTED]
        return self.exact(name, project) or (everywhere[-1] if everywhere else None)

    def heard_of(self, name: str, project: str) -> Talk:
        """Add a session that is new in its project, and return it."""
        talk = Talk(name, project)
        self.talks.append(talk)
        self.by_beginning.append(talk)
        return talk

    def kin(self, talk: Talk | None) -> list[Talk]:
        """Return a session with its direct and indirect predecessors and heirs."""
        found = [] if talk is None else [talk]
        for one in found:
            found += [each for each in self.talks if each not in found and (each in one.heirs or one in each.heirs)]
        return found

    def told_of(self, origin: Talk, asker: Talk | None = None, seen: list[Talk] | None = None) -> Talk | None:
        """Return the session that receives the endings of a session's tasks.

        A living session receives its own endings. Otherwise its first living heir does. Returns None if no heir lives.
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
        """Return the sessions that receive the ending of a task.

        The recipient is the session that `told_of` returns for the launching session. If there is none, it is the one
        for the parent, and so on. If no parent has one, the sessions that were shown the task receive the ending.
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
        """Return whether a session that asks receives the notices of a launching session.

        A session that is over receives notices only if no living session receives these notices.
        """
        living = self.recipients(origin, shown)
        return asker in self.recipients(origin, shown, asker) and (not living or asker in living)

    def below(self, asker: Talk) -> list[Talk]:
        """Return a session's lineage, and all sessions that the tasks of the lineage launched.

        Sessions that were launched by tasks of the launched sessions count, too.
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
        """Return the launching sessions whose endings a session receives.

        Sessions that were launched by tasks of its lineage count only if they are busy.
        """
        kin = self.kin(asker)
        candidates = (each for each in self.below(asker) if each in kin or self.is_busy(each))
        return {origin for origin in candidates if self.hears(asker, origin, [])}

    def witnesses(self, work: Work) -> list[Talk]:
        """Return the sessions that were shown a task, or that were presented its ending."""
        told = [word.presented_to for word in self.words if word.is_open and word.work is work]
        return [*work.shown, *(each for each in told if each is not None)]

    def owed(self, asker: Talk) -> list[Word]:
        """Return the pending notices that a session receives when it asks, oldest first."""
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

        Recipients of the ending and sessions of the launcher's lineage may. If the ending has no recipient, every
        session of the project may.
        """
        if talk is None or work.origin is None:
            return False
        if work.origin in self.kin(talk) or self.hears(talk, work.origin, self.witnesses(work)):
            return True
        return work.origin.project == talk.project and not self.recipients(work.origin, self.witnesses(work))

    def asker(self, which: int) -> Talk | None:
        """Return a session that receives open notices or did before, or None."""
        waiting = [word.work.origin for word in self.words if word.is_open and word.work.origin is not None]
        if which >= len(waiting):
            return None
        return next(iter(self.recipients(waiting[which], [])), waiting[which])

    def group(self, work: Work) -> list[Work]:
        """Return the tasks of a task's group."""
        asked, kin = work.launch, self.kin(work.origin)
        alike = [each for each in self.works.values() if each.launch.group == asked.group is not None]
        return [each for each in alike if each.origin in kin]
