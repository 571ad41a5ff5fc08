"""Real clients, each in a home directory of its own, with a scripted model.

Outlive is installed as a user installs it.
"""

from __future__ import annotations

import signal
import subprocess
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.clients.terminal import Terminal
from tests.effects_steps import window_on
from tests.git_steps import ENVIRON, Worktree
from tests.support import SCRIPT, kill_tree, wait_until

if TYPE_CHECKING:
    from tests.clients.model import Asked, Model, Use
    from tests.support import Bench

CLIENTS = Path(__file__).parent / ".clients"
NODE = CLIENTS / "node/node_modules/node/bin"
PATIENCE_S = 80


def program(name: str) -> Path:
    """Return the path of a pinned client."""
    return CLIENTS / name / "node_modules/.bin" / name


class Rig:
    """One user with one client: the user's home directory, project and environment variables."""

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
        """Return a call with which the model reads a file.

        The call is of the client's own tool for reading, if it has one.
        """
        return self.shell(f"cat {path}")

    def tool(self, name: str, **given: Any) -> Use:
        """Return a call of a tool of Outlive's MCP server. Each client has its own names for such tools."""
        raise NotImplementedError

    def ask(self, prompt: str, *options: str, cwd: Path | None = None) -> subprocess.Popen[str]:
        """Start the client with one prompt, after which it exits."""
        raise NotImplementedError

    def begin(self, prompt: str) -> subprocess.Popen[str]:
        """Start a session that can be resumed, and return its id."""
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
        """Return the command line that starts the client in a terminal and passes a prompt to it."""
        raise NotImplementedError

    def start(self, *words: str, cwd: Path | None = None, **options: Any) -> subprocess.Popen[str]:
        """Start the client. If the client still runs after the test, `clean` kills it."""
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
        """Return how often a text contains a hand-off."""
        return told.count("Hand-off of background tasks")

    def until_idle(self) -> None:
        """Wait until the session's turn is over and Outlive's process that will wake the session is running."""
        if self.is_woken:
            wait_until(lambda: list(self.bench.state.glob("*/hooks/*.watch")), "the watcher")

    def is_cleared(self, _: Terminal) -> bool:
        """Return whether a new session has replaced the earlier session in the terminal."""
        return any(each["ended_at"] for each in self.bench.json("session", "list")["sessions"])

    def notices(self, task: str) -> dict[str, str]:
        """Return the states of a task's notices, by the kind of the notice. Reading the states does not change them."""
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
        """Launch a task that stashes the changes in a.py of the project.

        It restores them when the file `go` exists, and never changes b.py.
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


def new_session() -> str:
    """Return a new session id in the form that clients use."""
    return str(uuid.uuid4())


def released(path: Path) -> str:
    """Return a shell loop that waits until a file exists."""
    return f"while ! [ -e {path} ]; do sleep 0.05; done"
