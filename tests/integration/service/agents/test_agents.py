"""Background agents with a scripted client: their answers, attempts and limits."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.agent_steps import Agents
from tests.git_steps import Worktree
from tests.support import is_alive, wait_until

if TYPE_CHECKING:
    from tests.support import Bench


@pytest.fixture
def agents(bench: Bench) -> Agents:
    """Create a user with two scripted clients."""
    return Agents(bench)


def pids_of(marker: Path) -> list[int]:
    """Return the process ids that a shell has written into a file."""
    return [int(line) for line in marker.read_text().split()] if marker.exists() else []


def test_result_of_an_agent_has_answer_and_cost(agents: Agents) -> None:
    """The JSON of `show` has the answer, model, tokens and cost, and `result` prints the model and the answer."""
    shown = agents.ended(
        "say thinking", "call echo hi", "cost 0.25", "answer The file is fine.", options=("--model", "m1")
    )
    assert (shown["kind"], shown["state"], shown["exit_code"]) == ("agent", "succeeded", 0)
    agent = shown["agent"]
    assert (agent["client"], agent["model"], agent["class"]) == ("bot", "m1", "answered")
    assert (agent["answer"], agent["cost_usd"], agent["calls"]) == ("The file is fine.", 0.25, 1)
    assert agent["tokens"] == {"input": 1000, "output": 100}
    text = agents.bench.ok("result", shown["id"])
    assert "agent: bot:m1" in text
    assert text.endswith("The file is fine.")


def test_prompt_reaches_the_client_unchanged_on_its_standard_input(agents: Agents) -> None:
    """A prompt with quotes, newlines and a leading dash is the client's whole standard input."""
    script = agents.bench.root / "echo.py"
    script.write_text("import sys, json; print(json.dumps({'type': 'result', 'result': sys.stdin.read()}))")
    agents.settings.write_text(agents.settings.read_text().replace(str(agents.program), str(script)))
    prompt = "-x \"quoted\" 'single' $HOME `id`\n\n  indented ü 漢\t"
    done = agents.bench.ok("agent", "--", prompt)
    assert agents.wait(done)["agent"]["answer"] == prompt


def test_unavailable_model_is_replaced_by_the_next_model_of_any_client(agents: Agents) -> None:
    """If a model is unavailable, the next attempt runs the next model, even if it belongs to another client.

    The record has the model and the error of each attempt, and the session has one pending notice. Rows 12 and 13 of
    the acceptance scenarios.
    """
    shown = agents.ended(
        "m1? error Overloaded (529)",
        "m1? exit 1",
        "m2? error 429 rate limit",
        "m2? exit 1",
        "answer done by the third",
        options=("--model", "m1", "--fallback", "m2,other:m3", "--session", "s-1"),
    )
    assert shown["state"] == "succeeded"
    assert [
        (each["agent"]["client"], each["agent"]["model"], each["agent"]["class"]) for each in shown["attempts"]
    ] == [
        *(("bot", "m1", "unavailable"), ("bot", "m2", "unavailable"), ("other", "m3", "answered")),
    ]
    assert [each["agent"]["error"] for each in shown["attempts"]] == ["Overloaded (529)", "429 rate limit", None]
    kinds = {notice["kind"]: notice["state"] for notice in shown["notices"]}
    assert kinds == {"retrying": "dismissed", "ended": "pending"}, "the retry notice stayed pending"


def test_retry_on_another_model_is_reported_with_both_models(agents: Agents) -> None:
    """The notice names the model that was unavailable and the model that answered.

    Row 13 of the acceptance scenarios.
    """
    go = agents.bench.root / "go"
    agents.bench.ok("session", "begin", "--session", "s-1")
    task = agents.launch(
        "m1? error Overloaded (529)",
        "m1? exit 1",
        f"until {go}",
        "answer ok",
        options=("--model", "m1", "--fallback", "other:m2", "--session", "s-1"),
    )
    wait_until(lambda: agents.bench.show(task)["attempt"] == 2, "the second attempt")
    told = agents.bench.json("inbox", "--session", "s-1", "--peek")["notices"]
    go.touch()
    assert [each["kind"] for each in told] == ["retrying"]
    assert "bot:m1 unavailable (Overloaded (529)), now other:m2" in told[0]["text"]
    agents.wait(task)


