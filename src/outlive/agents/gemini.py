"""Gemini CLI as a background agent: `gemini -o stream-json`.

The exit code of Gemini CLI may be an HTTP status modulo 256, and is 0 after a signal. So only the `result` line shows
how a run has ended. This line reports `success` even if the client stopped the run because the model repeated itself.
Such a run is recognized by an earlier line.
"""

from __future__ import annotations

import os

from outlive.agents import fields
from outlive.agents.adapter import Adapter, CommandLine, Patience, class_of_status
from outlive.agents.stream_event import Event
from outlive.domain.text.sanitize import from_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from outlive.domain.agents.request import AgentRequest, AgentStart
    from outlive.domain.agents.result import AgentClass

_QUESTION_TOOL = "ask_user"
_AUTO = "auto"
_TRUST_VARIABLES = ("GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_RESTRICTED_MODE")
_TRUSTED = ("TRUST_FOLDER", "TRUST_PARENT")
_DENIALS = ("tool_not_registered", "policy_violation")
_LOOP = "loop detected"
# Gemini CLI's names of errors, each with our result class. They appear in `result.error.type` and on standard error.
_ERRORS: dict[str, AgentClass] = {
    "FatalTurnLimitedError": "stopped",
    "FatalAuthenticationError": "refused",
    "FatalUntrustedWorkspaceError": "refused",
    "FatalInputError": "refused",
    "FatalConfigError": "refused",
    "FatalCancellationError": "stopped",
    "TerminalQuotaError": "unavailable",
    "RetryableQuotaError": "unavailable",
    "ModelNotFoundError": "refused",
}
# Gemini CLI's exit codes for runs that end before the first line of JSON, each with our result class.
_CODES: dict[str, AgentClass] = {
    "exit code 41": "refused",  # no authentication
    "exit code 42": "refused",  # bad input, for instance an unknown session
    "exit code 52": "refused",  # bad settings
    "exit code 53": "stopped",  # the turns are used up
    "exit code 55": "refused",  # a folder that is not trusted
    "exit code 130": "stopped",  # cancelled
}


