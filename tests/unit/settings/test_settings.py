"""The user's settings file: what is read, what is refused, and which line an error names."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from outlive.domain.agents.agent_settings import AgentLimits, AgentSettings, ModelSettings
from outlive.domain.errors import UserError
from outlive.settings.read_settings import parse_agent_settings, read_agent_settings, settings_path
from outlive.settings.schema import LINES, ROOT, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

BOT = """
[agents.clients.bot]
command = ["bot", "--json"]
arguments = ["--quiet"]
model = "small"
provider = "acme"
at_once = 2
prompt = "argument"
model_arguments = ["--model", "{model}"]
resume = ["--resume", "{session}"]
session = "session.id"
[agents.clients.bot.lines]
answer = { when = { type = "result", "a.b" = 1, ok = true }, text = "result" }
usage = { when = { type = "usage" }, input = "in", output = "out", cost = "usd", total = true }
"""


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """Yield the path of a settings file, in a directory of the user alone."""
    before = os.umask(0o077)
    path = tmp_path / "config" / "outlive" / "config.toml"
    path.parent.mkdir(parents=True)
    yield path
    os.umask(before)


def read(file: Path, project: Path | None = None) -> AgentSettings:
    """Read the settings file."""
    environ = {"XDG_CONFIG_HOME": str(file.parents[1])}
    return read_agent_settings(environ, None if project is None else os.path.realpath(project))


def refusal(text: str) -> str:
    """Return the message and the hint of the error for a text of settings."""
    with pytest.raises(UserError) as caught:
        parse_agent_settings(text, "F")
    return f"{caught.value.message} / {caught.value.hint}"


def test_missing_file_gives_the_defaults(file: Path) -> None:
    """Without a settings file, or without a home directory, all settings have their defaults."""
    assert read(file) == AgentSettings()
    assert read_agent_settings({}, None) == AgentSettings()
    defaults = AgentSettings()
    assert (defaults.client, defaults.depth, defaults.at_once) == ("claude", 3, 5)
    assert (defaults.at_once_per_provider, defaults.most_calls, defaults.fallback) == (None, 4000, ())


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/outlive/config.toml"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/outlive/config.toml"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/outlive/config.toml"),
        ({"HOME": "here"}, None),
    ],
)
def test_file_is_in_the_configuration_directory_of_the_user(environ: dict[str, str], path: str | None) -> None:
    """The settings file is in the user's configuration directory. A relative path in the environment is ignored."""
    assert settings_path(environ) == path


def test_every_key_is_read(file: Path) -> None:
    """Every key of the file is read into its field, with the right type."""
    file.write_text(
        """
[agents]
client = "bot"
depth = 2
at_once = 3
at_once_per_provider = 4
most_calls = 50
budget_usd = 2
max_tokens = 1000
max_turns = 7
idle_timeout = "2m30s"
fallback = ["big", "claude:opus"]
[agents.models."claude:opus"]
unstable = true
at_once = 1
[agents.models.haiku]
unstable = false
[agents.categories.review]
client = "claude"
model = "opus"
unstable = true
fallback = ["sonnet"]
budget_usd = 0.5
max_tokens = 10
max_turns = 3
[agents.projects."/srv/a/"]
client = "claude"
model = "haiku"
unstable = false
fallback = []
"""
        + BOT
    )
    found = read(file)
    assert found.path == str(file)
    assert (found.client, found.depth, found.at_once, found.at_once_per_provider) == ("bot", 2, 3, 4)
    assert (found.most_calls, found.idle_timeout) == (50, timedelta(seconds=150))
    assert found.limits == AgentLimits(budget_usd=2.0, max_tokens=1000, max_turns=7)
    assert found.fallback == ("big", "claude:opus")
    assert found.models == {
        "claude:opus": ModelSettings(is_unstable=True, at_once=1),
        "haiku": ModelSettings(is_unstable=False),
    }
    review, project = found.categories["review"], found.projects["/srv/a"]
    assert (review.client, review.model, review.is_unstable) == ("claude", "opus", True)
    assert (review.fallback, review.limits) == (("sonnet",), AgentLimits(budget_usd=0.5, max_tokens=10, max_turns=3))
    assert (project.client, project.model, project.is_unstable, project.fallback) == ("claude", "haiku", False, ())
    bot = found.clients["bot"]
    assert (bot.model, bot.provider, bot.at_once) == ("small", "acme", 2)
    assert dict(bot.table) == {
        "command": ["bot", "--json"],
        "arguments": ["--quiet"],
        "prompt": "argument",
        "model_arguments": ["--model", "{model}"],
        "resume": ["--resume", "{session}"],
        "session": "session.id",
        "lines": {
            "answer": {"when": {"type": "result", "a.b": 1, "ok": True}, "text": "result"},
            "usage": {"when": {"type": "usage"}, "input": "in", "output": "out", "cost": "usd", "total": True},
        },
    }