def test_model_that_was_unavailable_is_not_tried_first_by_the_next_agent(agents: Agents) -> None:
    """If a model was unavailable, the next agent begins with its fallback model, and `--trace` records why."""
    agents.ended("error Overloaded (529)", "exit 1", options=("--model", "m1"))
    shown = agents.ended("answer ok", options=("--model", "m1", "--fallback", "m2", "--trace"))
    assert [each["agent"]["model"] for each in shown["attempts"]] == ["m2"]
    launch = agents.decisions(shown["id"])[0]
    assert (launch["decision"], launch["model"]) == ("launch", "m2")
    assert "bot:m1 was unavailable lately" in launch["why"]


def test_failure_is_reported_once_when_no_model_is_available(agents: Agents) -> None:
    """If no model is available, the task fails with the reason `unavailable`, which is reported once.

    Row 14 of the acceptance scenarios.
    """
    shown = agents.ended(
        "error Overloaded (529)", "exit 1", options=("--model", "m1", "--fallback", "m2", "--session", "s-1")
    )
    assert (shown["state"], shown["reason"], len(shown["attempts"])) == ("failed", "unavailable", 2)
    told = agents.bench.json("inbox", "--session", "s-1")["notices"]
    assert [each["kind"] for each in told] == ["ended"]
    assert "attempt 1: bot:m1 unavailable (Overloaded (529))" in told[0]["text"]


@pytest.mark.parametrize("error", ["401 invalid api key", "prompt is too long for the context window"])
def test_refused_or_stopped_run_is_not_tried_again(agents: Agents, error: str) -> None:
    """After a wrong key or a full context, no other model is tried, because the other models would fail too."""
    shown = agents.ended(f"error {error}", "exit 1", options=("--fallback", "m2", "--retries", "2"))
    assert len(shown["attempts"]) == 1
    assert shown["reason"] in ("refused", "stopped")


def test_retry_continues_the_session_of_a_broken_client(agents: Agents) -> None:
    """If an attempt breaks after it has done work, the next attempt continues the same session."""
    shown = agents.ended("again? answer went on", "call echo hi", "exit 9", options=("--retries", "1"))
    assert [each["agent"]["class"] for each in shown["attempts"]] == ["broken", "broken"] or shown[
        "state"
    ] == "succeeded"
    sessions = {each["agent"]["session"] for each in shown["attempts"]}
    assert len(sessions) == 1, "the second attempt did not continue the session of the first attempt"


def test_exit_code_0_without_a_final_event_is_no_answer(agents: Agents) -> None:
    """If the client exits with 0 but prints no final event, the task has failed."""
    shown = agents.ended("say I am almost", "exit 0")
    assert (shown["state"], shown["agent"]["class"]) == ("failed", "broken")


def test_blank_answer_is_no_answer(agents: Agents) -> None:
    """If the answer in the final event is blank, the task has failed."""
    shown = agents.ended("answer  ")
    assert (shown["state"], shown["agent"]["class"]) == ("failed", "broken"), shown["agent"]


def test_question_ends_the_run_and_is_answered_in_the_same_session(agents: Agents) -> None:
    """A question ends the agent's run, and `--resume` with an answer continues the same session.

    The notice, `result` and the JSON have the question. Row 49 of the acceptance scenarios.
    """
    asked = agents.ended("ask May I delete old.db?", options=("--session", "s-1"))
    assert (asked["state"], asked["reason"], asked["agent"]["class"]) == ("failed", "asked", "asked")
    assert asked["agent"]["question"] == "May I delete old.db?"
    notice = agents.bench.json("inbox", "--session", "s-1", "--peek")["notices"][0]
    assert "question: May I delete old.db?" in notice["text"]
    assert f"outlive agent --resume {asked['id']} -- ANSWER" in agents.bench.run("result", asked["id"]).stdout
    answered = agents.ended("answer deleted it", options=("--resume", asked["id"]))
    assert answered["agent"]["answer"] == "deleted it"
    assert answered["agent"]["session"] == asked["agent"]["session"]


