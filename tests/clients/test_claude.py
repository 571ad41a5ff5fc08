"""Features that only Claude Code has: conversations, plugins and background commands."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from outlive.linux.processes import is_held_open
from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import new_session, released
from tests.session_steps import begin, told
from tests.support import open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rigs.claude import Claude


def launching(claude: Claude, go: Path) -> Callable[[Asked], list[Reply]]:
    """Return a model that launches a task, and in later replies says whether it saw the task's ending.

    The task fails when the file `go` exists. The model says `heard` if it saw the ending, and otherwise `idle`.
    """

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    return answer


def test_ending_is_reported_at_the_end_of_the_turn_in_which_the_task_ended(claude: Claude, tmp_path: Path) -> None:
    """An ending during a turn is reported once, at the end of the turn, and the turn continues."""
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}'")]
        if "notice of background tasks" not in asked.all:
            go.touch()
            claude.until_ended(claude.only_task())
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin"))
    told = claude.model.asked[-1].all
    assert told.count("1 notice of background tasks") == 1
    assert claude.notices(claude.only_task()) == {"ended": "acked"}


def test_session_receives_the_ending_of_a_task_that_a_client_in_its_task_left(claude: Claude, tmp_path: Path) -> None:
    """A session is told of a task that another Claude Code launched inside the session's own task.

    The inner Claude Code exits before the task ends, so it cannot be told.
    """
    claude.install()
    bench, go, own = claude.bench, tmp_path / "go", new_session()
    claude.model.answer = launching(claude, go)
    begin(bench, "parent", "--pid", str(os.getpid()))
    words = ("claude", "-p", "begin", "--session-id", own, "--permission-mode", "bypassPermissions")
    outer = bench.ok("run", "--session", "parent", "--", *words, env={"OUTLIVE_HEADLESS_WAIT": "0"})
    claude.until_ended(outer)
    assert bench.row(outer).state == "succeeded"
    (inner,) = set(claude.tasks(2)) - {outer}
    assert bench.show(inner)["session"] == own
    assert told(bench, "parent") == [outer]
    go.touch()
    claude.until_ended(inner)
    assert told(bench, "parent") == [inner]


def test_session_gets_a_hand_off_after_compacting_and_clearing(claude: Claude, tmp_path: Path) -> None:
    """After a compaction and after `/clear`, the model gets a hand-off that names the running task.

    `/clear` starts a new session.
    """
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.last and not asked.results:
            return [claude.shell(f"outlive run --notify failure '{released(go)}; exit 3'")]
        return [Say("finished")]

    claude.model.answer = answer
    session = claude.converse()
    session.say("launch it")
    session.result()
    task = claude.only_task()
    session.say("/compact")
    session.result()
    session.say("and now?")
    session.result()
    told = claude.model.asked[-1].all
    assert claude.hand_offs(told) == 1
    assert f"{task} running" in told

    session.say("/clear")
    session.result()
    go.touch()
    claude.until_ended(task)
    session.say("who are you?")
    session.result()
    told = claude.model.asked[-1].all
    assert task in told
    sessions = claude.bench.json("session", "list", "--all")["sessions"]
    assert len(sessions) == 2
    assert len({each["lineage"] for each in sessions}) == 1


def test_idle_session_is_woken_once(claude: Claude, tmp_path: Path) -> None:
    """When the task ends, the idle session takes one more turn, whose prompt has the ending."""
    claude.install()
    go = tmp_path / "go"
    claude.model.answer = launching(claude, go)
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle", "the turn went on although a watcher can wake the session"
    task = claude.only_task()
    count = len(claude.model.asked)
    go.touch()
    assert session.result() == "heard"
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    session.say("anything else?")
    session.result()
    assert len(claude.model.asked) == count + 2
    told = claude.model.asked[-1].all
    assert told.count(f"n{task}01ended") == 1
    assert told.count("[outlive wakes ") == 1, "the session was not woken through its socket exactly once"


def test_conversation_ends_with_its_input_while_a_task_runs(claude: Claude, tmp_path: Path) -> None:
    """If the input of a conversation ends while a task runs, the waking hook and the client exit soon.

    Claude Code would otherwise wait 30 seconds for this hook.
    """
    claude.install()
    claude.model.answer = launching(claude, tmp_path / "go")
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle"
    wait_until(lambda: watchers(claude) == 1, "the watcher")
    assert session.client.stdin is not None
    before = time.monotonic()
    session.client.stdin.close()
    session.client.wait(60)
    assert time.monotonic() - before < 25, "the client waited for a sleeping hook, up to 30 s"


def watchers(claude: Claude) -> int:
    """Count the processes that watch a session or wait to become its only watching process."""
    files = {str(file) for file in claude.bench.state.glob("*/hooks/*.watch")}
    return sum(bool(files.intersection(open_files(int(pid)))) for pid in os.listdir("/proc") if pid.isdigit())


def test_session_that_two_clients_have_open_is_woken_in_the_surviving_client(claude: Claude, tmp_path: Path) -> None:
    """If two clients have a session open and one of them is killed, the session is woken in the other client.

    One waking hook serves the two clients. If it is killed with its client, the hook of the other client takes over.
    """
    claude.install()
    session, go = new_session(), tmp_path / "go"
    claude.model.answer = launching(claude, go)
    first = claude.converse("--session-id", session)
    first.say("launch it")
    assert first.result() == "idle"
    wait_until(lambda: watchers(claude) == 1, "the watcher")
    second = claude.converse("--resume", session)
    second.say("are you there?")
    assert second.result() == "idle"
    wait_until(lambda: watchers(claude) == 2, "the watcher of the second client")
    claude.kill(first.client)
    count = len(claude.model.asked)
    go.touch()
    wait_until(lambda: len(claude.model.asked) > count, "the turn after the waking")
    assert second.result() == "heard"
    task = claude.only_task()
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert claude.model.asked[-1].all.count(f"n{task}01ended") == 1


def test_idle_session_is_woken_by_a_hook_when_its_settings_hold_messages(claude: Claude, tmp_path: Path) -> None:
    """If the setting `hold` keeps messages back from a session, a hook reports the task's ending, and only once."""
    claude.configure()
    settings = claude.home / ".claude/settings.json"
    settings.write_text('{"crossSessionInbound": "hold"}')
    claude.install()
    go = tmp_path / "go"
    claude.model.answer = launching(claude, go)
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle"
    go.touch()
    assert session.result() == "heard"
    assert "Stop hook feedback" in claude.model.asked[-1].last
    session.say("anything else")
    session.result()
    assert claude.model.asked[-1].all.count(f"n{claude.only_task()}01ended") == 1


