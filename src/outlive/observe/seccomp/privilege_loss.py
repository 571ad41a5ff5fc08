"""The check whether a command would lack privileges while it is observed.

Without CAP_SYS_ADMIN, an observed process cannot gain privileges by an exec. So `sudo`, `su` and `ping` would fail. The
command text, and the scripts that it names, are searched for programs that gain privileges, and for programs that lost
privileges in earlier tasks.
"""

from __future__ import annotations

import os
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.observe.shell.program_scan import ProgramScan, Text

_GAINING = frozenset(
    {
        *("sudo", "sudoedit", "doas", "pkexec", "run0", "newgrp"),
        *("ping6", "umount", "fusermount", "fusermount3", "chsh", "chfn", "crontab"),
        *("ssh-agent", "tmux", "dbus-launch", "Xorg", "newuidmap", "newgidmap"),
        *("podman", "buildah", "bwrap", "firejail", "unix_chkpwd", "traceroute", "mtr", "dumpcap", "systemd-run"),
        *("machinectl", "loginctl"),
    }
)
_WORDS = frozenset({"at", "batch", "mount", "passwd", "ping", "screen", "sg", "su"})
"""Programs whose names are also common words. They count only where a command may begin."""
_PROGRAMS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/run/wrappers/bin")
_MOST_PATHS = 32


def would_miss_privileges(foreseen: ProgramScan, met_before: Iterable[str] = ()) -> bool:
    """Return whether a command runs a program that gains privileges.

    The scripts that the command names are searched for such programs, too. `met_before` are names of programs that
    failed without privileges in earlier tasks.
    """
    gaining = _GAINING | frozenset(met_before)
    return any(map(gains_privileges, foreseen.programs)) or any(_names(text, gaining) for text in foreseen.texts())


def _names(text: Text, gaining: frozenset[str]) -> bool:
    """Return whether a text names a program that gains privileges.

    The program may be given by a name in `gaining`, or by its path.
    """
    words = text.words
    if any(word.rpartition("/")[2] in gaining for word in words):
        return True
    meant = {word for word in _WORDS.intersection(words) if any(os.path.exists(f"{at}/{word}") for at in _PROGRAMS)}
    if meant and not meant.isdisjoint(text.called()):
        return True
    return any(gains_privileges(word) for word in [word for word in words if word.startswith("/")][:_MOST_PATHS])


def gains_privileges(path: str) -> bool:
    """Return whether a program is set-id, or has capabilities of its own."""
    try:
        mode = os.stat(path).st_mode
        if not S_ISREG(mode):
            return False  # a set-id bit of a directory only sets the group of new files in it
        return bool(mode & 0o6000 or os.getxattr(path, "security.capability"))
    except OSError:
        return False
