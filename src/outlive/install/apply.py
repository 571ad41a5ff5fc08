"""Installing and uninstalling: changes of files are planned, shown and written.

Installing saves the former text of each file, and a hash of the text that it writes. If the file still has this hash,
uninstalling restores the former text. Otherwise it removes only Outlive's entries from the current text.
"""

from __future__ import annotations

import os

from outlive.bundle.atomic_file import temporary_name
from outlive.domain.errors import UserError
from outlive.domain.value import Value
from outlive.install.config import backup, target_file
from outlive.install.outlive_command import command_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive.bundle.home import Home
    from outlive.install.config.target_file import Target


class Change(Value):
    """The text of a file before and after a change. None stands for a missing file."""

    path: str
    before: str | None
    after: str | None
    original: str | None = None
    """The text without Outlive's entries. Installing saves it, to be restored later."""
    made: tuple[str, ...] = ()
    """The directories that were created for the file by an earlier installation."""
    left_out: str = ""
    """A message that says what is not added or not removed, and why. Empty if nothing is left out."""

    @property
    def is_none(self) -> bool:
        """Whether the file needs no change."""
        return self.before == self.after


def plan_install(home: Home, client: str, targets: Sequence[Target]) -> list[Change]:
    """Plan an installation. If Outlive is already installed, no file is to be changed."""
    known = backup.recall(home, client)
    changes = []
    for each in targets:
        now = target_file.read(each.path)
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
    """Plan the changes that remove Outlive from a client's files.

    A file that was not edited since the installation gets its former text back. From an edited file, only Outlive's
    entries are removed.
    """
    known = backup.recall(home, client)
    changes = []
    for each in targets:
        now, before = target_file.read(each.path), known.get(each.path)
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
    """Plan the removal of Outlive's own files. A file that a user has edited is kept."""
    changes = []
    for path, before in backup.recall(home, name).items():
        now = target_file.read(path)
        is_edited = now is not None and backup.mark_of(now) != before.after
        changes.append(
            Change(
                path=path,
                before=now,
                after=now if now is None or is_edited else before.text,
                made=before.made,
                left_out=f"{path} was edited after Outlive created it, so it is kept" if is_edited else "",
            )
        )
    return changes


def _with_us(each: Target, original: str | None, now: str | None) -> str | None:
    after = target_file.edited(each.path, each.add, original or "")
    return original if after == (original or "") else each.carry(now or "", after)


def _without_us(each: Target, now: str | None, before: backup.Before | None) -> str | None:
    if before is not None and backup.mark_of(now) == before.after:
        return before.text
    if now is None:
        return None
    stripped = target_file.edited(each.path, each.strip, now)
    if stripped == now:
        return now
    if before is not None:
        stripped = each.give_back(stripped, before.text or "")
    # If only an empty text is left, remove the file. But keep an empty file that existed before the installation.
    return None if each.is_nothing(stripped) and (before is None or before.text is None) else stripped


def check_possible(changes: Sequence[Change]) -> None:
    """Raise `UserError` if a file has changed since the plan, or cannot be written.

    All files are checked before the first one is written. Otherwise an installation could stop halfway.
    """
    for each in changes:
        if target_file.read(each.path) != each.before:
            raise UserError(f"{each.path} was changed meanwhile", "Outlive changed nothing; try again")
        if not each.is_none and not target_file.is_writable(each.path):
            raise UserError(
                f"{each.path} cannot be written", "nothing was changed; check the permissions of its directory"
            )


def install(home: Home, client: str, changes: Sequence[Change]) -> None:
    """Write the planned changes, after the former texts are safely saved on disk."""
    _offer_command(home)
    paths = [each.path for each in changes]
    ours = [each for each in changes if each.original != each.after]
    kept = [
        backup.Before(
            path=each.path,
            text=each.original,
            after=backup.mark_of(each.after),
            made=(*each.made, *target_file.missing_directories(each.path)),
        )
        for each in ours
    ]
    backup.keep(home, client, paths, kept)
    for each in changes:
        if each not in ours and not each.is_none:
            target_file.write(each.path, each.after)  # only removes entries that an earlier version of Outlive wrote
    for each in ours:
        if not each.is_none:
            target_file.write(each.path, each.after)


def uninstall(home: Home, client: str, changes: Sequence[Change]) -> None:
    """Write the planned changes, and delete the saved former texts.

    Directories that an installation created are removed, too, if they are empty.
    """
    for each in changes:
        if not each.is_none:
            target_file.write(each.path, each.after)
    for path in sorted({path for each in changes for path in each.made}, key=len, reverse=True):
        try:
            os.rmdir(path)
        except OSError:
            continue  # the directory contains other files
    backup.keep(home, client, [each.path for each in changes], [])
    if not backup.is_anywhere(home) and os.path.lexists(home.path + "/bin/outlive"):
        os.unlink(home.path + "/bin/outlive")


def _offer_command(home: Home) -> None:
    """Create a directory that contains only a link to the program `outlive`.

    If a client's shell does not find `outlive`, a hook adds this directory to the shell's PATH.
    """
    script, own = command_path(), home.path + "/bin"
    if not os.path.isabs(script):
        return
    os.makedirs(own, 0o700, exist_ok=True)
    fresh = temporary_name(own + "/outlive")
    os.symlink(script, fresh)
    os.rename(fresh, own + "/outlive")


def diff(change: Change) -> str:
    """Return the planned change of a file as a unified diff."""
    from difflib import unified_diff  # noqa: PLC0415 - imported here, because it is needed only if the changes are shown

    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    lines = unified_diff(
        before,
        after,
        change.path if change.before is not None else "/dev/null",
        change.path if change.after is not None else "/dev/null",
    )
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)