def test_resumed_session_is_woken_before_its_first_turn(claude: Claude, tmp_path: Path) -> None:
    """A session that was resumed in a terminal is woken before its user has typed a prompt."""
    claude.configure()
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard")] if "(exit 3)" in asked.all else [Hang()]

    claude.model.answer = answer
    first = claude.begin("launch it")
    wait_until(lambda: len(claude.model.asked) == 2, "the launch")
    claude.kill(first)
    task = claude.only_task()
    claude.come_back()
    claude.until_idle()
    go.touch()
    wait_until(lambda: len(claude.model.asked) == 3, "the turn after the waking")
    assert claude.model.asked[2].all.count(f"n{task}01ended") == 1
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")


def test_wait_in_a_background_shell_wakes_the_session_and_repeats_no_ending(claude: Claude, tmp_path: Path) -> None:
    """If the model runs `outlive wait --no-ack` as a background command, the ending is reported once.

    Claude Code reports the end of the command, and Outlive reports the ending of the task.
    """
    claude.install()
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        steps = (
            claude.shell(f"outlive run '{released(go)}; exit 3'"),
            claude.shell("outlive wait --no-ack", run_in_background=True),
        )
        if asked.results < 2:
            return [steps[asked.results]]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    claude.model.answer = answer
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle"
    go.touch()
    task = claude.only_task()
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    session.say("anything else")
    wait_until(lambda: "anything else" in claude.model.asked[-1].all, "the next turn")
    told = claude.model.asked[-1].all
    assert told.count(f"n{task}01ended") == 1
    assert "<task-notification>" in told


