"""Configurations that are broken, nearly empty, links, edited during an installation, or written by the user."""

from __future__ import annotations

import json
import os
import pty
import stat
import subprocess
from typing import TYPE_CHECKING

import pytest

from outlive.install.config import jsonc
from tests.install_steps import CLIENTS, MINE, install, settings, tree
from tests.support import PATIENCE_S, SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


def test_install_keeps_a_symbolic_link_to_the_configuration(bench: Bench, user: Path) -> None:
    """If the configuration is a symbolic link, the link stays, and the file that it refers to is edited."""
    real = bench.root / "dotfiles.json"
    real.write_text(MINE)
    (user / ".claude").mkdir()
    (user / CLIENTS["claude"]).symlink_to(real)
    install(bench, "claude")
    assert (user / CLIENTS["claude"]).is_symlink()
    assert "outlive" in real.read_text()
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert real.read_text() == MINE


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_install_and_uninstall_are_refused_when_a_file_changes_during_the_question(
    bench: Bench, user: Path, verb: str
) -> None:
    """If a file changes while the user is asked to confirm, the exit code is 2, and no file is changed."""
    file = user / ".claude.json"
    settings(user, "claude")
    file.write_text('{"startups": 1}')
    if verb == "uninstall":
        install(bench, "claude", "--yes")
    leader, follower = pty.openpty()
    words = bench.command(verb, "--client", "claude")
    with subprocess.Popen(
        words, env=bench.env, stdin=follower, stdout=follower, stderr=subprocess.PIPE, text=True
    ) as asking:
        os.close(follower)
        asked = b""
        while b"[y/N]" not in asked:
            asked += os.read(leader, 1 << 16)
        file.write_text(file.read_text().replace("1", "2", 1))
        before = tree(user)
        os.write(leader, b"y\n")
        _, complaint = asking.communicate(timeout=PATIENCE_S)
    os.close(leader)
    assert asking.returncode == 2
    assert f"{file} was changed meanwhile" in complaint
    assert tree(user) == before


@pytest.mark.parametrize("name", [".claude/skills", "store"])
def test_install_writes_nothing_when_one_file_cannot_be_written(bench: Bench, user: Path, name: str) -> None:
    """If one file cannot be written, no file is changed.

    The file may be in a read-only directory, or be reached by a link.
    """
    folder = user / name
    folder.mkdir(parents=True)
    (folder / "claude.json").write_text("{}")
    (user / ".claude").mkdir(exist_ok=True)
    (user / ".claude.json").symlink_to(folder / "claude.json")
    folder.chmod(0o555)
    before = tree(user)
    rightless = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
    done = bench.run("install", "--yes", "--client", "claude", before=rightless)
    assert (done.returncode, tree(user)) == (2, before)
    assert "cannot be written" in done.stderr


def test_install_refuses_a_configuration_that_is_nested_too_deeply(bench: Bench, user: Path) -> None:
    """Installing refuses a configuration that is nested too deeply with exit code 2, as one that is not JSON."""
    settings(user, "claude", '{"a": ' + "[" * 3000 + "]" * 3000 + "}")
    done = bench.run("install", "--yes", "--client", "claude")
    assert done.returncode == 2
    assert "nested too deeply" in done.stderr


def test_install_writes_nothing_when_a_configuration_is_broken(bench: Bench, user: Path) -> None:
    """If a configuration is broken, installing exits with 2, and changes no file of the client."""
    settings(user, "claude", '{"model": ')
    before = tree(user)
    done = bench.run("install", "--yes", "--client", "claude")
    assert done.returncode == 2
    assert "not valid JSON" in done.stderr
    assert tree(user) == before


TWICE = (
    ("claude", ".claude/settings.json", '{"hooks": {"Stop": []},\n "hooks": {}}'),
    ("claude", ".claude/settings.json", '{"hooks": {"Stop": [],\n "Stop": []}}'),
    ("claude", ".claude.json", '{"mcpServers": {},\n "mcpServers": {"a": {"command": "/a"}}}'),
    ("codex", ".codex/hooks.json", '{"hooks": {},\n "hooks": {"Stop": []}}'),
    ("gemini", ".gemini/settings.json", '{"hooks": {}, // old\n "hooks": {}}'),
    ("gemini", ".gemini/settings.json", '{"mcpServers": {},\n "mcpServers": {}}'),
    ("opencode", ".config/opencode/opencode.jsonc", '{"mcp": {},\n "mcp": {}}'),
    ("openclaw", ".openclaw/openclaw.json", "{plugins: {},\n plugins: {entries: {}}}"),
    ("openclaw", ".openclaw/openclaw.json", "{plugins: {entries: {}, allow: ['a'],\n allow: ['b']}}"),
    ("openclaw", ".openclaw/openclaw.json", "{mcp: {servers: {},\n servers: {}}}"),
    ("cursor", ".cursor/hooks.json", '{"hooks": {},\n "hooks": {}}'),
    ("cursor", ".cursor/mcp.json", '{"mcpServers": {},\n "mcpServers": {}}'),
)


