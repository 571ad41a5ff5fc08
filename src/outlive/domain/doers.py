"""Who did it: programs, by the numbers of their threads.

A number is given to somebody else when its holder has ended, and a program may become another one under
its own. So whatever is done is noted with who had the number then, and not with the number.
"""

from __future__ import annotations

NOBODY = 0
_MOST_ABOVE = 64


class _Doer:
    __slots__ = ("command", "parent")

    def __init__(self) -> None:
        self.command: str | None = None
        self.parent = NOBODY


class Doers:
    """All who were heard of, in their order; the first is nobody."""

    def __init__(self) -> None:
        self._all = [_Doer()]
        self._now: dict[int, int] = {}

    def with_number(self, thread: int) -> int:
        """Who has a number now; somebody new, if nothing was heard of that."""
        if thread not in self._now:
            self._now[thread] = len(self._all)
            self._all.append(_Doer())
        return self._now[thread]

    def begin(self, thread: int, command: str | None, parent: int | None) -> None:
        """Somebody began under this number: by a fork without a command, or as the program that is executed now."""
        known = self._all[self.with_number(thread)]
        if known.command is not None or known.parent != NOBODY:
            del self._now[thread]
        doer = self._all[self.with_number(thread)]
        doer.command = command
        doer.parent = known.parent if parent is None else self.with_number(parent) if parent else NOBODY

    def tidies_git(self, who: int) -> bool:
        """Whether somebody is a part of git that lays refs together in one file, or cuts logs: none moves by that."""
        program, _, rest = (self._all[who].command or "").partition(" ")
        return _program(program) == "git" and rest.startswith(("pack-refs", "reflog expire"))

    def command_of(self, who: int, unknown: str) -> str:
        """The command line of somebody, or of whoever forked them.

        A program that runs itself to get something done (git does) did it in the name of the first.
        """
        found: str | None = None
        for _ in range(_MOST_ABOVE):
            doer = self._all[who]
            if doer.command is not None:
                if found is not None and _program(doer.command) != _program(found):
                    break
                found = doer.command
            who = doer.parent
        return unknown if found is None else found


def _program(command: str) -> str:
    return command.partition(" ")[0].rpartition("/")[2]
