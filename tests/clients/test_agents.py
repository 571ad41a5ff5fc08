"""Real clients as background agents.

The tests cover answers, failures, questions, runaways, kills and cancels.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.model import Asked, Fail, Hang, Reply, Say, Use
from tests.clients.rigs.codex import Codex
from tests.integration.service.agents.test_killed_agents import check_endings
from tests.support import is_alive, kill, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.clients.model import Model
    from tests.clients.rig import Rig
    from tests.clients.rigs.claude import Claude
    from tests.support import Bench

FIRST = {"claude": "first", "codex": "first", "gemini": "gemini-2.5-pro", "opencode": "scripted/scripted"}
SECOND = {"claude": "second", "codex": "second", "gemini": "gemini-2.5-flash", "opencode": "scripted/second"}
# The arguments with which a user allows the shell tool. Outlive itself never adds such an argument.
ALLOWED = {"claude": ["--permission-mode", "bypassPermissions"], "codex": [], "gemini": ["--yolo"], "opencode": []}
# For each client, a failure of the model that makes the client give up within a short time.
OVERLOAD = {
    "claude": Fail(529, "Overloaded", "overloaded_error"),
    "codex": Fail(429, "Rate limit reached", "rate_limit_error"),
    "gemini": Fail(429, "You exceeded your current quota", "RESOURCE_EXHAUSTED", {"retry-after": "3600"}),
    "opencode": Fail(429, "Rate limit reached", "rate_limit_error", {"retry-after": "3600"}),
}
QUESTIONS = {
    "claude": Use(
        "AskUserQuestion",
        {
            "questions": [
                {
                    "question": "Which branch?",
                    "header": "Branch",
                    "multiSelect": False,
                    "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
                }
            ]
        },
    ),
    "codex": Use(
        "request_user_input",
        {
            "questions": [
                {
                    "id": "branch",
                    "question": "Which branch?",
                    "header": "Branch",
                    "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
                }
            ]
        },
    ),
    "gemini": Use("ask_user", {"questions": [{"question": "Which branch?", "header": "Branch", "type": "text"}]}),
    "opencode": Use(
        "question",
        {
            "questions": [
                {"question": "Which branch?", "header": "Branch", "options": [{"label": "a", "description": "a"}]}
            ]
        },
    ),
}
LONG_S = 240


def prepare(rig: Rig, agents: str = "") -> Rig:
    """Configure a client, and write settings of Outlive that allow the client's shell tool."""
    file = rig.configure()
    if rig.name == "opencode":
        text = file.read_text()
        models = '"models": {"scripted": {"name": "Scripted"'
        file.write_text(
            text.replace(models, '"models": {"second": {"name": "Second"}, "scripted": {"name": "Scripted"')
        )
        assert '"second"' in file.read_text()
    settings = rig.home / ".config/outlive/config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(
        f'[agents]\nclient = "{rig.name}"\n{agents}\n[agents.clients.{rig.name}]\n'
        f"arguments = {json.dumps(ALLOWED[rig.name])}\n"
    )
    return rig


def launch(rig: Rig, prompt: str, *options: str) -> str:
    """Launch a background agent that uses this client, and return the id of its task."""
    return rig.bench.ok("agent", "--model", FIRST[rig.name], *options, "--", prompt)


