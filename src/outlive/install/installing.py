"""Installing and uninstalling: the same edits whichever the client, planned first, shown, then made.

What a file was before us is kept with a mark of what it is after us. If nobody has touched it since,
it is given back as it was; otherwise only what is ours is taken out of what it has become.
"""

from __future__ import annotations

import os

from outlive.domain.errors import UserError
from outlive.domain.value import Value
from outlive.install import record, target
from outlive.install.program import command_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.install.target import Target


class Change(Value):
    """What one file is, and what it will be; None stands for no file."""

    path: str
    before: str | None
    after: str | None
    original: str | None = None
    """The file without us, to be kept."""
    made: tuple[str, ...] = ()
    left_out: str = ""
    """What of ours is not added or not taken away, and why."""

    @property
    def is_none(self) -> bool:
        """Whether there is nothing to change."""
        return self.before == self.after


def plan_install(home: Home, client: str, targets: Sequence[Target]) -> list[Change]:
    """What installing would change. Done already, it changes nothing."""
    known = record.recall(home, client)
    changes = []
    for each in targets:
        now = target.read(each.path)
        before = known.get(each.path)
        original = _without_us(each, now, before)
        changes.append(
            Change(
                path=each.path,
                before=now,
                after=_with_us(each, original, now),
                original=original,
                made=before.made if before is not None else (),
                left_out=each.left_out(original or ""),
            )
        )
    return changes


def plan_uninstall(home: Home, client: str, targets: Sequence[Target]) -> list[Change]:
    """What uninstalling would change."""
    known = record.recall(home, client)
    changes = []
    for each in targets:
        now, before = target.read(each.path), known.get(each.path)
        changes.append(
            Change(
                path=each.path,
                before=now,
                after=_without_us(each, now, before),
                made=before.made if before is not None else (),
            )
        )
    return changes


def plan_removal(home: Home, name: str) -> list[Change]:
    """What uninstalling would change of files that nobody named, by what is kept of them: an edited one stays."""
    changes = []
    for path, before in record.recall(home, name).items():
        now = target.read(path)
        is_edited = now is not None and record.mark_of(now) != before.after
        changes.append(
            Change(
                path=path,
                before=now,
                after=now if now is None or is_edited else before.text,
                made=before.made,
                left_out=f"{path} was edited since it was made, and is left as it is" if is_edited else "",
            )
        )
    return changes


def _with_us(each: Target, original: str | None, now: str | None) -> str | None:
    after = target.edited(each.path, each.add, original or "")
    return original if after == (original or "") else each.carry(now or "", after)


def _without_us(each: Target, now: str | None, before: record.Before | None) -> str | None:
    if before is not None and record.mark_of(now) == before.after:
        return before.text
    if now is None:
        return None
    stripped = target.edited(each.path, each.strip, now)
    if stripped == now:
        return now
    if before is not None:
        stripped = each.give_back(stripped, before.text or "")
    # A file that was not there and has nothing left in it goes; one that was there stays, with what is left.
    return None if each.is_nothing(stripped) and (before is None or before.text is None) else stripped


def check_possible(changes: Sequence[Change]) -> None:
    """Refuse changes of files that have become others since, for clients write theirs at any time; and half of them."""
    for each in changes:
        if target.read(each.path) != each.before:
            raise UserError(f"{each.path} was changed meanwhile", "nothing was changed by us; try again")
        if not each.is_none and not target.is_writable(each.path):
            raise UserError(
                f"{each.path} cannot be written", "nothing was changed; look at the rights of its directory"
            )


def install(home: Home, client: str, changes: Sequence[Change]) -> None:
    """Make the changes; what was there, and what was not, is on disk before anything is written."""
    _offer_command(home)
    paths = [each.path for each in changes]
    ours = [each for each in changes if each.original != each.after]
    kept = [
        record.Before(
            path=each.path,
            text=each.original,
            after=record.mark_of(each.after),
            made=(*each.made, *target.missing_directories(each.path)),
        )
        for each in ours
    ]
    record.keep(home, client, paths, kept)
    for each in changes:
        if each not in ours and not each.is_none:
            target.write(each.path, each.after)  # what an earlier version of us had added there
    for each in ours:
        if not each.is_none:
            target.write(each.path, each.after)


def uninstall(home: Home, client: str, changes: Sequence[Change]) -> None:
    """Make the changes, remove the directories that were made for us if nobody uses them, and forget."""
    for each in changes:
        if not each.is_none:
            target.write(each.path, each.after)
    for path in sorted({path for each in changes for path in each.made}, key=len, reverse=True):
        try:
            os.rmdir(path)
        except OSError:
            continue  # somebody else has put something there
    record.keep(home, client, [each.path for each in changes], [])
    if not record.is_anywhere(home) and os.path.lexists(home.path + "/bin/outlive"):
        os.unlink(home.path + "/bin/outlive")


def _offer_command(home: Home) -> None:
    """A directory that holds our command and nothing else, for sessions whose shell would not find it."""
    script, own = command_path(), home.path + "/bin"
    if not os.path.isabs(script):
        return
    os.makedirs(own, 0o700, exist_ok=True)
    fresh = f"{own}/outlive.{os.getpid()}"
    os.symlink(script, fresh)
    os.rename(fresh, own + "/outlive")


def diff(change: Change) -> str:
    """The change as people read changes."""
    from difflib import unified_diff  # noqa: PLC0415 - only here

    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    lines = unified_diff(
        before,
        after,
        change.path if change.before is not None else "/dev/null",
        change.path if change.after is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
