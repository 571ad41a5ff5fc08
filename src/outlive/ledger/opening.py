"""Opening the SQLite file: journal, schema, place; and what to do with a broken one."""

from __future__ import annotations

import os
import sys
import time
from fcntl import LOCK_EX, flock

from outlive.domain.errors import TOO_MANY_FILES, Broken, DiskFull, NewerLedger, OutliveError, Unavailable, hint_after

# apsw asks for `collections.abc`, and would get all of `collections` with it: a tenth of an
# interpreter start. It keeps one class of it and not the package, so a stand-in will do.
if "collections" not in sys.modules:
    import _collections_abc

    sys.modules["collections"] = type(sys)("collections")
    sys.modules["collections.abc"] = _collections_abc
    try:
        import apsw
    finally:
        del sys.modules["collections"], sys.modules["collections.abc"]
else:
    import apsw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

__all__ = ["apsw", "be_impatient", "connect", "fold_when_long", "journal_mode", "quarantine", "translated"]

_MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
SCHEMA_VERSION = 8
_MADE = b"made"
_REBUILD = "what runs goes on; `outlive audit --rebuild` restores the records from the tasks' files"
PATIENCE_S = 10
_PATIENCE_TRIES = PATIENCE_S * 50
_impatient_after: float | None = None
_DESCRIPTORS = 6  # the file, its log, its index, their directory, and a little room

# Mostly nobody else has the ledger open, so SQLite's own habits do not fit: the last to close
# would fold the log into the file at every launch (three syncs), and told not to, nobody would
# remember how much of it was folded, and it would grow for ever. We fold it when it is this long,
# which the first process to open it afterwards reads back in well under a millisecond.
_LONGEST_LOG = 100


def journal_mode(version: tuple[int, ...]) -> str:
    """WAL only where its reset bug is mended; it silently loses commits under many processes."""
    mended = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    return "wal" if mended else "truncate"


def connect(path: str, now: datetime, *, create: bool = True) -> apsw.Connection:
    """A connection to a ledger of our schema; creates the file, quarantines a broken one."""
    try:
        return _connect(path, create=create)
    except apsw.Error as error:
        if is_damage(error):
            raise (quarantine(path, now, error) if create else damaged(path, error)) from error
        raise translated(error, path) from error
    except OSError as error:
        raise Unavailable(
            f"the ledger {path} cannot be made: {error.strerror}", hint_after(error, "check the state directory")
        ) from error


def _connect(path: str, *, create: bool) -> apsw.Connection:
    if create:
        _create_private(path)
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_handler(_wait_a_little)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        connection.execute("PRAGMA synchronous=FULL")
        version = connection.pragma("user_version")
        if version == 0 and not create:
            raise Broken(f"the ledger {path} is empty", "the exit record waits to be read")
        if version < SCHEMA_VERSION:
            _migrate(connection, path)
        elif version > SCHEMA_VERSION:
            raise NewerLedger(
                f"the ledger {path} has schema {version}, this Outlive knows {SCHEMA_VERSION}",
                "upgrade this Outlive; what runs goes on, and its exit record waits to be read",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _wait_a_little(tries: int) -> bool:
    """Try again soon: a transaction takes a millisecond, and SQLite's own patience begins with one or two.

    Two tenths of a millisecond, then longer, up to twenty; False when it has taken ten seconds.
    """
    time.sleep(min(0.0002 * 2 ** min(tries, 7), 0.02))
    if _impatient_after is not None and time.monotonic() > _impatient_after:
        return False
    return tries < _PATIENCE_TRIES


def be_impatient(seconds: float | None) -> None:
    """From now on this process waits so long in all for others' locks: somebody waits for it who will not wait.

    None for a fork that nobody waits for any more.
    """
    global _impatient_after  # noqa: PLW0603 - a fact about this process
    _impatient_after = None if seconds is None else time.monotonic() + seconds


def fold_when_long(connection: apsw.Connection, log_pages: int) -> None:
    """Fold a long log into the file, unless somebody is reading it just now."""
    if log_pages > _LONGEST_LOG:
        connection.set_busy_timeout(0)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            pass  # every commit stands; whoever commits next tries again
        finally:
            connection.set_busy_handler(_wait_a_little)


def _create_private(path: str) -> None:
    """SQLite would create the file by the umask; the log and its index copy the file's mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


class _Alone:
    """One process at a time makes, changes or moves the ledger's file.

    SQLite's own locks do not do: switching to WAL fails at once where others are connecting, and
    a file that is moved aside takes its locks with it.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path + ".alone", flags, 0o600)

    def __enter__(self) -> Self:
        flock(self._fd, LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @property
    def had_ledger(self) -> bool:
        """Whether a ledger was made here, and not moved aside by us since."""
        return os.pread(self._fd, 16, 0) == _MADE

    def remember(self, *, made: bool) -> None:
        """Write down whether there is one."""
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, _MADE if made else b"", 0)


