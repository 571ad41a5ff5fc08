"""The state directory: its path, and the checks that its locks are reliable.

The path is `$OUTLIVE_HOME`, or else the XDG state directory. In this directory, each machine has a directory of its
own, because locks and process ids mean nothing on another machine. Other users must have no access to the state
directory, and its file system must show locks to every process of this machine.
"""

from __future__ import annotations

import os
import stat
from errno import EDQUOT, ENOSPC

from outlive.domain.errors import DiskFull, Unavailable, hint_after
from outlive.linux.syscalls import boot_id, file_system_magic, punch_hole, read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# On such a file system, a process that uses one mount of a directory sees neither the locks nor the new pages of a
# process that uses another mount. So SQLite loses rows: in a test, only 135 of 400 acknowledged rows were left, and
# integrity_check reported ok.
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
    """The state directory of this user on this machine, after all checks."""

    def __init__(self, path: str, *, can_punch: bool = True) -> None:
        self.path = path
        self.can_punch = can_punch
        """Whether the file system can free blocks in the middle of a file."""
        self.tasks = path + "/tasks"
        self.ledger = path + "/ledger.sqlite"
        self.leases = path + "/leases"
        self.traces = path + "/traces"
        self.worktrees = path + "/worktrees"
        self._ballast = path + "/ballast"

    def bundle(self, task: str) -> str:
        """Return the directory of one task."""
        return f"{self.tasks}/{task}"

    def check_room(self) -> None:
        """Raise DiskFull if the disk has too little space for another task."""
        try:
            self._check_room()
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _check_room(self) -> None:
        disk = os.statvfs(self.path)
        free = disk.f_bavail * disk.f_frsize
        # ramfs, a file system in memory, reports that it has 0 blocks. This does not mean that it is full.
        if disk.f_blocks and free < FREE_SPACE_FLOOR:
            raise DiskFull(
                f"only {free >> 20} MB are free in {self.path}, but {FREE_SPACE_FLOOR >> 20} MB are needed",
                "free some space, or point OUTLIVE_HOME to another disk; running tasks are not affected",
            )
        self._load_ballast()

    def _load_ballast(self) -> None:
        """Reserve the space that a settlement on a full disk will need."""
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
        """Free the reserved space. Return whether any space was reserved."""
        try:
            os.unlink(self._ballast)
        except OSError:
            return False
        return True


def locate(environ: Mapping[str, str]) -> str:
    """Return the path of the state directory, from the environment alone."""
    if given := environ.get("OUTLIVE_HOME"):
        base = os.path.abspath(given)
    elif (given := environ.get("XDG_STATE_HOME", "")).startswith("/"):
        base = os.path.abspath(given) + "/outlive"
    elif (given := environ.get("HOME", "")).startswith("/"):
        base = os.path.abspath(given) + "/.local/state/outlive"
    else:
        raise Unavailable(
            "there is no place for the state directory: HOME is not set to an absolute path",
            "set HOME, XDG_STATE_HOME or OUTLIVE_HOME to a directory of yours",
        )
    path = f"{base}/{_machine()}"
    if not path.isascii():
        _check_encoding(path)
    return path


def _check_encoding(path: str) -> None:
    """Raise Unavailable if the path is not UTF-8.

    With such a path, SQLite would open another file.
    """
    name = os.fsencode(path)
    if path.encode("utf-8", "surrogatepass") != name:
        raise Unavailable(
            f"the state directory {name.decode('ascii', 'backslashreplace')} has a path that is not UTF-8",
            "set OUTLIVE_HOME to a directory whose path is UTF-8, in a locale that is UTF-8",
        )


def open_home(environ: Mapping[str, str]) -> Home:
    """Return the state directory. Create it if it is missing.

    Raises Unavailable if the directory is not safe to use.
    """
    home = Home(locate(environ))
    base = os.path.dirname(home.path)
    try:
        if not os.path.isdir(home.tasks):
            _make(base, 0o700)
            _check_owner(base, forbidden=0o022)
            for path in (home.path, home.tasks):
                _make(path, 0o700)
            _begin_fingerprint(home.path)
        _check_owner(base, forbidden=0o022)
        device = _check_owner(home.path, forbidden=0o077)
        return Home(home.path, can_punch=_check_place(home.path, device))
    except OSError as error:
        raise _unusable(home.path, error) from error