def test_limits_of_a_category_have_precedence() -> None:
    """A limit of a category has precedence over the general limit.

    If the category names none, the general one applies.
    """
    found = parse_agent_settings(
        "[agents]\nbudget_usd = 5\nmax_turns = 9\n[agents.categories.quick]\nmax_turns = 2\n", "F"
    )
    assert found.limits_of("quick") == AgentLimits(budget_usd=5.0, max_turns=2)
    assert found.limits_of(None) == AgentLimits(budget_usd=5.0, max_turns=9)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[agnets]\n", ["F, line 1: there is no key agnets", "did you mean agents?"]),
        ("agents = 3\n", ["line 1: agents must be a table, not 3"]),
        ("\n[agents]\nclinet = 'claude'\n", ["line 3: there is no key agents.clinet", "did you mean client?"]),
        ("[agents]\n# depth\ndepth = '3'\n", ["line 3: agents.depth must be a whole number, 1 or more, not '3'"]),
        ("agents.depth = true", ["line 1: agents.depth must be a whole number"]),
        ("agents = { depth = 0 }", ["line 1: agents.depth must be a whole number"]),
        ("[agents]\nbudget_usd = -1.0", ["line 2: agents.budget_usd must be a number above 0, not -1.0"]),
        ("[agents]\nbudget_usd = nan", ["budget_usd must be a number above 0, not nan"]),
        ("[agents]\nbudget_usd = inf", ["budget_usd must be a number above 0, not inf"]),
        ("[agents]\nidle_timeout = '3 fortnights'", ["idle_timeout: '3 fortnights' is not a duration", "90s"]),
        ("[agents]\nidle_timeout = '0s'", ["idle_timeout must be a duration above zero"]),
        ("[agents]\nidle_timeout = 90", ["idle_timeout must be a duration, such as", "not 90"]),
        ("[agents]\nfallback = 'opus'", ["fallback must be a list of texts, not 'opus'"]),
        ("[agents]\nfallback = [\n 'opus',\n 3]", ["F, line 2: agents.fallback must be a list of texts"]),
        ("[agents]\nfallback = ['opus', 'claude:opus']", ["line 2: agents.fallback: claude:opus is twice"]),
        ("[agents]\nclient = 'cluade'", ["line 2: agents.client: there is no client 'cluade'", "did you mean claude?"]),
        ('[agents]\nclient = "a\\u0000b"', ["client must be a text of printable characters"]),
        ("[agents.clients.claude]\nprompt = 'stdin'", ["line 2: agents.clients.claude.prompt is only for"]),
        ("[agents.clients.claude]\ncommand = ['./claude']", ["line 2: agents.clients.claude.command", "absolute path"]),
        ("[agents.clients.claude]\ncommand = []", ["line 2: agents.clients.claude.command must be a list of texts"]),
        ("[agents.clients.claude]\nmodel = 'codex:gpt-5'", ["line 2", "is a model of codex, not of claude"]),
        (
            "[agents.clients.cluade]\nmodel = 'x'",
            ["line 1: agents.clients.cluade is no client", "did you mean claude?"],
        ),
        ("[agents.clients.bot]\ncommand = ['bot']", ["line 1: agents.clients.bot needs lines.answer"]),
        ("[agents.clients.'a:b']\ncommand = ['bot']", ['line 1: agents.clients."a:b" has a colon']),
        ("[agents.clients.'']\ncommand = ['bot']", ['agents.clients."" has no usable name']),
        (BOT.replace('"argument"', '"tty"'), ["bot.prompt must be a text: stdin or argument, not 'tty'"]),
        (BOT.replace("{model}", "MODEL"), ["bot.model_arguments must be a list of texts with {model} in one of them"]),
        (BOT.replace("answer", "anwser"), ["line 13", "there is no key agents.clients.bot.lines.anwser", "answer?"]),
        (
            BOT.replace('type = "result"', "type = 1979-05-27"),
            ["line 13", "lines.answer.when must be a table of texts"],
        ),
        (BOT.replace('when = { type = "usage" }, ', ""), ["line 14", "lines.usage needs `when`"]),
        ("[agents.categories.a]\nunstable = true", ["line 2: agents.categories.a.unstable is about the model of its"]),
        ("[agents.categories.a]\nclient = 'clade'", ["line 2: agents.categories.a.client", "did you mean claude?"]),
        (
            "[agents.categories.a]\nmodel = 'cluade:opus'",
            ["line 2: agents.categories.a.model", "did you mean claude:opus"],
        ),
        ("[agents.categories.a]\nmodel = 'claude:'", ["line 2: agents.categories.a.model", "names no model"]),
        ("[agents.categories.a]\nmodel = 'x'\nfallback = ['y', 'x']", ["line 3", "a.fallback: claude:x is twice"]),
        ("[agents.projects.here]\nmodel = 'x'", ["line 1: agents.projects.here is not an absolute path"]),
        ("[agents.projects.'/a']\n[agents.projects.'/a/']", ["line 2", "is the same directory as an earlier table"]),
        ("[agents.projects.'/a']\nmax_turns = 3", ['line 2: there is no key agents.projects."/a".max_turns']),
        ("[agents.models.'cluade:x']\nunstable = true", ['line 1: agents.models."cluade:x"', "did you mean claude:x?"]),
        ("[agents]\ndepth = 3\ndepth = 4", ["F, line 3: this is not TOML"]),
        ("[agents]\nclient = 'cl", ["F, line 2: this is not TOML"]),
        ("a = " + "[" * 100_000, ["F"]),
        ("a = " + "9" * 5000, ["F is not TOML"]),
    ],
)
def test_error_names_the_file_the_key_and_its_line(text: str, told: list[str]) -> None:
    """An error names the file, the key and its line, and has a hint."""
    found = refusal(text)
    assert [each for each in told if each not in found] == [], found
    assert len(found) < 600


