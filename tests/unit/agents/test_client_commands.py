"""The command lines and variables with which agents' clients are started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from outlive.agents.find_adapter import CLIENTS, new_adapter, without_session_variables
from outlive.domain.agents.request import AgentRequest, AgentStart, Candidate, Worktree
from tests.unit.agents.recorded import MODELS

if TYPE_CHECKING:
    from pathlib import Path

PROMPT = "Count the\nfiles -- 'and' \"say\" so"
SESSION = "0f3c2c52-7d3c-4be2-9a2e-5a4d7a3f2f10"
# Options that give an agent more rights than the user's configuration of the client does.
WIDENING = (
    *("--dangerously-skip-permissions", "--permission-mode", "bypassPermissions", "--allowedTools"),
    *("--dangerously-bypass-approvals-and-sandbox", "--full-auto", "--sandbox", "-s=danger-full-access"),
    *("--yolo", "--approval-mode", "--skip-trust", "--auto", "--allowed-tools"),
)


def _argv(client: str, arguments: list[str] | None = None, **start: object) -> tuple[str, ...]:
    request = AgentRequest(candidates=(Candidate(client=client),), max_turns=7, budget_usd=1.5)
    adapter = new_adapter(client, {"arguments": arguments or []})
    return adapter.command(request, AgentStart(client=client).but(**start), PROMPT, {}).argv


def _environ(environ: dict[str, str]) -> dict[str, str]:
    request = AgentRequest(candidates=(Candidate(client="opencode"),))
    line = new_adapter("opencode").command(request, AgentStart(client="opencode"), PROMPT, environ)
    return {**environ, **line.environ}


def test_every_client_is_named_by_its_adapter() -> None:
    """The registry has an adapter for each client, under the client's name."""
    assert {name: new_adapter(name).name for name in CLIENTS} == {name: name for name in CLIENTS}
    assert set(CLIENTS) == set(MODELS)


@pytest.mark.parametrize("client", CLIENTS)
def test_prompt_is_not_an_argument(client: str) -> None:
    """No argument of a client contains the prompt, because the client reads it from standard input."""
    assert not any("files" in word for word in _argv(client))


@pytest.mark.parametrize("client", CLIENTS)
def test_command_line_gives_no_additional_rights(client: str) -> None:
    """No option gives the client more rights than its user does, in a new or in a resumed session."""
    for start in ({}, {"model": "m"}, {"session": SESSION, "is_resumed": True}):
        words = _argv(client, **start)
        assert not set(words).intersection(WIDENING)


@pytest.mark.parametrize("client", CLIENTS)
def test_model_and_session_are_passed_on(client: str) -> None:
    """The command line has the model and the resumed session, each after the option of the client for it."""
    words = _argv(client, model="provider/m", session=SESSION, is_resumed=True)
    assert words[words.index("provider/m") - 1] in ("-m", "--model")
    assert words[words.index(SESSION) - 1] in ("--resume", "resume", "-s")


@pytest.mark.parametrize("client", CLIENTS)
def test_new_session_gets_its_id_if_the_client_takes_one(client: str) -> None:
    """Only Claude Code and Gemini CLI get the id of a new session, because only they accept one."""
    words = _argv(client, session=SESSION)
    assert ("--session-id" in words) == new_adapter(client).assigns_session == (client in ("claude", "gemini"))


@pytest.mark.parametrize("client", CLIENTS)
def test_arguments_of_the_user_are_kept(client: str) -> None:
    """The user's extra arguments are on the command line, before the arguments that must be last."""
    words = _argv(client, ["--mine", "x"], session=SESSION, is_resumed=True)
    at = words.index("--mine")
    assert words[at + 1] == "x"
    if client == "codex":
        assert words[at + 2 :] == ("resume", SESSION, "-")


def test_claude_has_its_own_limits_and_no_tools_that_wait() -> None:
    """Claude Code gets the limits of turns and budget. Its tools that ask a question or wait are switched off."""
    words = _argv("claude")
    assert words[words.index("--max-turns") + 1] == "7"
    assert words[words.index("--max-budget-usd") + 1] == "1.5"
    assert words[words.index("--permission-prompts") + 1] == "none"
    off = words[words.index("--disallowedTools") + 1].split(",")
    assert {"AskUserQuestion", "ScheduleWakeup", "ExitPlanMode"} <= set(off)


def test_claude_gets_what_earlier_attempts_have_left_of_the_limits() -> None:
    """Claude Code gets what is left of the task's limits, because it counts only its own run."""
    request = AgentRequest(candidates=(Candidate(client="claude"),), max_turns=7, budget_usd=1.5)
    for spent, turns, left in ((0.5, 3, ("4", "1")), (2.0, 9, ("1", "0.0001"))):
        start = AgentStart(client="claude", spent_usd=spent, spent_turns=turns)
        words = new_adapter("claude").command(request, start, "hi", {}).argv
        assert (words[words.index("--max-turns") + 1], words[words.index("--max-budget-usd") + 1]) == left


