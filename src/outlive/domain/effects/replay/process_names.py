"""The command lines of the processes that changed files.

The recorded system calls have thread numbers. A thread number does not identify a program, because the kernel reuses
thread numbers, and because a process may execute another program. So each change gets an index, which identifies one
program in one process.
"""

from __future__ import annotations

NOBODY = 0
_MOST_ABOVE = 64


class _Process:
    __slots__ = ("command", "parent")

    def __init__(self) -> None:
        self.command: str | None = None
        self.parent = NOBODY


class ProcessNames:
    """All processes of a task, in the order of their start. Index 0 means no process."""

    def __init__(self) -> None:
        self._all = [_Process()]
        self._now: dict[int, int] = {}

    def with_number(self, thread: int) -> int:
        """Return the index of the process that has this thread number now."""
        if thread not in self._now:
            self._now[thread] = len(self._all)
            self._all.append(_Process())
        return self._now[thread]

    def begin(self, thread: int, command: str | None, parent: int | None) -> None:
        """Record that a fork or an exec began a process with this thread number.

        `command` may be None after a fork. `parent` is None if it is not known after an exec. Then the parent that is
        recorded for the thread number is kept.
        """
        known = self._all[self.with_number(thread)]
        if known.command is not None or known.parent != NOBODY:
            del self._now[thread]
        process = self._all[self.with_number(thread)]
        process.command = command
        process.parent = known.parent if parent is None else self.with_number(parent) if parent else NOBODY

    def tidies_git(self, who: int) -> bool:
        """Return whether a process is git and only tidies git's own files.

        An example is `git pack-refs`, which moves no ref.
        """
        program, _, rest = (self._all[who].command or "").partition(" ")
        return _program(program) == "git" and rest.startswith(("pack-refs", "reflog expire"))

    def command_of(self, who: int, unknown: str) -> str:
        """Return the command line of a process or of its nearest ancestor.

        If a program ran itself as a child process, as git does, the outermost process of this program is named.
        Returns `unknown` if no command line is known.
        """
        found: str | None = None
        for _ in range(_MOST_ABOVE):
            process = self._all[who]
            if process.command is not None:
                if found is not None and _program(process.command) != _program(found):
                    break
                found = process.command
            who = process.parent
        return unknown if found is None else found


def _program(command: str) -> str:
    return command.partition(" ")[0].rpartition("/")[2]
