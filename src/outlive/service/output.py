"""Reading an output as it is now: from an offset on, or its last lines, for every surface."""

from __future__ import annotations

import os

from outlive.bundle.output import Piece, read_piece, size_of
from outlive.domain.errors import Unavailable, UserError
from outlive.domain.text import masked
from outlive.service.follow import CHUNK
from outlive.service.view import files_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from outlive.bundle.attempt import AttemptFiles
    from outlive.bundle.home import Home
    from outlive.domain.task import Task


def files_of_attempt(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """The files of an attempt that was asked for, by default the newest."""
    if attempt is not None and not 0 < attempt <= len(task.attempts):
        raise UserError(f"task {task.id} has {len(task.attempts)} attempts", "outlive show tells them apart")
    return files_of(home, task, attempt)


def files_with_output(home: Home, task: Task, attempt: int | None) -> AttemptFiles:
    """The same, if its output is there to be read."""
    files = files_of_attempt(home, task, attempt)
    if not os.path.exists(files.output):
        # It is made before the row is: read as empty, it would tell that the command wrote nothing.
        raise Unavailable(
            f"the output of task {task.id} is gone: somebody has deleted its files",
            f"`outlive show {task.id}` tells what is on record",
        )
    return files


def start_of_tail(files: AttemptFiles, wanted: int) -> int:
    """The offset at which the last so many lines begin."""
    at, lines, end = size_of(files), 0, size_of(files)
    while at > 0:
        step = min(at, CHUNK)
        piece = read_piece(files, at - step, step)
        for index in range(len(piece.content) - 1, -1, -1):
            if piece.content[index] == 10 and piece.start + index + 1 < end:
                lines += 1
                if lines == wanted:
                    return piece.start + index + 1
        if piece.dropped_before:
            return piece.start  # the hole: nothing older is left
        at -= step
    return 0 if wanted else end


def pieces_of(files: AttemptFiles, start: int, limit: int | None) -> Iterator[Piece]:
    """The output as it is now, from `start` on, at most so many bytes of it."""
    end, left = size_of(files), limit
    while start < end and (left is None or left > 0):
        piece = read_piece(files, start, min(CHUNK, end - start, CHUNK if left is None else left))
        if not piece.content:
            return
        yield piece
        start = piece.end
        left = None if left is None else left - len(piece.content)


def output_document(task: Task, files: AttemptFiles, start: int, pieces: Sequence[Piece]) -> dict[str, object]:
    """What was read as JSON; `next` is where to go on."""
    return {
        "id": task.id,
        "state": task.state,
        "start": pieces[0].start if pieces else start,
        "next": pieces[-1].end if pieces else min(start, size_of(files)),
        "bytes": size_of(files),
        "dropped_bytes": sum(piece.dropped_before for piece in pieces),
        "truncated": task.current.output_truncated,
        "content": masked(b"".join(piece.content for piece in pieces).decode("utf-8", "replace")),
    }
