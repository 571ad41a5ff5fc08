"""Observation as the keeper does it: in a thread of its own, from before the command begins to after its end.

The repository is looked at before and after, whether or not calls can be seen.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import allocate_lock, start_new_thread
from errno import EMFILE
from select import POLLIN, poll

from outlive.bundle.eyes import NOT_PROMISED, PROMISED, Eyes, answer_all, let_continue_what_waits
from outlive.bundle.kernel import SYS_ADMIN, has_capability
from outlive.keeper.abstaining import CANNOT, reason_not_to_look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from outlive.keeper.looks import Looks
    from outlive.keeper.plan import Plan
    from outlive.keeper.watch import Watch
    from outlive.observe.observer import Observer

_LOOKING_TAKES_AT_MOST = 2.0
_BEGINS_UNSEEN_AFTER = 0.5
_WAITING_FOR_A_LOOK_TAKES_AT_MOST = 0.05
_MOST_BEFORE_IT_IS_TOLD = 200
_FEWEST_DESCRIPTORS = 64
_SHORT_TURN = 0.0005
_NO_THREAD = "there was no process left for who looks at its system calls (ulimit -u)"
_OTHER_NAMES = "the locale is not UTF-8: names that are not ASCII may be told wrongly"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


def load() -> None:
    """Import what an observation needs; a spawner does that once for all its keepers."""
    import outlive.domain.snapshot_json  # noqa: PLC0415
    import outlive.keeper.met  # noqa: PLC0415
    import outlive.observe.foreseeing  # noqa: PLC0415
    import outlive.observe.observer  # noqa: PLC0415
    import outlive.observe.place  # noqa: PLC0415
    import outlive.observe.snapshot  # noqa: PLC0415
    import outlive.observe.tried  # noqa: F401, PLC0415
    from outlive.bundle.seccomp import prepare_filter  # noqa: PLC0415

    prepare_filter()


class Observation:
    """The observation of one attempt.

    Made before the witness is forked, with what that needs and nothing more: the command is prepared
    while we prepare ourselves.
    """

    _looks: Looks

    def __init__(self, plan: Plan, record: int) -> None:
        self._plan, self._record = plan, record
        if os.sysconf("SC_OPEN_MAX") < _FEWEST_DESCRIPTORS:
            raise OSError(EMFILE, "too few descriptors to observe anything")
        keeps_privileges = has_capability(SYS_ADMIN)
        self._why_not = reason_not_to_look(plan, keeps_privileges=keeps_privileges)
        self._fd = os.open(plan.files.effects, _CREATE | os.O_APPEND, 0o600)
        self._wall = time.time_ns() - time.monotonic_ns()
        self.eyes: Eyes | None = None
        if self._why_not is None:
            self.eyes = Eyes(self._fd, self._wall, keep_privileges=keeps_privileges)
        self._page: Any = None
        self._has_begun = False
        self._observer: Observer | None = None
        self._watch: Watch | None = None
        self._looked_at: set[str] = set()
        self._ended_at = 0
        self._is_shared = self.eyes is None  # where calls are seen, it is known when we are ready for them
        self._begun, self._launched, self._loaded, self._done = (allocate_lock() for _ in range(4))
        self._command = 0
        self._is_left_alone = False

    def promise(self) -> bytes | None:
        """Have a thread that will answer, and say so to the command-to-be; None if that is not to be observed."""
        if self.eyes is None:
            return None
        for lock in (self._begun, self._done, self._loaded, self._launched):
            lock.acquire()
        try:
            start_new_thread(self._observe, (self.eyes,))
        except RuntimeError:
            self._is_left_alone = True
            return NOT_PROMISED
        return PROMISED

    def get_ready(self) -> None:
        """The witness prepares the command; we have a moment for what is needed when it begins."""
        import mmap  # noqa: F401, PLC0415 - the witness should not have to wait for any of these

        import outlive.bundle.seccomp  # noqa: F401, PLC0415
        from outlive.keeper.looks import Looks  # noqa: PLC0415

        self._looks = Looks(self._plan, self._record)

    def begin(self, command: int) -> None:
        """Be ready; the command may begin at once, for its first call waits for our answer."""
        self._looks.begin()
        if self.eyes is not None and self._is_left_alone:
            self.eyes.of_keeper(command)  # it has none
            self.eyes, self._why_not, self._is_shared = None, _NO_THREAD, True
        if self.eyes is None:
            self._note("unseen", self._why_not or "")
            self._looks.before()
            self._look_first()
            return
        self._has_begun = True
        sys.setswitchinterval(_SHORT_TURN)  # neither of us should keep the other from what is urgent
        self._command = command

    def answer(self) -> None:
        """The command has its go, which only we could give; from now on the witness could answer it in our place."""
        if self._has_begun:
            self._begun.release()

    def go_on(self) -> None:
        """The launcher has been told: there is time now to get ready for more."""
        if self._has_begun:
            self._launched.release()

    def take_time(self) -> None:
        """The command has run for a moment and goes on: there is time to look at all files."""
        if self._watch is None:
            self._look_at_files()

    def _look_first(self) -> None:
        """Look at all files, and watch them, before the command can have changed one; it does not wait for long."""
        until = time.monotonic() + _BEGINS_UNSEEN_AFTER
        self._look_at_files(is_late=False)
        self._looks.wait_for_first(_BEGINS_UNSEEN_AFTER)
        if self._watch is not None:
            self._watch.wait_for_begin(max(0.0, until - time.monotonic()))

    def _look_at_files(self, *, is_late: bool = True) -> None:
        """Compare them, and where calls are not seen, watch them."""
        wants_watch = self._why_not is not None and self._plan.launch.observe in ("auto", "watch")
        is_all = self._why_not is not None
        if not self._looks.beside(is_all=is_all, for_watching=wants_watch, is_late=is_late) or not wants_watch:
            return
        try:
            from outlive.keeper.watch import WITHOUT, Watch  # noqa: PLC0415 - few tasks are watched
            from outlive.observe.journal import Journal  # noqa: PLC0415
            from outlive.observe.watching import is_installed  # noqa: PLC0415

            if is_installed():
                self._watch = Watch(self._looks, Journal(self._fd, self._wall), self._note)
            else:
                self._note("unseen", f"{self._why_not}; {WITHOUT}")
        except (ImportError, OSError, RuntimeError):
            return

    def _observe(self, eyes: Eyes) -> None:
        """The command's own exec is answered at once; before anything else is, we are ready for it.

        Whatever it changes, it asks us first: so the repository is looked at before its first change.
        """
        self._begun.acquire()
        command = self._command
        try:
            listener = eyes.of_keeper(command)
        except OSError:
            os._exit(1)  # nobody would ever answer the command; when we are gone, its witness does
        if listener is not None:
            self._page = eyes.page()
            self._let_begin(listener)
        self._launched.acquire()
        try:
            if listener is None:
                self._why_not, self._is_shared = CANNOT, True
                self._note("unseen", CANNOT)
                self._looks.before()
            else:
                self._observer = self._make_observer(eyes, listener, command)
        finally:
            self._loaded.release()
        try:
            if self._observer is not None:
                self._observer.run()
            elif listener is not None:
                answer_all(listener, self._page)
        except Exception as error:  # noqa: BLE001 - whatever it was, the command waits for an answer
            self._append(f"{self._now()}\tgap\t0\t-\tthe observer failed: {type(error).__name__}\n")
            if listener is not None:
                let_continue_what_waits(listener, self._page)
        finally:
            self._done.release()

    def _let_begin(self, listener: int) -> None:
        """Let the command be executed."""
        from outlive.bundle.seccomp import let_continue, receive, received  # noqa: PLC0415 - it has been loaded

        waiting = poll()
        waiting.register(listener, POLLIN)
        waiting.poll()
        try:
            receive(listener, self._page)
        except OSError:
            return  # it is gone
        let_continue(listener, received(self._page))

    def _make_observer(self, eyes: Eyes, listener: int, command: int) -> Observer | None:
        try:
            load()
            from outlive.observe.journal import Journal  # noqa: PLC0415
            from outlive.observe.observer import Observer  # noqa: PLC0415
            from outlive.observe.place import place_of  # noqa: PLC0415
            from outlive.observe.scope import Scope  # noqa: PLC0415

            places = [place_of(directory) for directory in self._looks.directories()]
            self._is_shared = any(each.git_directory is not None for each in places)
            self._note("begin", *(root for each in places for root in each.roots))
            if sys.getfilesystemencoding() != "utf-8":
                self._note("gap", _OTHER_NAMES)
            self._looks.before()
            observer = Observer(
                listener,
                self._page,
                Journal(self._fd, self._wall, eyes.note_unwritten),
                Scope(places),
                loses_privileges=not eyes.keep_privileges,
                on_first_write=self._look_beside,
            )
            observer.write_exec(self._now(), command, " ".join(self._plan.launch.argv), self._plan.launch.argv[0])
        except Exception:  # noqa: BLE001 - the command must go on, also if the installation was deleted just now
            self._append(f"{self._now()}\tgap\t0\t-\tthe observer could not begin\n")
            return None
        return observer

    def _look_beside(self, top: str) -> None:
        """We write: does somebody else? In a thread of its own, for the command waits for none of that."""
        try:
            from outlive.keeper.overlapping import tell_of_overlap  # noqa: PLC0415 - most tasks write nothing shared
        except ImportError:
            return  # the installation was deleted while the task ran
        try:
            start_new_thread(tell_of_overlap, (self._plan, top))
        except RuntimeError:
            return  # nobody is told of it while they run; their endings tell

    def look_before_it_is_told(self) -> None:
        """Write down what the first touched paths hold, and where the repository stands.

        Whoever waits for the ending may go on to change them at once, and that is not the task's doing. But
        they wait for us: of very many paths the rest is looked at afterwards, and where nothing is shared, all.
        """
        self._looks.end()
        self._ended_at = self._now()
        try:
            self._remember_met()
            until = time.monotonic() + _WAITING_FOR_A_LOOK_TAKES_AT_MOST
            if self._observer is not None:  # whoever asks at once is to find what was seen
                self._observer.write_down(_WAITING_FOR_A_LOOK_TAKES_AT_MOST)
            own = [] if self._observer is None else list(self._observer.touched)
            followed = self._followed()
            if not followed and not self._is_shared:
                return
            lines = []
            for path in own[:_MOST_BEFORE_IT_IS_TOLD]:
                if time.monotonic() > until:
                    break
                lines.append(self._final(path))
                self._looked_at.add(path)
            self._append("".join(lines))
            if len(followed) <= _MOST_BEFORE_IT_IS_TOLD:
                self._looks.at_the_end(followed)
        except Exception:  # noqa: BLE001 - whatever it was, the ending is told
            return

    def _followed(self) -> list[str]:
        """The paths of which whoever reads the notice is told that they changed since.

        Those of repositories; where it runs in none, all, for they are what it was about.
        """
        if self._observer is None:
            return []
        elsewhere = self._observer.elsewhere if self._looks.is_outside else ()
        return [*self._observer.touched, *elsewhere]

    def _final(self, path: str, before: str = "", *, is_outside: bool = False, until_ns: int | None = None) -> str:
        """The line that tells how a path was left; one that changed after `until_ns` may have been left another way."""
        from outlive.observe.content import STAT, changed_at_ns, moments_of, state_like  # noqa: PLC0415 - it has been loaded
        from outlive.observe.journal import escaped  # noqa: PLC0415

        state = state_like(path, STAT if is_outside else before)
        written, touched = moments_of(path)
        line = f"{self._now()}\tfinal\t0\t{state}\t{escaped(path)}\t{written}\t{touched}"
        is_late = until_ns is not None and state[:1] != "d" and changed_at_ns(path) > until_ns
        return f"{line}\t{self._ended_at}\n" if is_late else f"{line}\n"

    def look_at_the_end(self) -> None:
        """Write down what the other touched paths hold now; later changes are not the task's."""
        if self._has_begun:
            self._loaded.acquire()
        own = [] if self._observer is None else list(self._observer.touched)
        touched = dict.fromkeys(own, "") if self._watch is None else self._watch.stop()
        elsewhere = [] if self._observer is None else list(self._observer.elsewhere)
        until, ended_ns = time.monotonic() + _LOOKING_TAKES_AT_MOST, self._looks.ended_ns
        lines = []
        for done, path in enumerate((*touched, *elsewhere)):
            if path in self._looked_at:
                continue
            if time.monotonic() > until:
                late = len(touched) + len(elsewhere) - done
                words = f"{late} paths are told as they were when somebody asked, not as it left them"
                lines.append(f"{self._now()}\tgap\t0\t-\t{words}\n")
                break
            is_outside = done >= len(touched)
            lines.append(self._final(path, touched.get(path, ""), is_outside=is_outside, until_ns=ended_ns))
        if own and self._done.locked():
            lines += self._still_open(own)
        self._append("".join(lines))
        self._looks.after(touched, self._followed())
        self._remember_met()

    def _remember_met(self) -> None:
        """Whoever waits for the ending may launch the same at once: it should be known by then."""
        if self._observer is not None and (self._observer.met_gaining or self._observer.met_supervising):
            from outlive.keeper.met import remember  # noqa: PLC0415 - few meet any

            remember(self._plan, gaining=self._observer.met_gaining, supervising=self._observer.met_supervising)

    def _still_open(self, paths: Sequence[str]) -> Iterator[str]:
        """What was left behind goes on without a call where it has a file open: nobody will hear of that."""
        from outlive.observe.looking_back import open_for_writing  # noqa: PLC0415 - it has been loaded

        still = open_for_writing(frozenset(paths), time.monotonic() + _WAITING_FOR_A_LOOK_TAKES_AT_MOST)
        if still is None:
            words = "what is still open for writing is not known, nor what is written to it after its end"
        elif still:
            files, it = ("1 file is", "it") if len(still) == 1 else (f"{len(still):,} files are", "them")
            words = f"{files} still open for writing: what is written to {it} after its end is not told"
        else:
            return
        yield f"{self._now()}\tgap\t0\t-\t{words}\n"

    def wait(self) -> None:
        """Go on until nobody that is filtered lives, and leave nothing behind that has a descriptor."""
        if self._has_begun:
            self._done.acquire()
        if self._page is not None:
            self._page.close()

    def _now(self) -> int:
        return (self._wall + time.monotonic_ns()) // 1000

    def _note(self, operation: str, *words: str) -> None:
        from outlive.observe.journal import escaped  # noqa: PLC0415 - it has been loaded

        fields = "".join(f"\t{escaped(word)}" for word in words)
        self._append(f"{self._now()}\t{operation}\t0\t-{fields}\n")

    def _append(self, lines: str) -> None:
        try:
            os.write(self._fd, lines.encode("utf-8", "surrogateescape"))
        except OSError:
            pass  # it will be looked at when somebody asks