def test_session_of_a_running_agent_is_not_continued(agents: Agents) -> None:
    """While an agent runs, no second run of its session is started.

    The client would write the output of the two runs into one transcript. Row 49 of the acceptance scenarios.
    """
    go = agents.bench.root / "go"
    first = agents.ended("answer one")
    again = agents.launch(f"until {go}", "answer two", options=("--resume", first["id"]))
    refused = agents.bench.run("agent", "--resume", first["id"], "--", "answer three")
    go.touch()
    assert refused.returncode == 2
    assert f"task {again} works in the session" in refused.stderr
    agents.wait(again)


def test_identical_tool_calls_end_the_agent_as_a_runaway(agents: Agents) -> None:
    """After twenty identical tool calls in a row, the agent is ended with the reason `runaway`.

    Row 18 of the acceptance scenarios.
    """
    shown = agents.ended("loop ls", "answer never")
    assert (shown["state"], shown["reason"]) == ("failed", "runaway")
    assert "identical tool calls in a row" in shown["detail"]
    assert shown["agent"]["calls"] < 200


def test_total_of_tool_calls_ends_the_agent_as_a_runaway(agents: Agents) -> None:
    """The setting `most_calls` limits the number of all tool calls, including different ones."""
    agents.configure("most_calls = 50")
    shown = agents.ended("count 60", "sleep 60")
    assert (shown["state"], shown["reason"]) == ("failed", "runaway")


@pytest.mark.parametrize(
    ("option", "reason"), [(("--budget", "0.50"), "cost_limit"), (("--max-tokens", "1500"), "token_limit")]
)
def test_limits_of_cost_and_tokens_end_the_agent(agents: Agents, option: tuple[str, ...], reason: str) -> None:
    """An agent that exceeds its limit of cost or tokens is ended while it runs, and is not tried again."""
    shown = agents.ended("cost 0.30", "sleep 0.2", "cost 0.30", "sleep 60", options=(*option, "--fallback", "m2"))
    assert (shown["state"], shown["reason"], shown["agent"]["class"]) == ("failed", reason, "stopped")
    assert len(shown["attempts"]) == 1


def test_turn_limit_ends_the_agent(agents: Agents) -> None:
    """`--max-turns` ends an agent of any client, because Outlive counts the turns itself."""
    shown = agents.ended("count 3", "sleep 60", options=("--max-turns", "2"))
    assert (shown["state"], shown["reason"]) == ("failed", "turn_limit")


@pytest.mark.parametrize(
    ("step", "option", "reason"),
    [
        ("cost 0.60", ("--budget", "1.00"), "cost_limit"),
        ("cost 0.60", ("--max-tokens", "2000"), "token_limit"),
        ("count 2", ("--max-turns", "3"), "turn_limit"),
    ],
)
def test_limits_hold_for_all_attempts_together(agents: Agents, step: str, option: tuple[str, ...], reason: str) -> None:
    """The cost, tokens and turns of an earlier attempt count towards the limits of the next attempt."""
    steps = ("m1? error Overloaded", "m1? exit 1", "m2? sleep 60", f"again? {step}", "again? sleep 60")
    shown = agents.ended(step, *steps, options=(*option, "--model", "m1", "--fallback", "m2"))
    assert [each["reason"] for each in shown["attempts"]] == ["unavailable", reason], shown["attempts"]
    if reason == "cost_limit":
        text = agents.bench.run("result", shown["id"]).stdout
        assert "(Overloaded), $0.60" in text
        assert "it cost $1.20, and its budget is $1.00" in text


def test_silent_client_is_replaced_after_the_idle_timeout(agents: Agents) -> None:
    """If a client prints only errors during the idle timeout, it is ended, and the next model is tried.

    Errors do not count as progress. Row 16 of the acceptance scenarios.
    """
    shown = agents.ended(
        "m1? error reconnecting",
        "m1? sleep 60",
        "answer from m2",
        options=("--model", "m1", "--fallback", "m2", "--idle-timeout", "1s"),
    )
    assert [(each["reason"], each["agent"]["class"]) for each in shown["attempts"]] == [
        *(("idle_timeout", "unavailable"), (None, "answered")),
    ]


