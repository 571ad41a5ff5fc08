"""Looks at the repository before, beside and after a command.

Before it only a few small files are read, for a launch waits for that. All the others are looked
at in a fork, beside the running command, and once more when the attempt has been settled: nobody
waits for either. But where nobody sees calls, the first look is all that tells what the command
finds: it is given a moment before the command begins, and is late only if it takes longer. Whatever
cannot be taken or kept is not there.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from outlive.domain.snapshot import Snapshot
    from outlive.keeper.beside import Beside
    from outlive.keeper.plan import Plan

_CREATE = os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_FOLLOWED = 500


class Looks:
    """All looks of one attempt."""

    def __init__(self, plan: Plan, record: int) -> None:
        self._plan = plan
        self._files = plan.files
        self._record = record
        self._began_ns = 0
        self.ended_ns: int | None = None
        """When the ending was about to be told: what changes later is not the command's doing."""
        self._known: list[str] | None = None
        self._first: int | None = None
        self._baseline: int | None = None
        self._is_all = False
        self.is_late = True
        """Whether the first look may show what the command did."""
        self._work: Beside | None = None
        self._quick: list[Snapshot] | None = None
        self._outside: frozenset[str] = frozenset()
        """Directories that lay in no repository when it began."""

    def directories(self) -> list[str]:
        """Where it runs, and the repositories of what it was said to touch, or by its text goes to."""
        if self._known is None:
            from outlive.observe.going import goes_to  # noqa: PLC0415 - not everybody is looked at

            launch = self._plan.launch
            self._known = [launch.cwd]
            if named := (*launch.touches, *goes_to(launch.argv, launch.cwd)):
                from outlive.observe.repository import find_repository  # noqa: PLC0415 - seldom said
                from outlive.observe.scope import MOST_REPOSITORIES  # noqa: PLC0415

                own = find_repository(launch.cwd)
                found = {} if own is None else {own.git_dir: launch.cwd}
                for path in named:
                    repository = find_repository(path)
                    if repository is not None and len(found) < MOST_REPOSITORIES:
                        found.setdefault(repository.git_dir, repository.top or repository.git_dir)
                self._known += [each for each in found.values() if each != launch.cwd]
        return self._known

    def begin(self) -> None:
        """The command is about to begin: whatever is written from now on may be its doing."""
        self._began_ns = time.time_ns()

    def end(self) -> None:
        """The command has ended, and nobody has been told yet."""
        self.ended_ns = time.time_ns()

    def before(self) -> None:
        """A quick one, before the command can have changed anything; outside of repositories nobody would read it."""
        quick = self._keep_quick(self._files.before, only_of_repositories=True)
        self._outside = frozenset(each.directory for each in quick or () if each.git is None)

    @property
    def is_outside(self) -> bool:
        """Whether the command began in no repository."""
        return self._plan.launch.cwd in self._outside

    def beside(self, *, is_all: bool = False, for_watching: bool = False, is_late: bool = True) -> bool:
        """A look at all files, in a fork; whether there is one, for outside of a repository there is not.

        If it `is_all` that will be known, it is gone through with also if the command ends before it does.
        """
        if self._first is not None:
            return True
        try:
            from outlive.observe.repository import find_repository  # noqa: PLC0415 - a short command is not looked at

            directories, outside = self.directories(), self._outside
            if all(each in outside or find_repository(each) is None for each in directories):
                return False
            from outlive.keeper.beside import Beside  # noqa: PLC0415

            first, since_ns = self._open_nameless(), self._began_ns
            self._baseline = baseline = self._open_nameless() if for_watching else None
            keep = (self._record, first) if baseline is None else (self._record, first, baseline)

            def work() -> None:
                from outlive.observe.comparing import keep_first  # noqa: PLC0415 - the fork takes it away with it

                keep_first(first, directories, outside, baseline, since_ns)

            self._work = Beside(work, keep, is_idle=not is_all)
            self._first, self._is_all, self.is_late = first, is_all, is_late
        except (ImportError, OSError, RuntimeError):
            return False
        return True

    def wait_for_first(self, seconds: float) -> None:
        """The command begins when the first look is whole; or after so long, and then it is late."""
        if self._work is not None and not self._work.is_done_within(seconds):
            self.is_late = True

    def baseline(self) -> int | None:
        """What the first look is to those who watch, once it has been taken; theirs to close."""
        if self._work is None or self._baseline is None:
            return None
        self._work.wait()
        return self._baseline

    def at_the_end(self, own: Sequence[str]) -> None:
        """A quick one; of the paths that the task itself was seen to change it is kept what they hold."""
        self._quick = self._keep_quick(self._files.after, own, is_end=True)

    def after(self, seen: Collection[str], own: Sequence[str]) -> None:
        """A look at all files, which is compared with the first; and a quick one, if there was no time for it yet.

        Those that were `seen` to change are not told again.
        """
        if self._quick is None:
            self.at_the_end(own)
        quick = self._quick
        if self._first is None or self._work is None or quick is None:
            return
        if not self._can_compare:
            self._work.give_up()
            os.close(self._first)
            return
        self._work.wait()
        try:
            self._compare(self._first, quick, seen)
        except (ImportError, OSError):
            pass
        os.close(self._first)
        self._first = None

    @property
    def _can_compare(self) -> bool:
        """Whether there is, or will be, a first look at all files."""
        return self._work is not None and (self._work.is_done or self._is_all)

    def _compare(self, first: int, quick: list[Snapshot], seen: Collection[str]) -> None:
        from outlive.keeper.beside import Beside  # noqa: PLC0415 - it has been loaded

        def work() -> None:
            from outlive.observe.comparing import compare_with_first  # noqa: PLC0415

            compared, after = compare_with_first(
                first,
                quick,
                since_ns=self._began_ns if self.is_late else None,
                until_ns=self.ended_ns or time.time_ns(),
                seen=seen,
                ignored=self._plan.home.path + "/",
            )
            _write(self._files.after, after)
            _write(self._files.compared, compared)

        Beside(work, (self._record, first)).wait()

    def _keep_quick(
        self, path: str, paths: Sequence[str] = (), *, only_of_repositories: bool = False, is_end: bool = False
    ) -> list[Snapshot] | None:
        try:
            from outlive.domain.snapshot_json import to_json  # noqa: PLC0415
            from outlive.observe.snapshot import as_left, take_quick, with_settings  # noqa: PLC0415

            first, *others = self.directories()
            quick = [take_quick(first, paths[:_MOST_FOLLOWED]), *map(take_quick, others)]
            if is_end:
                left = as_left(with_settings(quick[0]), self.ended_ns or time.time_ns())
                unfollowed = max(0, len(paths) - _MOST_FOLLOWED)
                quick[0] = left.but(touched=len(paths), unfollowed=unfollowed, compares=self._can_compare)
            if not only_of_repositories or any(each.git is not None for each in quick):
                _write(path, "".join(to_json(each) + "\n" for each in quick))
        except (ImportError, OSError):
            return None
        return quick

    def _open_nameless(self) -> int:
        """A file that is gone with the last who has it open."""
        path = self._files.path + "/first"
        fd = os.open(path, os.O_RDWR | os.O_EXCL | _CREATE, 0o600)
        os.unlink(path)
        return fd


def _write(path: str, text: str) -> None:
    """The whole file or none: somebody may be reading it."""
    part = path + ".part"
    fd = os.open(part, os.O_WRONLY | os.O_TRUNC | _CREATE, 0o600)
    try:
        content = text.encode("utf-8", "surrogateescape")
        while content:
            content = content[os.write(fd, content) :]
    finally:
        os.close(fd)
    os.rename(part, path)
