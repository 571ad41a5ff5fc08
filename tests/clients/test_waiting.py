"""The number of model requests that a session with one task needs, for every client and mode.

For the launch, a session needs two requests: one calls the tool, and one reads the tool's result. A third request reads
the ending. No client sends a request while the task runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.clients.model import Asked, Reply, Say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.clients.rig import Rig
    from tests.clients.rigs.claude import Claude
    from tests.clients.rigs.codex import Codex
    from tests.clients.rigs.gemini import Gemini
    from tests.clients.rigs.openclaw import OpenClaw
    from tests.clients.rigs.opencode import OpenCode

LONG_S = int(os.environ.get("OUTLIVE_TEST_LONG_WAIT_S", "60"))
DURATIONS = {"short": "5", "long": str(LONG_S), "never": "3600"}
CEILING_S = 10
MOST = {"short": 3, "long": 3, "never": 2}
PATIENCE_S = LONG_S + 80


class Case:
    """One session with one task, and the requests of the session to its model."""

    def __init__(self, rig: Rig, name: str) -> None:
        self.rig = rig
        self.prompt = f"launch the {name} one"
        self.name = name

    @property
    def asked(self) -> list[Asked]:
        """The requests of this session."""
        return [asked for asked in self.rig.model.asked if self.prompt in asked.all]

    @property
    def has_heard(self) -> bool:
        """Whether the model of this session has read the ending."""
        return any("01ended)" in asked.all for asked in self.asked)

    def check(self, mode: str, record: Callable[[str], None]) -> None:
        """Assert that the session sent at most three requests, and that the ending was reported once.

        A task that does not end causes no third request.
        """
        characters = sum(len(asked.all) for asked in self.asked)
        record(f"{self.rig.name} {mode} {self.name} {len(self.asked)} {characters}")
        assert len(self.asked) <= MOST[self.name], [asked.last[-300:] for asked in self.asked]
        assert self.asked[-1].all.count("01ended)") == (self.name != "never")


def cases(rig: Rig) -> dict[str, Case]:
    """Return the sessions by name. The model launches for each session the task that its prompt names."""
    found = {name: Case(rig, name) for name in DURATIONS}

    def answer(asked: Asked) -> list[Reply]:
        case = next((each for each in found.values() if each.prompt in asked.all), None)
        if case is None or asked.results:
            return [Say("done")]
        return [rig.shell(f"outlive run 'sleep {DURATIONS[case.name]}'")]

    rig.model.answer = answer
    return found


@pytest.fixture
def record() -> Callable[[str], None]:
    """Return a function that adds one line to the file named by OUTLIVE_TEST_REQUESTS, which `make bench` reads.

    The line has the number of requests and the number of their characters.
    """

    def add(line: str) -> None:
        if path := os.environ.get("OUTLIVE_TEST_REQUESTS"):
            with open(path, "a", encoding="utf-8") as file:
                file.write(f"{line}\n")

    return add


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition, at most as long as the long task may run.

    Clients that start at the same time start slowly.
    """
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, f"waited {PATIENCE_S} s in vain for {what}"
        time.sleep(0.1)


def wait_for_endings(found: dict[str, Case]) -> None:
    """Wait until the models have read the endings of the short and the long task."""
    for name in ("short", "long"):
        wait_for(lambda name=name: found[name].has_heard, f"the ending of the {name} task")  # type: ignore[misc]


def test_headless_session_waits_without_requests(answering: Rig, tmp_path: Path, record: Callable[[str], None]) -> None:
    """A headless client waits without requests until the task ends, reads the ending and exits.

    If the task does not end, the client exits at the time limit OUTLIVE_HEADLESS_WAIT.
    """
    rig = answering
    rig.configure()
    rig.install()
    found = cases(rig)
    clients = {}
    for name, case in found.items():
        rig.bench.env["OUTLIVE_HEADLESS_WAIT"] = f"{CEILING_S}s" if name == "never" else "10m"
        place = tmp_path / name
        place.mkdir()
        clients[name] = rig.ask(case.prompt, cwd=place)
        wait_for(lambda case=case: case.asked, "the first request")  # type: ignore[misc]
    for client in clients.values():
        out, err = client.communicate(timeout=PATIENCE_S)
        assert client.returncode == 0, (out[-2000:], err[-2000:])
    for case in found.values():
        case.check("headless", record)
    told = [task for task in rig.tasks(3) if rig.bench.row(task).state == "succeeded"]
    assert [rig.notices(task) for task in told] == [{"ended": "acked"}] * 2


def check_headless(case: Case, words: list[str], prompt: str = "") -> None:
    """Assert that a client without a terminal reads the ending of its task before it exits."""
    client = case.rig.start(*words, stdin=subprocess.PIPE)
    out, err = client.communicate(prompt, timeout=PATIENCE_S)
    assert client.returncode == 0, (out[-2000:], err[-2000:])
    assert case.has_heard
    case.check("headless", lambda _: None)


def test_gemini_without_a_terminal_waits_for_its_task(gemini: Gemini) -> None:
    """Gemini CLI without a terminal and without `-p` waits for its task.

    The prompt comes from stdin, and the client exits after one turn.
    """
    gemini.configure()
    gemini.install()
    case = cases(gemini)["short"]
    check_headless(case, ["--yolo", "-m", "gemini-2.5-pro"], case.prompt)


