"""Codex's configuration: the trust in its hooks, and its table of servers."""

from __future__ import annotations

import json
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.install_steps import install, tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


def test_install_writes_nothing_for_codex_when_its_program_is_missing(bench: Bench, user: Path) -> None:
    """If the program of Codex is missing, nothing is written, because only the program can tell how it trusts hooks."""
    bench.env["PATH"] = "/usr/bin:/bin"
    done = bench.run("install", "--yes", "--client", "codex")
    assert done.returncode == 2
    assert "codex is not on the PATH" in done.stderr
    assert tree(user) == {}


CODEX = f"""#!{sys.executable}
import json, os, re, sys
path = os.environ["CODEX_HOME"] + "/hooks.json"
hooks = [
    dict(key=f"{{path}}:{{re.sub('(?<!^)(?=[A-Z])', '_', event).lower()}}:{{group}}:{{index}}", sourcePath=path,
         command=hook["command"], currentHash="sha256:0")
    for event, groups in json.load(open(path))["hooks"].items()
    for group, each in enumerate(groups)
    for index, hook in enumerate(each["hooks"])
]
for line in sys.stdin:
    if json.loads(line).get("id") == 2:
        print(json.dumps(dict(id=2, result=dict(data=[dict(hooks=hooks)]))), flush=True)
"""


@pytest.fixture
def codex(bench: Bench, user: Path) -> Path:
    """Write a configuration of Codex, and a program that lists hooks as Codex does."""
    program = bench.root / "bin/codex"
    program.parent.mkdir()
    program.write_text(CODEX)
    program.chmod(0o755)
    bench.env["PATH"] = f"{program.parent}:{bench.env['PATH']}"
    file = user / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text('model = "x"\n')
    return file


def test_install_writes_the_trust_in_each_codex_hook_once(bench: Bench, codex: Path) -> None:
    """A second installation writes no second table of trust for a hook. With two tables, Codex would not start."""
    bench.ok("install", "--yes", "--client", "codex")
    trusted = tomllib.loads(codex.read_text())["hooks"]["state"]
    (codex.parent / "hooks.json").unlink()
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("install", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text())["hooks"]["state"] == trusted
    (codex.parent / "hooks.json").unlink()
    codex.write_text(codex.read_text().replace('"y"', '"z"'))
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == 'model = "z"\n'