def test_plugin_is_valid_and_reports_endings(claude: Claude, tmp_path: Path) -> None:
    """Claude Code's validator accepts the plugin, and a session with the plugin receives the ending."""
    folder = tmp_path / "plugin"
    claude.bench.ok("install", "--yes", "--client", "claude", "--plugin", str(folder))
    claude.finish(claude.start("plugin", "validate", str(folder)))
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}; exit 3'")]
        go.touch()
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin", "--plugin-dir", str(folder)))
    assert "(exit 3)" in claude.model.asked[-1].all
    assert claude.notices(claude.only_task()) == {"ended": "acked"}
    assert not (claude.home / ".claude/settings.json").exists()


def test_ending_is_reported_once_when_outlive_is_installed_twice(claude: Claude, tmp_path: Path) -> None:
    """The ending is reported once if Outlive is installed in the settings and also as a plugin.

    Every hook then runs twice.
    """
    folder = tmp_path / "plugin"
    claude.install()
    claude.bench.ok("install", "--yes", "--client", "claude", "--plugin", str(folder))
    go = tmp_path / "go"
    claude.model.answer = launching(claude, go)
    session = claude.converse("--plugin-dir", str(folder))
    session.say("launch it")
    assert session.result() == "idle"
    go.touch()
    assert session.result() == "heard"
    session.say("anything else?")
    session.result()
    assert claude.model.asked[-1].all.count(f"n{claude.only_task()}01ended") == 1


def test_background_command_becomes_a_task_with_guard_rewrite(claude: Claude) -> None:
    """With the setting `guard_rewrite`, the guard turns a background command into a launch by Outlive.

    So the command survives the end of the client.
    """
    claude.install("--guard", "rewrite")

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell("echo from-the-background; exit 3", run_in_background=True)]
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin"))
    task = claude.only_task()
    told = claude.model.asked[-1].all
    assert "running in background with ID" not in told
    assert f"n{task}01ended" in told
    assert "from-the-background" in told


@pytest.mark.parametrize(
    "words", [("--disallowedTools", "Bash"), ("--settings", '{"permissions": {"deny": ["Bash"]}}')], ids=" ".join
)
def test_run_tool_is_refused_when_the_client_was_started_without_a_shell(
    claude: Claude, words: tuple[str, ...]
) -> None:
    """Outlive's tool `run` is refused if the client was started without a shell tool.

    A session that may not run commands must not run them through Outlive.
    """
    claude.install()
    launch = claude.tool("run", command="true")

    def answer(asked: Asked) -> list[Reply]:
        if "does not launch tasks" in asked.all or claude.bench.json("list", "--all")["tasks"]:
            return [Say("finished")]
        return [launch if asked.offers(launch) else Use("Read", {"file_path": str(claude.bench.project)})]

    claude.model.answer = answer
    claude.finish(claude.ask("begin", *words))
    assert f"the client was started with {words[0]}" in claude.model.asked[-1].all
    assert claude.bench.json("list", "--all")["tasks"] == []


