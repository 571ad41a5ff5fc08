"""Whether a command would miss privileges that observing it takes away.

Without CAP_SYS_ADMIN a filter can only be installed by giving up privileges that an exec would gain:
sudo, su and ping would fail, also in every daemon that the command leaves behind. So the text is
looked through for such names, and the scripts that it names, and whoever was met before.
"""

from __future__ import annotations

import os
from stat import S_ISREG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from outlive.observe.foreseeing import Foreseen, Text

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
"""Those that every other script has in a comment: they count only where a command may begin."""
_PROGRAMS = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/run/wrappers/bin")
_MOST_PATHS = 32


def would_miss_privileges(foreseen: Foreseen, met_before: Iterable[str] = ()) -> bool:
    """Whether the command names, or a script that it names does, a program that gains privileges."""
    gaining = _GAINING | frozenset(met_before)
    return any(map(gains_privileges, foreseen.programs)) or any(_names(text, gaining) for text in foreseen.texts())


def _names(text: Text, gaining: frozenset[str]) -> bool:
    """Whether a text names one of them, or the path of any program that gains privileges."""
    words = text.words
    if any(word.rpartition("/")[2] in gaining for word in words):
        return True
    meant = {word for word in _WORDS.intersection(words) if any(os.path.exists(f"{at}/{word}") for at in _PROGRAMS)}
    if meant and not meant.isdisjoint(text.called()):
        return True
    return any(gains_privileges(word) for word in [word for word in words if word.startswith("/")][:_MOST_PATHS])


def gains_privileges(path: str) -> bool:
    """Whether a program is set-id, or has capabilities of its own."""
    try:
        mode = os.stat(path).st_mode
        if not S_ISREG(mode):
            return False  # a directory with such a bit only gives its group to what is made in it
        return bool(mode & 0o6000 or os.getxattr(path, "security.capability"))
    except OSError:
        return False
