"""Prediction, from a command's text, of what the command will change.

The text names things that system calls do not show, such as a container or another machine. The result never proves
that a command changes nothing. A part of the text that cannot be read counts as `unknown`.
"""

from __future__ import annotations

import re

from outlive.domain.effects.predicted import Declared, Touch
from outlive.observe.predict.apply_rules import touches_of
from outlive.observe.predict.window_ahead import find_window, removed_directories, takes_away
from outlive.observe.shell.commands import LONGEST_TEXT, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from outlive.observe.shell.commands import Simple

MOST_TOUCHES = 500
# Some of these programs are set-user-id on some systems. The others start a daemon, and the daemon would inherit
# no_new_privs.
PRIVILEGED = frozenset(
    (
        *("sudo", "sudoedit", "su", "runuser", "doas", "pkexec", "newgrp", "sg", "run0", "gosu", "setpriv"),
        *("ping", "ping6", "arping", "traceroute", "mtr", "fping", "dumpcap", "tshark", "wireshark"),
        *("mount", "umount", "fusermount", "fusermount3", "sshfs", "mount.nfs", "ntfs-3g"),
        *("passwd", "chsh", "chfn", "chage", "gpasswd", "expiry", "crontab", "at", "batch", "wall", "write", "locate"),
        *("newuidmap", "newgidmap", "podman", "buildah", "bwrap", "firejail", "flatpak", "chrome", "chromium"),
        *("google-chrome", "chromium-browser", "ssh-agent", "gpg-agent", "tmux", "screen", "zellij", "dtach", "abduco"),
        *("daemonize", "daemon", "start-stop-daemon", "dockerd", "containerd", "emacs-daemon", "pm2", "capsh"),
    )
)
# Anywhere in a command's text, these words almost always mean the programs of these names. So each occurrence counts.
_PLAIN_WORDS = frozenset(("sudo", "doas", "pkexec", "newgrp"))
_NAME = re.compile(r"[\w.-]+")


def declare(argv: tuple[str, ...], cwd: str) -> Declared:
    """Return what the command `argv` will change in `cwd`, according to its text."""
    reader = read(argv, cwd)
    touches: dict[Touch, None] = {}
    for command in reader.commands:
        touches.update(dict.fromkeys(touches_of(command, cwd)))
        if len(touches) > MOST_TOUCHES:
            reader.is_whole = False
            break
    closing = find_window(reader.commands)
    taken = list(_taken_away(reader.commands))
    if closing is not None and not taken:
        taken = [Touch(kind="git", what=closing.directory, by=closing.line)]
    found = tuple(touches)[:MOST_TOUCHES]
    is_open = not reader.is_whole or any(touch.kind == "unknown" for touch in found)
    return Declared(
        touches=found,
        level="declared" if reader.is_whole and argv else "unknown",
        needs_privileges=_needs_privileges(argv, reader.programs, is_open=is_open),
        opens_window=closing is not None,
        taken_away=tuple(taken),
    )


def _taken_away(commands: Iterable[Simple]) -> Iterator[Touch]:
    """Yield places where commands remove or replace files, each with the command.

    A place is the directory of a command that changes a worktree, or the path of a removed directory in which git may
    track files.
    """
    tracked: Callable[[str], bool] | None = None
    for command in commands:
        if takes_away(command):
            yield Touch(kind="git", what=command.directory, by=command.line)
        for path in removed_directories(command):
            if tracked is None:
                from outlive.observe.git.tracked import Tracked  # noqa: PLC0415 - only commands that remove directories need this import

                tracked = Tracked().may_be_below
            if tracked(path):
                yield Touch(kind="path", what=path, by=command.line)


def _needs_privileges(argv: tuple[str, ...], programs: set[str], *, is_open: bool) -> bool:
    """Return whether a command calls a program that gains privileges.

    `programs` are the programs that the command surely calls. `is_open` means that a part of the text is unknown. Then
    any word that is the name of such a program counts as a call. A wrong True only has the effect that the command is
    not observed. A wrong False makes the command fail.
    """
    if programs & PRIVILEGED:
        return True
    names = {name.rpartition("/")[2] for word in argv for name in _NAME.findall(word[:LONGEST_TEXT])}
    return not names.isdisjoint(PRIVILEGED if is_open else _PLAIN_WORDS)
