"""The guard's advice on commands that lose work, and its changes to commands that detach a process."""

from __future__ import annotations

import json
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from outlive.hooks.entry import _may_need_advice
from outlive.hooks.event import Event
from outlive.hooks.guard.advice import kinds_in
from tests.hook_steps import SESSION, call, context, said
from tests.integration.service.effects.test_left_open import hook

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


@pytest.mark.parametrize(
    ("command", "kinds"),
    [
        ("npm test", []),
        ("nohup npm run dev > log 2>&1 &", ["detached"]),
        ("cd web && (npm run dev &)", ["detached"]),
        ("setsid -f ./server", ["detached"]),
        ("make -j4 & make2 & wait", ["detached"]),
        ("make 2>&1 | tee log && echo done", []),
        ("cmd &> log; cmd >& log", []),
        ("echo 'a & b' \"c & d\" e\\&f", []),
        ("echo one # and & two", []),
        ("curl 'http://x/?a=1&b=2'", []),
        ("cat <<EOF\nnohup x &\nEOF\nls", []),
        ("cat <<< 'a & b'", []),
        ("cat <<<x\nnohup y &", ["detached"]),
        ("sleep 300; cat log", ["polling"]),
        ("sleep 5m", ["polling"]),
        ("sleep 2; cat log", []),
        ("while ! grep -q done log; do sleep 5; done", ["polling"]),
        ("pkill node", ["broad_kill"]),
        ("sudo killall -9 python3", ["broad_kill"]),
        ("/usr/bin/pkill -f server", ["broad_kill"]),
        ("kill 1234", []),
        ("grep pkill file", []),
        ("FOO=1 env BAR=2 nohup ./x", ["detached"]),
        ("sudo -n pkill node", ["broad_kill"]),
        ("sudo -u bob nohup x", ["detached"]),
        ("nice -n 5 nohup x", ["detached"]),
        ("/usr/bin/env -u A B=1 nohup x", ["detached"]),
        ("timeout 600 sleep 500", ["polling"]),
        ("timeout -k 5 600 make", []),
        ("kill $(pgrep node)", ["broad_kill"]),
        ('kill -9 "$(pidof node)"', ["broad_kill"]),
        ("kill `pgrep node`", ["broad_kill"]),
        ("pgrep -f node | xargs -r kill", ["broad_kill"]),
        ("pgrep node", []),
        ("sudo", []),
        ("timeout", []),
        ("echo $((a & b))", []),
        ("echo $((1 + 2)) & b", ["detached"]),
        ("echo $((", []),
        ("make |& tee log", []),
        ("for i in 1 2 3; do touch $i; sleep 0.1; done", []),
        ("while ! curl -s localhost; do sleep $N; done", ["polling"]),
        ("outlive run 'sleep 300' && outlive wait", []),
        ("bash -c 'nohup x &'", ["detached"]),
        ("bash -c './server &'; ls", ["detached"]),
        ('sh -lc "cd web && npm run dev > log 2>&1 &"', ["detached"]),
        ("zsh -c 'setsid ./x'", ["detached"]),
        ("env A=B bash -c 'x &'", ["detached"]),
        ("timeout 60 bash -c 'x &'", ["detached"]),
        ("A=1 sudo -u bob /bin/bash -euo pipefail -c 'x &'", ["detached"]),
        ("bash --norc -c -- 'x &' name", ["detached"]),
        ("bash --rcfile c -c 'x &'", ["detached"]),
        ("bash -o pipefail -l -c 'x &'", ["detached"]),
        ("bash -c \"sh -c 'nohup x &'\"", ["detached"]),
        ('bash -c "sh -c \\"x &\\""', ["detached"]),
        ("bash -c 'sleep 300; cat log'", ["polling"]),
        ("bash -c 'pkill node'", ["broad_kill"]),
        ("bash -c 'while ! test -e x; do sleep 5; done'", ["polling"]),
        ("bash -c 'outlive run ./x'", []),
        ("bash -c 'make && ls'", []),
        ("bash -c \"echo 'a & b'\"", []),
        ('bash -c "echo \\"a & b\\" \\\\& c\\$d"', []),
        ("bash script.sh 'x &'", []),
        ("bash script.sh -c 'x &'", []),
        ("bash -o -c 'x &'", []),
        ("bash --check 'x &'", []),
        ("bash +c 'x &'", []),
        ("bash -c ls 'x &'", []),
        ("echo bash -c 'x &'", []),
        ("ssh host 'nohup x &'", []),
        ("bash -c", []),
        ("bash -o", []),
        ("bash -c 'bash -c", []),
        ("", []),
        ("'", []),
        ("<<", []),
    ],
)
def test_kinds_in_recognises_habits_by_the_commands_of_a_text(command: str, kinds: list[str]) -> None:
    """`kinds_in` finds a risky habit, such as `sleep 300`, by the commands of a shell text.

    It does not take words in quotes, comments and redirections for commands.
    """
    assert kinds_in(command, is_background=False) == kinds
    event = Event(client="claude", kind="tool", session=SESSION, cwd="/", command=command)
    assert not kinds or _may_need_advice(event), "the hook would not load the advice for this command"


