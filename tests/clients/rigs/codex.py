"""Codex, with a scripted model."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.clients.model import Use
from tests.clients.rig import Rig, program
from tests.support import SCRIPT, kill, kill_tree

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.clients.terminal import Terminal


class Codex(Rig):
    """Codex with its configuration and its command lines."""

    name = "codex"

    def environment(self) -> dict[str, str]:
        """Return an environment with the key for the scripted model."""
        return {**super().environment(), "SCRIPTED_KEY": "not-a-key"}

    def configure(self) -> Path:
        """Write the client's configuration, as its user would."""
        file = self.home / ".codex/config.toml"
        file.parent.mkdir()
        file.write_text(
            f'model = "scripted"  # mine\nmodel_provider = "scripted"\napproval_policy = "never"\n'
            f'sandbox_mode = "danger-full-access"\n\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{self.model.url}/v1"\nwire_api = "responses"\nenv_key = "SCRIPTED_KEY"\n\n'
            f'[projects."{self.bench.project}"]\ntrust_level = "trusted"\n'
        )
        # Codex starts a login shell, which sets its own search path.
        (self.home / ".bash_profile").write_text(f'export PATH="{SCRIPT.parent}:$PATH"\n')
        return file

    def clean(self) -> None:
        """Kill every process, including the server that a session in a terminal leaves running.

        The server's program is in the user's home directory.
        """
        super().clean()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                is_ours = os.readlink(f"/proc/{pid}/exe").startswith(str(self.home))
            except OSError:
                continue
            if is_ours:
                kill(int(pid))

    def kill(self, client: subprocess.Popen[str]) -> None:
        """Kill the wrapper script and the client that it runs."""
        kill_tree(client.pid)
        client.wait()

    def shell(self, command: str) -> Use:
        """Return a call of Codex's shell tool."""
        return Use("exec_command", {"cmd": command})

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server, whose name has the prefix that Codex gives to the server."""
        return Use(name, given, namespace="mcp__outlive")

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits. It trusts the installed hooks, so that they run."""
        return self.start("exec", "--skip-git-repo-check", *options, "--json", prompt, cwd=cwd)

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session, and read its id from the first line of the output."""
        client = self.ask(prompt)
        assert client.stdout is not None
        self._session = str(json.loads(client.stdout.readline())["thread_id"])
        return client

    def resume(self, prompt: str) -> subprocess.Popen[str]:
        """Continue the session, which keeps its id."""
        return self.ask(prompt, "resume", self._session)

    def is_cleared(self, terminal: Terminal) -> bool:
        """Return whether the client has shown its greeting a second time.

        After a clear, Codex calls no hook before the next prompt.
        """
        return terminal.screen.count(b"OpenAI Codex") > 1

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return the command line of a session in a terminal whose earlier output stays on the screen."""
        return [str(program("codex")), "--no-alt-screen", *words, prompt]