def test_error_has_no_line_when_the_key_is_written_with_escapes() -> None:
    """If a key is written with escapes, the error names the key, but no line."""
    assert refusal('[agents]\n"cl\\u0069net" = 1').startswith("F: there is no key agents.clinet")


def test_error_names_the_line_among_many_tables_with_the_same_key() -> None:
    """If many tables have the same key, the error names the line in the table with the mistake."""
    tables = "".join(f"[agents.models.m{number}]\nat_once = 2\n\n" for number in range(200))
    assert refusal(tables + "[agents.models.last]\nat_once = 0\n").startswith("F, line 602: agents.models.last.at_once")


def _broken(file: Path, kind: str) -> Path:
    """Put a file or directory in place of the settings that cannot be read as settings."""
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "link to nothing":
        file.symlink_to("gone")
    elif kind == "link to itself":
        file.symlink_to(file.name)
    elif kind == "huge":
        file.write_bytes(b"#" * ((1 << 20) + 1))
    elif kind == "not UTF-8":
        file.write_bytes(b"[agents]\nclient = '\xff'\n")
    elif kind == "writable by others":
        file.touch()
        file.chmod(0o606)
    elif kind == "writable by the group":
        file.touch()
        file.chmod(0o660)
    elif kind == "in a directory of all":
        file.touch()
        file.parent.chmod(0o777)
    return file


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("directory", "is a directory"),
        ("fifo", "is not a regular file"),
        ("link to nothing", "is a link to nothing"),
        ("link to itself", "cannot be read"),
        ("huge", "is larger than 1 MiB"),
        ("not UTF-8", "line 2: this is not UTF-8"),
        ("writable by others", "can be written by others (mode 606)"),
        ("writable by the group", "can be written by others (mode 660)"),
        ("in a directory of all", "can be written by others (mode 777)"),
    ],
)
def test_file_is_refused_when_it_cannot_be_read_or_trusted(file: Path, kind: str, told: str) -> None:
    """A file that cannot be read or trusted raises `UserError` with a hint. The defaults are not used instead."""
    with pytest.raises(UserError) as caught:
        read(_broken(file, kind))
    assert told in caught.value.message
    assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_file_is_refused_when_the_user_may_not_read_it(file: Path) -> None:
    """A file that the user may not read is an error. It does not count as missing."""
    file.touch(mode=0)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        read(file)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_file_is_refused_when_it_belongs_to_another_user(file: Path) -> None:
    """If another user owns the file or its directory, the file is refused, whatever its mode is."""
    file.touch()
    os.chown(file, 12345, 12345)
    with pytest.raises(UserError, match="belongs to user 12345, not to you"):
        read(file)
    os.chown(file, 0, 0)
    os.chown(file.parent, 12345, 12345)
    with pytest.raises(UserError, match="belongs to user 12345, not to you"):
        read(file)