def test_hook_loads_no_advice_for_a_command_without_a_habit(bench: Bench) -> None:
    """The hook imports the code for advice only if a command may need advice.

    It runs before every command, and must be fast.
    """
    unneeded = {"outlive.hooks.guard.advice", "outlive.observe.shell.split_text"}
    assert hook(bench, "Bash", command="cd a && make 2>&1 | tee log")[1].isdisjoint(unneeded)
    assert unneeded <= hook(bench, "Bash", command="sleep 300")[1]


def before(bench: Bench, command: str, *options: str, **fields: Any) -> Any:
    """Return the answer that Claude Code gets before its shell tool runs."""
    given = {"command": command, "description": "dev server", **fields.pop("given", {})}
    return said(call(bench, "claude", "PreToolUse", *options, tool_name="Bash", tool_input=given, **fields))


def test_advice_is_given_once_for_each_habit_and_decides_nothing(bench: Bench) -> None:
    """Advice on a habit is given once to the main agent, and once to its sub-agents.

    The answer neither changes the command nor decides whether it may run.
    """
    bench.ok("list")
    answer = before(bench, "npm run dev", given={"run_in_background": True})
    assert "outlive run" in context(answer)
    assert set(answer["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert before(bench, "npm run dev", given={"run_in_background": True}) == {}
    assert "outlive wait" in context(before(bench, "sleep 300")), "no advice about another habit"
    assert before(bench, "pkill node", "--guard", "off") == {}
    assert "outlive wait" in context(before(bench, "sleep 300", agent_id="a1")), "no advice for a sub-agent"
    assert before(bench, "sleep 300", agent_id="a2") == {}


def test_first_advice_creates_a_private_state_directory(bench: Bench) -> None:
    """The first advice creates state directories with mode 0700, which a later launch can use."""
    bench.env = {**bench.env, "HOME": str(bench.root), "OUTLIVE_HOME": "", "XDG_STATE_HOME": ""}
    assert "outlive run" in context(before(bench, "nohup ./x &"))
    assert before(bench, "nohup ./x &") == {}
    made = [path for path in (bench.root / ".local").rglob("*") if path.is_dir()]
    assert made
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}
    bench.ok("run", "true")


def test_guard_rewrites_a_command_only_when_the_client_asks_no_permission(bench: Bench) -> None:
    """The guard changes a command only if the client does not ask a person for permission.

    Otherwise the person would be asked about `outlive run` instead of the model's own command.
    """
    given = {"run_in_background": True, "timeout": 5000}
    bench.env["HOME"] = str(bench.root)
    free = {"permission_mode": "bypassPermissions"}
    answer = before(bench, "npm run 'dev x'", "--guard", "rewrite", given=given, **free)
    better = answer["hookSpecificOutput"]["updatedInput"]
    assert better == {
        "command": "outlive run --description 'dev server' -- bash -c 'npm run '\"'\"'dev x'\"'\"''",
        "description": "dev server",
        "timeout": 5000,
    }
    assert "permissionDecision" not in answer["hookSpecificOutput"]
    answer = before(bench, "npm run dev", "--guard", "rewrite", given=given, permission_mode="default")
    assert "updatedInput" not in answer["hookSpecificOutput"]


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_guard_rewrites_nothing_when_the_project_has_permission_rules(bench: Bench, name: str) -> None:
    """The guard changes no command if the project has permission rules.

    The rules must be checked against the command that the model wrote.
    """
    bench.env["HOME"] = str(bench.root)
    place: Path = bench.project / ".claude"
    place.mkdir()
    (place / name).write_text(json.dumps({"permissions": {"deny": ["Bash(rm:*)"]}}))
    answer = before(
        bench, "rm -rf x &", "--guard", "rewrite", permission_mode="bypassPermissions", env={"CLAUDE_PROJECT_DIR": ""}
    )
    assert "updatedInput" not in answer["hookSpecificOutput"]


def test_guard_rewrites_nothing_when_the_client_was_started_with_rules(bench: Bench) -> None:
    """The guard changes no command if the client was started with permission rules."""
    bench.env["HOME"] = str(bench.root)
    words = ["sh", "-c", "read line", "sh", "--disallowedTools", "Bash(rm:*)"]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as client:
        answer = before(
            bench,
            "rm -rf x &",
            "--guard",
            "rewrite",
            permission_mode="bypassPermissions",
            env={"CLAUDE_PID": str(client.pid)},
        )
        client.communicate(b"\n")
    assert "updatedInput" not in answer["hookSpecificOutput"]


@pytest.mark.parametrize(
    "command",
    [
        "a & b",
        "nohup a; b",
        "nohup a",
        "sleep 300",
        "pkill node",
        "setsid -f ./srv",
        "setsid --fork ./srv &",
        "nohup -- foo &",
        "nohup &",
        "make build; ./server &",
        "make build\n./server &",
        "(make build; ./server) &",
        "a & # and b &",
        "cat <<E &\nx &",
        "bash -c 'nohup a &'",
        "bash -c 'a &' &",
        "nohup bash -c 'a & b' &",
        "env A=B sh -c \"bash -c 'a &'\" &",
    ],
)
def test_guard_rewrites_nothing_when_a_command_is_not_plainly_detached(bench: Bench, command: str) -> None:
    """The guard changes a text only if it is clearly one detached command."""
    bench.env["HOME"] = str(bench.root)
    answer = before(bench, command, "--guard", "rewrite", permission_mode="bypassPermissions")
    assert "updatedInput" not in answer["hookSpecificOutput"]


@pytest.mark.parametrize(
    ("command", "is_background", "text"),
    [
        ("./server &", False, "./server"),
        ("nohup ./server > log 2>&1 &", False, "./server > log 2>&1"),
        ("setsid nohup ./server", True, None),
        ("nohup setsid ./server", True, "./server"),
        ("cd web && make | tee log &", False, "cd web && make | tee log"),
        ("make |& tee log &", False, "make |& tee log"),
        ("make build; ./server", True, "make build; ./server"),
        ("echo a \\&", True, "echo a \\&"),
        ("echo $((a & b))", True, "echo $((a & b))"),
        ("bash -c 'cd web && make' &", False, "bash -c 'cd web && make'"),
        ("nohup bash -c 'make; ./server' > log &", False, "bash -c 'make; ./server' > log"),
        ("bash -c 'nohup ./server &'", True, None),
        ("", True, None),
        ("# nothing", True, None),
    ],
)
def test_guard_removes_only_detaching_words_when_it_rewrites_a_command(
    bench: Bench, command: str, is_background: bool, text: str | None
) -> None:
    """When the guard changes a detached command, it removes only the words that detach it.

    These are an `&` that is an operator, and `nohup` or `setsid` without options.
    """
    bench.env["HOME"] = str(bench.root)
    given = {"run_in_background": is_background}
    answer = before(bench, command, "--guard", "rewrite", permission_mode="bypassPermissions", given=given)
    better = answer["hookSpecificOutput"].get("updatedInput")
    assert (None if better is None else shlex.split(better["command"])[-1]) == text


def test_gemini_hook_exports_the_session_to_commands_that_call_outlive(bench: Bench) -> None:
    """The Gemini CLI hook adds the session id to a command that calls Outlive, and to no other command.

    Gemini CLI itself gives its commands no session id.
    """
    shell: dict[str, Any] = {"tool_name": "run_shell_command"}
    answer = said(call(bench, "gemini", "BeforeTool", tool_input={"command": "outlive run ls"}, **shell))
    assert answer["hookSpecificOutput"]["tool_input"] == {
        "command": f"export OUTLIVE_SESSION={SESSION}; outlive run ls"
    }
    answer = said(call(bench, "gemini", "BeforeTool", tool_input={"command": "sh -c 'outlive list'"}, **shell))
    assert "OUTLIVE_SESSION" in answer["hookSpecificOutput"]["tool_input"]["command"]
    assert said(call(bench, "gemini", "BeforeTool", tool_input={"command": "ls"}, **shell)) == {}


def test_gemini_hook_gives_advice_with_the_result_of_the_tool(bench: Bench) -> None:
    """The Gemini CLI hook gives advice with the result of the tool, because the model sees no text before the call."""
    shell: dict[str, Any] = {"tool_name": "run_shell_command"}
    answer = said(call(bench, "gemini", "advise", tool_input={"command": "nohup ls &"}, **shell))
    assert answer["hookSpecificOutput"]["hookEventName"] == "AfterTool"
    assert "has no record" in context(answer)
    assert said(call(bench, "gemini", "advise", tool_input={"command": "outlive run ls"}, **shell)) == {}