def test_idle_timeout_does_not_end_an_agent_while_its_tool_runs(agents: Agents) -> None:
    """While a tool runs, the idle timeout does not end the agent. Row 16 of the acceptance scenarios."""
    shown = agents.ended("call sleep 3", "answer ok", options=("--idle-timeout", "1s"))
    assert (shown["state"], len(shown["attempts"])) == ("succeeded", 1)


def test_client_that_does_not_exit_after_its_answer_is_ended_with_success(agents: Agents) -> None:
    """If a client does not exit after its answer, Outlive ends the client, and the task succeeds.

    The ending says that the client did not exit by itself.
    """
    shown = agents.ended("answer ok", "sleep 120", options=("--idle-timeout", "1s"))
    assert (shown["state"], shown["agent"]["answer"]) == ("succeeded", "ok")
    assert "did not exit" in shown["detail"]


def test_agents_wait_for_a_slot_of_their_model_in_order(agents: Agents) -> None:
    """If a model may run one agent at a time, agents wait for it in their order, even if one of them is cancelled.

    Rows 5 and 6 of the acceptance scenarios.
    """
    agents.configure("at_once = 1")
    go = agents.bench.root / "go"
    first = agents.launch(f"until {go}", "answer 1", options=("--model", "m1"))
    second = agents.launch("answer 2", options=("--model", "m1"))
    third = agents.launch("answer 3", options=("--model", "m1"))
    free = agents.ended("answer other", options=("--model", "m2"))
    assert free["state"] == "succeeded", "an agent of another model had to wait"
    agents.bench.ok("cancel", second)
    assert agents.bench.show(third)["state"] == "queued"
    assert first in agents.bench.show(third)["waiting_for"]["text"]
    go.touch()
    assert agents.wait(third)["state"] == "succeeded"
    assert agents.bench.show(first)["settled_at"] <= agents.bench.show(third)["started_at"]


def test_fallback_waits_for_a_slot_of_the_model_that_it_runs(agents: Agents) -> None:
    """If an attempt runs another model, it waits until this model may run a further agent."""
    agents.configure("at_once = 1")
    go = agents.bench.root / "go"
    busy = agents.launch(f"until {go}", "answer 1", options=("--model", "m2"))
    task = agents.launch(
        "m1? error Overloaded", "m1? exit 1", "answer 2", options=("--model", "m1", "--fallback", "m2")
    )
    wait_until(lambda: agents.bench.show(task)["attempt"] == 2, "the second attempt")
    wait_until(lambda: agents.bench.show(task)["waiting_for"], "the second attempt to wait in the queue")
    go.touch()
    assert agents.wait(task)["agent"]["model"] == "m2"
    agents.wait(busy)


def test_agents_nested_too_deeply_are_refused(agents: Agents) -> None:
    """With a limit of three nested agents, the third agent may not launch a fourth.

    Row 7 of the acceptance scenarios.
    """
    outlive = " ".join(agents.bench.command("agent"))
    step = f"call {outlive} --wait 60s -- 'answer deepest' 2>&1"
    for _ in range(2):
        step = f"call {outlive} --wait 60s -- {json.dumps(step)} 2>&1"
    shown = agents.ended(step, "answer ok")
    assert shown["state"] == "succeeded"
    errors = [
        line
        for task in agents.bench.json("list", "--all")["tasks"]
        for line in Path(task["output"]["path"]).read_text().splitlines()
        if "nested tasks, and more are not allowed" in line
    ]
    assert errors