def test_codex_skips_only_the_check_for_a_repository() -> None:
    """Codex gets only the option that lets it start outside of a repository.

    No argument changes its sandbox or its approvals, which the user configures.
    """
    assert "--skip-git-repo-check" in _argv("codex")
    assert not any("sandbox" in word or "approval" in word for word in _argv("codex"))


def test_opencode_goes_on_after_a_denial_and_keeps_the_user_settings() -> None:
    """For OpenCode, one setting is added to the user's settings in the environment, and no permission is changed.

    With it, OpenCode continues after a permission was denied.
    """
    own = {"permission": {"bash": {"*": "ask", "rm *": "deny"}}, "experimental": {"mcp_timeout": 5}}
    found = _environ({"OPENCODE_CONFIG_CONTENT": json.dumps(own), "OPENCODE_PERMISSION": '{"edit": "deny"}'})
    assert found["OPENCODE_PERMISSION"] == '{"edit": "deny"}'
    settings = json.loads(found["OPENCODE_CONFIG_CONTENT"])
    assert settings["permission"] == own["permission"]
    assert settings["experimental"] == {"mcp_timeout": 5, "continue_loop_on_deny": True}
    assert json.loads(_environ({})["OPENCODE_CONFIG_CONTENT"]) == {"experimental": {"continue_loop_on_deny": True}}


@pytest.mark.parametrize("given", ['{"a": 1, // mine\n}', "[]", "{" * 100_000])
def test_opencode_settings_that_cannot_be_read_stay(given: str) -> None:
    """If the user's OPENCODE_CONFIG_CONTENT is not a JSON object, the variable stays unchanged."""
    assert _environ({"OPENCODE_CONFIG_CONTENT": given}) == {"OPENCODE_CONFIG_CONTENT": given}


@pytest.mark.parametrize(
    ("rules", "is_trusted"),
    [
        ({"{repository}": "TRUST_FOLDER"}, True),
        ({"{repository}/x": "TRUST_PARENT"}, True),
        ({"{repository}": "DO_NOT_TRUST"}, False),
        ({"{repository}": "TRUST_FOLDER", "{worktree}": "DO_NOT_TRUST"}, False),
        ({"{above}": "TRUST_FOLDER", "{repository}": "DO_NOT_TRUST"}, False),
        ({"{repository}-other": "TRUST_FOLDER"}, False),
        ({}, False),
        ([], False),
    ],
)
def test_gemini_worktree_is_as_trusted_as_its_repository(tmp_path: Path, rules: object, *, is_trusted: bool) -> None:
    """A worktree is trusted if the user trusts its repository. No other folder becomes trusted."""
    repository, place = tmp_path / "code" / "repository", tmp_path / "state" / "worktree"
    repository.mkdir(parents=True)
    place.mkdir(parents=True)
    file = tmp_path / "trustedFolders.json"
    names = {"{repository}": repository, "{above}": repository.parent, "{worktree}": place}
    text = json.dumps(rules)
    for name, folder in names.items():
        text = text.replace(name, str(folder))
    file.write_text(text)
    environ = {"GEMINI_CLI_TRUSTED_FOLDERS_PATH": str(file)}
    worktree = Worktree(path=str(place), repository=str(repository), branch="b", base="c")
    request = AgentRequest(candidates=(Candidate(client="gemini"),), worktree=worktree)
    adapter, start = new_adapter("gemini"), AgentStart(client="gemini")
    found = adapter.command(request, start, PROMPT, environ).environ
    assert found == ({"GEMINI_CLI_TRUST_WORKSPACE": "true"} if is_trusted else {})
    assert adapter.command(request.but(worktree=None), start, PROMPT, environ).environ == {}
    assert adapter.command(request, start, PROMPT, {**environ, "GEMINI_CLI_TRUST_WORKSPACE": "false"}).environ == {}


def test_variables_of_the_parent_session_are_removed_and_keys_stay() -> None:
    """A background agent gets the user's keys and settings, but no variable of its parent's session."""
    kept = {
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": "x",
        "GEMINI_API_KEY": "x",
        "OPENCODE_CONFIG": "x",
        "CODEX_HOME": "x",
        "CLAUDE_CONFIG_DIR": "x",
        "PATH": "x",
        "OPENCODE_PERMISSION": "{}",
    }
    gone = (
        *("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN"),
        *("CODEX_THREAD_ID", "CODEX_SESSION_ID", "GEMINI_CLI", "OPENCODE", "OPENCODE_PID", "AI_AGENT", "CURSOR_AGENT"),
    )
    assert without_session_variables({**kept, **dict.fromkeys(gone, "x")}) == kept
