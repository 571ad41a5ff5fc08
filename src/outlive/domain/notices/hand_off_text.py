"""The hand-off: the text about tasks that a session receives when it begins.

A session also receives the hand-off after each compaction, resumption or clearing of its history, before it acts.

Ten tasks fit into 3 KB. With more tasks, each line is shorter. With very many tasks, some tasks get no line, and the
hand-off only states their number.
"""

from __future__ import annotations

from outlive.domain.effects.describe import few_names, how_long, summary_of, taking_words
from outlive.domain.effects.path_summary import without_filled
from outlive.domain.notices.notice_text import cut_bytes, frame, how_it_ended, ran_beside, ran_inside
from outlive.domain.text.sanitize import one_line
from outlive.domain.text.units import show_duration, them
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from outlive.domain.agents.result import AgentResult
    from outlive.domain.effects.drift import Drift
    from outlive.domain.effects.effects import Effects, Window
    from outlive.domain.effects.overlap import Overlap
    from outlive.domain.effects.predicted import Declared
    from outlive.domain.sessions.client_task import ClientTask
    from outlive.domain.tasks.task import Task

DIGEST_BYTES = 3000
_NARROWEST, _WIDEST = 48, 400
_FRAME = 900
_MOST_WINDOWS, _MOST_FOREIGN, _FOREIGN_LINE = 3, 3, 260
_MOST_BESIDE, _BESIDE_LINE = 3, 160
_EARLIER_LINE, _TOLD_LINE = 200, 100
_WIDEST_PLACE = 120


class Line(Value):
    """The data for one task's line in the hand-off."""

    task: Task
    last_line: str = ""
    agent: AgentResult | None = None
    """The present state of an agent task, as far as it is known. None for a command."""
    taking: Declared | None = None
    """The changes that the command's text shows.

    Set only if the command changes files that it did not write itself.
    """
    earlier: bool = False
    """Whether an earlier session of this project launched the task, and no session continues that session."""
    drift: Drift | None = None
    """The changes since the task ended. None if no snapshots were compared."""
    effects: Effects | None = None
    """The changes that an ended task made. None if the caller did not request them."""
    overlaps: tuple[Overlap, ...] = ()
    """What other tasks, sessions and clients did in the task's project while it ran.

    This is set only for an ended task.
    """


class HandOffText(Value):
    """The data from which a hand-off is written."""

    running: tuple[Line, ...] = ()
    ended: tuple[Line, ...] = ()
    lost: tuple[Line, ...] = ()
    more_running: int = 0
    """The number of further running tasks, which get no line.

    The next two fields count further ended and lost tasks.
    """
    more_ended: int = 0
    more_lost: int = 0
    earlier: tuple[Line, ...] = ()
    """Ended tasks of earlier sessions, if no open session receives the notices of these tasks."""
    earlier_more: int = 0
    """The number of further ended tasks of earlier sessions, which get no line."""
    earlier_more_failed: int = 0
    """The number of tasks counted in `earlier_more` that did not succeed."""
    told: tuple[Line, ...] = ()
    """Tasks that ended in the last hour, before the session's history was summarised.

    The session was told about their end, but the summary may lack it.
    """
    elsewhere: int = 0
    """The number of running tasks in this project that other open sessions launched, or that no session launched."""
    beside: tuple[Line, ...] = ()
    """Tasks of other sessions that declared paths, or whose command text shows that they move or remove files."""
    foreign: tuple[ClientTask, ...] = ()
    """Background commands that this session's client runs itself, without Outlive.

    Commands for sessions whose notices this session gets are included.
    """
    foreign_elsewhere: tuple[ClientTask, ...] = ()
    """Background commands that clients run for other open sessions of this project.

    The clients run them without Outlive.
    """
    windows: tuple[tuple[str, Window], ...] = ()
    """The files of this directory tree that a task has changed and not restored.

    They are grouped by task, each group with the id of the task.
    """
    windows_more: int = 0
    """The number of further ended tasks that left paths of this tree changed.

    The tree is the directory tree of the session. It was not checked whether these paths are still changed.
    """
    windows_unsure: tuple[str, ...] = ()
    """Tasks that may have changed more files of this directory tree than are listed.

    They changed too many files to check all of them.
    """
    tree: str | None = None
    """The directory tree of the session that receives the hand-off.

    For a path in another tree, the text names that tree.
    """

    @property
    def is_empty(self) -> bool:
        """Whether the hand-off has no content."""
        return not (
            self.running
            or self.ended
            or self.lost
            or self.foreign
            or self.foreign_elsewhere
            or self.windows
            or self.windows_unsure
            or self.beside
            or self.earlier
            or self.told
        )


