"""Real clients, each in a home directory of its own, with a scripted model.

Outlive is installed as a user installs it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import uuid
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from tests.clients.model import Use
from tests.clients.terminal import Terminal
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.support import SCRIPT, kill, kill_tree, wait_until

if TYPE_CHECKING:
    from tests.clients.model import Asked, Model
    from tests.support import Bench

CLIENTS = Path(__file__).parent / ".clients"
NODE = CLIENTS / "node/node_modules/node/bin"
PATIENCE_S = 80


def program(name: str) -> Path:
    """Return the path of a pinned client."""
    return CLIENTS / name / "node_modules/.bin" / name


class Rig:
    """One user with one client: the home directory, the project and the environment."""

    name = ""
    is_woken = True
    """Whether an idle session of this client can be woken."""
    compact = "/compact"
    """The command with which a user compacts the history."""
    compacted = b"ompacted"
    """The text on the screen after the history was compacted."""

    def __init__(self, bench: Bench, model: Model) -> None:
        self.bench = bench
        self.model = model
        self.home = bench.root / "home"
        self.home.mkdir(exist_ok=True)
        self._started: list[subprocess.Popen[str]] = []
        self._terminals: list[Terminal] = []
        bench.env.update(self.environment())

    def environment(self) -> dict[str, str]:
        """Return the environment of this user's processes.

        It contains no variable from the environment of the test run.
        """
        path = [str(NODE), str(program(self.name).parent), str(SCRIPT.parent), "/usr/local/bin", "/usr/bin", "/bin"]
        found = {"PATH": ":".join(path), "HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        # Each time a client that is built with Bun starts, it unpacks libraries of 5 to 13 MB and leaves
        # them in this directory. It is outside of the home directory, in which the doctor must not change any file.
        unpacked = self.bench.root / "unpacked"
        unpacked.mkdir(exist_ok=True)
        return {**found, "BUN_TMPDIR": str(unpacked)}

    def configure(self) -> Path:
        """Write the client's configuration, as its user would, and return the file that `install` will change."""
        raise NotImplementedError

    def install(self, *options: str) -> None:
        """Install Outlive, as a user does."""
        self.bench.ok("install", "--yes", "--client", self.name, *options)

    def shell(self, command: str) -> Use:
        """Return a call of the client's shell tool."""
        raise NotImplementedError

    def look_at(self, path: Path) -> Use:
        """Return a call that reads a file, with the client's own tool if it has one."""
        return self.shell(f"cat {path}")

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server. Each client has its own names for such tools."""
        raise NotImplementedError

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits."""
        raise NotImplementedError

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session that can be resumed."""
        raise NotImplementedError

    def resume(self, prompt: str) -> subprocess.Popen[str]:
        """Continue the last session in a new process."""
        raise NotImplementedError

    def sit_down(self, prompt: str, *words: str) -> Terminal:
        """Start a session in a terminal, for a user who has used the client before."""
        return self._at_a_terminal(self.words_at_a_terminal(prompt, *words))

    def run_at_a_terminal(self, *words: str) -> Terminal:
        """Start the client in a terminal with the given options and no others."""
        return self._at_a_terminal([str(program(self.name)), *words])

    def _at_a_terminal(self, words: list[str]) -> Terminal:
        env = {**self.bench.env, "PWD": str(self.bench.project)}
        terminal = Terminal(words, env, self.bench.project)
        self._terminals.append(terminal)
        return terminal

    def prompt(self, terminal: Terminal, text: str) -> Asked:
        """Enter a prompt, and return the request that the client then sends to the model."""
        before = len(self.model.asked)
        terminal.enter(text, lambda: len(self.model.asked) > before)
        return self.model.asked[before]

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return the command line that starts the client in a terminal with a prompt."""
        raise NotImplementedError

    def start(self, *words: str, cwd: Path | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start the client. If the test does not end it, `clean` does."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        env = {**self.bench.env, "PWD": str(cwd or self.bench.project)}
        given = {"cwd": cwd or self.bench.project, "env": env, **pipes, **options}
        client = subprocess.Popen([str(program(self.name)), *words], text=True, **given)
        self._started.append(client)
        return client

    def finish(self, client: subprocess.Popen[str]) -> str:
        """Wait until the client exits with success, and return its output."""
        out, err = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 0, (client.returncode, out[-2000:], err[-2000:])
        return out

    def kill(self, client: subprocess.Popen[str]) -> None:
        """Kill the client, and no other process."""
        client.send_signal(signal.SIGKILL)
        client.wait()

    def clean(self) -> None:
        """Kill every process of the client that still runs."""
        for terminal in self._terminals:
            terminal.close()
        for client in self._started:
            if client.poll() is None:
                kill_tree(client.pid)
                client.wait()
            for stream in (client.stdin, client.stdout, client.stderr):
                if stream is not None:
                    stream.close()

    def hand_offs(self, told: str) -> int:
        """Return the number of hand-offs in a text."""
        return told.count("Hand-off of background tasks")

    def until_idle(self) -> None:
        """Wait until the turn is over and the process that wakes the session is running."""
        if self.is_woken:
            wait_until(lambda: list(self.bench.state.glob("*/hooks/*.watch")), "the watcher")

    def is_cleared(self, _: Terminal) -> bool:
        """Return whether a new session has replaced the earlier session in the terminal."""
        return any(each["ended_at"] for each in self.bench.json("session", "list")["sessions"])

    def notices(self, task: str) -> dict[str, str]:
        """Return the states of the notices of a task, by kind of notice.

        Reading the notices does not change their states.
        """
        return {notice["kind"]: notice["state"] for notice in self.bench.show(task)["notices"]}

    def only_task(self) -> str:
        """Wait until there is a task, and return its id. Raise an error if there is a second task."""
        found = self.tasks(1)
        assert len(found) == 1
        return found[0]

    def tasks(self, count: int) -> list[str]:
        """Wait until there are `count` tasks, and return their ids, oldest first."""
        found = wait_until(
            lambda: (all_ := self.bench.json("list", "--all")["tasks"])[count - 1 :] and all_, "the tasks"
        )
        return [str(task["id"]) for task in reversed(found)]

    def stash(self, go: Path) -> str:
        """Launch a task that stashes a.py of the project and restores it when the file `go` exists.

        The file b.py is not changed.
        """
        self.bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
        worktree = Worktree(self.bench.project)
        worktree.commit(**{"a.py": "as committed\n", "b.py": "another\n"})
        worktree.write("a.py", "as it should be\n")
        task = self.bench.launch(f"git stash push -q; {released(go)}; git stash pop -q")
        window_on(self.bench, task, "a.py")
        return task

    def until_ended(self, task: str) -> None:
        """Wait until the end of the task is in the ledger."""
        wait_until(lambda: self.bench.row(task).current.settled_at, "the ending")


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
        """Return a call of Outlive's tool, with the server's name as a prefix."""
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
        """Return a command line with which the client asks for no permissions."""
        return [str(program("claude")), "--permission-mode", "bypassPermissions", *words, prompt]

    def come_back(self, session: str | None = None) -> Terminal:
        """Continue a session in a terminal without a prompt. By default, this is the last session."""
        return self._at_a_terminal([*self.words_at_a_terminal("--resume"), session or self._session])

    def until_recorded(self, session: str, text: str) -> None:
        """Wait until the transcript has a text. The text stays there if the client is killed."""
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
        """Return a call of a tool of Outlive, in the namespace that Codex gives to the server."""
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
        """Return whether the client has shown its greeting again.

        After a clear, the hooks of Codex run only at the next prompt.
        """
        return terminal.screen.count(b"OpenAI Codex") > 1

    def words_at_a_terminal(self, prompt: str, *words: str) -> list[str]:
        """Return a command line that keeps earlier output on the screen."""
        return [str(program("codex")), "--no-alt-screen", *words, prompt]


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
            # Gemini CLI does not tell Outlive what its shell may do, so its user must allow launches by MCP.
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
        """Return a call of Outlive's tool, with the server's name as a prefix."""
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
        """Return a command line with which the client asks for no permissions and stays open."""
        return [str(program("gemini")), "--yolo", "-m", "gemini-2.5-pro", *words, "-i", prompt]


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
        """Return a call of Outlive's tool, with the server's name as a prefix."""
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
        """Return a command line that types a prompt into the client without sending it."""
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
        with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - the same address
            return json.loads(answer.read() or b"null")


class OpenClaw(Rig):
    """OpenClaw, with a gateway that keeps running. Tests request turns over HTTP."""

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


def new_session() -> str:
    """Return a new session id in the form that clients use."""
    return str(uuid.uuid4())


def released(path: Path) -> str:
    """Return a shell loop that waits until a file exists."""
    return f"while ! [ -e {path} ]; do sleep 0.05; done"
