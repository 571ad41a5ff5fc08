"""What only Claude Code has: conversations without a terminal, plugins, a background of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.processes import is_held_open
from tests.clients.model import Asked, Hang, Reply, Say, Use
from tests.clients.rig import new_session, released
from tests.support import open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rig import Claude


def launching(claude: Claude, go: Path) -> Callable[[Asked], list[Reply]]:
    """A model that launches a task, which fails when `go` is there, and then says whether it has heard of that."""

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}; exit 3'")]
        return [Say("heard" if "(exit 3)" in asked.all else "idle")]

    return answer


def test_what_ended_before_the_turn_does_is_told_at_its_end(claude: Claude, tmp_path: Path) -> None:
    """The turn goes on with the ending, which is told in one place."""
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


def test_compacting_and_clearing_hand_over(claude: Claude, tmp_path: Path) -> None:
    """After either, the model knows what runs; after `/clear` it is another session, and told all the same."""
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


def test_an_idle_session_is_woken_once(claude: Claude, tmp_path: Path) -> None:
    """Its turn is over; when the task ends it takes another one, with the ending in it."""
    claude.install()
    go = tmp_path / "go"
    claude.model.answer = launching(claude, go)
    session = claude.converse()
    session.say("launch it")
    assert session.result() == "idle", "the gate lets it be: somebody wakes it"
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
    assert told.count("[outlive wakes ") == 1, "by its socket"


def watchers(claude: Claude) -> int:
    """How many processes watch a session, or wait for their turn to."""
    [file] = claude.bench.state.glob("*/hooks/*.watch")
    return sum(str(file) in open_files(int(pid)) for pid in os.listdir("/proc") if pid.isdigit())


def test_a_session_that_is_open_twice_is_woken_where_it_is_left(claude: Claude, tmp_path: Path) -> None:
    """One watches for both of its clients; when that client is killed, the other one is woken."""
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
    wait_until(lambda: watchers(claude) == 2, "the one who waits for its turn")
    claude.kill(first.client)
    count = len(claude.model.asked)
    go.touch()
    wait_until(lambda: len(claude.model.asked) > count, "the turn that it was woken for")
    assert second.result() == "heard"
    task = claude.only_task()
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")
    assert claude.model.asked[-1].all.count(f"n{task}01ended") == 1


def test_an_idle_session_that_takes_no_message_is_woken_by_a_hook(claude: Claude, tmp_path: Path) -> None:
    """Its settings hold messages back: the ending comes all the same, once."""
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


def test_a_session_that_was_resumed_and_has_taken_no_turn_yet_is_woken(claude: Claude, tmp_path: Path) -> None:
    """Somebody sits before it, and has not typed anything."""
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
    wait_until(lambda: len(claude.model.asked) == 3, "the turn that it was woken for")
    assert claude.model.asked[2].all.count(f"n{task}01ended") == 1
    wait_until(lambda: claude.notices(task) == {"ended": "acked"}, "the acknowledgement")


def test_a_disposable_wait_in_its_own_background_wakes_it_and_tells_nothing_twice(
    claude: Claude, tmp_path: Path
) -> None:
    """`outlive wait --no-ack` as a background shell: its end is the client's word, the ending is ours, once."""
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


def test_the_plugin_is_valid_and_does_the_same(claude: Claude, tmp_path: Path) -> None:
    """By Claude Code's own judgement, and in a session."""
    folder = tmp_path / "plugin"
    claude.bench.ok("install", "--client", "claude", "--plugin", str(folder))
    claude.finish(claude.start("plugin", "validate", str(folder)))
    go = tmp_path / "go"

    def answer(asked: Asked) -> list[Reply]:
        if not asked.results:
            return [claude.shell(f"outlive run '{released(go)}; exit 3'")]
        if "This session waits" in asked.last:
            go.touch()
            return [claude.shell("outlive wait --no-ack")]
        return [Say("finished")]

    claude.model.answer = answer
    claude.finish(claude.ask("begin", "--plugin-dir", str(folder)))
    assert "(exit 3)" in claude.model.asked[-1].all
    assert claude.notices(claude.only_task()) == {"ended": "acked"}
    assert not (claude.home / ".claude/settings.json").exists()


def test_installed_twice_each_ending_is_told_once(claude: Claude, tmp_path: Path) -> None:
    """In the settings and as a plugin: every hook runs twice, at the same time."""
    folder = tmp_path / "plugin"
    claude.install()
    claude.bench.ok("install", "--client", "claude", "--plugin", str(folder))
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


def test_a_command_for_the_background_becomes_a_task_if_that_was_asked_for(claude: Claude) -> None:
    """`--guard rewrite`: the client runs ours instead of its own background, which would die with it."""
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
def test_a_shell_that_was_forbidden_at_its_start_is_not_got_round(claude: Claude, words: tuple[str, ...]) -> None:
    """Our tool `run` would be one that the same session was not given."""
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
def test_an_agent_without_a_shell_does_not_get_round_that(claude: Claude, has_list: bool) -> None:
    """Our tool `run` refuses it; one that has a list of its tools has not got ours, unless it is named there."""
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


def test_what_it_ran_in_its_own_background_is_told_to_the_successor(claude: Claude, tmp_path: Path) -> None:
    """Killed, it leaves a shell behind that nobody keeps: told while it runs, and once that it is lost."""
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
    assert "not kept by Outlive, but by the client itself (1)" in told
    assert f"{shell} runs, told" in told
    go.touch()
    wait_until(lambda: not is_held_open(output), "the shell's end")
    claude.finish(claude.ask("again, please", "--resume", session))
    assert f"{shell} may run, or have ended" in claude.model.asked[3].last
    claude.finish(claude.ask("again, at last", "--resume", session))
    assert f"{shell} is lost, nobody saw how it ended" in claude.model.asked[4].last
    claude.finish(claude.ask("again, for ever", "--resume", session))
    assert shell not in claude.model.asked[5].last


def test_what_it_goes_on_with_after_clearing_is_told_as_one(claude: Claude, tmp_path: Path) -> None:
    """Its shells stay when another session takes the place of theirs: it speaks of them there, also when they end."""
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
    assert ask("who are you").count(f"{shell} runs, told") == 1
    ask("/compact")
    assert ask("and now").count(f"{shell} runs, told") == 1
    go.touch()
    wait_until(lambda: "<task-notification>" in claude.model.asked[-1].all, "the client's own word of its end")
    session.result()
    for _ in range(2):
        ask("/compact")
        assert shell not in ask("and now").rpartition("and now")[0].partition("client itself")[2]
