"""Editing configuration files as text without changing the user's entries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.errors import UserError
from outlive.install.clients.claude import add_groups, groups, strip_groups, with_server, without_server
from outlive.install.config import jsonc, toml_edit

some = settings(max_examples=60, deadline=None)
OURS = {"hooks": [{"type": "command", "command": "/p/python -I /p/outlive hook claude Stop"}]}
COMMENTED = """{
\t// how I like it
\t"model": "x", /* and
\t why */
\t"hooks": {
\t\t"Stop": [
\t\t\t{"hooks": [{"type": "command", "command": "mine"}]}, // first
\t\t],
\t},
}
"""

JSON5 = """// mine
{
  gateway: { mode: 'local', port: +18789, bind: "loopback", ratio: .5 },
  plugins: {
    allow: ['discord'],  // what I have looked at
    entries: { discord: { enabled: true } },
  },
  'channels': { },
  $include: './more.json5',
}
"""

words = st.text(alphabet="ab\\\"'/*,:{}[]é\n \t", max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
hook_lists = st.lists(st.fixed_dictionaries({"hooks": st.lists(values, max_size=2)}), max_size=3)
settings_files = st.dictionaries(words, values, max_size=4).flatmap(
    lambda rest: st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "Mine"]), hook_lists, max_size=3).map(
        lambda hooks: {**rest, "hooks": hooks}
    )
)


def parsed(text: str) -> Any:
    """Return the value of a whole text."""
    return jsonc.value_of(text, jsonc.parse(text))


def test_append_keeps_comments_order_and_trailing_commas() -> None:
    """Outlive's entry is added after the user's entries, with their indentation. Comments and commas stay."""
    text = jsonc.append(COMMENTED, ("hooks", "Stop"), OURS)
    added = text.splitlines()[7:-3]
    assert text.splitlines() == [*COMMENTED.splitlines()[:7], *added, *COMMENTED.splitlines()[7:]]
    assert parsed(text)["hooks"]["Stop"] == [{"hooks": [{"type": "command", "command": "mine"}]}, OURS]
    assert "\n\t\t\t{\n\t\t\t\t" in text, "not indented like the file"


def test_strip_groups_removes_what_append_added() -> None:
    """`strip_groups` removes what `append` added, even if the user has edited the file in between."""
    text = jsonc.append(COMMENTED, ("hooks", "Stop"), OURS).replace('"x"', '"y"')
    assert strip_groups(text) == COMMENTED.replace('"x"', '"y"')


def test_json5_is_edited_and_restored() -> None:
    """JSON5 is edited and restored: names without quotes, single quotes and its forms of numbers stay."""
    text = jsonc.append(JSON5, ("plugins", "allow"), "outlive")
    text = jsonc.set_member(text, ("plugins", "entries", "outlive"), OURS)
    text = jsonc.set_member(text, ("mcp", "servers", "outlive"), OURS)
    value = parsed(text)
    assert value["plugins"] == {
        "allow": ["discord", "outlive"],
        "entries": {"discord": {"enabled": True}, "outlive": OURS},
    }
    assert (value["$include"], value["gateway"]["mode"]) == ("./more.json5", "local")
    for path in (("plugins", "allow"), ("plugins", "entries"), ("mcp", "servers")):
        text = jsonc.cut(text, path, lambda each: each in ("outlive", OURS))
    assert jsonc.cut_empty(jsonc.cut_empty(text, ("mcp", "servers")), ("mcp",)) == JSON5


@pytest.mark.parametrize("text", ["{1a: 2}", "{a-b: 1}", "{'a: 1}", '{"a: 1}', "{a 1}"])
def test_parse_refuses_text_that_is_no_json5(text: str) -> None:
    """Text that is no JSON5 is refused, for example a quote that is not closed."""
    with pytest.raises(UserError):
        jsonc.parse(text)


@some
@given(settings_files, st.sampled_from([None, 2, "\t"]))
def test_settings_keep_their_values_when_hooks_are_added_and_removed(theirs: dict[str, Any], indent: Any) -> None:
    """After hooks were added and removed, all settings of the user are there, except empty lists of hooks."""
    text = json.dumps(theirs, indent=indent)
    with_us = add_groups(text, groups("advise"))
    value = json.loads(with_us)
    assert {name: each for name, each in value.items() if name != "hooks"} == {
        name: each for name, each in theirs.items() if name != "hooks"
    }
    for event, mine in theirs["hooks"].items():
        assert value["hooks"][event][: len(mine)] == mine
    without = json.loads(strip_groups(with_us))
    wanted = {event: mine for event, mine in theirs["hooks"].items() if mine or event == "Mine"}
    assert without.get("hooks", {}) == wanted
    bare = strip_groups(with_us)
    assert strip_groups(add_groups(bare, groups("advise"))) == bare or not wanted


@pytest.mark.parametrize("text", ["", "\n", "{}", "{\n}\n", "// nothing\n{}"])
def test_append_fills_an_empty_file(text: str) -> None:
    """An entry can be added to an empty file, to an empty object, and to an empty object with a comment."""
    assert parsed(jsonc.append(text, ("hooks", "Stop"), OURS)) == {"hooks": {"Stop": [OURS]}}


@pytest.mark.parametrize("text", ["[1", '{"a" 1}', "{} x", '{"a": "\n"}', "/* {}", '{"hooks": [}'])
def test_append_refuses_a_broken_file(text: str) -> None:
    """A file that is not valid is not edited."""
    with pytest.raises(UserError):
        jsonc.append(text, ("hooks", "Stop"), OURS)


@pytest.mark.parametrize("text", ["[]", '"x"', '{"hooks": 3}', '{"hooks": {"Stop": {}}}', '{"hooks": []}'])
def test_append_refuses_a_file_of_another_shape(text: str) -> None:
    """An entry is added only where the file has a list or an object. Otherwise the file is refused."""
    with pytest.raises(UserError):
        jsonc.append(text, ("hooks", "Stop"), OURS)


def test_append_keeps_the_line_ends_of_the_file() -> None:
    """In a file with CRLF at the line ends, added lines end with CRLF, too."""
    text = jsonc.append('{\r\n  "a": 1\r\n}\r\n', ("hooks", "Stop"), OURS)
    assert "\n" not in text.replace("\r\n", "")


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", 'a = 1\n\n[b]\nc = "d" # e\n'])
def test_toml_table_is_added_at_the_end_and_removed(text: str) -> None:
    """A TOML table is added at the end of the file and removed again. Only a missing final newline stays added."""
    import tomllib

    names = ("hooks", "state", '/a "b"/é:stop:0:0')
    head = toml_edit.header(*names)
    longer = toml_edit.with_table(text, head, {"trusted_hash": "x", "args": ["-I", 'a"b\\c']})
    value = tomllib.loads(longer)
    assert value["hooks"]["state"]['/a "b"/é:stop:0:0'] == {"trusted_hash": "x", "args": ["-I", 'a"b\\c']}
    shorter = toml_edit.without_tables(longer, lambda found, _: found == names)
    assert shorter.rstrip("\n") == text.rstrip("\n")


def test_removing_our_table_keeps_the_comments_after_it() -> None:
    """When Outlive's table is removed, the comments below it stay, because the user may have written them."""
    head = toml_edit.header("mcp_servers", "outlive")
    text = toml_edit.with_table("a = 1\n", head, {"command": "x"}) + "\n# mine\n[other]\nb = 2\n"
    assert (
        toml_edit.without_tables(text, lambda names, _: names[-1:] == ("outlive",))
        == "a = 1\n\n# mine\n[other]\nb = 2\n"
    )