def _migrate(connection: apsw.Connection, path: str) -> None:
    """Create or upgrade the schema; of many first launches one does it, the others find it done."""
    numbers = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    with _Alone(path) as alone:
        is_new = connection.pragma("user_version") == 0
        if is_new and alone.had_ledger:
            connection.close()
            raise _vanished(path, alone)
        if is_new:
            connection.execute(f"PRAGMA journal_mode={journal_mode(numbers)}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = int(str(connection.pragma("user_version")))
            names = sorted(name for name in os.listdir(_MIGRATIONS) if name.endswith(".sql"))
            for name in names[version:]:
                with open(os.path.join(_MIGRATIONS, name), encoding="utf-8") as file:
                    connection.execute(file.read())
            connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        alone.remember(made=True)


def translated(error: apsw.Error, path: str) -> OutliveError:
    """The error as its reader can act on it."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return Unavailable(
            f"the ledger {path} is locked by another process for longer than can be waited for",
            "try again; if it stays so, a process that holds it may be stopped (state T in `ps`)",
        )
    if isinstance(error, apsw.FullError):
        return DiskFull(f"the disk under {path} is full", "free some space; nothing that was recorded is lost")
    if isinstance(error, (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError)):
        hint = "check the permissions of the state directory, or set OUTLIVE_HOME"
        return Unavailable(
            f"the ledger {path} cannot be opened for writing: {error}",
            TOO_MANY_FILES if _is_short_of_descriptors() else hint,
        )
    if isinstance(error, apsw.IOError):
        return Unavailable(f"the disk under {path} failed: {error}", "check the disk, then try again")
    return Broken(
        f"the ledger {path} failed: {error}",
        "this is a defect of Outlive or of the disk; please report it",
    )


def _is_short_of_descriptors() -> bool:
    """Whether that may have been the reason; SQLite does not tell, and has closed its own again."""
    from resource import RLIMIT_NOFILE, getrlimit  # noqa: PLC0415 - only when something is wrong

    try:
        return getrlimit(RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd")) < _DESCRIPTORS
    except OSError:
        return True


def is_damage(error: apsw.Error) -> bool:
    """Whether the ledger will never be readable again.

    A log that is shorter than its index says was deleted or emptied under somebody who has it open. SQLite calls that
    an error of the disk; it would last for as long as the longest task.
    """
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHORT_READ
    return isinstance(error, (apsw.NotADBError, apsw.CorruptError))


def damaged(path: str, error: apsw.Error) -> OutliveError:
    """The ledger is broken, and whoever found that out has nobody to tell: it stays where it is for somebody who has.

    A keeper that moved it aside would leave an empty ledger to the next reader, without a word.
    """
    return Broken(f"the ledger {path} is damaged ({error})", "whoever is asked next will move it aside")


def quarantine(path: str, now: datetime, error: apsw.Error) -> OutliveError:
    """Move a broken ledger aside, whole and unchanged, so that nothing ever overwrites it."""
    with _Alone(path) as alone:
        # Somebody else may have moved it and begun a new one while we waited: look again.
        if not _is_damaged(path):
            return Unavailable(
                f"the ledger {path} was found damaged ({error}) and has been replaced by another process meanwhile",
                "run the command again",
            )
        aside = _move_aside(path, f"{now:%Y%m%dT%H%M%S}", alone)
    return Broken(f"the ledger {path} is damaged ({error}); it was moved to {aside}", _REBUILD)


def _vanished(path: str, alone: _Alone) -> OutliveError:
    """There was a ledger, and there is nothing in it: deleted, emptied, or its log is damaged."""
    aside = _move_aside(path, "empty", alone)
    return Broken(
        f"the ledger {path} was deleted or emptied by somebody, or its log is damaged; what is left is in {aside}",
        _REBUILD,
    )


def _move_aside(path: str, when: str, alone: _Alone) -> str:
    aside = f"{path}.broken-{when}-{os.getpid()}"
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    alone.remember(made=False)
    return aside


def _is_damaged(path: str) -> bool:
    if not os.path.exists(path):
        return False
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return bool(connection.pragma("quick_check", 1) != "ok")
    except apsw.Error as error:
        return is_damage(error)
    finally:
        connection.close()
