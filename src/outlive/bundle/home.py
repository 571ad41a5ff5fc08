"""The state directory: where it is, and whether it can be trusted with a promise.

`$OUTLIVE_HOME`, else the XDG state directory; inside it one directory per machine, because locks
and process ids mean nothing on another one. It must be ours alone, on a file system whose locks
every process of this machine sees.
"""

from __future__ import annotations

import os
import stat
from errno import EDQUOT, ENOSPC

from outlive.bundle.kernel import boot_id, file_system_magic, punch_hole, read_small
from outlive.domain.errors import DiskFull, Unavailable, hint_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Two mounts of one directory over these see neither each other's locks nor each other's pages:
# of 400 acknowledged rows 135 were left, with integrity_check saying ok.
UNSAFE_FILE_SYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFF534D42: "CIFS",
    0xFE534D42: "SMB2",
    0x01021997: "9P",
    0x65735546: "FUSE",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
    0x73757245: "Coda",
    0x786F4256: "VirtualBox shared folder",
    0x6B414653: "AFS",
    0x0BD00BD0: "Lustre",
    0x47504653: "GPFS",
    0x19830326: "BeeGFS",
}
FREE_SPACE_FLOOR = 32 << 20
BALLAST_SIZE = 4 << 20


class Home:
    """The state directory of this user on this machine, checked."""

    def __init__(self, path: str, *, can_punch: bool = True) -> None:
        self.path = path
        self.can_punch = can_punch
        """Whether the file system can give back blocks from the middle of an output."""
        self.tasks = path + "/tasks"
        self.ledger = path + "/ledger.sqlite"
        self.leases = path + "/leases"
        self.traces = path + "/traces"
        self._ballast = path + "/ballast"

    def bundle(self, task: str) -> str:
        """The directory of one task."""
        return f"{self.tasks}/{task}"

    def check_room(self) -> None:
        """Refuse a launch that the disk could not keep the promises of."""
        try:
            self._check_room()
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _check_room(self) -> None:
        disk = os.statvfs(self.path)
        free = disk.f_bavail * disk.f_frsize
        # A file system in plain memory (ramfs) counts no blocks at all: unknown is not empty.
        if disk.f_blocks and free < FREE_SPACE_FLOOR:
            raise DiskFull(
                f"only {free >> 20} MB are free in {self.path}, {FREE_SPACE_FLOOR >> 20} MB are needed",
                "free some space, or point OUTLIVE_HOME to another disk; running tasks are not affected",
            )
        self._load_ballast()

    def _load_ballast(self) -> None:
        """Reserve the bytes that a settlement on a full disk will need."""
        try:
            fd = os.open(
                self._ballast,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o600,
            )
        except FileExistsError:
            return
        try:
            os.posix_fallocate(fd, 0, BALLAST_SIZE)
        except OSError:
            os.unlink(self._ballast)
        finally:
            os.close(fd)

    def drop_ballast(self) -> bool:
        """Give the reserve back to the disk; True if there was one."""
        try:
            os.unlink(self._ballast)
        except OSError:
            return False
        return True


def locate(environ: Mapping[str, str]) -> str:
    """Where the state directory belongs, by the environment alone."""
    if given := environ.get("OUTLIVE_HOME"):
        base = os.path.abspath(given)
    elif (given := environ.get("XDG_STATE_HOME", "")).startswith("/"):
        base = os.path.abspath(given) + "/outlive"
    elif (given := environ.get("HOME", "")).startswith("/"):
        base = os.path.abspath(given) + "/.local/state/outlive"
    else:
        raise Unavailable(
            "there is no place for the state directory: HOME is not set (to an absolute path)",
            "set HOME, XDG_STATE_HOME or OUTLIVE_HOME to a directory of yours",
        )
    return f"{base}/{_machine()}"


def open_home(environ: Mapping[str, str]) -> Home:
    """The state directory, made if it was not there, or a clear refusal."""
    home = Home(locate(environ))
    base = os.path.dirname(home.path)
    try:
        if not os.path.isdir(home.tasks):
            _make(base, 0o700)
            _check_owner(base, forbidden=0o022)
            for path in (home.path, home.tasks):
                _make(path, 0o700)
        _check_owner(base, forbidden=0o022)
        device = _check_owner(home.path, forbidden=0o077)
        return Home(home.path, can_punch=_check_place(home.path, device))
    except OSError as error:
        raise _unusable(home.path, error) from error


def _make(path: str, mode: int) -> None:
    """Create a directory and what is missing above it."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _make(os.path.dirname(path), 0o700)
        os.mkdir(path, mode)


def _check_owner(path: str, forbidden: int) -> int:
    """The directory itself, not what a link points to, must be ours and closed to others.

    Returns the device that it lies on.
    """
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        what = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a directory"
        raise Unavailable(f"the state directory {path} is {what}", "point OUTLIVE_HOME to the real directory")
    if found.st_uid != os.geteuid():
        raise Unavailable(
            f"the state directory {path} belongs to user {found.st_uid}, not to you ({os.geteuid()})",
            "point OUTLIVE_HOME to a directory of yours",
        )
    if found.st_mode & forbidden:
        raise Unavailable(
            f"the state directory {path} is open to other users (mode {found.st_mode & 0o777:o})",
            f"chmod {0o777 & ~forbidden & found.st_mode:o} {path}",
        )
    return found.st_dev


def _check_place(path: str, device: int) -> bool:
    """Look at the file system once per boot, and pin it; whether it can punch holes.

    One boot must reach one state directory through one mount, or locks do not mean what they
    say. Device numbers may change with a boot, so the pin holds for the boot that set it.
    """
    here = f"{boot_id()} {device}"
    try:
        boot, pinned, punch = read_small(path + "/place").decode("ascii").split()
    except (FileNotFoundError, ValueError):
        boot, pinned, punch = "", "", ""
    if f"{boot} {pinned}" == here:
        return punch == "yes"
    if boot and boot == boot_id():
        raise Unavailable(
            f"the state directory {path} is also reached through another mount (device {pinned}, here {device})",
            "use one path to it: locks of two mounts of one directory do not see each other",
        )
    _check_file_system(path)
    return _pin(path, here)


def _pin(path: str, here: str) -> bool:
    fresh = f"{path}/place.{os.getpid()}"
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        can_punch = punch_hole(fd, 0, 4096)
        os.write(fd, f"{here} {'yes' if can_punch else 'no'}\n".encode("ascii"))
    finally:
        os.close(fd)
    os.rename(fresh, path + "/place")
    return can_punch


def _check_file_system(path: str) -> None:
    name = UNSAFE_FILE_SYSTEMS.get(file_system_magic(path))
    if name:
        raise Unavailable(
            f"the state directory {path} lies on a {name} file system, where locks cannot be relied on",
            "point OUTLIVE_HOME to a local disk",
        )


def _unusable(path: str, error: OSError) -> Unavailable:
    if error.errno in (ENOSPC, EDQUOT):
        return DiskFull(f"the disk under {path} is full", "free some space, or set OUTLIVE_HOME")
    hint = hint_after(error, "check its permissions, or set OUTLIVE_HOME to a directory of yours")
    return Unavailable(f"the state directory {path} cannot be used: {error.strerror}", hint)


def _machine() -> str:
    """A name for this machine that no other one has, safe as a file name."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            name = read_small(path).strip().decode("ascii", "replace")
        except OSError:
            continue
        if len(name) == 32 and name.isalnum():
            return name
    return "host-" + "".join(c if c.isalnum() else "-" for c in os.uname().nodename)