@pytest.mark.parametrize(("client", "name", "text"), TWICE)
def test_install_refuses_a_configuration_with_a_duplicate_key(
    bench: Bench, user: Path, client: str, name: str, text: str
) -> None:
    """Installing refuses a configuration in which a key occurs twice, with exit code 2.

    A client may use one of the entries while a person reads the other. Where Outlive was never installed, uninstalling
    succeeds and changes nothing.
    """
    file = user / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = tree(user)
    done = bench.run("install", "--yes", "--client", client, *(("--untrusted",) if client == "codex" else ()))
    assert done.returncode == 2
    assert f"{file}: it has " in done.stderr
    assert "twice" in done.stderr
    assert tree(user) == before
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("more", ['"hooks": {"Stop": []}, ', '"mcpServers": {}, '])
def test_uninstall_refuses_a_duplicate_key_until_the_user_removes_it(bench: Bench, user: Path, more: str) -> None:
    """Uninstalling refuses a configuration in which a key occurs twice, changes nothing, and names the fault."""
    file = settings(user, "gemini", "{}")
    install(bench, "gemini")
    ours = file.read_text()
    for text in (ours.replace("{", "{" + more, 1), ours.rstrip()[:-1] + ", " + more[:-2] + "}"):
        file.write_text(text)
        done = bench.run("uninstall", "--yes", "--client", "gemini")
        assert done.returncode == 2
        assert "twice" in done.stderr
        assert file.read_text() == text
    file.write_text(ours + "\n")
    bench.ok("uninstall", "--yes", "--client", "gemini")
    assert json.loads(file.read_text()) == {}


