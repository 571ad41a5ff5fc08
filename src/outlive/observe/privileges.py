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
    from collections.abc import Iterable, Sequence

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
_STARTING = frozenset(
    {
        *("if", "then", "elif", "else", "do", "while", "until", "!", "{", "exec", "eval", "command", "env"),
        *("nohup", "time", "timeout", "nice", "ionice", "chrt", "taskset", "setsid", "stdbuf", "xargs", "parallel"),
        *("watch", "strace", "-c", "-lc", "-exec", "-execdir"),
    }
)
"""After these, and their options, a command begins."""
_LONGEST_SCRIPT = 64 << 10
_MOST_FILES, _MOST_PATHS = 8, 32
_SEPARATORS = frozenset(" \t\n;|&()`\"'<>{}=$")
_BREAKS = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_BEGINS = str.maketrans(dict.fromkeys(";|&`\"'", "\n"))
_OPENINGS = ("$(", "do (", "then (", "else (")
"""After these too; but not after `if (`, with which other languages begin a condition."""
_NO_CALL = frozenset({"=", "==", "+=", ":=", "}"})
"""What follows a name in other languages."""


def would_miss_privileges(argv: Sequence[str], cwd: str, met_before: Iterable[str] = ()) -> bool:
    """Whether the command names, or a script that it names does, a program that gains privileges."""
    gaining = _GAINING | frozenset(met_before)
    texts = [word for word in argv if not _SEPARATORS.isdisjoint(word)]
    plain = " ".join(word for word in argv if _SEPARATORS.isdisjoint(word))
    if any(_names(text, gaining) for text in (plain, *texts)):
        return True
    words = [word for text in argv for word in text.translate(_BREAKS).split() if "/" in word or "." in word]
    files = [os.path.join(cwd, word) for word in words[:_MOST_FILES]]
    return any(gains_privileges(path) or _names(_content(path), gaining) for path in files)


def _names(text: str, gaining: frozenset[str]) -> bool:
    """Whether a text names one of them, or the path of any program that gains privileges."""
    words = text.translate(_BREAKS).split()
    if any(word.rpartition("/")[2] in gaining for word in words):
        return True
    called = {word for word in _WORDS.intersection(words) if any(os.path.exists(f"{at}/{word}") for at in _PROGRAMS)}
    if called and any(_calls(piece.split(), called) for piece in _pieces(text)):
        return True
    return any(gains_privileges(word) for word in [word for word in words if word.startswith("/")][:_MOST_PATHS])


def _pieces(text: str) -> list[str]:
    """The parts of a text that may be a command each; in other languages, also what stands in quotes."""
    for opening in _OPENINGS:
        text = text.replace(opening, "\n")
    return [piece.lstrip(" \t(") for piece in text.translate(_BEGINS).split("\n")]


def _calls(words: list[str], names: set[str]) -> bool:
    """Whether one of the names is where a command begins, or what another one starts."""
    is_beginning = True
    for at, word in enumerate(words):
        if is_beginning and word.rstrip(")") in names and not _NO_CALL.intersection(words[at + 1 : at + 2]):
            return True
        # Whatever lies between: options, how long, variables.
        is_between = is_beginning and (word[0] in "-0123456789" or "=" in word[1:])
        is_label = at == 0 and word[-1] == ")" and "(" not in word  # of a `case`
        is_beginning = word in _STARTING or is_between or is_label
    return False


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
        mode = os.stat(path).st_mode
        if not S_ISREG(mode):
            return False  # a directory with such a bit only gives its group to what is made in it
        return bool(mode & 0o6000 or os.getxattr(path, "security.capability"))
    except OSError:
        return False