class Gemini(Adapter):
    """The adapter of Gemini CLI."""

    name = "gemini"
    provider = "google"
    # Gemini CLI retries for up to four minutes, and reports the retries only on standard error. No command-line option
    # shortens this time. A setting can, but Outlive would have to pass a settings file, which would replace the
    # administrator's file.
    patience = Patience(first_s=180.0, idle_s=420.0)
    assigns_session = True
    session_variables = ("GEMINI_CLI",)

    def __init__(self, table: Any = None) -> None:
        super().__init__(table)
        self._is_reply_due = True
        self._asked_model = ""
        self._stop = ""
        self._remarked: AgentClass | None = None
        self._question_call: str | None = None

    def command(self, request: AgentRequest, start: AgentStart, prompt: str, environ: Mapping[str, str]) -> CommandLine:  # noqa: ARG002 - only other clients use some of these arguments
        """Return the command line of `gemini`, with the prompt as standard input.

        The option `--skip-trust` is not used. It would load the settings, MCP servers and hooks of a repository that
        the user has not trusted. A run in such a repository ends as `refused`, until the user trusts its folder once in
        Gemini CLI. A worktree of the task is trusted if its repository is trusted.
        """
        words = [*self.words(), "-o", "stream-json"]
        if start.model is not None:
            words += ["-m", start.model]
        if start.session is not None:
            words += ["--resume" if start.is_resumed else "--session-id", start.session]
        return CommandLine(argv=(*words, *self.extra()), environ=_trust_of_worktree(request, environ))

    def events(self, line: dict[str, Any]) -> Iterator[Event]:
        """Translate one line of Gemini CLI's `stream-json` output into events."""
        kind, at = line.get("type"), fields.moment(line, "timestamp")
        if kind == "init":
            self._asked_model = fields.text(line, "model")
            # A name that begins with `auto` is not a model. It means that Gemini CLI chooses the model.
            model = self._asked_model if not self._asked_model.startswith(_AUTO) else ""
            yield Event(kind="session", at=at, session=fields.session(line, "session_id"), model=model or None)
        elif kind == "message":
            yield from self._message(line, at)
        elif kind == "tool_use":
            yield from self._reply(at)
            yield from self._call(line, at)
        elif kind == "tool_result":
            yield from self._outcome(line, at)
        elif kind == "error":
            yield from self._error(line, at)
        elif kind == "result":
            yield from self._result(line, at)

    def _reply(self, at: float | None) -> Iterator[Event]:
        if self._is_reply_due:
            self._is_reply_due, self._remarked = False, None
            yield Event(kind="reply", at=at)

    def _message(self, line: dict[str, Any], at: float | None) -> Iterator[Event]:
        text = fields.text(line, "content")
        if line.get("role") == "user":
            self._is_reply_due = True
            yield Event(kind="prompt", at=at, text=text)
        elif line.get("role") == "assistant":
            yield from self._reply(at)
            yield Event(kind="text", at=at, text=text, is_whole=line.get("delta") is not True)

    def _call(self, line: dict[str, Any], at: float | None) -> Iterator[Event]:
        tool, given = fields.text(line, "tool_name"), line.get("parameters")
        yield Event(kind="tool_call", at=at, id=fields.text(line, "tool_id"), tool=tool, given=given)
        if tool == _QUESTION_TOOL:
            self._question_call = fields.text(line, "tool_id")
            yield Event(kind="question", at=at, text=fields.questions(given))

    def _outcome(self, line: dict[str, Any], at: float | None) -> Iterator[Event]:
        self._is_reply_due = True
        call, error = fields.text(line, "tool_id"), fields.text(line, "error", "type")
        text = fields.text(line, "output") or fields.text(line, "error", "message")
        is_error = line.get("status") != "success"
        if error in _DENIALS and call != self._question_call:
            yield Event(kind="denied", at=at, id=call)
        yield Event(kind="tool_result", at=at, id=call, text=text, is_error=is_error)

    def _error(self, line: dict[str, Any], at: float | None) -> Iterator[Event]:
        text = fields.text(line, "message")
        if _LOOP in text.lower():
            self._stop = text
        if line.get("severity") == "warning":
            yield Event(kind="progress", at=at)
        else:
            yield Event(kind="error", at=at, text=text, agent_class=self.class_of(text))

    def _result(self, line: dict[str, Any], at: float | None) -> Iterator[Event]:
        stats = line.get("stats")
        yield Event(
            kind="usage",
            at=at,
            input_tokens=fields.whole(stats, "input_tokens"),
            output_tokens=fields.whole(stats, "output_tokens"),
            is_total=True,
        )
        model = self._model_of(fields.find(stats, "models"))
        if line.get("status") == "success" and not self._stop:
            yield Event(kind="final", at=at, agent_class="answered", model=model)
            return
        name, text = fields.text(line, "error", "type"), fields.text(line, "error", "message") or self._stop
        found: AgentClass | None = "stopped" if self._stop else _ERRORS.get(name) or self.class_of(text)
        found = found or self._remarked  # some errors name their cause only on standard error
        yield Event(
            kind="final",
            at=at,
            agent_class=found or "broken",
            text=_message(text) or name or "the client reported an error",
            model=model,
        )

    def _model_of(self, models: object) -> str | None:
        """Return the model that wrote the answer.

        This is the requested model. If the statistics do not name the requested model, it is the one with the most
        output. The statistics may also name a small model that only chose which model answers.
        """
        if not isinstance(models, dict) or not models:
            return None
        if self._asked_model in models:
            return self._asked_model
        return str(max(models, key=lambda name: fields.whole(models, name, "output_tokens") or 0))

    def remarks(self, text: str) -> Iterator[Event]:
        """Translate one line of Gemini CLI's standard error into events."""
        if text.startswith("Attempt ") and " failed" in text:
            self._is_reply_due = True  # after a failed attempt, Gemini CLI prints the reply again from its start
            text = text.partition(" _")[0]
            yield Event(kind="retry", text=text, agent_class=self.class_of(text) or "unavailable")
            return
        found = next((each for name, each in _ERRORS.items() if name in text), None)
        if found is not None:
            self._remarked = found
            yield Event(kind="error", text=text, agent_class=found)

    def judge(self, errors: Sequence[str], last_line: str, ending: str) -> tuple[AgentClass, str]:
        """Return the result class and the error of a run that ended without a final event.

        The exit codes that Gemini CLI defines have a class. Any other exit code may be an HTTP status modulo 256, so
        the class is then `broken`.
        """
        found, error = super().judge(errors, last_line, ending)
        if found == "broken" and ending in _CODES:
            return _CODES[ending], (errors[-1] if errors else last_line) or error
        return found, error

    def class_of(self, error: str) -> AgentClass | None:
        """Return the result class that an error message stands for, such as `refused`.

        The class is recognized by an HTTP status in the message, or by a phrase.
        """
        digits = error.lower().partition('"code":')[2].strip()[:3] or error.partition("status ")[2][:3]
        status = class_of_status(int(digits)) if digits.isascii() and digits.isdecimal() else None
        found = super().class_of(error)
        return found if found == "stopped" else status or found


def _trust_of_worktree(request: AgentRequest, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variable that makes Gemini CLI trust the task's worktree.

    The worktree is a new folder with a commit of the user's repository, and is trusted if that repository is. The
    result is empty if the repository is not trusted, if one of the user's trust rules applies to the worktree's folder,
    or if the user has set a variable that decides about trust.
    """
    if request.worktree is None or any(environ.get(name) for name in _TRUST_VARIABLES):
        return {}
    home = environ.get("GEMINI_CLI_HOME") or environ.get("HOME", "/")
    try:
        path = environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH") or home + "/.gemini/trustedFolders.json"
        with open(path, encoding="utf-8") as file:
            rules = from_json(file.read())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(rules, dict) or _rule_of(rules, request.worktree.path) is not None:
        return {}
    is_trusted = _rule_of(rules, request.worktree.repository) in _TRUSTED
    return {_TRUST_VARIABLES[0]: "true"} if is_trusted else {}


def _rule_of(rules: dict[str, Any], folder: str) -> object:
    """Return the user's trust rule for a folder, or None if no rule applies.

    If several rules have a path that contains the folder, the one with the longest path applies.
    """
    found, longest, real = None, -1, os.path.realpath(folder) + "/"
    for path, rule in rules.items():
        above = os.path.realpath(os.path.dirname(path) if rule == "TRUST_PARENT" else path)
        if len(path) > longest and real.startswith(above.rstrip("/") + "/"):
            found, longest = rule, len(path)
    return found


def _message(error: str) -> str:
    """Return the readable message in an error text.

    If the text contains a JSON response body, the message is a field of it.
    """
    bare = error.removeprefix("[API Error: ").removesuffix("]") if error.startswith("[API Error: ") else error
    return fields.text(fields.parse_line(bare.encode()), "error", "message") or bare