@pytest.mark.parametrize("has_list", [False, True], ids=["without Bash", "with Read alone"])
def test_run_tool_is_refused_to_an_agent_without_a_shell(claude: Claude, has_list: bool) -> None:
    """An agent that has a list of allowed tools gets the tool `run` only if the list names this tool."""
    claude.install()
    agent = claude.home / ".claude/agents/tied.md"
    agent.parent.mkdir()
    head = "tools: Read" if has_list else "disallowedTools: Bash"
    agent.write_text(f"---\nname: tied\ndescription: has no shell\n{head}\n---\nYou are tied.\n")
    launch = claude.tool("run", command="true")
    worked: list[Asked] = []

    def answer(asked: Asked) -> list[Reply]:
        if "set out" in asked.all:
            work = Use("Agent", {"description": "it", "prompt": "do the work", "subagent_type": "tied"})
            return [Say("finished") if asked.results else work]
        if "do the work" in asked.all:
            worked.append(asked)
            if "does not launch tasks" in asked.all or len(worked) > 9:
                return [Say("finished")]
            return [launch if asked.offers(launch) else Use("Read", {"file_path": str(agent)})]
        return [Say("a title")]

    claude.model.answer = answer
    claude.finish(claude.ask("set out"))
    assert ("an agent that has no shell may be calling" in worked[-1].all) is not has_list
    assert worked[-1].offers(launch) is not has_list
    assert claude.bench.json("list", "--all")["tasks"] == []


def test_background_shell_of_a_killed_client_is_reported_to_the_next_session(claude: Claude, tmp_path: Path) -> None:
    """The background shell of a killed client is reported to the next session as running, and later once as lost."""
    claude.install()
    session, go = new_session(), tmp_path / "go"
    claude.bench.env["OUTLIVE_GRACE_S"] = "0"

    def answer(asked: Asked) -> list[Reply]:
        if "again" in asked.last:
            return [Say("fine")]
        return [Hang()] if asked.results else [claude.shell(f"{released(go)}; echo bye", run_in_background=True)]

    claude.model.answer = answer
    first = claude.ask("first", "--session-id", session)
    wait_until(lambda: len(claude.model.asked) == 2, "the shell to be started")
    started = claude.model.asked[1].last
    shell = started.partition("running in background with ID: ")[2].partition(".")[0]
    output = started.partition("being written to: ")[2].partition(".output")[0] + ".output"
    claude.kill(first)

    claude.finish(claude.ask("again", "--resume", session))
    told = claude.model.asked[2].last
    assert "run by the client itself, not by Outlive (1)" in told
    assert f"{shell} runs, reported" in told
    go.touch()
    wait_until(lambda: not is_held_open(output), "the shell's end")
    claude.finish(claude.ask("again, please", "--resume", session))
    assert f"{shell} may run, or have ended" in claude.model.asked[3].last
    # The prompt of the same turn checks the shell a second time. Without a grace period, two checks are enough.
    assert f"{shell} has ended, exit code unknown" in claude.model.asked[3].last
    claude.finish(claude.ask("again, at last", "--resume", session))
    assert shell not in claude.model.asked[4].last


def test_background_shell_is_reported_once_after_clearing(claude: Claude, tmp_path: Path) -> None:
    """After `/clear`, the end of a background shell is reported once, by Claude Code.

    Outlive does not report it again.
    """
    claude.install()
    claude.bench.env["OUTLIVE_GRACE_S"] = "0"
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if "launch it" in asked.last and not asked.results:
            return [claude.shell(released(go), run_in_background=True)]
        return [Say("finished")]

    claude.model.answer = answer
    session = claude.converse()

    def ask(prompt: str) -> str:
        session.say(prompt)
        session.result()
        return claude.model.asked[-1].all

    shell = ask("launch it").partition("running in background with ID: ")[2].partition(".")[0]
    ask("/clear")
    assert ask("who are you").count(f"{shell} runs, reported") == 1
    ask("/compact")
    assert ask("and now").count(f"{shell} runs, reported") == 1
    go.touch()
    wait_until(lambda: "<task-notification>" in claude.model.asked[-1].all, "the client's report of the shell's end")
    session.result()
    for _ in range(2):
        ask("/compact")
        assert shell not in ask("and now").rpartition("and now")[0].partition("client itself")[2]
