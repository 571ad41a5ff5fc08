"""Whether a command would miss privileges that observing it takes away.

Without CAP_SYS_ADMIN a filter can only be installed by giving up privileges that an exec would gain:
sudo, su and ping would fail, also in every daemon that the command leaves behind. So the text is
looked through for such names, and the scripts that it names, and whoever was met before.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_GAINING = frozenset(
    {
        *("sudo", "sudoedit", "su", "doas", "pkexec", "run0", "newgrp", "sg", "ping"),
        *("ping6", "mount", "umount", "fusermount", "fusermount3", "passwd", "chsh", "chfn", "crontab"),
        *("at", "batch", "ssh-agent", "tmux", "screen", "dbus-launch", "Xorg", "newuidmap", "newgidmap"),
        *("podman", "buildah", "bwrap", "firejail", "unix_chkpwd", "traceroute", "mtr", "dumpcap", "systemd-run"),
        *("machinectl", "loginctl"),
    }
)
_LONGEST_SCRIPT = 64 << 10
_MOST_FILES, _MOST_PATHS = 8, 32
_SEPARATORS = " \t\n;|&()`\"'<>{}=$"
_BREAKS = str.maketrans(_SEPARATORS, " " * len(_SEPARATORS))


def would_miss_privileges(argv: Sequence[str], cwd: str, met_before: Iterable[str] = ()) -> bool:
    """Whether the command names, or a script that it names does, a program that gains privileges."""
    gaining = _GAINING | frozenset(met_before)
    if any(_names(word, gaining) for word in argv):
        return True
    words = [word for text in argv for word in text.translate(_BREAKS).split() if "/" in word or "." in word]
    files = [os.path.join(cwd, word) for word in words[:_MOST_FILES]]
    return any(gains_privileges(path) or _names(_content(path), gaining) for path in files)


def _names(text: str, gaining: frozenset[str]) -> bool:
    """Whether a text names one of them, or the path of any program that gains privileges."""
    words = text.translate(_BREAKS).split()
    if any(word.rpartition("/")[2] in gaining for word in words):
        return True
    return any(gains_privileges(word) for word in [word for word in words if word.startswith("/")][:_MOST_PATHS])


def _content(path: str) -> str:
    """The beginning of a script; nothing of what is no regular file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        content = os.read(fd, _LONGEST_SCRIPT)
    except OSError:
        return ""
    finally:
        os.close(fd)
    return "" if b"\0" in content[:512] else content.decode("utf-8", "replace")


def gains_privileges(path: str) -> bool:
    """Whether a program is set-id, or has capabilities of its own."""
    try:
        if os.stat(path).st_mode & 0o6000:
            return True
        return bool(os.getxattr(path, "security.capability"))
    except OSError:
        return False