def test_gemini_at_a_terminal_waits_when_its_options_are_one_word(gemini: Gemini) -> None:
    """Gemini CLI with the option `-yp` waits for its task even in a terminal.

    With this option, the client exits after one turn.
    """
    gemini.configure()
    gemini.install()
    case = cases(gemini)["short"]
    gemini.run_at_a_terminal("-m", "gemini-2.5-pro", "-yp", case.prompt)
    wait_for(lambda: case.has_heard, "the ending")
    case.check("terminal", lambda _: None)


def test_claude_waits_when_it_reads_its_prompt_from_a_file(claude: Claude, tmp_path: Path) -> None:
    """Claude Code waits for its task if it reads its prompts from a file.

    Nobody can add a prompt later, so the client exits after the last prompt.
    """
    claude.configure()
    claude.install()
    case = cases(claude)["short"]
    prompt = {"type": "user", "message": {"role": "user", "content": case.prompt}}
    (tmp_path / "prompts").write_text(json.dumps(prompt) + "\n")
    with (tmp_path / "prompts").open() as prompts:
        conversation = claude.converse(stdin=prompts)
        claude.finish(conversation.client)
    assert case.has_heard
    case.check("headless", lambda _: None)


def test_opencode_waits_when_options_stand_before_its_command(opencode: OpenCode) -> None:
    """OpenCode waits for its task even if options stand before its command, as in `opencode --log-level ERROR run`."""
    opencode.configure()
    opencode.install()
    case = cases(opencode)["short"]
    check_headless(case, ["--log-level", "ERROR", "run", case.prompt])


@pytest.fixture(params=("claude", "codex", "gemini"))
def at_terminal(request: pytest.FixtureRequest) -> Rig:
    """Return, in turn, each client that a script can use in a terminal."""
    rig: Rig = request.getfixturevalue(request.param)
    rig.configure()
    rig.install()
    return rig


def test_session_at_a_terminal_waits_without_requests(
    at_terminal: Claude | Codex | Gemini, record: Callable[[str], None]
) -> None:
    """A session at a terminal sends no requests while its task runs, until it is woken.

    A client that cannot be woken reads the ending at the next prompt.
    """
    rig = at_terminal
    found = cases(rig)
    terminals = {}
    for name, case in found.items():
        terminals[name] = rig.sit_down(case.prompt)
        wait_for(lambda case=case: len(case.asked) == 2, f"the launch of the {name} task")  # type: ignore[misc]
    if not rig.is_woken:
        for task in rig.tasks(3)[:2]:
            rig.bench.run("wait", task, "--no-ack")
        assert [len(case.asked) for case in found.values()] == [2, 2, 2], "a model was asked before the next prompt"
        for name in ("short", "long"):
            rig.prompt(terminals[name], "and now")
    wait_for_endings(found)
    for case in found.values():
        case.check("terminal", record)


def test_session_of_opencode_at_a_terminal_waits_without_requests(
    opencode: OpenCode, record: Callable[[str], None]
) -> None:
    """A session of OpenCode at a terminal sends no requests while its task runs, until it is woken.

    The client starts with the prompt typed in, and the user sends the prompt.
    """
    opencode.configure()
    opencode.install()
    found = cases(opencode)
    for case in found.values():
        terminal = opencode.sit_down(case.prompt)
        wait_for(lambda case=case, terminal=terminal: case.prompt.encode() in terminal.screen, "the prompt")  # type: ignore[misc]
        terminal.enter("", lambda case=case: bool(case.asked))  # type: ignore[misc]
        wait_for(lambda case=case: len(case.asked) == 2, "the launch")  # type: ignore[misc]
    wait_for_endings(found)
    for case in found.values():
        case.check("terminal", record)


def check_terminal(rig: Rig, *words: str) -> None:
    """Assert that a client at a terminal answers a prompt at once while a task runs."""
    case = cases(rig)["never"]
    terminal = rig.sit_down(case.prompt, *words)
    wait_for(lambda: len(case.asked) == 2, "the launch")
    rig.until_idle()
    rig.prompt(terminal, "something else")
    assert rig.bench.row(rig.only_task()).state == "running"


def test_claude_at_a_terminal_answers_at_once_when_a_headless_client_started_it(claude: Claude) -> None:
    """Claude Code at a terminal answers at once, even if a headless client started it.

    It has then inherited the environment variable that marks a headless client.
    """
    claude.configure()
    claude.install()
    claude.bench.env["CLAUDE_CODE_ENTRYPOINT"] = "sdk-cli"
    check_terminal(claude)


def test_codex_at_a_terminal_answers_at_once_when_a_profile_has_the_name_of_a_command(codex: Codex) -> None:
    """Codex at a terminal answers at once, even if its profile is called `review`.

    `review` is also a command of Codex, which would run without a terminal.
    """
    codex.configure().with_name("review.config.toml").write_text('model = "scripted"\n')
    codex.install()
    check_terminal(codex, "--profile", "review")


def test_session_of_a_server_of_opencode_waits_without_requests(
    opencode: OpenCode, record: Callable[[str], None]
) -> None:
    """Sessions of an OpenCode server send no requests while their tasks run, until they are woken."""
    opencode.configure()
    opencode.install()
    found = cases(opencode)
    server = opencode.serve()
    for case in found.values():
        server.say(server.begin(), case.prompt)
    wait_for_endings(found)
    for case in found.values():
        case.check("server", record)


def test_session_of_a_gateway_of_openclaw_waits_without_requests(
    openclaw: OpenClaw, record: Callable[[str], None]
) -> None:
    """Sessions of an OpenClaw gateway send no requests while their tasks run, until they are woken."""
    found = cases(openclaw)
    for name, case in found.items():
        openclaw.take_turn(case.prompt, f"waits-{name}")
    wait_for_endings(found)
    for case in found.values():
        case.check("gateway", record)
