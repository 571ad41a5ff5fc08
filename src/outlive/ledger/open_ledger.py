"""Opening of the ledger's SQLite file: journal mode, schema, and damaged files."""

from __future__ import annotations

import os
import sys
import time
from fcntl import LOCK_EX, flock

from outlive.domain.errors import (
    TOO_MANY_FILES,
    Broken,
    DiskFull,
    LedgerIncomplete,
    NewerLedger,
    OutliveError,
    Unavailable,
    hint_after,
)

# apsw imports `collections.abc`, which would load all of `collections`. This import takes a tenth of an interpreter's
# start. apsw keeps only one class and not the package, so a temporary replacement of the package is enough.
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

from outlive.ledger import completeness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Self

__all__ = ["apsw", "be_impatient", "connect", "fold_when_long", "journal_mode", "quarantine", "translated"]

_MIGRATIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "migrations")
SCHEMA_VERSION = 18
_REBUILD = (
    "running tasks continue; the next command restores the records from the tasks' files (`outlive audit --rebuild`)"
)
PATIENCE_S = 10
_PATIENCE_TRIES = PATIENCE_S * 50
_impatient_after: float | None = None
# If an older copy of the file is used with a newer log, SQLite can read the database, but its tables contradict each
# other.
_LACKS_ATTEMPTS = "SELECT 1 FROM task WHERE attempt > (SELECT count(*) FROM attempt WHERE attempt.task = task.id)"
_ATTEMPT_WITHOUT_TASK = "SELECT 1 FROM attempt WHERE NOT EXISTS (SELECT 1 FROM task WHERE task.id = attempt.task)"
_DESCRIPTORS = 6  # for the ledger's file, its log, the log's index and the directory, and two spare ones

# The length in pages at which Outlive checkpoints SQLite's log. SQLite's defaults do not fit, because usually no other
# process has the ledger open. By default, the last process that closes the ledger checkpoints the log, so every launch
# would cost three more syncs. If this checkpoint is switched off, SQLite forgets how much was checkpointed, and the log
# grows without limit. A process that opens the ledger reads a log of this length in well under a millisecond.
_LONGEST_LOG = 100


def journal_mode(version: tuple[int, ...]) -> str:
    """Return the journal mode for a version of SQLite.

    WAL is used only if this version does not silently lose commits in this mode.
    """
    mended = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    return "wal" if mended else "truncate"


def connect(path: str, now: datetime, *, create: bool = True) -> apsw.Connection:
    """Return a connection to a ledger of the current schema.

    A damaged file is moved aside, and an error reports this. If `create` is False, a damaged file stays in place, and a
    missing file is an error.
    """
    try:
        return _connect(path, create=create) or _connect(path, create=create) or _raise_busy(path)
    except apsw.Error as error:
        if is_damage(error):
            raise (quarantine(path, now, error) if create else damaged(path, error)) from error
        if not os.path.lexists(path) and completeness.had_ledger(path):
            raise LedgerIncomplete.at(path) from error
        raise translated(error, path) from error
    except OSError as error:
        raise Unavailable(
            f"the ledger {path} cannot be created: {error.strerror}", hint_after(error, "check the state directory")
        ) from error


