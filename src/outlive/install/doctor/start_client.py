"""A test start of a client, to see whether it calls Outlive's hooks.

The client is given a local model server that refuses every request, so no data leaves the machine. The hooks at the
beginning of a session run before the first request. Settings that switch off hooks also apply to the test.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from outlive.bundle.home import locate
from outlive.domain.text.sanitize import to_json
from outlive.install.clients import openclaw
from outlive.install.clients.registry import CLIENTS
from outlive.install.config import jsonc
from outlive.install.config.target_file import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    Start = tuple[list[str], dict[str, str]]

_PATIENCE_S = 60
_ASK = "send it any prompt, then run `outlive session list`"
_PROVIDER = "outlive_doctor"
_SHELLS_ARE_FREE = ("opencode", "openclaw", "cursor")
_ELSEWHERE = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


def start_once(client: str, place: str, environ: Mapping[str, str]) -> str | None:
    """Start a client, and wait until it has exited.

    Returns why that was not possible, or None if the client was started and has exited.
    """
    program = shutil.which(client, path=environ.get("PATH"))
    if client == "cursor":
        return f"the doctor cannot start Cursor; {_ASK}"
    if program is None:
        return f"{client} is not on the PATH, so the hooks cannot be tried"
    with (
        _RefusingModel() as model,
        tempfile.TemporaryDirectory(prefix="outlive-doctor-", ignore_cleanup_errors=True) as aside,
    ):
        words, variables = _call(client, model.url, place, aside, environ)
        own = {name: text for name, text in environ.items() if name not in (*_ELSEWHERE, "OUTLIVE_SESSION")}
        try:
            running = subprocess.Popen(
                [program, *words],
                cwd=place,
                env={**own, **variables, "PWD": place},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            return f"{program} cannot be started: {error.strerror}"
        try:
            running.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            return f"the client did not end within {_PATIENCE_S} s; {_ASK}"
    return None


def _call(client: str, url: str, place: str, aside: str, environ: Mapping[str, str]) -> Start:
    """Return the arguments and variables that start a client for one prompt.

    The client uses the model server at `url`.
    """
    if client == "opencode":
        return _call_opencode(url, aside, environ)
    if client == "openclaw":
        return _call_openclaw(url, place, aside, environ)
    if client == "claude":
        variables = {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
        words = ["-p", "hello", "--no-session-persistence", "--settings", to_json({"env": variables})]
        return words, {**variables, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    if client == "codex":
        provider = f'{{name = "none", base_url = "{url}/v1", wire_api = "responses", env_key = "OUTLIVE_NO_KEY"}}'
        told = ["-c", f'model_provider="{_PROVIDER}"', "-c", f"model_providers.{_PROVIDER}={provider}"]
        return ["exec", "--skip-git-repo-check", "--ephemeral", *told, "hello"], {"OUTLIVE_NO_KEY": "none"}
    return ["-p", "hello"], {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _call_opencode(url: str, aside: str, environ: Mapping[str, str]) -> Start:
    """Return the arguments and variables that start OpenCode for one prompt.

    The session's data goes to the directory `aside`, so that the user's sessions stay unchanged.
    """
    model = f"{_PROVIDER}/none"
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
        "models": {"none": {"name": "none"}},
    }
    told = {
        "model": model,
        "small_model": model,
        "provider": {_PROVIDER: provider},
        "enabled_providers": [_PROVIDER],
        "share": "disabled",
    }
    return ["run", "hello"], {
        "OPENCODE_CONFIG_CONTENT": to_json(told),
        "XDG_DATA_HOME": f"{aside}/data",
        "XDG_STATE_HOME": f"{aside}/state",
        "OUTLIVE_HOME": os.path.dirname(locate(environ)),  # the default would change with XDG_STATE_HOME
        **{
            f"OPENCODE_DISABLE_{what}": "1"
            for what in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
        },
    }


def _call_openclaw(url: str, place: str, aside: str, environ: Mapping[str, str]) -> Start:
    """Return the arguments and variables that start OpenClaw for one prompt.

    Its data goes to the directory `aside`, and its gateway is not used.
    """
    text = read(openclaw.configuration(environ)) or "{}"
    node = jsonc.find(jsonc.parse(text), ("plugins",))
    given = jsonc.value_of(text, node) if node is not None else None
    plugins = given if isinstance(given, dict) else {}
    entries = plugins.get("entries")
    ours = entries.get("outlive") if isinstance(entries, dict) else None
    provider = {
        "baseUrl": f"{url}/v1",
        "apiKey": "none",
        "api": "openai-completions",
        "models": [{"id": "none", "name": "none", "input": ["text"], "contextWindow": 100_000, "maxTokens": 4_000}],
    }
    told = {
        "plugins": {
            **{name: plugins[name] for name in ("enabled", "allow", "deny") if name in plugins},
            "entries": {"outlive": ours} if ours is not None else {},
        },
        "models": {"mode": "replace", "providers": {_PROVIDER: provider}},
        "agents": {
            "defaults": {"model": {"primary": f"{_PROVIDER}/none"}, "workspace": place, "skipBootstrap": True},
        },
    }
    os.mkdir(f"{aside}/extensions")
    os.symlink(f"{openclaw.directory(environ)}/extensions/outlive", f"{aside}/extensions/outlive")
    path = f"{aside}/openclaw.json"
    with open(path, "w", encoding="utf-8") as file:
        file.write(to_json(told))
    return ["agent", "--local", "--agent", "main", "--session-id", "outlive-doctor", "--message", "hello"], {
        "OPENCLAW_STATE_DIR": aside,
        "OPENCLAW_CONFIG_PATH": path,
        "OPENCLAW_NO_RESPAWN": "1",
    }


def shell_of(client: str, environ: Mapping[str, str]) -> list[str] | str | None:
    """Return how a client's shell is sandboxed, or None if no sandbox is known.

    For Codex, the result is the beginning of a command line. For other clients, the result is the name of the setting
    that enables the sandbox.
    """
    if client in _SHELLS_ARE_FREE:
        return None
    top = CLIENTS[client].directory(environ)
    if client == "codex":
        import tomllib  # noqa: PLC0415 - imported here, because only the doctor needs it

        try:
            settings = tomllib.loads(read(f"{top}/config.toml") or "")
        except tomllib.TOMLDecodeError:
            settings = {}
        program = shutil.which(client, path=environ.get("PATH"))
        is_free = settings.get("sandbox_mode") == "danger-full-access"
        return None if is_free or program is None else [program, "sandbox", "--"]
    path = f"{top}/settings.json"
    name = ("sandbox", "enabled") if client == "claude" else ("tools", "sandbox")
    text = read(path) or ""
    node = jsonc.find(jsonc.parse(text), name) if text.strip() else None
    if node is None or not jsonc.value_of(text, node):
        return None
    return f"{'.'.join(name)} in {path}"


class _RefusingModel:
    """A model server on the loopback interface that refuses every request."""

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _RefusingHandler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _RefusingHandler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """Refuse a request, with an error after which clients do not try again."""
        content = to_json({"type": "error", "error": {"type": "invalid_request_error", "message": "no model"}})
        self.send_response(400)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content.encode("ascii"))

    def log_message(self, *_: object) -> None:
        """Do nothing. Otherwise each request would be logged on stderr."""
