"""Which clients and models an agent task tries, according to options and settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive.agents.find_adapter import adapter_of, reader_of
from outlive.domain.agents.request import AgentRequest, AgentStart
from outlive.domain.errors import UserError
from outlive.settings.agent_choice import choice_of, choose, tables_of
from outlive.settings.read_settings import parse_agent_settings

if TYPE_CHECKING:
    from outlive.domain.agents.agent_settings import AgentSettings

LINES = 'lines.answer = { when = { type = "result" }, text = "result" }'
BOTS = f"""
[agents.clients.bot]
command = ["bot", "--json"]
model = "bot-default"
{LINES}
[agents.clients.other]
command = ["/opt/other"]
provider = "acme"
at_once = 2
{LINES}
"""
TREE = (
    BOTS
    + """
[agents.categories.review]
client = "bot"
model = "bot-review"
[agents.projects."/srv/work"]
client = "other"
model = "other-work"
[agents.projects."/srv/work/deep"]
model = "opus"
"""
)


def tried(text: str, **options: Any) -> list[str]:
    """Return the names of the models that are tried, in order."""
    return [one.name for one in candidates(text, **options)]


def candidates(text: str, **options: Any) -> tuple[Any, ...]:
    """Return the clients and models to try, for these settings and options."""
    absent: dict[str, Any] = dict.fromkeys(("client", "model", "fallback", "category", "project"))
    return choose(settings_of(text), **{**absent, **options})


def settings_of(text: str) -> AgentSettings:
    """Return the settings in a text of TOML."""
    return parse_agent_settings(text, "F")


@pytest.mark.parametrize(
    ("options", "name", "source"),
    [
        ({}, "claude", "client"),
        ({"client": "bot"}, "bot:bot-default", "default"),
        ({"category": "review"}, "bot:bot-review", "category"),
        ({"category": "review", "project": "/srv/work"}, "other:other-work", "project"),
        ({"category": "review", "project": "/srv/work/deep"}, "claude:opus", "project"),
        ({"category": "review", "project": "/srv/work/deep/er"}, "claude:opus", "project"),
        ({"category": "review", "project": "/srv/workshop"}, "bot:bot-review", "category"),
        ({"category": "review", "project": "/srv/work", "model": "m"}, "other:m", "option"),
        ({"category": "review", "project": "/srv/work", "model": "claude:m"}, "claude:m", "option"),
        ({"category": "review", "project": "/srv/work", "client": "bot"}, "bot:bot-review", "category"),
        ({"category": "review", "client": "other"}, "other", "client"),
        ({"client": "claude", "model": "gemma:2b"}, "claude:gemma:2b", "option"),
    ],
)
def test_first_model_follows_the_precedence(options: dict[str, Any], name: str, source: str) -> None:
    """The first model is that of the option, else of the project, else of the category, else the client's default."""
    assert tried(TREE, **options) == [name]
    absent: dict[str, Any] = dict.fromkeys(("client", "model", "category", "project"))
    assert choice_of(settings_of(TREE), **{**absent, **options}).model_from == source


def test_default_client_has_its_own_default_model() -> None:
    """Without any option, the default client runs with the model that its own table names."""
    assert tried('agents.client = "bot"\n' + BOTS) == ["bot:bot-default"]


UNSTABLE = """
[agents.categories.shaky]
model = "shaky"
unstable = true
[agents.categories.firm]
model = "firm"
"""