def test_backup_of_a_configuration_is_private(bench: Bench, user: Path) -> None:
    """The backup of a configuration has mode 0600, because it may contain keys. Uninstalling deletes it."""
    settings(user, "claude")
    install(bench, "claude")
    (kept,) = bench.state.glob("*/install/claude.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (command,) = bench.state.glob("*/bin/*")
    assert command.resolve() == SCRIPT
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert not kept.exists()
    assert not os.path.lexists(command)


OWN_SERVER = '{"mcpServers": {"outlive": {"command": "/x", "args": []}}}'
COMMENT = '{"hooks": { // later\n}}'
LITTLE = (
    ("claude", ".claude/settings.json", '{"hooks": {}}'),
    ("claude", ".claude/settings.json", COMMENT),
    ("claude", ".claude/settings.json", ""),
    ("claude", ".claude/skills/outlive/SKILL.md", ""),
    ("claude", ".claude.json", OWN_SERVER),
    ("claude", ".claude.json", '{"mcpServers": {"mine": {"command": "p", "args": ["-I", "-m", "outlive", "mcp"]}}}'),
    ("gemini", ".gemini/settings.json", '{"hooks": {}}'),
    ("gemini", ".gemini/settings.json", COMMENT),
    ("gemini", ".gemini/settings.json", ""),
    ("codex", ".codex/hooks.json", "{}"),
    ("codex", ".codex/hooks.json", '{"hooks":{}}'),
    ("codex", ".codex/config.toml", ""),
    ("codex", ".codex/config.toml", '[mcp_servers.outlive]\ncommand = "/x"\n'),
    ("cursor", ".cursor/hooks.json", '{"version": 1}'),
    ("cursor", ".cursor/mcp.json", "{}"),
    ("opencode", ".config/opencode/opencode.json", ""),
    ("openclaw", ".openclaw/openclaw.json", "{}"),
)


@pytest.mark.parametrize(("client", "name", "text"), LITTLE)
def test_uninstall_restores_a_configuration_with_little_content(
    bench: Bench, user: Path, client: str, name: str, text: str
) -> None:
    """After installing and uninstalling, or only uninstalling, a nearly empty configuration is as it was before."""
    file = user / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = tree(user)
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before
    install(bench, client)
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", ["claude", "gemini"])
def test_install_and_uninstall_keep_a_comment_in_an_empty_object(bench: Bench, user: Path, client: str) -> None:
    """A comment in an empty object survives installing and uninstalling, even if the file is edited in between."""
    file = settings(user, client, '{\n  "a": "x",\n  "hooks": {\n    // later\n  }\n}\n')
    install(bench, client)
    assert "// later" in file.read_text()
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", client)
    text = file.read_text()
    assert "// later" in text
    assert jsonc.value_of(text, jsonc.parse(text)) == {"a": "y", "hooks": {}}


def test_install_leaves_a_server_of_the_same_name_alone(bench: Bench, user: Path) -> None:
    """If the user has a server with Outlive's name, it stays unchanged, and the output says that it was kept."""
    (user / ".claude").mkdir()
    (user / ".claude.json").write_text(OWN_SERVER)
    assert "which is kept" in install(bench, "claude")
    assert (user / ".claude.json").read_text() == OWN_SERVER


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("openclaw", ".openclaw/extensions/outlive/index.js"),
        ("opencode", ".config/opencode/plugin/outlive.js"),
        ("claude", ".claude/skills/outlive/SKILL.md"),
    ],
)
def test_install_does_not_overwrite_a_file_that_outlive_did_not_write(
    bench: Bench, user: Path, client: str, name: str
) -> None:
    """Installing exits with 2 if a file that Outlive would create already exists with other content."""
    file = user / name
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")
    before = tree(user)
    done = bench.run("install", "--yes", "--client", client)
    assert done.returncode == 2
    assert "was not written by Outlive" in done.stderr
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_install_and_uninstall_keep_a_hook_that_the_user_added(bench: Bench, user: Path, client: str) -> None:
    """A hook of the user survives a second installation and the uninstallation. No hook is added twice."""
    file = settings(user, client, "{}")
    install(bench, client)
    found = json.loads(file.read_text())
    count = len(found["hooks"]["SessionStart"][0]["hooks"])
    theirs = {"type": "command", "command": "theirs"}
    found["hooks"]["SessionStart"][0]["hooks"].insert(0, theirs)
    file.write_text(json.dumps(found, indent=1))
    install(bench, client)
    groups = json.loads(file.read_text())["hooks"]["SessionStart"]
    hooks = [hook for group in groups for hook in group["hooks"]]
    assert hooks.count(theirs) == 1
    assert len(hooks) == 1 + count
    bench.ok("uninstall", "--yes", "--client", client)
    (left,) = json.loads(file.read_text())["hooks"].values()
    assert [group["hooks"] for group in left] == [[theirs]]


def test_uninstall_leaves_malformed_hooks_as_they_are(bench: Bench, user: Path) -> None:
    """Uninstalling leaves hook entries of unexpected types unchanged, because Outlive has not written them."""
    odd = '{"x": "x", "hooks": {"Stop": [{"hooks": [{"command": "a", "args": 5}, 7]}, 3], "PreCompact": [], "a": {}}}'
    file = settings(user, "claude", odd)
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert file.read_text() == odd


def test_install_keeps_a_variable_that_the_user_added_to_the_server(bench: Bench, user: Path) -> None:
    """A second installation keeps a variable that the user added to the server.

    Uninstalling removes it with the server.
    """
    (user / ".claude").mkdir()
    file = user / ".claude.json"
    file.write_text('{"a": 1}')
    install(bench, "claude")
    found = json.loads(file.read_text())
    found["mcpServers"]["outlive"]["env"] = {"A": "b"}
    file.write_text(json.dumps(found))
    for _ in range(2):
        install(bench, "claude")
        assert json.loads(file.read_text()) == found
    assert "nothing to change" in install(bench, "claude")
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert json.loads(file.read_text()) == {"a": 1}


def test_install_and_uninstall_refuse_a_configuration_that_is_no_regular_file(bench: Bench, user: Path) -> None:
    """A configuration that is no regular file, such as a pipe, is refused. Reading it would block the command."""
    (user / ".claude").mkdir()
    os.mkfifo(user / CLIENTS["claude"])
    for verb in ("install", "uninstall"):
        done = bench.run(verb, "--yes", "--client", "claude")
        assert done.returncode == 2
        assert "not a regular file" in done.stderr
    assert sorted(tree(user)) == [".claude", ".claude/settings.json"]


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("codex", ".codex/hooks.json", "{}"),
        ("cursor", ".cursor/hooks.json", '{"version": 1}'),
        ("cursor", ".cursor/mcp.json", "{}"),
        ("openclaw", ".openclaw/openclaw.json", "{}"),
    ],
)
def test_uninstall_leaves_valid_json_when_the_file_was_edited(
    bench: Bench, user: Path, client: str, name: str, text: str
) -> None:
    """If the file was edited, uninstalling leaves valid JSON and no empty file, which no client could read."""
    file = user / name
    file.parent.mkdir()
    file.write_text(text)
    install(bench, client)
    file.write_text(file.read_text() + "\n")
    bench.ok("uninstall", "--yes", "--client", client)
    assert json.loads(file.read_text()) == json.loads(text)