def test_uninstall_keeps_the_trust_in_codex_hooks_of_the_user(bench: Bench, codex: Path) -> None:
    """Uninstalling removes Codex's trust in Outlive's hooks, and keeps its trust in hooks of the user."""
    hooks = codex.parent / "hooks.json"
    hooks.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}')
    theirs = f'model = "x"\n[hooks.state."{hooks}:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    codex.write_text(theirs)
    bench.ok("install", "--yes", "--client", "codex")
    assert len(tomllib.loads(codex.read_text())["hooks"]["state"]) > 2
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == theirs.replace('"x"', '"y"')


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\noutlive = {command="/x"}\n',
        '[mcp_servers."outlive"]\ncommand = "/x"\n',
        '[mcp_servers.outlive] # note\ncommand = "/x"\n',
        '[ mcp_servers . outlive ]\ncommand = "/x"\n',
        'mcp_servers = {other = {command = "/x"}}\n',
        'mcp_servers.outlive.command = "/x"\n',
    ],
)
def test_install_leaves_the_servers_of_the_user_in_codex_alone(bench: Bench, codex: Path, text: str) -> None:
    """If the user has a server `outlive`, or has written the servers as one value, Outlive adds no server.

    A second table would keep Codex from starting.
    """
    codex.write_text(text)
    servers = tomllib.loads(text)["mcp_servers"]
    assert "not added" in bench.ok("install", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"] == servers
    codex.write_text("# new\n" + codex.read_text())
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == "# new\n" + text


@pytest.mark.parametrize("text", ["hooks = {}\n", "hooks.state = {}\n", "model = \n"])
def test_install_writes_nothing_when_codex_could_not_read_the_result(bench: Bench, codex: Path, text: str) -> None:
    """If the resulting TOML would be invalid, installing writes nothing and exits with 2."""
    codex.write_text(text)
    before = tree(codex.parent)
    done = bench.run("install", "--yes", "--client", "codex")
    assert done.returncode == 2
    assert "TOML" in done.stderr
    assert tree(codex.parent) == before


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/gone/python"])
def test_uninstall_removes_a_server_with_the_exact_command_of_outlive(bench: Bench, user: Path, python: str) -> None:
    """Without a backup, uninstalling removes a server only if it has exactly Outlive's command."""
    file = user / ".claude.json"
    mine = {"command": "outlive", "args": ["mcp"]}
    for server, is_left in ((mine, True), ({"command": python, "args": ["-I", "-m", "outlive", "mcp"]}, False)):
        file.write_text(json.dumps({"mcpServers": {"outlive": server, "b": {"command": "/b"}}}))
        assert ("-m" in bench.ok("uninstall", "--yes", "--client", "claude", "--dry-run")) is not is_left
        bench.ok("uninstall", "--yes", "--client", "claude")
        assert ("outlive" in json.loads(file.read_text())["mcpServers"]) is is_left


def test_uninstall_removes_tables_below_the_server_in_codex(bench: Bench, codex: Path) -> None:
    """Uninstalling also removes tables below the server's table. They would define a server without a command."""
    bench.ok("install", "--yes", "--client", "codex")
    codex.write_text(codex.read_text() + '\n[mcp_servers.outlive.env]\nA = "b"\n\n[mcp_servers.b]\ncommand = "/b"\n')
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text()) == {"model": "x", "mcp_servers": {"b": {"command": "/b"}}}


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_install_and_uninstall_keep_a_string_in_codex_that_looks_like_the_server(
    bench: Bench, codex: Path, quotes: str
) -> None:
    """A multi-line string of the user whose lines look like the server stays unchanged."""
    args = '["-I", "-m", "outlive", "mcp"]' if quotes == "'''" else "[]"
    text = f'model = "x"\nnotes = {quotes}\n[mcp_servers.outlive]\ncommand = 1\nargs = {args}\n{quotes}\n'
    codex.write_text(text)
    bench.ok("install", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"]["outlive"]["command"] == sys.executable
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == text.replace('"x"', '"y"')


def test_trust_in_a_codex_hook_of_the_user_moves_with_the_hook(bench: Bench, codex: Path) -> None:
    """A hook of the user stays trusted when its position changes. Codex stores trust by position."""
    hooks = codex.parent / "hooks.json"
    bench.ok("install", "--yes", "--client", "codex")
    found = json.loads(hooks.read_text())
    found["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    hooks.write_text(json.dumps(found))
    theirs = f'\n[hooks.state."{hooks}:stop:1:0"]\ntrusted_hash = "sha256:1"\nenabled = true\n'
    codex.write_text(codex.read_text() + theirs)
    for verb in ("install", "uninstall"):
        bench.ok(verb, "--yes", "--client", "codex")
        state = tomllib.loads(codex.read_text())["hooks"]["state"]
        assert state[f"{hooks}:stop:0:0"] == {"trusted_hash": "sha256:1", "enabled": True}
        assert (f"{hooks}:stop:1:0" in state) == (verb == "install")
    assert codex.read_text() == 'model = "x"\n' + theirs.replace(":1:0", ":0:0")


def test_uninstall_keeps_trust_in_former_codex_hooks_of_the_user(bench: Bench, codex: Path) -> None:
    """Uninstalling keeps the recorded trust in hooks of the user that no longer exist.

    This also holds if Outlive was never installed.
    """
    codex.write_text(f'[hooks.state."{codex.parent}/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n')
    before = tree(codex.parent)
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tree(codex.parent) == before
    bench.ok("install", "--yes", "--client", "codex")
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tree(codex.parent) == before


def test_install_keeps_settings_that_the_user_added_to_the_server_in_codex(bench: Bench, user: Path) -> None:
    """A second installation keeps settings that the user added to Outlive's server, even in a table of their own."""
    file = user / ".codex/config.toml"
    install(bench, "codex")
    more = 'startup_timeout_sec = 20\n[mcp_servers.outlive.env]\nA = "b"\n'
    file.write_text(file.read_text() + more)
    found = tomllib.loads(file.read_text())
    install(bench, "codex")
    assert tomllib.loads(file.read_text()) == found
    assert "nothing to change" in install(bench, "codex")
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tree(user) == {}
