"""A canary through every path that is configured: real tasks, the client itself, and the very commands that it calls.

What only a person in front of the client could see is said to be untried.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from outlive.bundle.sandbox import doomed_by
from outlive.domain.errors import UserError
from outlive.domain.text import from_json, to_json
from outlive.domain.value import Value
from outlive.install.installed import context_of, installed_hooks, why_blocked
from outlive.install.program import program
from outlive.install.trial import shell_of, start_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Self

_PATIENCE_S = 30
_WOKEN_BY_HOOK = ("claude", "opencode")
_STARTS = {"opencode": "chat.message", "openclaw": "session_start", "cursor": "sessionStart"}
_RESULTS = {
    "claude": "PostToolBatch",
    "codex": "PostToolUse",
    "gemini": "AfterTool",
    "opencode": "tool.execute.after",
    "openclaw": "after_tool_call",
    "cursor": "postToolUse",
}
_STOPS = {
    "claude": "Stop",
    "codex": "Stop",
    "gemini": "AfterAgent",
    "opencode": "session.idle",
    "openclaw": "before_agent_finalize",
    "cursor": "stop",
}
_WAKES = {
    "codex": "by `codex queue`, which only a session in a terminal could show",
    "gemini": "nobody can wake it; the next prompt tells",
    "openclaw": "the plugin asks the gateway for a turn, without a webhook or a token; only a gateway could show it",
    "cursor": "it has no way; what ended is told beside its next result or at the end of its turn",
}


class Finding(Value):
    """What was found of one path: it works, it does not, or nobody can tell."""

    of: str
    what: str
    works: bool | None
    why: str = ""
    hint: str = ""


class Canary:
    """One session of its own, in a directory of its own, that is taken away afterwards."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._place = tempfile.mkdtemp(prefix="outlive-doctor-")
        self._session = f"doctor-{os.urandom(6).hex()}"
        self._environ = {**environ, "OUTLIVE_SESSION": self._session, "CLAUDE_PROJECT_DIR": self._place}
        self._tasks: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            self._outlive("cancel", task)
        self._outlive("session", "end", "--reason", "the examination is over")
        shutil.rmtree(self._place, ignore_errors=True)

    def look_here(self) -> Iterator[Finding]:
        """What every client needs: that a task runs, lasts, and is observed."""
        task = self._launch("true")
        ended = self._task(task) if task else {}
        done = ended.get("state") == "succeeded"
        yield Finding(of="outlive", what="launch", works=done, why=f"it {ended.get('state', 'was not started')}")
        maker = doomed_by()
        yield Finding(
            of="outlive",
            what="lasting",
            works=maker is None,
            why="nothing here ends a task with its launcher" if maker is None else f"all ends here with {maker}",
            hint="" if maker is None else "launch from outside of the sandbox, or allow `outlive` to run unsandboxed",
        )
        effects = ended.get("effects") or {}
        level = effects.get("level", "unknown")
        yield Finding(
            of="outlive",
            what="observing",
            works=level in ("observed", "partial"),
            why=f"tasks are {level}" if level != "unknown" else str(effects.get("summary", "")),
        )

    def look_at(self, client: str) -> Iterator[Finding]:
        """Every path of one client; a configuration that cannot be read is a finding, and of that client only."""
        try:
            yield from self._paths_of(client)
        except UserError as error:
            yield Finding(of=client, what="hooks", works=False, why=error.message, hint="mend that file")

    def _paths_of(self, client: str) -> Iterator[Finding]:
        hooks = installed_hooks(client, self._environ)
        if not hooks:
            yield Finding(of=client, what="hooks", works=None, why="not installed", hint="outlive install")
            return
        called = self._is_called(client)
        yield called
        yield self._shell(client)
        for found in self._paths(client, hooks):
            # Whatever a hook would say, nobody hears it.
            yield (
                found if called.works is not False else found.but(works=False, why="the client does not call its hook")
            )

    def _is_called(self, client: str) -> Finding:
        """Whether the client calls our hooks, by starting it."""
        blocked = why_blocked(client, self._environ)
        untried = start_once(client, self._place, self._environ)
        listed: Any = from_json(self._outlive("session", "list", "--all", "--json").stdout or "{}")
        here = os.path.realpath(self._place)
        if any(each["project"] == here and each["client"] == client for each in listed.get("sessions", ())):
            return Finding(of=client, what="hooks", works=True, why="the client calls them")
        if untried is not None and blocked is None:
            return Finding(of=client, what="hooks", works=None, why=untried)
        why, hint = blocked or (
            "the client was started, and called none",
            f"`outlive install --client {client}`; look for settings that disable hooks",
        )
        return Finding(of=client, what="hooks", works=False, why=why, hint=hint)

    def _shell(self, client: str) -> Finding:
        """Whether what the client's own shell launches lasts."""
        shell = shell_of(client, self._environ)
        if shell is None:
            return Finding(of=client, what="launch", works=True, why="its shell has no sandbox that is known of")
        hint = "let it run `outlive` outside of its sandbox, or launch from a terminal"
        if isinstance(shell, str):
            return Finding(of=client, what="launch", works=False, why=f"its shell is sandboxed: {shell}", hint=hint)
        done = self._run([*shell, *program(), "run", "--session", self._session, "--retain", "1h", "sleep 300"], "")
        task = done.stdout.strip()
        if not task:
            said = next(iter(done.stderr.strip().splitlines()[-2:]), "nothing")
            return Finding(of=client, what="launch", works=False, why=f"in its sandbox: {said}", hint=hint)
        self._tasks.append(task)
        state = self._task(task).get("state")
        works = state == "running"
        why = "its sandbox lets a task live on" if works else f"its sandbox ended the task: {state}"
        return Finding(of=client, what="launch", works=works, why=why, hint="" if works else hint)

    def _paths(self, client: str, hooks: Mapping[str, list[list[str]]]) -> Iterator[Finding]:
        start = _STARTS.get(client, "SessionStart")
        self._call(hooks, start, source="startup")
        endless = self._launch("sleep 300")
        said = self._call(hooks, _STOPS[client], is_one_turn=True)
        yield _told(client, "gate", endless, said, "the end of a turn waits for it")
        said = self._call(hooks, start, source="resume")
        yield _told(client, "hand-off", endless, said, "a beginning session is told of it")
        if client in _WOKEN_BY_HOOK:
            woken = self._wake(hooks, endless)
            yield _told(client, "wake", endless, woken, "an idle session is woken by its end")
        else:
            self._outlive("cancel", endless)
            yield Finding(of=client, what="wake", works=None, why=_WAKES[client])
        self._call(hooks, _RESULTS[client])
        short = self._launch("true")
        said = self._call(hooks, _RESULTS[client])
        yield _told(client, "delivery", short, said, "its end is told beside the next results")

    def _launch(self, text: str) -> str:
        """A task that is not kept for long; waited for, if it is short. Empty if it was not started."""
        done = self._outlive("run", "--session", self._session, "--retain", "1h", text)
        task = done.stdout.strip()
        if task:
            self._tasks.append(task)
            if text == "true":
                self._outlive("wait", task, "--no-ack", "--timeout", f"{_PATIENCE_S}s")
        return task

    def _task(self, task: str) -> dict[str, Any]:
        found = self._outlive("show", task, "--json").stdout
        document: Any = from_json(found) if found.strip() else {}
        return dict(document)

    def _outlive(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self._run([*program(), *words], "")

    def _call(self, hooks: Mapping[str, list[list[str]]], event: str, **fields: object) -> str:
        """What the hooks of an event say to the model."""
        payload = to_json({"session_id": self._session, "cwd": self._place, "hook_event_name": event, **fields})
        ours = [words for words in hooks.get(event, ()) if "Wake" not in words]
        return " ".join(context_of(self._run(words, payload).stdout) for words in ours)

    def _wake(self, hooks: Mapping[str, list[list[str]]], task: str) -> str:
        """What the watcher of an idle session says when the task ends."""
        ours = [words for words in (*hooks.get("Stop", ()), *hooks.get("Wake", ())) if "Wake" in words]
        if not ours:
            return ""
        payload = {"session_id": self._session, "cwd": self._place, "hook_event_name": "Stop"}
        environ = {**self._environ, "CLAUDE_PID": str(os.getpid()), "CLAUDE_CODE_ENTRYPOINT": "cli"}
        try:
            watcher = subprocess.Popen(
                ours[0], env=environ, cwd=self._place, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except OSError:
            return ""
        try:
            assert watcher.stdin is not None  # noqa: S101 - it was asked for
            watcher.stdin.write(to_json(payload))
            watcher.stdin.close()
            self._outlive("cancel", task)
            watcher.stdin = None
            said = watcher.communicate(timeout=_PATIENCE_S)[1]
        except (OSError, subprocess.TimeoutExpired):
            watcher.kill()
            watcher.wait()
            return ""
        return said if watcher.returncode == 2 else ""

    def _run(self, words: list[str], given: str) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                words,
                input=given,
                env=self._environ,
                cwd=self._place,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return subprocess.CompletedProcess(words, 1, "", str(error))


def _told(client: str, what: str, task: str, said: str, works: str) -> Finding:
    if task and task in said:
        return Finding(of=client, what=what, works=True, why=works)
    return Finding(
        of=client,
        what=what,
        works=False,
        why="its hook did not name the canary" if task else "no canary could be launched",
        hint=f"`outlive install --client {client}` writes it anew; OUTLIVE_TRACE=1 tells what it decides",
    )