def _make(path: str, mode: int) -> None:
    """Create a directory and its missing parents."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        pass
    except FileNotFoundError:
        _make(os.path.dirname(path), 0o700)
        os.mkdir(path, mode)


def _begin_fingerprint(path: str) -> None:
    """Write the file that shows whether the ledger is complete, for a new directory.

    The file states that no ledger has been made yet. Without the file, the ledger would count as lost.
    """
    try:
        fd = os.open(path + "/fingerprint", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.write(fd, b"new\n")
    finally:
        os.close(fd)


def _check_owner(path: str, forbidden: int) -> int:
    """Return the device of a directory, after a check that the directory is private.

    Raises Unavailable if the path is not a directory, if the directory belongs to another user, or if its mode has a
    bit of `forbidden`.
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
    """Check the file system of the directory, once per boot and mount.

    Returns whether the file system can free blocks in the middle of a file.

    Raises Unavailable if processes use two mounts of the directory at once, because such processes do not see each
    other's locks. If the earlier mount is no longer in use, the new mount is recorded in the file `place`.
    """
    here = f"{boot_id()} {device}"
    text = _read_pin(path)
    boot, pinned, punch, signature = [*text.split(" ", 3), "", "", "", ""][:4]
    if f"{boot} {pinned}" == here:
        return punch == "yes"
    _check_file_system(path)
    if not boot or boot != boot_id():
        return _pin(path, here)
    from outlive.bundle.atomic_file import write_whole  # noqa: PLC0415
    from outlive.bundle.mounts import check_single  # noqa: PLC0415 - this import is needed only if the device number has changed

    check_single(path, signature)
    can_punch = _pin(path, here)
    try:
        # Check again, because `place` names this mount only now. A process that read `place` before may have begun to
        # use the earlier mount after the first check. Then both mounts would be in use.
        check_single(path, signature)
    except Unavailable:
        write_whole(path + "/place", f"{text}\n".encode("ascii"))
        raise
    return can_punch


def _read_pin(path: str) -> str:
    """Return the line of the file `place`, which names the mount in use.

    The line has the boot, the device, whether blocks can be freed, and the signature of the mount. Returns an empty
    string if there is no such line.
    """
    try:
        text = read_small(path + "/place").decode("ascii")
    except (FileNotFoundError, ValueError):
        return ""
    return text.removesuffix("\n") if text.endswith("\n") and text.count(" ") >= 2 else ""


def _pin(path: str, here: str) -> bool:
    from outlive.bundle.atomic_file import temporary_name  # noqa: PLC0415
    from outlive.bundle.mounts import signature  # noqa: PLC0415 - this import is needed only once per boot

    fresh = temporary_name(path + "/place")
    fd = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        can_punch = punch_hole(fd, 0, 4096)
        os.write(fd, f"{here} {'yes' if can_punch else 'no'} {signature(path)}\n".encode("ascii"))
    finally:
        os.close(fd)
    os.rename(fresh, path + "/place")
    return can_punch


def _check_file_system(path: str) -> None:
    name = UNSAFE_FILE_SYSTEMS.get(file_system_magic(path))
    if name:
        raise Unavailable(
            f"the state directory {path} lies on a {name} file system, on which locks are not reliable",
            "point OUTLIVE_HOME to a local disk",
        )


def _unusable(path: str, error: OSError) -> Unavailable:
    if error.errno in (ENOSPC, EDQUOT):
        return DiskFull(f"the disk under {path} is full", "free some space, or point OUTLIVE_HOME to another disk")
    hint = hint_after(error, "check its permissions, or set OUTLIVE_HOME to a directory of yours")
    return Unavailable(f"the state directory {path} cannot be used: {error.strerror}", hint)


def _machine() -> str:
    """Return a name of this machine that is unique and safe as a file name."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            name = read_small(path).strip().decode("ascii", "replace")
        except OSError:
            continue
        if len(name) == 32 and name.isalnum():
            return name
    return "host-" + "".join(c if c.isalnum() else "-" for c in os.uname().nodename)
