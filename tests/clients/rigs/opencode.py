"""OpenCode and its server, with a scripted model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.clients.model import Use
from tests.clients.rig import PATIENCE_S, Rig, program

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path


class OpenCode(Rig):
    """OpenCode with its configuration and its command lines."""

    name = "opencode"

    def environment(self) -> dict[str, str]:
        """Return an environment in which OpenCode works offline, without updates and downloads.

        The user allows launches by MCP.
        """
        return {
            **super().environment(),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OUTLIVE_MCP_RUN": "on",
        }

    def configure(self, dialect: str = "openai-compatible") -> Path:
        """Write the client's configuration with comments, as its user would."""
        file = self.home / ".config/opencode/opencode.json"
        file.parent.mkdir(parents=True)
        provider = {
            "npm": f"@ai-sdk/{dialect}",
            "name": "Scripted",
            "options": {"baseURL": f"{self.model.url}/v1", "apiKey": "not-a-key"},
            "models": {"scripted": {"name": "Scripted", "limit": {"context": 100_000, "output": 8_000}}},
        }
        file.write_text(
            '{\n  "$schema": "https://opencode.ai/config.json",\n  // mine\n'
            '  "model": "scripted/scripted", "small_model": "scripted/scripted",\n'
            f'  "provider": {{"scripted": {json.dumps(provider)}}},\n  "share": "disabled", "autoupdate": false\n}}\n'
        )
        # Before OpenCode loads its first plugin, it lets npm fetch this package, even if no plugin needs it. With these
        # files, the package counts as installed, and npm is not started.
        package = {"dependencies": {"@opencode-ai/plugin": "1.18.33"}}
        (file.parent / "node_modules").mkdir()
        (file.parent / "package.json").write_text(json.dumps(package))
        (file.parent / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": {"": package}}))
        (file.parent / ".gitignore").write_text("node_modules\n")
        return file

    def shell(self, command: str) -> Use:
        """Return a call of OpenCode's shell tool."""
        return Use("bash", {"command": command, "description": "a step"})

    def look_at(self, path: Path) -> Use:
        """Return a call of OpenCode's tool for reading files."""
        return Use("read", {"filePath": str(path)})

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server. The tool's name has the name of the server as a prefix."""
        return Use(f"outlive_{name}", given)

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits."""
        return self.start("run", "--format", "json", *options, prompt, cwd=cwd)

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session, and read its id from the first line of the output."""
        client = self.ask(prompt)
        assert client.stdout is not None
        self._session = str(json.loads(client.stdout.readline())["sessionID"])
        return client

    def resume(self, prompt: str) -> subprocess.Popen[str]:
        """Continue the session, which keeps its id."""
        return self.ask(prompt, "-s", self._session)

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return the command line that starts the client in a terminal with a prompt typed in, but not sent."""
        return [str(program(self.name)), *words, "--prompt", prompt]

    def serve(self) -> Server:
        """Start a server of OpenCode, whose sessions stay open between prompts."""
        return Server(self.start("serve", "--port", "0", "--hostname", "127.0.0.1"), self.bench.project)


class Server:
    """A server of OpenCode, called as OpenCode's user interfaces call it."""

    def __init__(self, client: subprocess.Popen[str], project: Path) -> None:
        self.client = client
        self._project = project
        assert client.stdout is not None
        line = next(line for line in client.stdout if "listening on" in line)
        self._url = line.split()[-1]

    def begin(self) -> str:
        """Create a session and return its id."""
        return str(self.post("/session", {})["id"])

    def say(self, session: str, prompt: str) -> None:
        """Send a prompt to a session, and do not wait for the answer."""
        self.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": prompt}]})

    def is_idle(self, session: str) -> bool:
        """Return whether the turn of a session is over."""
        return session not in self.get("/session/status")

    def get(self, path: str) -> Any:
        """Send a GET request for a path, and return the response."""
        return self._call(path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a POST request with a body to a path, and return the response."""
        return self._call(path, json.dumps(body).encode())

    def delete(self, path: str) -> None:
        """Send a DELETE request for a path."""
        self._call(path, None, "DELETE")

    def _call(self, path: str, content: bytes | None, method: str | None = None) -> Any:
        url = f"{self._url}{path}?directory={quote(str(self._project))}"
        request = Request(  # noqa: S310 - the server has printed this address
            url, content, {"Content-Type": "application/json"}, method=method
        )
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - this address, too, was printed by the server
            return json.loads(answer.read() or b"null")
