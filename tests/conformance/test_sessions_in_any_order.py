"""A model of sessions, notices and recipients, compared with the ledger.

Each ending must be presented to its recipient once, in whatever order sessions begin, continue and end. Only the
kernel's answers about processes are simulated.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from outlive.bundle.home import Home
from outlive.bundle.lease import Lease
from outlive.domain.errors import UserError
from outlive.domain.sessions.session import SOURCES, SessionStart
from outlive.domain.tasks.lifecycle import LIVE
from outlive.domain.tasks.settlement import plan_settlement, told_as_retrying
from outlive.ledger.notices import Notices
from outlive.ledger.sessions import Sessions
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.syscalls import boot_id
from outlive.service.notices import inbox
from outlive.service.sessions import lineage
from tests.conformance.empty_ledger import FAST_PLACE, empty_ledger
from tests.conformance.session_model import ENDINGS, MINTED, Talk, Teller, Word, Work, World
from tests.unit.values import NOW, SECOND, attempt, launch

if TYPE_CHECKING:
    from datetime import datetime

    from outlive.domain.sessions.session import Source
    from outlive.domain.tasks.task import Notify
    from outlive.linux.processes import Identity

    How = Literal["boundary", "turn", "follower"]

NAMES = ("a", "b", "c", MINTED, "d", "e")
PROJECTS = ("/p", "/q")
names = st.sampled_from(NAMES)
projects = st.sampled_from((PROJECTS[0], PROJECTS[0], *PROJECTS))
endings = st.sampled_from(("succeeded", "failed", "cancelled", "lost"))
launched = st.lists(st.sampled_from(("succeeded", "failed", "lost", None)), min_size=1, max_size=3)
fates = st.sampled_from(("presents", "presents", "dies", "fails", "was heard"))
transcripts = st.sampled_from(("/t", "/t", None))
pids = st.none() | st.integers(1, 3)


class SessionsInAnyOrder(RuleBasedStateMachine):
    """Clients, keepers, users and processes that report notices, which act in any order.

    The clock may jump at any time.
    """

    tellers: Bundle[Teller] = Bundle("tellers")

    def __init__(self) -> None:
        super().__init__()
        self._home = Home(tempfile.mkdtemp(dir=FAST_PLACE))
        shutil.copytree(empty_ledger(), self._home.path, dirs_exist_ok=True)
        self._world = World()
        self._now = NOW
        self._seconds = 0
        self._living: list[Teller] = []
        self._patch = pytest.MonkeyPatch()
        for module in ("notices.inbox", "sessions.lineage"):
            self._patch.setattr(f"outlive.service.{module}.utc_now", self._clock)
        self._patch.setattr("outlive.service.sessions.liveness.open_verified", self._open_process)
        self._patch.setattr("outlive.service.sessions.liveness.has_exited", lambda _: False)
        self._ledger = SqliteLedger(self._home.ledger, NOW)

    def teardown(self) -> None:
        """Release all locks on lease files, and delete the state directory."""
        for teller in self._living:
            teller.real.release()
        self._ledger.close()
        self._patch.undo()
        shutil.rmtree(self._home.path)

    def _clock(self) -> datetime:
        self._now += SECOND
        return self._now

    def _tick(self) -> str:
        return f"{boot_id()} {self._seconds * 1_000_000}"

    def _open_process(self, identity: Identity) -> int | None:
        is_there = self._world.born[identity.pid] == identity.start
        return os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) if is_there else None

    # --- sessions -------------------------------------------------------------------------------

    @initialize(
        ways=st.lists(
            st.tuples(st.sampled_from(SOURCES), st.none() | st.integers(0, 3), transcripts), min_size=2, max_size=4
        ),
        working=st.lists(st.tuples(names, launched), max_size=3),
        over=st.lists(names, max_size=3),
        days=st.integers(-400, 400),
    )
    def people_are_at_work(
        self,
        ways: list[tuple[Source, int | None, str | None]],
        working: list[tuple[str, list[str | None]]],
        over: list[str],
        days: int,
    ) -> None:
        """Begin some sessions, launch their tasks and end some of the sessions.

        Without this step, most examples would run on an empty ledger.
        """
        project = PROJECTS[0]
        for number, (name, (source, before, transcript)) in enumerate(zip(NAMES, ways, strict=False)):
            self.begin(
                name=name,
                project=project,
                source=source,
                continues=NAMES[before % number] if before is not None and number else None,
                client=None,
                pid=None,
                transcript=transcript,
                terminal=None,
                pause=3,
                told=True,
            )
            self._now += timedelta(days=days)
        for session, ended in working:
            self.launch(
                session=session, project=project, elsewhere=None, inside=None, group="g", notify="end", endings=ended
            )
        for name in over:
            self.end(name, project)

    @rule(
        name=names,
        project=projects,
        source=st.sampled_from(SOURCES),
        continues=st.none() | names,
        client=st.sampled_from((None, None, "codex")),
        pid=pids,
        transcript=transcripts,
        terminal=st.none() | st.just("tty1"),
        pause=st.sampled_from((1, 3, 100)),
        told=st.sampled_from((True, True, False)),
    )
    def begin(
        self,
        *,
        name: str,
        project: str,
        source: Source,
        continues: str | None,
        client: str | None,
        pid: int | None,
        transcript: str | None,
        terminal: str | None,
        pause: int,
        told: bool,
    ) -> None:
        """Begin a session, or tell Outlive again that it begins.

        A second report within two seconds is ignored, unless the first was not delivered or the session has acted
        since.
        """
        self._seconds += pause
        clues = {"client": client, "process": self._world.mark(pid), "transcript": transcript, "terminal": terminal}
        talk = self._world.find(name, project)
        begun = SessionStart(
            id=name,
            project=project,
            source=source,
            continues=continues,
            client=client,
            process=clues["process"],
            transcript=transcript,
            terminal=terminal,
            tick=self._tick(),
        )
        with Lease(self._home) as lease:
            began = lineage.begin(self._home, begun.but(lease=lease.name), None)
            if told:
                Sessions(self._ledger).has_been_told(began.session.seq, lease.name)
        if talk is not None and self._is_repeated(talk, source, clues["process"]):
            assert began.is_repeated
            return
        before = self._predecessor(talk or Talk(name, project), source, continues, clues)
        assert not began.is_repeated
        assert (began.continues and began.continues.id) == (before and before.name)
        talk = talk or self._world.heard_of(name, project)
        if before is not None:
            if talk not in before.heirs:
                (before.forks if source in ("fork", "startup") else before.successors).append(talk)
            if source in ("resume", "clear", "compact") and before.clues["process"] in (None, clues["process"]):
                before.is_ended = True
        talk.clues.update({clue: given for clue, given in clues.items() if given is not None})
        if source != "compact":
            talk.clues.update(process=clues["process"])
        talk.clues.update(source=source)
        talk.boundary, talk.begun_at, talk.is_told, talk.is_ended = talk.boundary + 1, self._seconds, told, False
        self._world.by_beginning.remove(talk)
        self._world.by_beginning.append(talk)

    def _is_repeated(self, talk: Talk, source: str, process: str | None) -> bool:
        is_same = (talk.clues["source"], talk.clues["process"], talk.is_ended) == (source, process, False)
        return is_same and talk.is_told and talk.begun_at is not None and self._seconds - talk.begun_at < 2

    def _predecessor(self, talk: Talk, source: str, continues: str | None, clues: dict[str, str | None]) -> Talk | None:
        others = [each for each in self._world.by_beginning[::-1] if each.project == talk.project]
        others = [each for each in others if each.name != talk.name]
        for each in others:
            if each.name == continues:
                return each
        if source == "startup":
            return None
        others = [each for each in others if None in (each.clues["client"], clues["client"])
                  or each.clues["client"] == clues["client"]]  # fmt: skip
        if talk.clues["source"] is not None:
            process = clues["process"]
            kin = [each for each in others if process is not None and each.clues["process"] == process]
            return next((each for each in kin if not each.is_ended and source != "fork"), None)
        over = [each for each in others if not self._world.lives(each)]
        for clue, among in (("transcript", others), ("process", others), ("terminal", over)):
            for each in among:
                if clues[clue] is not None and each.clues[clue] == clues[clue]:
                    return each
        return over[0] if over and source in ("resume", "compact") else None

    @rule(name=names, project=projects)
    def end(self, name: str, project: str) -> None:
        """Report the end of a session, as its client does."""
        talk = self._world.find(name, project)
        if talk is None:
            with pytest.raises(UserError):
                lineage.end(self._home, name, project, "quit", None)
            return
        ended, _ = lineage.end(self._home, name, project, "quit", None)
        assert (ended.id, ended.project) == (talk.name, talk.project)
        talk.is_ended = True

    @rule(pid=st.integers(1, 3), days=st.integers(-400, 400))
    def trouble(self, pid: int, days: int) -> None:
        """Give the pid of a client's process to another process, and set the clock."""
        self._world.born[pid] += 1
        self._now += timedelta(days=days)

    # --- tasks ----------------------------------------------------------------------------------

    @rule(
        session=st.sampled_from((*NAMES, *NAMES, None)),
        project=projects,
        elsewhere=st.sampled_from((None, None, None, *PROJECTS)),
        inside=st.none() | st.integers(0, 3),
        group=st.sampled_from(("g", "g", "h", None)),
        notify=st.sampled_from(("all", "end", "end", "output", "failure", "never")),
        endings=launched,
    )
    def launch(
        self,
        *,
        session: str | None,
        project: str,
        elsewhere: str | None,
        inside: int | None,
        group: str | None,
        notify: Notify,
        endings: list[str | None],
    ) -> None:
        """Launch tasks of a session, and settle some of them.

        The session may be new, may belong to another project, and may itself run inside a task of another session.
        """
        works = []
        known = list(self._world.works.values())
        outer = known[-1 - inside] if inside is not None and inside < len(known) else None
        for _ in endings:
            now = self._clock()
            asked = launch(
                id=f"t{len(self._world.works):07}",
                created_at=now,
                session=session,
                session_project=project,
                parent=None if outer is None else outer.launch.id,
                project=elsewhere or project,
                group=group,
                notify=notify,
            )
            self._ledger.enqueue(asked, attempt(created_at=now, started_at=now))
            origin = None
            if session is not None:
                origin = self._world.find(session, project) or self._world.heard_of(session, project)
                origin.begun_at = None
                if outer is not None and origin.parent is None and outer.origin is not origin:
                    origin.parent = outer.origin
            works.append(Work(asked, origin))
            self._world.works[asked.id] = works[-1]
        for work, ending in zip(works, endings, strict=True):
            if ending is not None:
                self._settle(work, 1, ending, again=False)

    @precondition(lambda self: self._world.works)
    @rule(which=st.integers(0, 7), ending=endings, again=st.booleans(), newest=st.sampled_from((True, True, False)))
    def settle(self, which: int, ending: str, again: bool, newest: bool) -> None:
        """Settle an attempt that runs or has ended, and perhaps add another attempt."""
        works = list(self._world.works.values())
        work = works[-1 - which % len(works)]
        if again:
            is_allowed = work.states[-1] not in LIVE
            new = attempt(len(work.states) + 1, created_at=self._clock(), started_at=self._now)
            assert self._ledger.add_attempt(work.launch.id, new) == is_allowed
            work.states += ["running"] * is_allowed
        self._settle(work, len(work.states) if newest else 1, ending, again=again and ending == "failed")

    def _settle(self, work: Work, number: int, ending: str, *, again: bool) -> None:
        evidence, intent = ENDINGS[ending]
        planned = plan_settlement(work.launch, number, evidence, intent, now=self._clock(), settled_by="keeper")
        if again:
            planned = told_as_retrying(planned, work.launch)
        is_news = number == len(work.states) and work.states[-1] in LIVE
        next_one = attempt(number + 1, created_at=self._now, started_at=self._now, automatic=True) if again else None
        assert self._ledger.settle(planned, next_one) == is_news
        if not is_news:
            return
        work.states[-1] = ending
        if again:
            self._world.words.append(Word(work, "retrying", is_wanted=work.launch.notify == "all"))
            work.states.append("running")
            return
        self._world.words.append(Word(work, "lost" if ending == "lost" else "ended", is_wanted=work.is_wanted))
        group = self._world.group(work)
        if len(group) > 1 and all(each.states[-1] not in LIVE for each in group):
            self._world.words.append(Word(work, "group_ended", is_wanted=any(each.is_wanted for each in group)))

    # --- delivery -------------------------------------------------------------------------------

    @rule(target=tellers, which=st.integers(0, 5), name=names, project=projects, fate=st.none() | fates)
    def turn(self, which: int, name: str, project: str, fate: str | None) -> Teller | MultipleResults[Teller]:
        """Let a session take a turn, which confirms the notices that were presented to it before."""
        return self._claim(self._world.asker(which) or Talk(name, project), "turn", fate)

    @rule(
        target=tellers,
        which=st.integers(0, 5),
        name=names,
        project=projects,
        in_vain=st.sampled_from((0, 0, 1, 3)),
        fate=st.none() | fates,
    )
    def hand_off(
        self, *, which: int, name: str, project: str, in_vain: int, fate: str | None
    ) -> Teller | MultipleResults[Teller]:
        """Report notices to a session that begins or continues.

        Before this, the notices may be presented several times without being confirmed.
        """
        asker = self._world.asker(which) or Talk(name, project)
        for _ in range(in_vain):
            self._claim(asker, "boundary", "presents")
        return self._claim(asker, "boundary", fate)

    @rule(target=tellers, which=st.integers(0, 5), fate=st.none() | fates)
    def follow(self, which: int, fate: str | None) -> Teller | MultipleResults[Teller]:
        """Report notices to a session that is between two turns."""
        return self._claim(self._world.asker(which) or Talk("nobody", "/p"), "follower", fate)

    @precondition(lambda self: self._world.works and self._world.talks)
    @rule(which=st.integers(0, 5), whom=st.integers(0, 5))
    def show(self, which: int, whom: int) -> None:
        """Show a task to a session as running."""
        works = list(self._world.works.values())
        work, seq = works[-1 - which % len(works)], whom % len(self._world.talks)
        Notices(self._ledger).note_shown([work.launch.id], seq + 1)
        if self._world.talks[seq] not in work.shown:
            work.shown.append(self._world.talks[seq])

    def _claim(self, asker: Talk, how: How, fate: str | None) -> Teller | MultipleResults[Teller]:
        talk = self._world.find(asker.name, asker.project)
        shown = inbox.peek(self._home, asker.name, asker.project).tellings
        claimed = inbox.claim(
            self._home, asker.name, asker.project, at_boundary=how == "boundary", is_turn=how == "turn"
        )
        if talk is None:
            assert claimed.owed is None
            return multiple()
        if how == "turn":
            talk.begun_at = None
        before = self._world.owed(talk)
        assert sorted(notice.id for telling in shown for notice in telling.all) == sorted(word.id for word in before)
        for word in self._world.words:
            if how == "turn" and word.state == "presented" and word.presented_to is talk:
                word.close("acked")
        owed = self._world.owed(talk)
        ready = [word for word in owed if self._is_ready(word, at_boundary=how == "boundary")]
        self._check_told_together(claimed, ready)
        if not ready:
            return multiple()
        teller = Teller(claimed, talk)
        self._living.append(teller)
        for word in ready:
            word.state, word.teller = "claimed", teller
            assert word.work.origin
        if fate is None:
            return teller
        self.finish(teller, fate)
        return multiple()

    def _is_ready(self, word: Word, *, at_boundary: bool) -> bool:
        if word.teller is not None:
            return not word.teller.lives
        return word.state == "pending" or (word.state == "presented" and at_boundary and word.tries < 3)

    def _check_told_together(self, claimed: inbox.Claim, ready: list[Word]) -> None:
        """Check that each notice that is ready is claimed once and in order.

        The notice of a group's end must include the notices of the group's members.
        """
        place = {word.id: number for number, word in enumerate(ready)}
        told = [place[notice.id] for telling in claimed.tellings for notice in telling.all]
        assert sorted(told) == list(range(len(ready)))
        firsts = [place[telling.notice.id] for telling in claimed.tellings]
        assert firsts == sorted(firsts)
        for telling in claimed.tellings:
            whole = ready[place[telling.notice.id]]
            for part in telling.covers:
                assert whole.kind == "group_ended"
                assert place[part.id] < place[telling.notice.id]
                assert ready[place[part.id]].work in self._world.group(whole.work)
            later = [word for word in ready[place[whole.id] + 1 :] if word.kind == "group_ended"]
            assert not any(whole.work in self._world.group(word.work) for word in later)

    @rule(teller=tellers, most=st.integers(1, 3))
    def present(self, teller: Teller, most: int) -> None:
        """Report the first claimed notices, and keep the claim."""
        if teller.lives:
            self._present(teller, most)

    @rule(teller=consumes(tellers), fate=fates)
    def finish(self, teller: Teller, fate: str) -> None:
        """End the report of claimed notices in one of the possible ways."""
        if fate == "presents":
            self._present(teller, len(teller.real.tellings))
        if fate == "was heard":
            self._was_heard(teller)
        if fate == "dies":
            # When a process is killed, the lock on its lease file is released, and the file remains.
            assert teller.real._lease is not None
            os.close(teller.real._lease._fd)
        else:
            teller.real.release("no room" if fate == "fails" else None)
            for word in self._world.words:
                if word.teller is teller:
                    word.state, word.teller = "pending", None
        teller.lives = False
        self._living.remove(teller)

    def _present(self, teller: Teller, most: int) -> None:
        told = teller.real.tellings[:most]
        teller.real.presented(told)
        ids = [notice.id for telling in told for notice in telling.all]
        for word in self._world.words:
            if word.teller is teller and word.id in ids:
                word.state, word.teller = "presented", None
                word.tries, word.presented_to = word.tries + 1, teller.told

    def _was_heard(self, teller: Teller) -> None:
        teller.real.acknowledged()
        ids = [notice.id for telling in teller.real.tellings for notice in telling.all]
        for word in self._world.words:
            if word.id in ids:
                word.close("acked")

    @precondition(lambda self: self._world.words)
    @rule(
        how=st.sampled_from((inbox.acknowledge, inbox.dismiss, inbox.result_was_read)),
        which=st.integers(0, 7),
        name=names,
        project=projects,
    )
    def close(self, how: object, which: int, name: str, project: str) -> None:
        """Acknowledge a notice, dismiss it, or read the result of its task.

        Only sessions that `may_acknowledge` allows may acknowledge a notice or read a result. Every session of the
        project may dismiss a notice.
        """
        word = self._world.words[-1 - which % len(self._world.words)]
        may_close = self._world.may_acknowledge(self._world.find(name, project), word.work)
        if how is inbox.dismiss:
            origin = word.work.origin
            if origin is not None and origin.project != project:
                with pytest.raises(UserError):
                    inbox.dismiss(self._home, [word.id], name, project)
                return
            assert inbox.dismiss(self._home, [word.id], name, project) == [word.id] * word.is_open
            word.close("dismissed")
        elif how is inbox.result_was_read:
            task = self._ledger.task(word.work.launch.id)
            assert task is not None
            inbox.result_was_read(self._home, task, name, project)
            for each in self._world.words:
                if may_close and each.work is word.work:
                    each.close("acked")
        elif may_close:
            assert inbox.acknowledge(self._home, [word.id], name, project) == [word.id] * word.is_open
            word.close("acked")
        else:
            with pytest.raises(UserError, match="is for another session"):
                inbox.acknowledge(self._home, [word.id], name, project)

    # --- invariants -----------------------------------------------------------------------------

    @invariant()
    def the_sessions_are_those_of_the_model(self) -> None:
        """Check that the sessions in the ledger equal those of the model.

        No session may continue one of another project.
        """
        lineages: dict[str, set[Talk]] = {}
        for seq, talk in enumerate(self._world.talks, 1):
            kept = Sessions(self._ledger).get(seq)
            assert (kept.id, kept.project, kept.boundary) == (talk.name, talk.project, talk.boundary)
            assert (kept.ended_at is not None) == talk.is_ended
            lineages.setdefault(kept.lineage, set()).add(talk)
        for together in lineages.values():
            assert len({talk.project for talk in together}) == 1
            assert set(self._world.kin(next(iter(together)))) == together

    @invariant()
    def every_origin_has_one_who_is_told(self) -> None:
        """Check that the ledger and the model name the same recipient for each session's endings.

        If no session that continues it is alive, the first session that asks is the recipient.
        """
        told: dict[Talk, list[Talk]] = {}
        for talk in self._world.talks:
            owed = inbox.owed_to(self._ledger, talk.name, talk.project)
            assert owed is not None
            origins = [self._world.talks[seq - 1] for seq in owed.origins]
            assert len(origins) == len(set(origins))
            assert set(origins) == self._world.origins_of(talk)
            told_now = [notice.id for notice in Notices(self._ledger).owed(owed.origins, owed.tasks)]
            assert told_now == [word.id for word in self._world.owed(talk)]
            for origin in origins:
                assert origin.project == talk.project or origin not in self._world.kin(talk)
                told.setdefault(origin, []).append(talk)
        for talk in self._world.talks:
            living = self._world.recipients(talk, [])
            if not living:
                assert talk in told[talk]
            elif self._world.is_busy(talk) or living[0] in self._world.kin(talk):
                assert told[talk] == living

    @invariant()
    def the_notices_are_those_of_the_model(self) -> None:
        """Check that no notice is lost or doubled.

        No notice may be presented more than three times.
        """
        kept = self._ledger.select("SELECT id, state, tries, presented_to FROM notice ORDER BY seq")
        seqs = {talk: seq for seq, talk in enumerate(self._world.talks, 1)}
        assert kept == [
            (word.id, word.state, word.tries, word.presented_to and seqs[word.presented_to])
            for word in self._world.words
        ]
        assert all(tries <= 3 for _, _, tries, _ in kept)

    @invariant()
    def an_ended_attempt_has_one_ending(self) -> None:
        """Check that an ended attempt has one ending notice, and that a live attempt has none."""
        kept = self._ledger.select("""
            SELECT task, number, state, (SELECT count(*) FROM notice
                WHERE notice.task = attempt.task AND notice.attempt = number AND kind IN ('ended', 'lost', 'retrying'))
            FROM attempt ORDER BY task, number""")
        assert kept == [
            (work.launch.id, number, state, int(state not in LIVE))
            for work in self._world.works.values()
            for number, state in enumerate(work.states, 1)
        ]


def test_every_ending_is_presented_to_its_recipient_once() -> None:
    """Each ending is presented once: to the launching session, or else to the first living one that continues it."""
    run_state_machine_as_test(SessionsInAnyOrder, settings=settings(stateful_step_count=30, deadline=None))