def shown_of(digest: HandOffText) -> int:
    """Return how many of the session's tasks the hand-off can name at most."""
    return min(_room(digest) // _NARROWEST, len(digest.running) + len(digest.ended) + len(digest.lost))


def _room(digest: HandOffText) -> int:
    """Return how many bytes of the hand-off are for the session's own tasks."""
    return (
        DIGEST_BYTES
        - _FRAME
        - _BESIDE_LINE * (len(digest.beside[:_MOST_BESIDE]) + len(digest.earlier))
        - _TOLD_LINE * len(digest.told)
    )


def write_digest(digest: HandOffText, mark: str, now: datetime) -> str:
    """Return the text of the hand-off for a model, or "" if there is no content."""
    if digest.is_empty:
        return ""
    shown = max(1, shown_of(digest))
    width = min(max(_room(digest) // shown, _NARROWEST), _WIDEST)
    parts: list[str] = []
    left = shown
    for head, lines, more in (
        ("lost, the end was not observed", digest.lost, digest.more_lost),
        ("ended, and not yet reported to you", digest.ended, digest.more_ended),
        ("still running", digest.running, digest.more_running),
    ):
        if not lines:
            continue
        parts.append(f"{head} ({len(lines) + more}):")
        parts += [_line(line, width, now) for line in lines[:left]]
        if (rest := len(lines) + more - left) > 0:
            parts.append(f"  and {rest} more: outlive list")
        left = max(0, left - len(lines))
    if digest.earlier:
        parts.append(f"ended, launched by sessions that are over ({len(digest.earlier) + digest.earlier_more}):")
        parts += [_line(line, _EARLIER_LINE, now) for line in digest.earlier]
        parts += _rest_of_earlier(digest)
    if digest.told:
        parts.append("ended within the last hour, and reported before the summary:")
        parts += [_line(line, _TOLD_LINE, now) for line in digest.told]
    if digest.elsewhere:
        parts.append(f"{digest.elsewhere} more tasks of others run in this project: outlive list")
        parts += [_line(line, _BESIDE_LINE, now) for line in digest.beside[:_MOST_BESIDE]]
    parts += _foreign_lines(digest, now)
    parts += [held_line(task, window, now, digest.tree) for task, window in digest.windows[:_MOST_WINDOWS]]
    parts += [unsure_line(task) for task in digest.windows_unsure[:_MOST_WINDOWS]]
    if (more := len(digest.windows) + digest.windows_more - _MOST_WINDOWS) > 0:
        parts.append(f"and {more} more changed and not restored: outlive gate")
    parts.append("more: outlive show ID; outlive output ID --tail 20; outlive wait ID; outlive result ID")
    return frame(mark, "Hand-off of background tasks; it replaces every earlier hand-off.", parts)


def _foreign_lines(digest: HandOffText, now: datetime) -> list[str]:
    """Return the lines about background commands that clients run without Outlive.

    The commands of this session's client come first.
    """
    parts = []
    for head, found, width in (
        ("run by the client itself, not by Outlive", digest.foreign, _FOREIGN_LINE),
        (
            "run by the clients of other sessions in this project; what they write is not known",
            digest.foreign_elsewhere,
            _BESIDE_LINE,
        ),
    ):
        if found:
            parts.append(f"{head} ({len(found)}):")
            parts += [cut_bytes(foreign_line(one, now), width) for one in found[:_MOST_FOREIGN]]
    return parts


def _rest_of_earlier(digest: HandOffText) -> list[str]:
    """Return the line with the number of earlier sessions' tasks that are not listed.

    These ended tasks are not reported again. Returns no line if there are no such tasks.
    """
    if not digest.earlier_more:
        return []
    failed = f" ({digest.earlier_more_failed} without success)" if digest.earlier_more_failed else ""
    return [f"  and {digest.earlier_more} more{failed}, which are not reported again: outlive list"]


def maybe_held_line(  # noqa: PLR0917 - each argument becomes a part of the returned line
    task: str, window: Window, unread: tuple[str, ...], now: datetime, tree: str, unchecked: int = 0
) -> str:
    """Return the warning about files that a command may touch while they are changed.

    A task has changed these files and not restored them. `unread` means that `outlive guard` cannot interpret some
    words of the command. Then the warning says that Outlive cannot tell whether the command touches the files.
    """
    line = held_line(task, window, now, tree, unchecked)
    if not unread:
        return line
    words = ", ".join(one_line(word, 40) for word in unread)
    return f"cannot tell whether the command touches this, because {words} cannot be interpreted: {line}"


def held_line(task: str, window: Window, now: datetime, tree: str | None, unchecked: int = 0) -> str:
    """Return the warning about files that a task has changed and not restored.

    If the files are not in the session's directory tree (`tree`), the warning names their tree, because both trees may
    have files of the same names. `unchecked` is the number of further paths that were not compared with their present
    state.
    """
    paths, unchecked = without_filled(window.paths), unchecked or window.uncompared
    names = few_names(paths, window.scope) + (f" (and up to {unchecked:,} that were not compared)" if unchecked else "")
    is_shared = all(path.endswith("/refs/stash") for path in paths)  # all worktrees of a repository share one stash
    if tree not in (None, window.scope) and not is_shared:
        names += f" in {one_line(window.scope, _WIDEST_PLACE)}"
    since, these = how_long(window, now), them(len(paths))
    if not window.is_attributed:
        differ = "differs" if len(paths) == 1 else "differ"
        return f"{names} {differ} from what task {task} found, for {since} (watched: unknown who changed {these})"
    did = f"has ended and left {names} changed" if window.is_left else f"has changed {names} and not restored {these}"
    return f"task {task} {did}, for {since} ({one_line(window.by, 60)})"


def unsure_line(task: str) -> str:
    """Return the warning about a task that changed too many files to check them all."""
    return f"cannot tell whether task {task} has changed files here: it changed too many to compare all"


def foreign_line(one: ClientTask, now: datetime) -> str:
    """Return the line about a command or child session that a client runs by itself."""
    words = {
        "running": "runs",
        "unknown": "may run, or have ended",
        "lost": "has ended, exit code unknown",
    }
    if one.seen.kind == "session":
        words["lost"] = f"is lost ({one.reason or 'unobservable'}): {_why_unseen(one)}; its result is not known"
    where = f" in {one_line(one.seen.cwd, 60)}" if one.seen.cwd else ""
    where += f", output in {one_line(one.seen.output, 100)}" if one.seen.output else ""
    if one.state != "running" and one.written_at is not None:
        where += f", last written {show_duration(now - one.written_at)} ago"
    ago = show_duration(now - one.seen_at)
    return (
        f"  {one_line(one.seen.id, 40)} {words[one.state]}, reported {ago} ago: {one_line(one.seen.command, 80)}{where}"
    )


def _why_unseen(one: ClientTask) -> str:
    """Return why a child session counts as lost, as a clause."""
    if one.is_abandoned:
        return "its client has exited"
    return "the client no longer lists it" if one.unread_since is None else "the client cannot read its state"


def _line(line: Line, width: int, now: datetime) -> str:
    task, attempt = line.task, line.task.current
    if attempt.settled_at is None:
        age = show_duration(now - (attempt.started_at or attempt.created_at))
        how = f"{attempt.state} for {age}" + (f", {attempt.condition}" if attempt.condition else "")
        how += "" if line.agent is None else f", {_agent_words(line.agent)}"
        how += "" if line.taking is None else f", {taking_words(line.taking)}"
        how += _declared(task)
    else:
        how = how_it_ended(attempt) + ("" if attempt.agent is None else f", {_agent_words(attempt.agent)}")
    head = f"  {task.id}{' (of an earlier session)' if line.earlier else ''} {how}: "
    room = width - len(head)
    what = one_line(task.launch.command, max(room // 2, 20))
    news = [ran_inside(each, task.launch.project) for each in line.overlaps if each.is_inside][:1]
    news += [ran_beside(each.foreign) for each in line.overlaps if each.foreign is not None][:1]
    news += [line.drift.summary] if line.drift is not None and line.drift.moved else []
    if line.effects is not None and not line.effects.is_empty:
        news.append(f"{line.effects.level}: {summary_of(line.effects, now)}")
    told = [f"; {_whole_parts(each, max(room // 3, 52))}" for each in news]
    words = [what, *told, f"{';' if told else ''} in {one_line(task.launch.cwd, max(room // 4, 12))}"]
    if line.last_line:
        name = "last line" if line.agent is None else "last progress"
        words.append(f', {name} "{one_line(line.last_line, max(room // 4, 12))}"')
    text = head
    for word in words:
        if len(text) + len(word) <= width or text == head:
            text += word
    return cut_bytes(text, width)


def _agent_words(agent: AgentResult) -> str:
    """Return a phrase with an agent's model, and with its turns, tokens and cost."""
    from outlive.domain.notices.agent_text import model_name, spent  # noqa: PLC0415 - only agent tasks need this import

    return f"agent {model_name(agent)}" + (f" ({used})" if (used := spent(agent)) else "")


def _whole_parts(sentence: str, width: int) -> str:
    """Return as many whole parts of a sentence as fit into `width` characters.

    Semicolons separate the parts. Only the first part is cut if it alone is too long. A cut would turn `26ms` into
    `26m…`, which reads as minutes.
    """
    parts = _parts_of(one_line(sentence, _WIDEST))
    while len(parts) > 1 and len("; ".join(parts)) > width:
        parts.pop()
    return one_line("; ".join(parts), width)


def _parts_of(sentence: str) -> list[str]:
    """Return the parts of a sentence that semicolons separate.

    A semicolon in brackets separates no parts. It may belong to the text of a shell command.
    """
    parts: list[str] = []
    depth = 0
    for piece in sentence.split("; "):
        if depth:
            parts[-1] += f"; {piece}"
        else:
            parts.append(piece)
        depth = max(0, depth + piece.count("(") - piece.count(")"))
    return parts


def _declared(task: Task) -> str:
    """Return a phrase with the paths that the task's launcher declared, or "" if none."""
    paths = task.launch.touches
    return f", touches {few_names(paths, task.launch.project)} by its launch" if paths else ""


def named_in(digest: HandOffText) -> Sequence[str]:
    """Return the ids of the session's tasks that have a line in the hand-off."""
    return [line.task.id for line in (*digest.lost, *digest.ended, *digest.running)][: shown_of(digest)]


def running_beside(digest: HandOffText) -> Sequence[str]:
    """Return the ids of the tasks in the hand-off that other sessions run."""
    windows = [task for task, window in digest.windows[:_MOST_WINDOWS] if not window.is_left]
    return [*(line.task.id for line in digest.beside[:_MOST_BESIDE]), *windows]
