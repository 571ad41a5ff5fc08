"""A client without a model, and the settings that describe it to Outlive. The prompt lists the client's steps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from tests.support import Bench

# Each line of the prompt is one step. A line of the form `MODEL? STEP` is a step only if the client runs with this
# model. A continued session takes the steps of its first prompt that begin with `again?`, and then the steps of its new
# prompt.
PROGRAM = """
import json, os, subprocess, sys, time
words = sys.argv[1:]
model = words[words.index("--model") + 1] if "--model" in words else ""
session = words[words.index("--resume") + 1] if "--resume" in words else "s-%d" % os.getpid()
def say(**line):
    print(json.dumps(line), flush=True)
say(type="start", session_id=session)
steps = sys.stdin.read().splitlines()
memory = sys.argv[0] + "." + session
if "--resume" in words and os.path.exists(memory):
    steps = [step[7:] for step in open(memory).read().splitlines() if step.startswith("again? ")] + steps
else:
    open(memory, "w").write("\\n".join(steps))
    steps = [step for step in steps if not step.startswith("again? ")]
for step in steps:
    who, mark, rest = step.partition("? ")
    if mark:
        if who != model: continue
        step = rest
    verb, _, text = step.partition(" ")
    if verb == "say": say(type="message", content=text)
    elif verb == "line": print(text, flush=True)
    elif verb == "call":
        say(type="call", tool="shell", args={"command": text}, id=text)
        done = subprocess.run(text, shell=True, start_new_session=True, capture_output=True, text=True)
        say(type="output", id=text, output=done.stdout + done.stderr)
    elif verb == "shell": subprocess.Popen(text, shell=True, start_new_session=True)
    elif verb == "loop":
        for number in range(200):
            say(type="call", tool="shell", args={"command": text}, id=str(number))
            say(type="output", id=str(number), output="")
            time.sleep(0.02)
    elif verb == "count":
        for number in range(int(text)):
            say(type="call", tool="shell", args={"command": str(number)}, id=str(number))
    elif verb == "cost": say(type="usage", **{"in": 1000, "out": 100, "usd": float(text)})
    elif verb == "error": say(type="error", message=text)
    elif verb == "ask": say(type="ask", question=text)
    elif verb == "answer": say(type="result", result=text)
    elif verb == "sleep": time.sleep(float(text))
    elif verb == "until":
        while not os.path.exists(text): time.sleep(0.01)
    elif verb == "exit": sys.exit(int(text))
"""

LINES = """
[agents.clients.{name}.lines]
answer = {{ when = {{ type = "result" }}, text = "result" }}
text = {{ when = {{ type = "message" }}, text = "content" }}
tool = {{ when = {{ type = "call" }}, name = "tool", input = "args", id = "id" }}
result = {{ when = {{ type = "output" }}, text = "output", id = "id" }}
usage = {{ when = {{ type = "usage" }}, input = "in", output = "out", cost = "usd" }}
error = {{ when = {{ type = "error" }}, text = "message" }}
question = {{ when = {{ type = "ask" }}, text = "question" }}
"""


class Agents:
    """A user whose settings describe two scripted clients, `bot` and `other`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.program = bench.root / "bot.py"
        self.program.write_text(PROGRAM)
        config = bench.root / "config"
        self.settings = config / "outlive/config.toml"
        self.settings.parent.mkdir(parents=True)
        bench.env["XDG_CONFIG_HOME"] = str(config)
        self.configure()

    def configure(self, agents: str = "", more: str = "") -> None:
        """Write the settings. `agents` has further keys of the table `[agents]`, and `more` has further tables."""
        text = f'[agents]\nclient = "bot"\n{agents}\n'
        for name in ("bot", "other"):
            text += f"[agents.clients.{name}]\ncommand = {json.dumps([sys.executable, str(self.program)])}\n"
            text += 'model_arguments = ["--model", "{model}"]\nresume = ["--resume", "{session}"]\n'
            text += f'session = "session_id"\n{LINES.format(name=name)}'
        self.settings.write_text(text + more)

    def launch(self, *steps: str, options: tuple[str, ...] = (), **more: Any) -> str:
        """Launch an agent that takes these steps, and return the id of its task."""
        return self.bench.ok("agent", *options, "--", "\n".join(steps), **more)

    def ended(self, *steps: str, options: tuple[str, ...] = ()) -> Any:
        """Launch an agent, wait until its task has ended, and return the JSON document of the task."""
        task = self.launch(*steps, options=options)
        return self.wait(task)

    def wait(self, task: str) -> Any:
        """Wait until a task has ended, and return its JSON document."""
        done = self.bench.run("wait", task, "--timeout", f"{PATIENCE_S:.0f}s")
        assert done.returncode in (0, 1), done.stderr
        return self.bench.show(task)

    def decisions(self, task: str) -> list[Any]:
        """Return the lines that an agent task has written into its trace file."""
        path = Path(self.bench.home.bundle(task)) / "decisions.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]