def test_agent_is_refused_when_its_depth_is_not_known(agents: Agents) -> None:
    """An agent is refused if the process that launches it is in a task and has cleared its environment.

    The nesting depth of the agent would be unknown. Row 7 of the acceptance scenarios.
    """
    home, config = agents.bench.env["OUTLIVE_HOME"], agents.bench.env["XDG_CONFIG_HOME"]
    command = " ".join(agents.bench.command("agent", "--", "answer"))
    clear = f"env -i PATH={os.environ['PATH']} HOME={agents.bench.root} OUTLIVE_HOME={home} XDG_CONFIG_HOME={config}"
    task = agents.bench.launch(f"{clear} {command}")
    agents.bench.run("wait", task)
    assert "the depth of nested tasks is not known" in agents.bench.ok("output", task)


def test_model_option_decides_whether_an_agent_is_unstable(agents: Agents) -> None:
    """With `--model`, the setting `unstable` of this model counts.

    The same setting of the agent's category is ignored.
    """
    agents.configure(
        more='[agents.categories.quick]\nmodel = "shaky"\nunstable = true\n'
        '[agents.categories.calm]\nmodel = "solid"\n[agents.models.wobbly]\nunstable = true\n'
    )
    found = {
        options: agents.ended("answer ok", options=options)["agent"]["unstable"]
        for options in (
            ("--category", "quick"),
            ("--category", "quick", "--model", "solid"),
            ("--category", "calm"),
            ("--category", "calm", "--model", "wobbly"),
        )
    }
    assert list(found.values()) == [True, False, False, True]


def test_agent_is_refused_when_the_settings_file_is_in_the_project(agents: Agents) -> None:
    """An agent is refused if the settings file is in the project.

    A repository must not choose the programs that run.
    """
    inside = agents.bench.project / "conf/outlive"
    inside.mkdir(parents=True)
    (inside / "config.toml").write_text(agents.settings.read_text())
    Worktree(agents.bench.project)
    done = agents.bench.run("agent", "--", "answer", env={"XDG_CONFIG_HOME": str(inside.parent)})
    assert done.returncode == 2
    assert "project" in done.stderr or "worktree" in done.stderr


def test_cancel_reaches_the_shells_that_a_client_leaves_behind(agents: Agents) -> None:
    """A cancel also ends a shell that the client has started in another process group and session of Unix."""
    marker = agents.bench.root / "pids"
    task = agents.launch(
        f"shell echo $$ >> {marker}; trap '' INT TERM HUP; while :; do sleep 0.1; done", "sleep 60", "answer never"
    )
    wait_until(lambda: pids_of(marker), "the shell")
    agents.bench.ok("cancel", task)
    shown = agents.bench.show(task)
    assert (shown["state"], shown["agent"]["class"], shown["left_running"]) == ("cancelled", "stopped", [])
    assert not any(map(is_alive, pids_of(marker)))


def test_cancel_reaches_the_agents_that_an_agent_launched(agents: Agents) -> None:
    """If an agent is cancelled, the agents that it launched are cancelled, too. Row 24 of the acceptance scenarios."""
    go = agents.bench.root / "never"
    inner = " ".join(agents.bench.command("agent", "--", f"'until {go}'"))
    task = agents.launch(f"call {inner}", "sleep 60", "answer never")
    below = wait_until(
        lambda: [one["id"] for one in agents.bench.json("list", "--all")["tasks"] if one["parent"] == task],
        "the task of the inner agent",
    )
    agents.bench.ok("cancel", task)
    assert [agents.bench.show(one)["state"] for one in (task, *below)] == ["cancelled", "cancelled"]


def test_background_agent_outlives_the_agent_that_launched_it(agents: Agents) -> None:
    """The launched agent still runs and answers after the launching agent has ended."""
    go = agents.bench.root / "go"
    inner = " ".join(agents.bench.command("agent", "--", f'"$(printf "until {go}\\nanswer late")"'))
    parent = agents.ended(f"call {inner}", "answer ok")
    (below,) = [one for one in agents.bench.json("list", "--all")["tasks"] if one["parent"] == parent["id"]]
    assert below["state"] == "running"
    go.touch()
    assert agents.wait(below["id"])["agent"]["answer"] == "late"