def file_at(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at a path, or None if there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _raise_busy(path: str) -> apsw.Connection:
    raise Unavailable(
        f"the ledger {path} is deleted or emptied again and again", "find out which program does this, then try again"
    )


def _connect(path: str, *, create: bool) -> apsw.Connection | None:
    """Return a new connection to the ledger.

    Returns None if another process replaced the ledger, so that it must be opened again.
    """
    if create:
        _create_private(path)
    # Read the file's identity before opening. If the file is replaced in between, the connection counts as a connection
    # to the old file, and the ledger is opened again.
    place = file_at(path)
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_handler(_wait_a_little)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_FKEY, 1)
        connection.execute("PRAGMA synchronous=FULL")
        version = connection.pragma("user_version")
        if version == 0 and not create:
            raise Broken(f"the ledger {path} is empty", "the exit record is kept, and is read later")
        if version < SCHEMA_VERSION:
            if not _migrate(connection, path, place):
                connection.close()
                return None
        elif version > SCHEMA_VERSION:
            raise NewerLedger(
                f"the ledger {path} has schema {version}, but this version of Outlive knows only {SCHEMA_VERSION}",
                "upgrade this Outlive; running tasks continue, and their exit records are kept",
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _wait_a_little(tries: int) -> bool:
    """Sleep before the next try for a lock. Return False if no time is left.

    `tries` is the number of tries before. The time limit is ten seconds, or shorter after `be_impatient`. The first
    sleep is 0.2 ms, because a transaction takes about 1 ms. The wait of SQLite itself would begin with 1 or 2 ms.
    """
    time.sleep(min(0.0002 * 2 ** min(tries, 7), 0.02))
    if _impatient_after is not None and time.monotonic() > _impatient_after:
        return False
    return tries < _PATIENCE_TRIES


def be_impatient(seconds: float | None) -> None:
    """Limit this process's total wait for locks. None restores the usual limit."""
    global _impatient_after  # noqa: PLW0603 - the variable applies to the whole process
    _impatient_after = None if seconds is None else time.monotonic() + seconds


def fold_when_long(connection: apsw.Connection, log_pages: int) -> None:
    """Copy a long write-ahead log into the ledger's file (a checkpoint).

    Nothing is copied while a process reads the log. `log_pages` is the length of the log.
    """
    if log_pages > _LONGEST_LOG:
        connection.set_busy_timeout(0)
        try:
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.Error:
            pass  # the commits are safe in the log, and the checkpoint is tried again later
        finally:
            connection.set_busy_handler(_wait_a_little)


def _create_private(path: str) -> None:
    """Create the ledger's file with mode 0600. SQLite would use the umask instead."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        return


class _Alone:
    """The lock under which a process creates, upgrades or moves the ledger's file.

    SQLite's own locks are not enough. Switching to WAL fails at once while other processes connect. If a file is moved
    aside, its locks move with it, and do not protect the new file.
    """

    def __init__(self, path: str) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._fd = os.open(path + ".alone", flags, 0o600)

    def __enter__(self) -> Self:
        flock(self._fd, LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _migrate(connection: apsw.Connection, path: str, place: tuple[int, int] | None) -> bool:
    """Create or upgrade the schema. Return False if the ledger must be opened again.

    `place` is the identity of the opened file. Returns False if another process has replaced the file. Also returns
    False if the file is empty but a ledger existed before, because the ledger was deleted or its log is damaged. Then
    the remaining files are moved aside and never overwritten.
    """
    with _Alone(path):
        if place is None or file_at(path) != place:
            return False
        if connection.pragma("user_version") == 0 and completeness.had_ledger(path):
            connection.close()
            _replace_emptied(path)
            return False
        _apply_migrations(connection, path)
    return True


def _replace_emptied(path: str) -> None:
    """Replace an emptied ledger with a new ledger that has only the schema.

    The emptied file itself is not used again. A process that opened the file earlier has a lock on it, and would block
    all other processes as long as this process runs.
    """
    if _has_remains(path):
        _move_aside(path, "empty")
    for suffix in ("-wal", "-shm", ""):
        if os.path.lexists(path + suffix):
            os.unlink(path + suffix)
    _create_private(path)
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW)
    try:
        connection.set_busy_handler(_wait_a_little)
        _apply_migrations(connection, path)
    finally:
        connection.close()


def _apply_migrations(connection: apsw.Connection, path: str) -> None:
    """Apply the missing migrations in one transaction, under the lock `_Alone`."""
    numbers = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    is_new = connection.pragma("user_version") == 0
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
        if is_new and completeness.read_fingerprint(path) == completeness.NEW:
            completeness.begin_fingerprint(path, *fingerprint_in(connection))
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def fingerprint_in(connection: apsw.Connection) -> tuple[str, int]:
    """Return the ledger's name, and how many attempts were ever recorded in it."""
    name, attempts = connection.execute("SELECT name, attempts FROM fingerprint").fetchall()[0]
    return str(name), int(str(attempts))


def translated(error: apsw.Error, path: str) -> OutliveError:
    """Return Outlive's error for an error of SQLite, with a hint for the user."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return Unavailable(
            f"the ledger {path} is locked by another process, and the wait took too long",
            "try again; if the error stays, look for a stopped process (state T in `ps`) that has the ledger open",
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
    """Return whether too few free file descriptors may be the cause of an error.

    SQLite does not report this cause.
    """
    from resource import RLIMIT_NOFILE, getrlimit  # noqa: PLC0415 - this import is needed only after an error

    try:
        return getrlimit(RLIMIT_NOFILE)[0] - len(os.listdir("/proc/self/fd")) < _DESCRIPTORS
    except OSError:
        return True


def is_damage(error: apsw.Error) -> bool:
    """Return whether an error means that the ledger will never be readable again.

    SQLite's I/O error for a log that is too short also counts as damage. It means that the log was deleted or emptied
    while processes had it open. The error lasts until the last task has ended.
    """
    if isinstance(error, apsw.IOError):
        return getattr(error, "extendedresult", None) == apsw.SQLITE_IOERR_SHORT_READ
    return isinstance(error, (apsw.NotADBError, apsw.CorruptError))


def lacks_attempts(connection: apsw.Connection, task: str) -> bool:
    """Return whether a task is recorded without all its attempts."""
    # The plus makes SQLite read the table and not an index, because a damaged index may lack the task.
    return bool(connection.execute(f"{_LACKS_ATTEMPTS} AND +id = ?", (task,)).fetchall())


def is_inconsistent(connection: apsw.Connection) -> bool:
    """Return whether tasks lack attempts, or attempts lack their task."""
    query = f"SELECT EXISTS ({_LACKS_ATTEMPTS}) OR EXISTS ({_ATTEMPT_WITHOUT_TASK})"
    try:
        return bool(connection.execute(query).fetchall()[0][0])
    except apsw.Error as error:
        return is_damage(error)


def damaged(path: str, error: apsw.Error) -> OutliveError:
    """Return the error for a damaged ledger that stays in place.

    A keeper leaves the ledger in place. If it moved the ledger aside, the next reader would find an empty ledger and no
    explanation.
    """
    return Broken(f"the ledger {path} is damaged ({error})", "the next command moves the damaged file aside")


def quarantine(path: str, now: datetime, error: apsw.Error) -> OutliveError:
    """Move a damaged ledger aside, and return the error that reports it.

    The file that was moved aside is never changed.
    """
    with _Alone(path):
        # During the wait for the lock, another process may have moved the damaged file and created a new ledger.
        if not _is_damaged(path):
            return Unavailable(
                f"the ledger {path} was found damaged ({error}) and has been replaced by another process meanwhile",
                "run the command again",
            )
        aside = _move_aside(path, f"{now:%Y%m%dT%H%M%S}")
    return Broken(f"the ledger {path} is damaged ({error}); it was moved to {aside}", _REBUILD)


def _has_remains(path: str) -> bool:
    """Return whether the ledger's file or its log has content.

    The index of the log is ignored.
    """
    return any(os.path.exists(path + suffix) and os.path.getsize(path + suffix) for suffix in ("", "-wal"))


def _move_aside(path: str, when: str) -> str:
    from outlive.bundle.atomic_file import temporary_name  # noqa: PLC0415 - only a damaged ledger needs this import

    aside = temporary_name(f"{path}.broken-{when}")
    for suffix in ("-wal", "-shm", ""):
        if os.path.exists(path + suffix):
            os.rename(path + suffix, aside + suffix)
    return aside


def _is_damaged(path: str) -> bool:
    if not os.path.exists(path):
        return False
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        return bool(connection.pragma("integrity_check", 1) != "ok") or is_inconsistent(connection)
    except apsw.Error as error:
        return is_damage(error)
    finally:
        connection.close()
