"""`--json`: every command prints one document with the documented fields. Row 58 of the acceptance scenarios."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.parser import help_text
from tests.agent_lines import launch_agent

if TYPE_CHECKING:
    from tests.support import Bench

TASK_FIELDS = {
    *("id", "description", "command", "argv", "cwd", "state", "exit_code", "signal", "reason", "condition"),
    *("session", "lineage", "project", "group", "parent", "key", "mode", "engine", "host", "attempt", "attempts"),
    *("created_at", "started_at", "settled_at", "duration_s", "delete_after", "output", "git", "effects"),
    *("left_running", "settled_by"),
}


def test_verbs_print_one_json_document(bench: Bench) -> None:
    """Every command prints one JSON document, and every document of a task has all documented fields."""
    task = bench.launch("echo hi", "--session", "s-0")
    bench.ok("wait", task)
    notice = bench.show(task)["notices"][0]["id"]
    reader = bench.launch("cat", "--stdin", "--cwd", "/")
    stranger = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
    calls = {
        "run": ("run", "--", "sleep", "30"),
        "list": ("list",),
        "show": ("show", task),
        "output": ("output", task),
        "agent": ("agent", "--client", "bot", "--", "answer"),
        "transcript": ("transcript", launch_agent(bench, "true")),
        "wait": ("wait", task),
        "result": ("result", task),
        "cancel": ("cancel",),
        "retry": ("retry", task),
        "adopt": ("adopt", str(stranger.pid)),
        "send": ("send", reader, "hello"),
        "ports": ("ports", "--all"),
        "session": ("session", "begin", "--session", "s-1"),
        "inbox": ("inbox", "--session", "s-1"),
        "gate": ("gate", "--session", "s-1"),
        "guard": ("guard", "."),
        "hand-off": ("hand-off", "--session", "s-1"),
        "ack": ("ack", notice, "--session", "s-0"),
        "dismiss": ("dismiss", notice),
        "sink": ("sink", "list"),
        "effects": ("effects", task),
        "sweep": ("sweep",),
        "audit": ("audit",),
        "completion": ("completion", "bash"),
        "install": ("install", "--client", "claude", "--dry-run"),
        "doctor": ("doctor", "--client", "gemini"),
        "uninstall": ("uninstall", "--client", "claude", "--dry-run"),
    }
    # `hook` and `mcp` always exchange JSON with a client, and run until the client closes its end of the connection.
    assert set(calls) == set(VERBS) - {"hook", "mcp"}
    for verb, words in calls.items():
        settings = {"XDG_CONFIG_HOME": str(bench.root / "settings")}  # a command that needs the settings for `agent`
        given = (verb, "--json", *words[1:]) if verb in ("run", "agent") else (*words, "--json")
        done = bench.run(*given, env=settings)
        assert done.stdout.count("\n") == 1, verb
        document = json.loads(done.stdout)
        tasks = document["tasks"] if verb in ("list", "wait", "cancel") else [document]
        if verb in ("run", "agent", "list", "show", "wait", "result", "cancel", "retry", "adopt", "send"):
            assert all(set(each) >= TASK_FIELDS for each in tasks), verb
    stranger.kill()
    stranger.wait()
    followed = bench.run("output", task, "--follow", "--json")
    assert [json.loads(line)["content"] for line in followed.stdout.splitlines()] == ["hi\n"]


@pytest.mark.parametrize("verb", [*VERBS, *ALIASES])
def test_help_of_a_verb_names_its_options(bench: Bench, verb: str) -> None:
    """`--help` prints the usage and all options of a command, and gives an example."""
    printed = bench.ok(verb, "--help")
    command = load(verb)
    assert printed == help_text(command).strip()
    assert all(option.name in printed for option in command.options)
    assert command.examples


def test_alias_is_the_same_command_as_its_verb(bench: Bench) -> None:
    """`ps` prints the same as `list`, and `logs` the same as `output`."""
    task = bench.launch("echo hi")
    bench.ok("wait", task)
    assert bench.ok("logs", task) == bench.ok("output", task)
    assert bench.json("ps")["tasks"][0]["id"] == task
