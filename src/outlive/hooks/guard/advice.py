"""Advice before a tool call whose command may lose a session's background work.

Each kind of advice is given once per session. With `--guard rewrite`, the hook replaces the command. No command is
replaced if the client has permission rules. The client would check the new command by these rules, and not the command
that the model wrote.
"""

from __future__ import annotations

import os

from outlive.bundle.home import Home, locate
from outlive.domain.tasks.command import quote
from outlive.hooks.event import Answer
from outlive.hooks.state import session_files
from outlive.observe.shell.split_text import pieces, pieces_within, program
from outlive.service.sessions.claude_restrictions import rule_given_to, settings_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.hooks.event import Event, Put

LONGEST_SLEEP_S = 60
SHORTEST_POLL_S = 1
_DETACHERS = ("nohup", "setsid", "disown")
_JOINTS = ("&&", "|")
_BROAD_KILLERS = ("pkill", "killall")
_FINDERS = ("pgrep", "pidof")
_LOOPS = ("while", "until", "for")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_RUN = (
    "`outlive run --description TEXT -- CMD` runs the command so that it survives this session, and tells this session"
    " or its successor how it ended"
)
ADVICE = {
    "background": f"A command in the background of the client may end with the session, or without a report. {_RUN}.",
    "detached": f"A process detached by hand has no record, and no session is told how it ends. {_RUN}.",
    "polling": (
        "Sleeping and then checking costs turns. `outlive run` tells this session when a command ends; `outlive wait"
        " ID` blocks until then, and `outlive wait ID --until PATTERN` until its output matches."
    ),
    "broad_kill": (
        "Killing by name also ends other sessions' processes. `outlive cancel ID` ends one task with every process that"
        " it started; `outlive list` shows the tasks."
    ),
}
_ORDER = tuple(ADVICE)
_TELL_NO_SESSION = ("gemini", "cursor")


def advise(event: Event, guard: str, put: Put, held: str = "") -> None:
    """Reply to a tool call with a warning, with advice, or with a new command.

    `held` is the warning about files that a task has changed, or an empty string.
    """
    if event.command is None:
        if held:
            put(Answer(context=f"[outlive] {held}"))
        return
    found = [] if guard == "off" else kinds_in(event.command, is_background=event.is_background)
    if guard == "rewrite" and (better := rewritten(event, found)) is not None:
        put(Answer(tool_input=better, context=f"[outlive] {held}" if held else ""))
        return
    own = _with_session(event)
    news = _not_said_before(event, found)
    said = " ".join((*([held] if held else ()), *(ADVICE[kind] for kind in news)))
    if said or own is not None:
        put(Answer(context=f"[outlive] {said}" if said else "", tool_input=own))


def kinds_in(command: str, *, is_background: bool) -> list[str]:
    """Return the kinds of advice that a command needs."""
    found = ["background"] if is_background else []
    parts = pieces_within(command)
    programs = [program(part) for part in parts]
    if any(words[:1] == ("outlive",) for words in programs):
        return []
    if any(part.is_background or words[:1] in _names(_DETACHERS) for part, words in zip(parts, programs, strict=True)):
        found.append("detached")
    sleeps = [words for words in programs if words[:1] == ("sleep",)]
    in_loop = any(part.words[:1] in _names(_LOOPS) for part in parts)
    longest = max((_seconds(words) for words in sleeps), default=0.0)
    if longest >= LONGEST_SLEEP_S or (in_loop and longest >= SHORTEST_POLL_S):
        found.append("polling")
    if any(words[:1] in _names(_BROAD_KILLERS) for words in programs) or _kills_what_it_finds(programs):
        found.append("broad_kill")
    return found


def _kills_what_it_finds(programs: list[tuple[str, ...]]) -> bool:
    """Return whether a command kills processes by name, such as `kill $(pgrep node)`."""
    killers = [words for words in programs if words[:1] == ("kill",) or (words[:1] == ("xargs",) and "kill" in words)]
    finds = any(words[:1] in _names(_FINDERS) for words in programs)
    within = any(finder in word for words in killers for word in words for finder in _FINDERS)
    return bool(killers) and (finds or within)


