"""OpenClaw and its gateway, with a scripted model."""

from __future__ import annotations

import json
import socket
import time
from contextlib import closing
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from tests.clients.model import Use
from tests.clients.rig import PATIENCE_S, Rig

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from tests.clients.model import Model
    from tests.support import Bench


class OpenClaw(Rig):
    """OpenClaw with a gateway that keeps running. Tests send HTTP requests to the gateway to start turns."""

    name = "openclaw"
    _token = "of-this-test-only"  # noqa: S105 - only this test can reach the gateway

    def __init__(self, bench: Bench, model: Model) -> None:
        super().__init__(bench, model)
        self.other = bench.root / "other"
        self.other.mkdir()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.gateway: subprocess.Popen[str] | None = None

    def environment(self) -> dict[str, str]:
        """Return an environment in which OpenClaw works offline, without channels.

        The hooks get more time than usual, because the machine may be busy.
        """
        return {
            **super().environment(),
            "OPENCLAW_DISABLE_BONJOUR": "1",
            "OPENCLAW_SKIP_CHANNELS": "1",
            "OPENCLAW_NO_RESPAWN": "1",
            "OUTLIVE_HOOK_DEADLINE_S": "8",
        }

    def configure(self, more: str = "") -> Path:
        """Write the client's JSON5 configuration, with two agents in two projects."""
        file = self.home / ".openclaw/openclaw.json"
        file.parent.mkdir()
        file.write_text(
            f"""// mine
{{
  gateway: {{
    mode: 'local', port: {self._port}, bind: "loopback",
    auth: {{ mode: "token", token: "{self._token}" }},
    http: {{ endpoints: {{ chatCompletions: {{ enabled: true }} }} }},  // for my editor
  }},
  {more}
  logging: {{ file: "{self.home}/gateway.log" }},
  models: {{
    mode: "replace",
    providers: {{
      scripted: {{
        baseUrl: "{self.model.url}/v1", apiKey: "x", api: "openai-completions",
        models: [{{ id: "model", name: "Model", input: ["text"], contextWindow: 100000, maxTokens: 4000 }}],
      }},
    }},
  }},
  agents: {{
    defaults: {{
      model: {{ primary: "scripted/model" }}, skipBootstrap: true, heartbeat: {{ every: "0m" }},
    }},
    ownership: "explicit",
    entries: {{ main: {{ workspace: "{self.bench.project}" }}, other: {{ workspace: "{self.other}" }} }},
  }},
}}
"""
        )
        return file

    def shell(self, command: str) -> Use:
        """Return a call of OpenClaw's shell tool."""
        return Use("exec", {"command": command})

    def serve(self) -> None:
        """Start the gateway, and wait until it listens."""
        with (self.home / "gateway.out").open("a") as log:
            self.gateway = self.start("gateway", "run", stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE_S
        while not self._is_up():
            assert self.gateway.poll() is None, (self.home / "gateway.out").read_text()[-2000:]
            assert time.monotonic() < until, "the gateway does not listen"
            time.sleep(0.1)

    def _is_up(self) -> bool:
        try:
            return self._request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def kill_gateway(self) -> None:
        """Kill the gateway, and no other process."""
        assert self.gateway is not None
        self.kill(self.gateway)

    def take_turn(self, prompt: str, session: str, agent: str = "main") -> str:
        """Run one turn of a session, and return the model's answer."""
        content = {"model": f"openclaw/{agent}", "messages": [{"role": "user", "content": prompt}]}
        key = {"x-openclaw-session-key": f"agent:{agent}:{session}"}
        status, said = self._request("POST", "/v1/chat/completions", json.dumps(content), key)
        assert status == 200, said
        return str(json.loads(said)["choices"][0]["message"]["content"])

    def ask_alone(self, prompt: str, session: str) -> str:
        """Run one turn of a session without a gateway, and return the output."""
        words = ("agent", "--local", "--agent", "main", "--session-id", session, "--message", prompt, "--json")
        return self.finish(self.start(*words))

    def call(self, method: str, **given: Any) -> Any:
        """Call a method of the gateway with OpenClaw's command line."""
        words = ("gateway", "call", method, "--json", "--token", self._token, "--params", json.dumps(given))
        return json.loads(self.finish(self.start(*words)))

    def wake(self, session: str, agent: str = "main") -> None:
        """Wake a session with OpenClaw's command line, as a program other than Outlive would."""
        words = ("system", "event", "--text", "look around", "--mode", "now", "--token", self._token)
        self.finish(self.start(*words, "--session-key", f"agent:{agent}:{session}"))

    def _request(
        self, method: str, path: str, content: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        known = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)) as line:
            line.request(method, path, content, {**known, **(headers or {})})
            answer = line.getresponse()
            return answer.status, answer.read()