@pytest.mark.parametrize(
    ("text", "options", "is_unstable"),
    [
        (UNSTABLE, {"category": "shaky"}, True),
        (UNSTABLE, {"category": "firm"}, False),
        # a category whose model is unstable, overridden by a stable model
        (UNSTABLE, {"category": "shaky", "model": "firm"}, False),
        (UNSTABLE, {"category": "shaky", "client": "bot"}, False),
        (UNSTABLE + "[agents.projects.'/p']\nmodel = 'firm'\n", {"category": "shaky", "project": "/p"}, False),
        # a category whose model is stable, overridden by an unstable model
        (UNSTABLE + "[agents.models.x]\nunstable = true\n", {"category": "firm", "model": "x"}, True),
        (
            UNSTABLE + "[agents.projects.'/p']\nmodel = 'x'\nunstable = true\n",
            {"category": "firm", "project": "/p"},
            True,
        ),
        # Only the setting of the model itself counts, whichever source names the model.
        (UNSTABLE, {"category": "shaky", "model": "shaky"}, True),
        (UNSTABLE + "[agents.models.shaky]\nunstable = false\n", {"category": "shaky"}, False),
        (
            UNSTABLE + "[agents.models.x]\nunstable = true\n[agents.models.'claude:x']\nunstable = false\n",
            {"model": "x"},
            False,
        ),
        (UNSTABLE + "[agents.models.'claude:x']\nunstable = true\n", {"client": "bot", "model": "x"}, False),
        (UNSTABLE + "[agents.clients.claude]\nmodel = 'x'\n[agents.models.x]\nunstable = true\n", {}, True),
    ],
)
def test_first_candidate_is_unstable_only_if_its_model_is(
    text: str, options: dict[str, Any], is_unstable: bool
) -> None:
    """The first model is unstable only if its own table says so. The category's `unstable` is ignored if overridden."""
    assert candidates(BOTS + text, **options)[0].is_unstable is is_unstable


def test_fallback_is_unstable_only_if_its_own_model_is() -> None:
    """A fallback is unstable only if its own model's table says so, even if the first model is unstable."""
    text = UNSTABLE + "[agents.models.b]\nunstable = true\n"
    found = candidates(text, category="shaky", fallback=["a", "b"])
    assert [(one.name, one.is_unstable) for one in found] == [
        ("claude:shaky", True),
        ("claude:a", False),
        ("claude:b", True),
    ]


FALLBACKS = (
    'agents.fallback = ["general"]\n'
    + BOTS
    + """
[agents.categories.review]
client = "bot"
fallback = ["next", "claude:opus"]
[agents.projects."/p"]
fallback = ["projects"]
[agents.projects."/none"]
fallback = []
"""
)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["claude", "claude:general"]),
        ({"category": "review"}, ["bot:bot-default", "bot:next", "claude:opus"]),
        ({"category": "review", "project": "/p"}, ["bot:bot-default", "claude:projects"]),
        ({"category": "review", "project": "/none"}, ["bot:bot-default"]),
        ({"category": "review", "fallback": ["x", "other:y"]}, ["bot:bot-default", "bot:x", "other:y"]),
        ({"category": "review", "fallback": []}, ["bot:bot-default"]),
        # The user chose a model that the settings name as a fallback.
        ({"category": "review", "model": "next"}, ["bot:next", "claude:opus"]),
        ({"model": "general"}, ["claude:general"]),
    ],
)
def test_fallback_follows_the_precedence(options: dict[str, Any], names: list[str]) -> None:
    """The first source that has a list of fallbacks decides, even if its list is empty. An option comes first."""
    assert tried(FALLBACKS, **options) == names


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"client": "cluade"}, ["there is no client 'cluade'", "did you mean claude?"]),
        ({"client": "zzz"}, ["there is no client 'zzz'", "clients are claude, codex, gemini, opencode, bot, other"]),
        ({"category": "reveiw"}, ["there is no category 'reveiw'", "did you mean review?"]),
        ({"category": "zzz"}, ["there is no category 'zzz'", "describe it in [agents.categories.NAME] of F"]),
        ({"category": ""}, ["there is no category ''"]),
        ({"model": ""}, ["'' names no model"]),
        ({"model": "cluade:opus"}, ["there is no client 'cluade'", "did you mean claude:opus?"]),
        ({"client": "bot", "model": "claude:opus"}, ["'claude:opus' is a model of claude, not of bot"]),
        ({"fallback": ["claud:opus"]}, ["there is no client 'claud'", "did you mean claude:opus?"]),
        ({"fallback": ["a", "a"]}, ["claude:a is twice among the models to try"]),
        ({"model": "a", "fallback": ["b", "claude:a"]}, ["claude:a is twice among the models to try"]),
        ({"fallback": ["bot:"]}, ["'bot:' names no model"]),
    ],
)
def test_unknown_or_repeated_name_is_refused(options: dict[str, Any], told: list[str]) -> None:
    """An unknown or repeated name is refused. The error names the word, and the hint the nearest valid name."""
    with pytest.raises(UserError) as caught:
        candidates(TREE, **options)
    found = f"{caught.value.message} / {caught.value.hint}"
    assert [each for each in told if each not in found] == [], found


