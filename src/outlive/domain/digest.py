"""The hand-off: what a session is told at a boundary, before it acts.

Ten tasks fit into 3 KB; of more, each gets fewer words, and of very many some are only counted.
"""

from __future__ import annotations

from outlive.domain.effects_words import few_names, how_long, summary_of
from outlive.domain.folding import without_filled
from outlive.domain.quantity import show_duration, them
from outlive.domain.telling import cut_bytes, frame, how_it_ended
from outlive.domain.text import one_line
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.drift import Drift
    from outlive.domain.effects import Effects, Window
    from outlive.domain.foreign import Foreign
    from outlive.domain.task import Task

DIGEST_BYTES = 3000
_NARROWEST, _WIDEST = 48, 400
_FRAME = 900
_MOST_WINDOWS, _MOST_FOREIGN, _FOREIGN_LINE = 3, 3, 260
_MOST_BESIDE, _BESIDE_LINE = 3, 160
_WIDEST_PLACE = 120


class Line(Value):
    """A task as the hand-off mentions it."""

    task: Task
    last_line: str = ""
    takes_away: bool = False
    """Its text says that it takes something away for a while."""
    earlier: bool = False
    """It is owed to an earlier session of this project that nobody continues."""
    drift: Drift | None = None
    """What has moved in the world since it ended; None if nobody compared."""
    effects: Effects | None = None
    """What it touched, of one that has ended; None if nobody asked."""


class Digest(Value):
    """All there is to hand over."""

    running: tuple[Line, ...] = ()
    ended: tuple[Line, ...] = ()
    lost: tuple[Line, ...] = ()
    elsewhere: int = 0
    """How many tasks run in this project of other living sessions, or of none."""
    beside: tuple[Line, ...] = ()
    """Those of them that say what they are going to touch, or to take away."""
    foreign: tuple[Foreign, ...] = ()
    """What the clients of these sessions run themselves."""
    windows: tuple[tuple[str, Window], ...] = ()
    """Windows that are open on this tree now, and whose task opened them."""
    tree: str | None = None
    """The tree of who reads this: what lies in another one is told with where that is."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to say."""
        return not (self.running or self.ended or self.lost or self.foreign or self.windows or self.beside)


