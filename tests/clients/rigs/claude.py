"""Claude Code, with a scripted model."""

from __future__ import annotations

import json
import subprocess
from typing import IO, TYPE_CHECKING, Any

from tests.clients.model import Use
from tests.clients.rig import Rig, new_session, program
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.terminal import Terminal


class Claude(Rig):
    """Claude Code with its configuration and its command lines."""

    name = "claude"

    def environment(self) -> dict[str, str]:
        """Return an environment in which Claude Code works offline, even for root."""
        return {
            **super().environment(),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "not-a-key-but-as-long-as-one",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        }

    def configure(self) -> Path:
        """Write the configuration of a user who has installed a hook of their own."""
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [self.bench.env["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
            "projects": {str(self.bench.project): {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))
        file = self.home / ".claude/settings.json"
        file.parent.mkdir()
        hook = '{"hooks": [{"type": "command", "command": "true"}]}'
        file.write_text(f'{{\n\t"skipDangerousModePermissionPrompt": true,\n\t"hooks": {{"Stop": [{hook}]}}\n}}')
        return file

    def shell(self, command: str, **more: object) -> Use:
        """Return a call of Claude Code's shell tool."""
        return Use("Bash", {"command": command, "description": "a step", **more})

    def look_at(self, path: Path) -> Use:
        """Return a call of Claude Code's tool for reading files."""
        return Use("Read", {"file_path": str(path)})

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server. The tool's name has the name of the server as a prefix."""
        return Use(f"mcp__outlive__{name}", given)

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits."""
        fixed = ("--output-format", "json", "--permission-mode", "bypassPermissions")
        return self.start("-p", prompt, *fixed, *options, cwd=cwd)

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session with an id that the test chooses."""
        self._session = new_session()
        return self.ask(prompt, "--session-id", self._session)

    def resume(self, prompt: str) -> subprocess.Popen[str]:
        """Continue the session, which keeps its id."""
        return self.ask(prompt, "--resume", self._session)

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return the command line of a session in a terminal that never asks the user for permission."""
        return [str(program("claude")), "--permission-mode", "bypassPermissions", *words, prompt]

    def come_back(self, session: str | None = None) -> Terminal:
        """Continue a session in a terminal without a prompt. By default, this is the last session."""
        return self._at_a_terminal([*self.words_at_a_terminal("--resume"), session or self._session])

    def until_recorded(self, session: str, text: str) -> None:
        """Wait until the transcript contains a text.

        A text in the transcript is kept even if the client is then killed.
        """
        wait_until(lambda: text in next(self.home.glob(f".claude/projects/*/{session}.jsonl")).read_text(), text)

    def converse(self, *options: str, stdin: IO[str] | int = subprocess.PIPE) -> Conversation:
        """Start a session without a terminal that reads prompts from stdin."""
        fixed = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        mode = ("--permission-mode", "bypassPermissions")
        return Conversation(self.start("-p", *fixed, *mode, *options, stdin=stdin))


class Conversation:
    """A session without a terminal that reads one prompt after the other from stdin."""

    def __init__(self, client: subprocess.Popen[str]) -> None:
        self.client = client

    def say(self, prompt: str) -> None:
        """Send a prompt to the session."""
        assert self.client.stdin is not None
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self.client.stdin.write(json.dumps(message) + "\n")
        self.client.stdin.flush()

    def result(self) -> str:
        """Wait for the end of the turn, and return the model's answer."""
        assert self.client.stdout is not None
        for line in self.client.stdout:
            event = json.loads(line)
            if event.get("type") == "result":
                return str(event.get("result"))
        raise AssertionError("it ended without a result")
