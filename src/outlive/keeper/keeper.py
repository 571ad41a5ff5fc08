"""The keeper: the detached process that owns one attempt from its start to its settlement.

This is how it comes to life: it cuts its ties, lets the witness start the command, and supervises it.
It locks nothing in the ledger while the command runs, needs no import to bring it to its end, and
ignores what would end an ordinary process.
"""

from __future__ import annotations

import gc
import os
import time
from select import POLLIN, poll

from outlive.bundle.kernel import become_subreaper, name_process, signal
from outlive.bundle.processes import KEEPER_NAME, close_all_but
from outlive.domain.evidence import Evidence
from outlive.domain.value import Value
from outlive.keeper import owner, tree, witness
from outlive.keeper.sight import OwnWitness, command_of, never_begun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from outlive.bundle.attempt import Held
    from outlive.domain.evidence import IntentKind
    from outlive.keeper.observation import Observation
    from outlive.keeper.plan import Plan
    from outlive.keeper.sight import Sight
    from outlive.keeper.supervision import Supervision
    from outlive.keeper.witness_at_hand import WitnessAtHand

_IGNORED = (
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGTERM",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGUSR1",
    "SIGUSR2",
    "SIGXCPU",  # the limit of the command's time is not meant for us
)


class Prepared(Value):
    """A command that could begin."""

    sight: OwnWitness
    begin: int
    """The descriptor that lets it."""
    observation: Observation | None


def detach(keep: tuple[int, ...]) -> None:
    """Cut every tie to the launcher but the descriptors we were given.

    An inherited pipe would keep the caller's tool call waiting for as long as the task runs.
    """
    os.umask(0o077)
    os.chdir("/")
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    close_all_but(keep)
    for name in _IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # A caller may have blocked signals, which would hide the growth of the output from us, or
    # ignored SIGCHLD, for which the kernel would reap our children and forget how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    # A collection would touch, and so copy, every page that we share with witness and launcher.
    gc.disable()


def come_to_life(plan: Plan, held: Held, channels: tuple[int, ...]) -> None:
    """Become what others know as a keeper: detached, heir of all orphans, and owned if the task is."""
    owned_by = plan.surroundings.owner
    name_process(KEEPER_NAME)
    detach((*held.fds(), *channels, *(() if owned_by is None else (owned_by,))))
    become_subreaper()
    if owned_by is not None:
        owner.remember(held.record, owned_by)


def keep(plan: Plan, held: Held, go: int, ready: int) -> NoReturn:
    """Run one attempt: start it, see it through, settle it.

    We come to life while the launcher still writes the row, and the witness prepares the command
    meanwhile. The command begins at the launcher's go, which tells that the row is durable, and
    not at all if anybody has failed or died before.
    """
    come_to_life(plan, held, (go, ready))
    keep_until_settled(plan, held, go, ready)
    os._exit(0)


def keep_until_settled(plan: Plan, held: Held, go: int, ready: int, at_hand: WitnessAtHand | None = None) -> bool:
    """See an attempt through; whether nothing and nobody of it is left, so that we could do something else."""
    prepared = _prepare(plan, held, (go, ready), at_hand)
    called = wait_for_go(plan, held, go)
    if called is not None:
        from outlive.keeper.unbegun import refuse  # noqa: PLC0415 - the usual launch has no use for it

        os.close(prepared.begin)
        refuse(plan, held, called)
        answer(ready, "ended")
        os._exit(0)
    return _begin(plan, held, prepared, ready) and at_hand is not None and _is_alone_with(at_hand)


def run_now(plan: Plan, held: Held, ready: int | None) -> NoReturn:
    """Run an attempt whose row says that it runs: it has waited for its turn, and that has come."""
    _begin(plan, held, _prepare(plan, held, () if ready is None else (ready,), None), ready)
    os._exit(0)


def _begin(plan: Plan, held: Held, prepared: Prepared, ready: int | None) -> bool:
    """Let the command begin, see it through, and if it is to be tried again, wait for that.

    Returns whether our own witness has seen its end.
    """
    observation = prepared.observation
    first = _let_begin(held, prepared)
    began = not isinstance(first, Evidence) or first.kind in ("exited", "signalled")
    if began:
        answer(ready, "running")
    if observation is not None:
        observation.go_on()
    supervision = _supervise(plan, held, prepared)
    again = supervision.see_through(first)
    ended = time.monotonic()
    if not began:
        answer(ready, "ended")
    if observation is not None:
        observation.look_at_the_end()
    if again is not None:
        from outlive.keeper.sleeping import fall_asleep  # noqa: PLC0415 - most tasks are tried once

        fall_asleep(again.plan, again.held, until=ended + again.delay_s)
    if observation is not None:
        observation.wait()
    return began and isinstance(supervision.sight, OwnWitness)