def test_file_is_read_through_a_link_of_the_user(file: Path, tmp_path: Path) -> None:
    """The settings file may be a symbolic link. Many users keep such files in another directory."""
    target = tmp_path / "dotfiles.toml"
    target.write_text("agents.depth = 7")
    file.symlink_to(target)
    assert read(file).depth == 7


@pytest.mark.parametrize("way", ["plain", "link to the file", "link through the project", "link to the directory"])
def test_file_is_refused_when_it_lies_in_the_repository(tmp_path: Path, file: Path, way: str) -> None:
    """The settings file is refused if it, or a link on its path, is in the project's worktree."""
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    inside = project / "conf" / "outlive" / "config.toml"
    inside.parent.mkdir(parents=True)
    outside = tmp_path / "elsewhere" / "outlive" / "config.toml"
    outside.parent.mkdir(parents=True)
    outside.write_text("agents.depth = 8")
    if way == "plain":
        inside.write_text("agents.depth = 9")
        given = inside
    elif way == "link to the file":
        inside.write_text("agents.depth = 9")
        file.symlink_to(inside)
        given = file
    elif way == "link through the project":
        inside.symlink_to(outside)
        file.symlink_to(inside)
        given = file
    else:
        (project / "config").symlink_to(outside.parents[1])
        given = project / "config" / "outlive" / "config.toml"
    with pytest.raises(UserError, match="the repository that the task works in"):
        read(given, project)
    assert read(given, tmp_path / "another").depth in (8, 9)


def test_file_is_read_when_the_project_is_no_repository(file: Path) -> None:
    """If the task runs in the home directory and this is no git worktree, the user's settings are read."""
    file.write_text("agents.depth = 7")
    assert read(file, file.parents[2]).depth == 7


_TABLES = (ROOT.tables[0], *ROOT.tables[0].tables)
_KEYS = [*(table.name for table in _TABLES), *(key.name for table in _TABLES for key in table.keys)]
_LINES = st.lists(
    st.one_of(
        st.sampled_from(["[agents]", "[agents.clients.claude]", "[agents.clients.b.lines]", '[agents.models."a:b"]']),
        st.builds(
            "{} = {}".format,
            st.sampled_from(_KEYS),
            st.sampled_from(
                ["1", "-1", "1e999", "nan", "'x'", "''", "[]", "['claude:x', 'x']", "{}", "1979-05-27", "["]
            ),
        ),
        st.text(),
    )
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(), st.text().map(str.encode), _LINES.map("\n".join).map(str.encode)))
@example(content=b"\x00")
@example(content=b"\xef\xbb\xbf[agents]")
@example(content=b"x = " + b"{a=" * 3000)
@example(content=b"[agents.projects.'/\\u0000']")
def test_reading_raises_only_user_errors_for_arbitrary_bytes(file: Path, content: bytes) -> None:
    """Arbitrary bytes are read as settings or raise `UserError` with a hint."""
    file.write_bytes(content)
    try:
        told = (read(file).path, "no error")
    except UserError as error:
        told = (error.message, error.hint)
    assert str(file) in (told[0] or "")
    assert told[1]


def test_example_of_the_reference_is_accepted() -> None:
    """The example in docs/reference/settings.md can be copied as a settings file."""
    page = (Path(__file__).parents[3] / "docs/reference/settings.md").read_text()
    found = parse_agent_settings(page.split("```toml\n")[1].split("```")[0], "F")
    assert found.categories["review"].model == "gpt-5"
    assert tuple(found.clients["mybot"].table["lines"]) == LINES.names


def test_every_key_is_documented_with_one_sentence() -> None:
    """Each key and each table of the settings is documented with a sentence that ends with a full stop."""

    def texts(table: Table) -> list[tuple[str, str]]:
        own = [(f"{table.name}.{key.name}", key.help) for key in table.keys]
        return [(table.name, table.help), *own, *(each for one in table.tables for each in texts(one))]

    assert [name for table in ROOT.tables for name, text in texts(table) if not text.endswith(".")] == []