def ended(rig: Rig, task: str) -> Any:
    """Wait for the end of a task, and return the task's JSON document."""
    done = rig.bench.run("wait", task, "--timeout", "55s")
    for _ in range(LONG_S // 55):
        if done.returncode != 4:
            break
        done = rig.bench.run("wait", task, "--timeout", "55s")
    assert done.returncode in (0, 1), done.stderr
    return rig.bench.show(task)


def is_for(asked: Asked, model: str) -> bool:
    """Return whether a request asks for the model with a given name."""
    name = model.partition("/")[2] or model
    return name == asked.body.get("model") or f"/{name}:" in asked.path


def test_agent_answers(answering: Rig) -> None:
    """The record of an agent that has answered has the answer, the session, the tokens and the transcript.

    The model has received the whole prompt.
    """
    rig = prepare(answering)
    rig.model.answer = lambda asked: [Say("The file is fine.")] if asked.results else [rig.shell("echo looked")]
    prompt = 'Look at "a.py",\nthen say so. $HOME'
    shown = ended(rig, launch(rig, prompt))
    agent = shown["agent"]
    assert (shown["state"], agent["class"], agent["answer"]) == ("succeeded", "answered", "The file is fine."), shown
    assert agent["client"] == rig.name
    assert agent["session"]
    assert agent["calls"] == 1
    assert agent["tokens"]["output"]
    assert any(prompt in asked.all for asked in rig.model.asked)
    text = rig.bench.ok("transcript", shown["id"], "--tools")
    assert text.index("then say so") < text.index("echo looked") < text.index("The file is fine.")


def test_overloaded_model_is_replaced_by_the_next_one(answering: Rig) -> None:
    """If the first model is overloaded, the second model answers.

    The record has the model of each attempt.
    """
    rig = prepare(answering)
    second = SECOND[rig.name]
    rig.model.answer = lambda asked: [Say("from the second")] if is_for(asked, second) else [OVERLOAD[rig.name]]
    shown = ended(rig, launch(rig, "answer", "--fallback", second, "--idle-timeout", "20s"))
    assert [each["agent"]["class"] for each in shown["attempts"]] == ["unavailable", "answered"], shown["attempts"]
    assert shown["agent"]["answer"] == "from the second"
    assert [notice["kind"] for notice in shown["notices"]].count("ended") == 1


def test_refused_request_is_not_tried_again(answering: Rig) -> None:
    """A bad request ends the task at once, even if the settings name other models."""
    rig = prepare(answering)
    rig.model.answer = lambda _: [Fail(400, "the request has an unknown parameter", "invalid_request_error")]
    shown = ended(rig, launch(rig, "answer", "--fallback", SECOND[rig.name]))
    assert (shown["state"], shown["reason"], len(shown["attempts"])) == ("failed", "refused", 1), shown["attempts"]
    assert "unknown parameter" in shown["agent"]["error"]


def test_question_ends_the_run_and_is_answered_by_resuming(answering: Rig) -> None:
    """If the agent ends its run with a question, the record has the question. A sent answer continues the session."""
    rig = prepare(answering)

    def answer(asked: Asked) -> list[Reply]:
        if "branch a" in asked.all:
            return [Say("on branch a")]
        return [Say("I need to know.")] if asked.results else [QUESTIONS[rig.name]]

    rig.model.answer = answer
    shown = ended(rig, launch(rig, "do it"))
    assert (shown["reason"], shown["agent"]["class"]) == ("asked", "asked"), shown["agent"]
    assert shown["agent"]["question"]
    again = ended(rig, rig.bench.ok("agent", "--resume", shown["id"], "--", "take branch a"))
    assert (again["state"], again["agent"]["answer"]) == ("succeeded", "on branch a")
    assert again["agent"]["session"] == shown["agent"]["session"]


def test_runaway_is_ended_and_leaves_no_process(answering: Rig) -> None:
    """An agent whose model repeats one tool call for ever is ended, and no process is left."""
    rig = prepare(answering)
    rig.model.answer = lambda _: [rig.shell("echo again")]
    shown = ended(rig, launch(rig, "do it"))
    if rig.name == "gemini":  # The loop detector of Gemini CLI itself ends the run before the twentieth call.
        assert shown["reason"] in ("runaway", "stopped"), shown["agent"]
    else:
        assert (shown["state"], shown["reason"]) == ("failed", "runaway"), shown["agent"]
    assert shown["left_running"] == []


def test_turn_limit_ends_the_agent(answering: Rig) -> None:
    """`--max-turns` ends an agent of every client, including a client with a turn limit of its own."""
    rig, numbers = prepare(answering), count()
    rig.model.answer = lambda _: [rig.shell(f"echo {next(numbers)}; sleep 0.5")]
    shown = ended(rig, launch(rig, "do it", "--max-turns", "3"))
    assert (shown["state"], shown["reason"], shown["agent"]["class"]) == ("failed", "turn_limit", "stopped"), shown
    assert next(numbers) <= 6
    assert shown["left_running"] == []


def test_budget_ends_the_agent(answering: Rig) -> None:
    """`--budget` ends an agent if the client reports the cost of a run.

    For other clients, `--budget` is refused.
    """
    rig, numbers = prepare(answering), count()
    rig.model.answer = lambda _: [rig.shell(f"echo {next(numbers)}; sleep 0.5")]
    words = ("agent", "--model", FIRST[rig.name], "--budget", "0.0005", "--timeout", "60s", "--", "do it")
    if rig.name in ("codex", "gemini"):
        assert "does not report what a run costs" in rig.bench.run(*words).stderr
        return
    if rig.name == "opencode":  # OpenCode knows no price of this model
        file = rig.home / ".config/opencode/opencode.json"
        price = '"name": "Scripted", "cost": {"input": 10, "output": 20}'
        file.write_text(file.read_text().replace('"name": "Scripted"', price))
    shown = ended(rig, rig.bench.ok(*words))
    assert (shown["state"], shown["reason"]) == ("failed", "cost_limit"), shown
    assert 0.0005 <= shown["agent"]["cost_usd"] < 0.002


def test_killed_client_continues_in_its_session(answering: Rig, tmp_path: Path) -> None:
    """If a client is killed in the middle of a tool call, the next attempt resumes the session and answers."""
    rig, marker = prepare(answering), tmp_path / "pid"

    def answer(asked: Asked) -> list[Reply]:
        if "interrupted" in asked.last or len(rig.model.asked) > 1:
            return [Say("went on")]
        return [rig.shell(f"echo $$ > {marker}; sleep 300")]

    rig.model.answer = answer
    task = launch(rig, "do it", "--retries", "1")
    wait_until(lambda: marker.exists() and marker.read_text().strip(), "the tool to run")
    if rig.name != "opencode":  # OpenCode prints a tool call only when the tool has ended
        wait_until(lambda: rig.bench.show(task)["agent"]["calls"], "the call in the stream")
    kill(rig.bench.process(task))
    shown = ended(rig, task)
    assert (shown["state"], shown["agent"]["answer"]) == ("succeeded", "went on"), [
        each["agent"] for each in shown["attempts"]
    ]
    sessions = [each["agent"]["session"] for each in shown["attempts"]]
    if rig.name != "opencode":
        assert len(set(sessions)) == 1


def test_cancel_leaves_no_process_of_a_running_tool(answering: Rig, tmp_path: Path) -> None:
    """A cancel ends a tool's process, even if the process ignores the first signals."""
    rig, marker = prepare(answering), tmp_path / "pid"
    command = f"trap '' INT TERM HUP; echo $$ > {marker}; while :; do sleep 1; done"
    rig.model.answer = lambda _: [rig.shell(command)]
    task = launch(rig, "do it")
    wait_until(lambda: marker.exists() and marker.read_text().strip(), "the tool to run")
    rig.bench.ok("cancel", task)
    shown = rig.bench.show(task)
    assert (shown["state"], shown["agent"]["class"], shown["left_running"]) == ("cancelled", "stopped", [])
    assert not is_alive(int(marker.read_text()))
    assert processes_of(task) == []


def test_agent_goes_on_when_its_launching_session_is_killed(answering: Rig, tmp_path: Path) -> None:
    """An agent answers even if the process that launched it was killed with its process group."""
    rig, go, printed = prepare(answering), tmp_path / "go", tmp_path / "id"
    rig.model.answer = lambda asked: (
        [Say("late answer")] if asked.results else [rig.shell(f"until [ -e {go} ]; do sleep 0.2; done")]
    )
    words = rig.bench.command("agent", "--model", FIRST[rig.name], "--", "do it")
    parent = subprocess.Popen(
        ["sh", "-c", f'"$@" > {printed}; sleep 600', "sh", *words],
        env=rig.bench.env,
        cwd=rig.bench.project,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        task = wait_until(lambda: printed.exists() and printed.read_text().strip(), "the id of the task")
        wait_until(lambda: rig.model.asked, "the first request")
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()
    go.touch()
    shown = ended(rig, str(task))
    assert (shown["state"], shown["agent"]["answer"]) == ("succeeded", "late answer"), shown["agent"]


def processes_of(task: str) -> list[int]:
    """Return the processes whose environment has the variable `OUTLIVE_TASK` of a task."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            content = Path(f"/proc/{name}/environ").read_bytes()
        except OSError:
            continue
        if f"OUTLIVE_TASK={task}".encode() in content.split(b"\0"):
            found.append(int(name))
    return found


@pytest.fixture
def both(bench: Bench, model: Model, claude: Claude) -> Iterator[Rig]:
    """Return Claude Code in a home directory in which Codex is installed too."""
    first = claude
    second = Codex(bench, model)
    path = f"{first.environment()['PATH']}:{second.environment()['PATH']}"
    bench.env.update({**first.environment(), **second.environment(), "PATH": path})
    prepare(first)
    second.configure()
    yield first
    second.clean()


def test_overloaded_client_is_replaced_by_another_client(both: Rig) -> None:
    """If the model of Claude Code is overloaded, Codex answers."""
    both.model.answer = lambda asked: [Say("from Codex")] if asked.path.endswith("/responses") else [OVERLOAD["claude"]]
    shown = ended(both, launch(both, "answer", "--fallback", "codex:second"))
    assert [(each["agent"]["client"], each["agent"]["class"]) for each in shown["attempts"]] == [
        *(("claude", "unavailable"), ("codex", "answered")),
    ]
    assert shown["agent"]["answer"] == "from Codex"


def test_silent_model_is_replaced_after_the_idle_timeout(answering: Rig) -> None:
    """If the model does not answer, the client is ended after the idle timeout that the user has set."""
    rig = prepare(answering)
    second = SECOND[rig.name]
    waiting: Callable[[Asked], list[Reply]] = lambda asked: [Say("awake")] if is_for(asked, second) else [Hang(120)]  # noqa: E731
    rig.model.answer = waiting
    shown = ended(rig, launch(rig, "answer", "--fallback", second, "--idle-timeout", "15s"))
    assert [each["reason"] for each in shown["attempts"]] == ["idle_timeout", None], shown["attempts"]
    assert shown["agent"]["answer"] == "awake"


def test_forty_agents_of_a_real_client_end_once_each_while_they_are_killed(claude: Claude) -> None:
    """Forty agents end once each, with the model's answer, although some of their processes are killed.

    At most five agents run at the same time, which is the default, and no process is left.
    """
    rig, answers = prepare(claude), dict[str, str]()

    def answer(asked: Asked) -> list[Reply]:
        found = re.search(r"prompt \d+ of all", asked.all)
        if found is None:
            return [Say("no prompt")]
        return [Say(answers[found[0]])] if asked.results else [rig.shell("sleep 1.5")]

    def begin(number: int, text: str) -> str:
        answers[prompt := f"prompt {number} of all"] = text
        return launch(rig, prompt, "--session", "s-1", "--retries", "2", "--idle-timeout", "30s")

    rig.model.answer = answer
    check_endings(rig.bench, begin)