def shown_of(digest: Digest) -> int:
    """How many tasks can be named at all."""
    return min(_room(digest) // _NARROWEST, len(digest.running) + len(digest.ended) + len(digest.lost))


def _room(digest: Digest) -> int:
    """How many bytes there are for the session's own tasks."""
    return DIGEST_BYTES - _FRAME - _BESIDE_LINE * len(digest.beside[:_MOST_BESIDE])


def write_digest(digest: Digest, mark: str, now: datetime) -> str:
    """The digest as a model reads it; nothing at all if there is nothing to say."""
    if digest.is_empty:
        return ""
    shown = max(1, shown_of(digest))
    width = min(max(_room(digest) // shown, _NARROWEST), _WIDEST)
    parts: list[str] = []
    left = shown
    for head, lines in (
        ("lost, nobody saw how it ended", digest.lost),
        ("ended, and you have not been told", digest.ended),
        ("still running", digest.running),
    ):
        if not lines:
            continue
        parts.append(f"{head} ({len(lines)}):")
        parts += [_line(line, width, now) for line in lines[:left]]
        if len(lines) > left:
            parts.append(f"  and {len(lines) - left} more: outlive list")
        left = max(0, left - len(lines))
    if digest.elsewhere:
        parts.append(f"others run {digest.elsewhere} more in this project: outlive list")
        parts += [_line(line, _BESIDE_LINE, now) for line in digest.beside[:_MOST_BESIDE]]
    if digest.foreign:
        parts.append(f"not kept by Outlive, but by the client itself ({len(digest.foreign)}):")
        parts += [cut_bytes(_foreign_line(one, now), _FOREIGN_LINE) for one in digest.foreign[:_MOST_FOREIGN]]
    parts += [held_line(task, window, now, digest.tree) for task, window in digest.windows[:_MOST_WINDOWS]]
    if (more := len(digest.windows) - _MOST_WINDOWS) > 0:
        parts.append(f"and {more} more not as they were found: outlive gate")
    parts.append("more: outlive show ID; outlive output ID --tail 20; outlive wait ID; outlive result ID")
    return frame(mark, "Hand-off of background tasks; it replaces every earlier hand-off.", parts)


def maybe_held_line(task: str, window: Window, unread: tuple[str, ...], now: datetime, tree: str) -> str:
    """A window that is open, as a warning; and why nobody can tell whether it matters, if there are unread words."""
    line = held_line(task, window, now, tree)
    if not unread:
        return line
    return (
        f"cannot tell whether it is touched, {', '.join(one_line(word, 40) for word in unread)} cannot be read: {line}"
    )


def held_line(task: str, window: Window, now: datetime, tree: str | None) -> str:
    """A window that is open, as a warning to who works in this tree, which may have files of the same names."""
    paths = without_filled(window.paths)
    names = few_names(paths, window.scope)
    is_shared = all(path.endswith("/refs/stash") for path in paths)  # all worktrees have the same
    if tree not in (None, window.scope) and not is_shared:
        names += f" in {one_line(window.scope, _WIDEST_PLACE)}"
    since, found = how_long(window, now), f"found {them(len(paths))}"
    if not window.is_attributed:
        return f"{names} not as task {task} {found}, since {since} (watched: nobody knows who did it)"
    does = "has ended and left" if window.is_left else "holds"
    return f"task {task} {does} {names} away from how it {found}, since {since} ({one_line(window.by, 60)})"


def _foreign_line(one: Foreign, now: datetime) -> str:
    words = {"running": "runs", "unknown": "may run, or have ended", "lost": "is lost, nobody saw how it ended"}
    where = f", output in {one_line(one.seen.output, 100)}" if one.seen.output else ""
    ago = show_duration(now - one.seen_at)
    return f"  {one_line(one.seen.id, 40)} {words[one.state]}, told {ago} ago: {one_line(one.seen.command, 80)}{where}"


def _line(line: Line, width: int, now: datetime) -> str:
    task, attempt = line.task, line.task.current
    if attempt.settled_at is None:
        age = show_duration(now - (attempt.started_at or attempt.created_at))
        how = f"{attempt.state} for {age}" + (f", {attempt.condition}" if attempt.condition else "")
        how += ", by its text takes files away for a while" if line.takes_away else ""
        how += _declared(task)
    else:
        how = how_it_ended(attempt)
    head = f"  {task.id}{' (of an earlier session)' if line.earlier else ''} {how}: "
    room = width - len(head)
    what = one_line(task.launch.command, max(room // 2, 20))
    news = [line.drift.summary] if line.drift is not None and line.drift.moved else []
    if line.effects is not None and not line.effects.is_empty:
        news.append(f"{line.effects.level}: {summary_of(line.effects, now)}")
    told = [f"; {_whole_parts(each, max(room // 3, 52))}" for each in news]
    words = [what, *told, f"{';' if told else ''} in {one_line(task.launch.cwd, max(room // 4, 12))}"]
    if line.last_line:
        words.append(f', last line "{one_line(line.last_line, max(room // 4, 12))}"')
    text = head
    for word in words:
        if len(text) + len(word) <= width or text == head:
            text += word
    return cut_bytes(text, width)


def _whole_parts(sentence: str, width: int) -> str:
    """As many parts of a sentence as there is room for: a number that is cut is another one (`26m…` of `26ms`)."""
    parts = one_line(sentence, _WIDEST).split("; ")
    while len(parts) > 1 and len("; ".join(parts)) > width:
        parts.pop()
    return one_line("; ".join(parts), width)


def _declared(task: Task) -> str:
    """What its launch says that it touches, as a warning."""
    paths = task.launch.touches
    return f", touches {few_names(paths, task.launch.project)} by its launch" if paths else ""


def named_in(digest: Digest) -> Sequence[str]:
    """The ids of the tasks that the digest names, and does not only count."""
    return [line.task.id for line in (*digest.lost, *digest.ended, *digest.running)][: shown_of(digest)]