def _let_begin(held: Held, prepared: Prepared) -> Evidence | Sight:
    """Give the command its go when it is prepared; what is to be seen then."""
    sight, observation = prepared.sight, prepared.observation
    first = sight.look()
    if first is not sight:  # the witness may have been killed before the go, which now nobody will give
        return first if isinstance(first, Evidence) else never_begun()
    if observation is None:
        _give(prepared.begin)
    else:
        observation.begin(command_of(held.record))
        _give(prepared.begin)
        observation.answer()
    return sight.look()


def _is_alone_with(at_hand: WitnessAtHand) -> bool:
    """Whether our witness has nothing left to do, and is our only child."""
    return at_hand.has_finished() and tree.children(os.getpid()) == [at_hand.pid]


def _supervise(plan: Plan, held: Held, prepared: Prepared) -> Supervision:
    # Before the launcher was told, this would have kept it waiting; whatever becomes of our installation
    # from now on, nothing more is needed to see the command through.
    from outlive.keeper.supervision import Supervision  # noqa: PLC0415

    supervision = Supervision(plan, held, prepared.sight, "keeper", lambda: _give(prepared.begin, witness.SETTLED))
    if prepared.observation is not None:
        supervision.on_rest = prepared.observation.take_time
        supervision.on_end = prepared.observation.look_before_it_is_told
    return supervision


def wait_for_go(plan: Plan, held: Held, go: int) -> IntentKind | None:
    """Wait until the launcher says that the attempt is on record; what somebody else wants, if that comes first.

    If the launcher says nothing any more there is nothing to keep, and we are gone.
    """
    waiting = poll()
    for fd in (go, held.control):
        waiting.register(fd, POLLIN)
    called = None
    while called is None:
        ready = [fd for fd, _ in waiting.poll()]
        if go in ready:
            word = os.read(go, 1)
            os.close(go)
            if word:
                return None
            from outlive.keeper.unbegun import abandon  # noqa: PLC0415 - the usual launch has no use for it

            abandon(plan, held)
            os._exit(0)
        from outlive.keeper.unbegun import read_call  # noqa: PLC0415

        called = read_call(held.control)
    return called


def _give(begin: int, word: bytes = b"g") -> None:
    """Let the command be filtered, or begin, or the witness go. It may have been killed meanwhile; others will tell."""
    try:
        os.write(begin, word)
    except BrokenPipeError:
        pass


def _prepare_observation(plan: Plan, held: Held) -> Observation | None:
    """Whatever is needed to see what the command touches, if anybody wants to know and the kernel can tell."""
    if plan.launch.observe == "off":
        return None
    from outlive.keeper.observation import Observation  # noqa: PLC0415 - not everybody is observed

    try:
        return Observation(plan, held.record)
    except OSError:
        return None


def _prepare(plan: Plan, held: Held, not_for_it: tuple[int, ...], at_hand: WitnessAtHand | None) -> Prepared:
    """Let the witness prepare the command: the one at hand, or a new one."""
    observation = _prepare_observation(plan, held)
    voice_read, voice_write = os.pipe()
    begin_read, begin_write = os.pipe()
    around, launch = plan.surroundings, plan.launch
    assert held.lock is not None  # noqa: S101 - an adopter, which may have none, finds its witness there
    start = witness.Start(
        lock=held.lock,
        record=held.record,
        output=held.output,
        voice=voice_write,
        begin=begin_read,
        argv=launch.argv,
        cwd=launch.cwd,
        environ=around.environ,
        umask=around.umask,
        limits=around.limits,
        input=plan.files.input if launch.takes_input else None,
        eyes=None if observation is None else observation.eyes,
    )
    if at_hand is None or not at_hand.give(start):
        # A copy of ours in the witness would hide the keeper's death: from the launcher, which waits for an
        # answer, from the command-to-be, which waits for its go, and from those who wait for the end.
        _fork_witness(start, (*not_for_it, begin_write, voice_read, held.control, held.done), at_hand)
    os.close(voice_write)
    os.close(begin_read)
    if observation is not None:
        if (word := observation.promise()) is not None:
            _give(begin_write, word)
        observation.get_ready()
    sight = OwnWitness(voice_read, held.record)
    return Prepared(sight=sight, begin=begin_write, observation=observation)


def _fork_witness(start: witness.Start, not_for_it: tuple[int, ...], at_hand: WitnessAtHand | None) -> None:
    if at_hand is not None:
        not_for_it += at_hand.not_for_it
        at_hand.make_room()
    child = os.fork()
    if child == 0:
        try:
            for fd in not_for_it:
                os.close(fd)
            if at_hand is not None:
                at_hand.serve(start)
            witness.serve(start)
        finally:
            os._exit(1)
    if at_hand is not None:
        at_hand.made(child)


def answer(ready: int | None, word: str) -> None:
    """Tell the launcher, if one is waiting; it may have been killed, and that is its problem alone."""
    if ready is None:
        return
    try:
        os.write(ready, word.encode("utf-8", "backslashreplace") + b"\n")
    except OSError:
        pass
    os.close(ready)