def test_candidate_claims_its_model_and_its_provider() -> None:
    """An agent takes a place of its model and one of its provider. Each limits how many agents run at the same time."""
    text = (
        "[agents]\nat_once = 7\nat_once_per_provider = 20\n"
        + BOTS
        + "[agents.models.'claude:opus']\nat_once = 1\n[agents.models.big]\nat_once = 3\n"
    )
    found = candidates(text, model="opus", fallback=["sonnet", "bot:big", "other:small", "other:big", "bot:lab/x"])
    assert [one.claims for one in found] == [
        (("agent-model:claude:opus", 1), ("agent-provider:anthropic", 20)),
        (("agent-model:claude:sonnet", 7), ("agent-provider:anthropic", 20)),
        (("agent-model:bot:big", 3), ("agent-provider:bot", 20)),
        (("agent-model:other:small", 2), ("agent-provider:acme", 20)),
        (("agent-model:other:big", 3), ("agent-provider:acme", 20)),
        (("agent-model:bot:lab/x", 7), ("agent-provider:lab", 20)),
    ]
    assert candidates("")[0].claims == (("agent-model:claude", 5),), "the provider is limited by default"


def test_tables_of_the_candidates_have_the_keys_for_their_adapters() -> None:
    """The settings of all clients that may run are passed on, without the keys that choose a model."""
    found = settings_of(BOTS)
    tables = tables_of(found, candidates(BOTS, client="other", model="x", fallback=["claude:opus"]))
    answer = {"answer": {"when": {"type": "result"}, "text": "result"}}
    assert tables == {"other": {"command": ["/opt/other"], "lines": answer}}


def test_program_of_the_settings_is_started_as_described() -> None:
    """A program that the settings describe is started as described: every key reaches its adapter."""
    text = f"""
[agents.clients.bot]
command = ["bot", "--json"]
arguments = ["--quiet"]
model = "small"
prompt = "argument"
model_arguments = ["--model={{model}}"]
resume = ["--resume", "{{session}}"]
session = "meta.session"
{LINES}
"""
    found = candidates(text, client="bot")
    request = AgentRequest(candidates=found, tables=tables_of(settings_of(text), found))
    start = AgentStart(client="bot", model=found[0].model, session="s-1", is_resumed=True)
    line = adapter_of(request, "bot").command(request, start, "do it", {})
    assert line.argv == ("bot", "--json", "--quiet", "--model=small", "--resume", "s-1", "do it")
    reader = reader_of(request, start)
    reader.feed(b'{"meta": {"session": "s-2"}}\n{"type": "result", "result": "done"}\n')
    assert (reader.session, reader.answer, reader.result("it exited with 0").agent_class) == ("s-2", "done", "answered")


@given(
    option=st.booleans(),
    project=st.booleans(),
    category=st.booleans(),
    default=st.booleans(),
    unstable=st.sets(st.sampled_from(["option", "project", "category", "default"])),
)
def test_unstable_depends_on_the_resolved_model_alone(
    option: bool, project: bool, category: bool, default: bool, unstable: set[str]
) -> None:
    """Whether a model is unstable depends only on the table of the model that runs, whatever source names it."""
    text = "".join(f"[agents.models.{name}]\nunstable = true\n" for name in sorted(unstable))
    text += "[agents.clients.claude]\nmodel = 'default'\n" if default else ""
    text += "[agents.projects.'/p']\nmodel = 'project'\n" if project else ""
    text += "[agents.categories.c]\n" + ("model = 'category'\n" if category else "")
    (found,) = candidates(text, model="option" if option else None, category="c", project="/p")
    wanted = [
        name
        for name, is_named in (("option", option), ("project", project), ("category", category), ("default", default))
        if is_named
    ]
    assert found.model == (wanted[0] if wanted else None)
    assert found.is_unstable == (found.model in unstable)
