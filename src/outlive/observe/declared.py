"""What a command is going to touch, read from its text before it runs.

It names what no tracer sees (a container, a database, another machine), and it knows it at launch.
It is never a proof that a command does nothing: what cannot be read is `unknown`.
"""

from __future__ import annotations

import re

from outlive.domain.declared import Declared
from outlive.observe.shell import LONGEST_TEXT, read
from outlive.observe.touching import touches_of
from outlive.observe.window import opens_window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.domain.declared import Touch

MOST_TOUCHES = 500
# Programs that are set-id on some system, or that start a daemon which would inherit no_new_privs.
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
# These are hardly ever meant otherwise, so that they count wherever they stand.
_PLAIN_WORDS = frozenset(("sudo", "doas", "pkexec", "newgrp"))
_NAME = re.compile(r"[\w.-]+")


def declare(argv: tuple[str, ...], cwd: str) -> Declared:
    """What running `argv` in `cwd` says it is going to touch."""
    reader = read(argv, cwd)
    touches: dict[Touch, None] = {}
    for command in reader.commands:
        touches.update(dict.fromkeys(touches_of(command, cwd)))
        if len(touches) > MOST_TOUCHES:
            reader.is_whole = False
            break
    found = tuple(touches)[:MOST_TOUCHES]
    is_open = not reader.is_whole or any(touch.kind == "unknown" for touch in found)
    return Declared(
        touches=found,
        level="declared" if reader.is_whole and argv else "unknown",
        needs_privileges=_needs_privileges(argv, reader.programs, is_open=is_open),
        opens_window=opens_window(reader.commands),
    )


def _needs_privileges(argv: tuple[str, ...], programs: set[str], *, is_open: bool) -> bool:
    """Whether a privileged program is called; or only named, where something may call it unseen.

    A wrong yes costs an observation, a wrong no breaks the command.
    """
    if programs & PRIVILEGED:
        return True
    names = {name.rpartition("/")[2] for word in argv for name in _NAME.findall(word[:LONGEST_TEXT])}
    return not names.isdisjoint(PRIVILEGED if is_open else _PLAIN_WORDS)