def test_foreground_agent_ends_with_the_agent_that_launched_it(agents: Agents) -> None:
    """A foreground agent ends when the agent that launched it ends.

    It survives the end of the tool call and of the session that launched it.
    """
    go = agents.bench.root / "go"
    agents.bench.ok("session", "begin", "--session", "s-1")
    inner = " ".join(agents.bench.command("agent", "--foreground", "--", "'sleep 600'"))
    parent = agents.launch(f"call {inner}", f"until {go}", "answer ok", options=("--session", "s-1"))
    wait_until(lambda: '"output"' in Path(agents.bench.files(parent).output).read_text(), "the end of the tool call")
    (below,) = [one["id"] for one in agents.bench.json("list", "--all")["tasks"] if one["parent"] == parent]
    agents.bench.ok("session", "end", "--session", "s-1")
    assert agents.bench.run("wait", below, "--timeout", "1s").returncode == 4, agents.bench.show(below)["reason"]
    go.touch()
    assert agents.wait(parent)["state"] == "succeeded"
    ended = agents.wait(below)
    assert (ended["state"], ended["reason"]) == ("cancelled", "session_ended")


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("--", ""), "the prompt is empty"),
        (("two", "words"), "no `--` before them"),
        (("--client", "nobody", "--", "x"), "there is no client 'nobody'"),
        (("--client", "codex", "--", "x"), "codex is not installed"),
        (("--budget", "0", "--", "x"), "not an amount of money"),
        (("--max-turns", "0", "--", "x"), "0 would end the agent"),
        (("--resume", "no-such-session", "--", "x"), "its client is not known"),
        (("--fallback", "m2,m2", "--", "x"), "twice"),
        (("--category", "none", "--", "x"), "no category 'none'"),
        (("--stdin", "--", "x"), "--stdin"),
    ],
)
def test_invalid_agent_command_starts_no_task(agents: Agents, words: tuple[str, ...], fact: str) -> None:
    """Each invalid command line of `agent` starts no task, and exits with 2 and an error that names the mistake."""
    done = agents.bench.run("agent", *words, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 2, done.stderr
    assert fact in done.stderr
    assert agents.bench.json("list", "--all")["tasks"] == []


def test_agent_starts_on_its_fallback_when_the_first_client_is_not_installed(agents: Agents) -> None:
    """If the first client is not installed, the agent starts with its fallback, and the trace says why.

    If the client is installed, it is used first.
    """
    agents.bench.env["PATH"] = "/usr/bin:/bin"
    ended = agents.ended("answer one", options=("--client", "codex", "--fallback", "other:one", "--trace"))
    assert (ended["state"], ended["agent"]["client"], ended["agent"]["model"]) == ("succeeded", "other", "one")
    assert "because codex is not installed" in str(agents.decisions(ended["id"]))
    both = agents.ended("answer one", options=("--client", "bot", "--fallback", "other:one", "--trace"))
    assert both["agent"]["client"] == "bot"


def test_same_key_is_the_same_agent_and_another_prompt_is_refused(agents: Agents) -> None:
    """A second launch with the same key and prompt returns the first task. With another prompt, it is refused.

    Row 9 of the acceptance scenarios.
    """
    first = agents.ended("answer one", options=("--key", "k"))
    assert agents.launch("answer one", options=("--key", "k")) == first["id"]
    other = agents.bench.run("agent", "--key", "k", "--", "answer two")
    assert other.returncode == 2
    assert "belongs to task" in other.stderr


def test_agent_is_adopted_when_its_keeper_is_killed(agents: Agents) -> None:
    """If the keeper of an agent is killed, a new keeper reads the answer from the client's output."""
    go = agents.bench.root / "go"
    task = agents.launch("say before", f"until {go}", "answer after", options=("--session", "s-1"))
    wait_until(lambda: agents.bench.find_keeper(task), "the keeper of the agent")
    agents.bench.kill(task, "keeper")
    agents.bench.ok("list")
    go.touch()
    shown = agents.wait(task)
    assert (shown["state"], shown["agent"]["answer"]) == ("succeeded", "after")


def test_lost_agent_keeps_its_transcript(agents: Agents) -> None:
    """If keeper, witness and client are killed, the task is lost, but `transcript` still prints what the agent said."""
    task = agents.launch("say I have begun", "sleep 60", options=("--session", "s-1"))
    wait_until(lambda: "begun" in Path(agents.bench.files(task).output).read_text(), "the first text of the agent")
    agents.bench.kill(task, "keeper", "witness", "command")
    shown = wait_until(lambda: (found := agents.bench.show(task))["settled_at"] and found, "the ending of the agent")
    assert shown["state"] == "lost"
    assert shown["agent"]["class"] is None
    assert "I have begun" in agents.bench.ok("transcript", task)


def test_retry_command_starts_an_agent_again_after_an_unavailable_model(agents: Agents) -> None:
    """After an attempt with an unavailable model, `retry` starts a second attempt.

    The record keeps the error of the first attempt.
    """
    flag = agents.bench.root / "flag"
    task = agents.ended("m1? error Overloaded", "m1? exit 1", f"until {flag}", "answer ok", options=("--model", "m1"))
    assert task["reason"] == "unavailable"
    flag.touch()
    agents.bench.ok("retry", task["id"])
    shown = agents.wait(task["id"])
    assert len(shown["attempts"]) == 2
    assert shown["attempts"][0]["agent"]["error"] == "Overloaded"


def test_hand_off_names_client_model_progress_and_cost_of_a_running_agent(agents: Agents) -> None:
    """For a running agent, the hand-off has client, model, progress, cost, and what the agent wrote last."""
    go = agents.bench.root / "go"
    agents.bench.ok("session", "begin", "--session", "s-1")
    task = agents.launch(
        "cost 0.75", "say I read all files", f"until {go}", "answer ok", options=("--model", "m1", "--session", "s-1")
    )
    wait_until(lambda: agents.bench.show(task)["agent"]["cost_usd"], "the cost of the agent so far")
    text = agents.bench.ok("hand-off", "--session", "s-1")
    go.touch()
    assert "agent bot:m1" in text
    assert "$0.75" in text
    assert "I read all files" in text
    agents.wait(task)


def test_lost_ledger_is_rebuilt_with_its_agents(agents: Agents) -> None:
    """If the ledger is lost, the rebuilt record says that the task is an agent, and has its model and its answer."""
    task = agents.ended("cost 0.10", "answer kept", options=("--model", "m1"))
    for path in Path(agents.bench.home.path).glob("ledger.sqlite*"):
        path.unlink()
    agents.bench.run("audit", "--rebuild")
    shown = agents.bench.show(task["id"])
    assert (shown["kind"], shown["state"]) == ("agent", "succeeded")
    assert (shown["agent"]["model"], shown["agent"]["answer"]) == ("m1", "kept")


def test_client_gets_no_variable_of_the_session_that_launched_it(agents: Agents) -> None:
    """The agent's environment has no session id and no token of the client that launched the agent."""
    marks = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "s-9",
        "CLAUDE_CODE_MESSAGING_TOKEN": "t",
        "CODEX_THREAD_ID": "x",
    }
    shown = agents.launch("call env", "answer ok", env=marks)
    agents.wait(shown)
    text = Path(agents.bench.files(shown).output).read_text()
    assert not any(f"{name}=" in text for name in marks)
    assert "OUTLIVE_TASK=" in text


def test_new_session_begins_when_the_client_did_not_store_the_old_one(agents: Agents) -> None:
    """If the client has not stored the session of the first attempt, the next attempt begins a new session.

    This attempt does not count as a retry.
    """
    shown = agents.ended(
        "again? error No conversation found with this session",
        "again? exit 1",
        "m2? answer from a new session",
        "m2? exit 0",
        "call echo hi",
        "error Overloaded",
        "exit 1",
        options=("--model", "m1", "--fallback", "m2"),
    )
    assert [each["agent"]["class"] for each in shown["attempts"]] == ["unavailable", "broken", "answered"]
    sessions = [each["agent"]["session"] for each in shown["attempts"]]
    assert sessions[0] == sessions[1] != sessions[2]
    assert "An earlier attempt at this" in agents.bench.ok("transcript", shown["id"])
