"""Checks of the installed hooks, with real tasks, clients and hook commands.

A check has the result "untried" if only a person in front of the client can do it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json, to_json
from outlive.domain.value import Value
from outlive.install.clients.registry import present
from outlive.install.doctor.installed_hooks import context_of, installed_hooks, shortest_timeout_s, why_blocked
from outlive.install.doctor.start_client import shell_of, start_once
from outlive.install.doctor.system_limits import init_that_reaps_nothing, is_wsl
from outlive.install.outlive_command import program
from outlive.linux.sandbox import killing_sandbox
from outlive.settings.read_settings import read_agent_settings, settings_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Self

_PATIENCE_S = 30
_SLEEPS_IN_HOOK = ("claude", "codex", "gemini")
_LONG_ENOUGH_S = 3600
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
    "codex": "`codex queue` wakes the session; only a session in a terminal can show that this works",
    "gemini": "the client cannot be woken; the next prompt delivers the notices",
    "openclaw": "the plugin requests a turn from the gateway; only a running gateway can show that this works",
    "cursor": "the client cannot be woken; the next tool result or the end of a turn delivers the notices",
}


# On aarch64, the kernel filter that reports system calls covers only 64-bit programs. A 32-bit program is not reported,
# so Outlive cannot even say that a part of the task was not observed.
_SAID_OF_ARM = ", except for 32-bit programs" if os.uname().machine == "aarch64" else ""


class Finding(Value):
    """The result of one check. `works` is None if nothing was tried."""

    of: str
    what: str
    works: bool | None
    why: str = ""
    hint: str = ""


class Canary:
    """A test session in a temporary directory, which is removed at the end."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._place = tempfile.mkdtemp(prefix="outlive-doctor-")
        self._session = f"doctor-{os.urandom(6).hex()}"
        # Some hooks sleep in a session without a user. The doctor may run inside such a session, but no hook may sleep
        # here.
        own = {"OUTLIVE_SESSION": self._session, "CLAUDE_PROJECT_DIR": self._place, "OUTLIVE_HEADLESS_WAIT": "0"}
        self._environ = {**environ, **own}
        self._tasks: list[str] = []
        self._refused = ("", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for task in self._tasks:
            self._outlive("cancel", task)
        self._outlive("session", "end", "--reason", "the check is over")
        shutil.rmtree(self._place, ignore_errors=True)

    def look_here(self) -> Iterator[Finding]:
        """Check whether a task runs, outlives its launcher and has its changes observed."""
        task = self._launch("true")
        ended = self._task(task) if task else {}
        done = ended.get("state") == "succeeded"
        why, hint = (f"the test task {ended['state']}", "") if ended else self._refused
        yield Finding(of="outlive", what="launch", works=done, why=why, hint="" if done else hint)
        yield _lasting()
        if (init := init_that_reaps_nothing()) is not None:
            yield Finding(
                of="outlive",
                what="process 1",
                works=None,
                why=f"{init} does not reap orphans: every task leaves two zombies, until no process can be created",
                hint="start the container with an init, for example `docker run --init`",
            )
        effects = ended.get("effects") or {}
        level = effects.get("level", "unknown")
        yield Finding(
            of="outlive",
            what="observing",
            works=level in ("observed", "partial"),
            why=f"tasks are {level}{_SAID_OF_ARM}" if level != "unknown" else str(effects.get("summary", "")),
        )

    def look_at(self, client: str) -> Iterator[Finding]:
        """Check the hooks, the shell and the notices of one client.

        A configuration that cannot be read gives a failed check, and the other clients are still checked.
        """
        try:
            yield from self._paths_of(client)
        except UserError as error:
            yield Finding(of=client, what="hooks", works=False, why=error.message, hint="correct that file")

    def _paths_of(self, client: str) -> Iterator[Finding]:
        hooks = installed_hooks(client, self._environ)
        if not hooks:
            hint = f"outlive install --client {client}" if client in present(self._environ) else ""
            yield Finding(of=client, what="hooks", works=None, why=f"Outlive is not installed in {client}", hint=hint)
            return
        called = self._is_called(client)
        yield called
        yield self._shell(client)
        for found in self._paths(client, hooks):
            # If the client does not call a hook, the hook has no effect, even if its reply in this test is correct.
            yield (
                found if called.works is not False else found.but(works=False, why="the client does not call this hook")
            )

    def _is_called(self, client: str) -> Finding:
        """Check whether the client calls Outlive's hooks, by starting the client."""
        blocked = why_blocked(client, self._environ)
        untried = start_once(client, self._place, self._environ)
        listed: Any = from_json(self._outlive("session", "list", "--all", "--json").stdout or "{}")
        here = os.path.realpath(self._place)
        if any(each["project"] == here and each["client"] == client for each in listed.get("sessions", ())):
            return Finding(of=client, what="hooks", works=True, why="the client calls the hooks")
        if untried is not None and blocked is None:
            return Finding(of=client, what="hooks", works=None, why=untried)
        why, hint = blocked or (
            "the client was started, but called no hook",
            f"run `outlive install --client {client}`, and check for settings that disable hooks",
        )
        return Finding(of=client, what="hooks", works=False, why=why, hint=hint)

    def _shell(self, client: str) -> Finding:
        """Check whether a task outlives the client's shell that launched it.

        The shell may run in a sandbox that kills its processes at the end.
        """
        shell = shell_of(client, self._environ)
        if shell is None:
            return Finding(of=client, what="launch", works=True, why="no sandbox of the client's shell is known")
        hint = "allow the client to run `outlive` outside of its sandbox, or launch from a terminal"
        if isinstance(shell, str):
            return Finding(
                of=client, what="launch", works=False, why=f"the client's shell is sandboxed: {shell}", hint=hint
            )
        done = self._run([*shell, *program(), "run", "--session", self._session, "--retain", "1h", "sleep 300"], "")
        task = done.stdout.strip()
        if not task:
            said = next(iter(done.stderr.strip().splitlines()[-2:]), "nothing")
            return Finding(
                of=client,
                what="launch",
                works=False,
                why=f"the launch in the client's sandbox failed: {said}",
                hint=hint,
            )
        self._tasks.append(task)
        state = self._task(task).get("state")
        works = state == "running"
        why = "the client's sandbox does not end a task" if works else f"the client's sandbox ended the task: {state}"
        return Finding(of=client, what="launch", works=works, why=why, hint="" if works else hint)

    def _paths(self, client: str, hooks: Mapping[str, list[list[str]]]) -> Iterator[Finding]:
        start = _STARTS.get(client, "SessionStart")
        self._call(hooks, start, source="startup")
        ended = self._launch("true")
        said = self._call(hooks, _STOPS[client], is_one_turn=True)
        yield self._gate(client, ended, said)
        endless = self._launch("sleep 300")
        said = self._call(hooks, start, source="resume")
        yield _finding_of_report(client, "hand-off", endless, said, "a new session gets a report of the task")
        if client in _WOKEN_BY_HOOK:
            woken = self._wake(hooks, endless)
            yield _finding_of_report(client, "wake", endless, woken, "the end of a task wakes an idle session")
        else:
            self._outlive("cancel", endless)
            yield Finding(of=client, what="wake", works=None, why=_WAKES[client])
        self._call(hooks, _RESULTS[client])
        short = self._launch("true")
        said = self._call(hooks, _RESULTS[client])
        yield _finding_of_report(client, "delivery", short, said, "the next tool results report the end of a task")

    def _gate(self, client: str, task: str, said: str) -> Finding:
        """Check the hook that is called when a session stops.

        It must report a task that has ended, and must have a long enough timeout.
        """
        found = _finding_of_report(client, "gate", task, said, "the end of a turn reports ended tasks")
        allowed_s = shortest_timeout_s(client, _STOPS[client], self._environ)
        if not found.works or allowed_s is None or client not in _SLEEPS_IN_HOOK or allowed_s >= _LONG_ENOUGH_S:
            return found
        return found.but(
            works=False,
            why=f"the client ends this hook after {allowed_s:.0f} s, so a headless session does not wait for its tasks",
            hint=f"run `outlive install --client {client}`, which sets a timeout of one day",
        )

    def _launch(self, text: str) -> str:
        """Launch a task and return its id. If the command is `true`, wait for its end."""
        done = self._outlive("run", "--session", self._session, "--retain", "1h", text)
        task = done.stdout.strip()
        fact, hint, *_ = (*done.stderr.splitlines(), "", "")
        self._refused = (fact.removeprefix("outlive: ") or "the task was not started", hint.removeprefix("hint: "))
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
        """Call the hooks for an event, and return the text that they give to the model."""
        payload = to_json({"session_id": self._session, "cwd": self._place, "hook_event_name": event, **fields})
        ours = [words for words in hooks.get(event, ()) if "Wake" not in words]
        return " ".join(context_of(self._run(words, payload).stdout) for words in ours)

    def _wake(self, hooks: Mapping[str, list[list[str]]], task: str) -> str:
        """Test the hook that wakes an idle session, and return the text that it prints.

        The hook is started, and then a task ends.
        """
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
            assert watcher.stdin is not None  # noqa: S101 - Popen was called with a pipe, so this is not None
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


def check_settings(environ: Mapping[str, str], project: str) -> Finding:
    """Check whether the user's settings file can be read for tasks of a project."""
    finding = Finding(of="outlive", what="settings", works=True)
    try:
        found = read_agent_settings(environ, project)
    except UserError as error:
        return finding.but(works=False, why=error.message, hint=error.hint)
    if found.path is None:
        return finding.but(
            works=None, why=f"there is no {settings_path(environ) or 'home directory'}, so the defaults apply"
        )
    return finding.but(why=f"{found.path} is read")


def _lasting() -> Finding:
    """Check whether this system lets tasks run on after their launcher has exited."""
    lasting = Finding(of="outlive", what="lasting", works=True, why="tasks outlive their launcher here")
    if (maker := killing_sandbox()) is not None:
        hint = "launch from outside of the sandbox, or allow `outlive` to run unsandboxed"
        return lasting.but(works=False, why=f"every process here ends together with {maker}", hint=hint)
    if is_wsl():
        return lasting.but(
            works=None,
            why="WSL stops the distribution, and every task in it, soon after its last shell has closed",
            hint="while tasks run, keep a shell of the distribution open, or a process that `wsl.exe --exec` started",
        )
    return lasting


def _finding_of_report(client: str, what: str, task: str, said: str, works: str) -> Finding:
    if task and task in said:
        return Finding(of=client, what=what, works=True, why=works)
    return Finding(
        of=client,
        what=what,
        works=False,
        why="its hook did not report the test task" if task else "no test task could be launched",
        hint=f"`outlive install --client {client}` writes the hook again; OUTLIVE_TRACE=1 records its decisions",
    )