def test_mcp_server_is_added_and_removed_but_not_a_users_server_of_that_name() -> None:
    """The MCP server is added and removed. A server `outlive` that the user configured stays unchanged."""
    words = ["/p/python", "-I", "-m", "outlive", "mcp"]
    text = with_server(COMMENTED, words, alwaysLoad=True)
    assert parsed(text)["mcpServers"]["outlive"] == {"command": words[0], "args": words[1:], "alwaysLoad": True}
    assert without_server(text) == COMMENTED
    assert with_server(COMMENTED, None) == COMMENTED
    theirs = '{"mcpServers": {"outlive": {"command": "mine"}}}'
    assert with_server(theirs, words) == without_server(theirs) == theirs
    assert parsed(with_server("", words))["mcpServers"]["outlive"]["args"] == words[1:]


@pytest.mark.parametrize(
    "text", ['{"a": [1, // one\n  "ours"]}', '{"a": [ // none\n  "ours"]}', '{"a": [ // none\n "ours"\n]}']
)
def test_cut_keeps_the_line_end_of_a_comment_before_the_entry(text: str) -> None:
    """If an entry is cut, the line end of a comment before it stays.

    The comment would swallow the next line otherwise.
    """
    shorter = jsonc.cut(text, ("a",), lambda value: value == "ours")
    assert parsed(shorter)["a"] == [each for each in parsed(text)["a"] if each != "ours"]
    assert "// " in shorter