def _names(names: tuple[str, ...]) -> list[tuple[str]]:
    return [(name,) for name in names]


def _seconds(words: tuple[str, ...]) -> float:
    total = 0.0
    for word in words[1:]:
        number, unit = (word[:-1], _UNITS[word[-1]]) if word[-1:] in _UNITS else (word, 1)
        try:
            total += float(number) * unit
        except ValueError:
            total += SHORTEST_POLL_S  # the duration is a variable, so assume the shortest one that needs advice
    return total


def rewritten(event: Event, found: list[str]) -> dict[str, object] | None:
    """Return the tool's input, changed so that Outlive runs the command as a task.

    Returns None if the command must not be replaced.
    """
    if (
        not event.asks_nobody
        or event.command is None
        or found not in (["background"], ["detached"], ["background", "detached"])
    ):
        return None
    if event.client == "claude" and _has_rules(event):
        return None
    text = _without_detaching(event.command, is_background=event.is_background)
    if text is None:
        return None
    better = {
        name: value for name, value in event.tool_input.items() if name not in ("run_in_background", "is_background")
    }
    about = event.tool_input.get("description")
    named = ["--description", quote(about)] if isinstance(about, str) and about else []
    # The client runs commands with bash, but `outlive run` would run the text with sh. So the new command calls bash.
    return {**better, "command": " ".join(["outlive", "run", *named, "--", "bash", "-c", quote(text)])}


def _without_detaching(command: str, *, is_background: bool) -> str | None:
    """Return a command without its `&`, `nohup` or `setsid`.

    Returns None if the command might then behave differently.
    """
    text, parts = command.strip(), pieces(command)
    if parts and parts[-1].is_background and text.endswith("&"):
        if any(part.ended_by not in _JOINTS for part in parts[:-1]):
            return None  # in `a; b &`, the shell waits for `a`. It would not wait for a task that runs both
        text = text[:-1].rstrip()
    elif not is_background:
        return None
    for name in _DETACHERS[:2]:
        if text.startswith(name + " ") and _is_plainly_wrapped(text):
            text = text.removeprefix(name).lstrip()
    parts = pieces_within(text)
    if not parts or any(part.is_background or program(part)[:1] in _names(_DETACHERS) for part in parts):
        return None
    return text


def _is_plainly_wrapped(text: str) -> bool:
    """Return whether a command line is one command after a wrapper without options.

    A wrapper is a program such as `nohup`, which runs the command in its arguments.
    """
    parts = pieces(text)
    return len(parts) == 1 and len(parts[0].words) > 1 and not parts[0].words[1].startswith("-")


def _has_rules(event: Event) -> bool:
    """Return whether the client may have rules that deny commands or ask the user."""
    if event.process is not None and rule_given_to(event.process):
        return True
    for place in settings_files(os.environ, event.cwd):
        try:
            with open(place, "rb") as file:
                content = file.read(1 << 20)
        except FileNotFoundError:
            continue
        except OSError:
            return True
        if b'"deny"' in content or b'"ask"' in content:
            return True
    return False


def _with_session(event: Event) -> dict[str, object] | None:
    """Return the tool's input with a command that sets the session's id for `outlive`.

    Returns None if the command does not call `outlive`, or if the client sets the id itself.
    """
    if event.client not in _TELL_NO_SESSION or event.command is None:
        return None
    if not any(program(part)[:1] == ("outlive",) for part in pieces_within(event.command)):
        return None
    return {**event.tool_input, "command": f"export OUTLIVE_SESSION={quote(event.session)}; {event.command}"}


def _not_said_before(event: Event, found: list[str]) -> list[str]:
    """Return the kinds of advice that this agent has not received yet.

    The function also records that the agent receives them now.
    """
    if not found:
        return []
    home = Home(locate(os.environ))
    kind_of_mark = "advised_below" if event.is_sub_agent else "advised"
    said = session_files.count(home, event.session, kind_of_mark)
    news = [kind for kind in found if not said >> _ORDER.index(kind) & 1]
    for kind in news:
        said |= 1 << _ORDER.index(kind)
    if news:
        session_files.set_count(home, event.session, kind_of_mark, said)
    return news
