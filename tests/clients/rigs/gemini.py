"""Gemini CLI, with a scripted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.clients.model import Use
from tests.clients.rig import Rig, program

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.clients.terminal import Terminal


class Gemini(Rig):
    """Gemini CLI with its configuration and its command lines."""

    name = "gemini"
    is_woken = False
    compact = "/compress"
    compacted = b"ompressed"

    def environment(self) -> dict[str, str]:
        """Return an environment in which Gemini CLI works offline and trusts every folder."""
        return {
            **super().environment(),
            "GEMINI_API_KEY": "not-a-key",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
            # Gemini CLI does not tell Outlive which commands its shell tool may run. So the user must allow launches by
            # MCP.
            "OUTLIVE_MCP_RUN": "on",
        }

    def configure(self) -> Path:
        """Write the client's configuration with comments, as its user would."""
        file = self.home / ".gemini/settings.json"
        file.parent.mkdir()
        file.write_text(
            '{\n  // mine\n  "security": {"auth": {"selectedType": "gemini-api-key"}},\n'
            '  "privacy": {"usageStatisticsEnabled": false},\n  "general": {"enableAutoUpdate": false}\n}\n'
        )
        return file

    def shell(self, command: str) -> Use:
        """Return a call of Gemini CLI's shell tool."""
        return Use("run_shell_command", {"command": command, "description": "a step"})

    def look_at(self, path: Path) -> Use:
        """Return a call of Gemini CLI's tool for reading files."""
        return Use("read_file", {"file_path": str(path)})

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server. The tool's name has the name of the server as a prefix."""
        return Use(f"mcp_outlive_{name}", given)

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits."""
        fixed = ("--yolo", "--output-format", "json", "-m", "gemini-2.5-pro")
        return self.start("-p", prompt, *fixed, *options, cwd=cwd)

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session. It is then the latest session, which `resume` continues."""
        return self.ask(prompt)

    def resume(self, prompt: str) -> subprocess.Popen[str]:
        """Continue the latest session, which gets a new id."""
        return self.ask(prompt, "--resume", "latest")

    def is_cleared(self, terminal: Terminal) -> bool:
        """Return whether the screen is complete after the session was cleared.

        The client draws the screen once with the hook's name and once without. It loses text that is typed before the
        second drawing.
        """
        drawn = terminal.screen.rpartition(b"SessionStart")[2].count(b"Type your message")
        return drawn > 1 and bool(list(self.bench.state.glob("*/hooks/*.begins")))

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return the command line of a session in a terminal that never asks the user for permission and stays open."""
        return [str(program("gemini")), "--yolo", "-m", "gemini-2.5-pro", *words, "-i", prompt]
