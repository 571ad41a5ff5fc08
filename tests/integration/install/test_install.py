"""Installing and uninstalling: changes are shown before they are made, and uninstalling restores every byte."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle.home import open_home
from outlive.install.apply import install as make
from outlive.install.apply import plan_install, plan_uninstall, uninstall
from outlive.install.clients import openclaw
from outlive.install.clients.openclaw import FILES
from outlive.install.config import backup, jsonc
from outlive.install.config.target_file import whole
from tests.support import PATIENCE_S, SCRIPT

if TYPE_CHECKING:
    from tests.support import Bench

MINE = '{\n    // mine\n    "model": "x",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}\n}'
CLIENTS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "openclaw": ".openclaw/openclaw.json",
    "cursor": ".cursor/hooks.json",
}
# For each client: the file that lists the tools of the guard, and the tools that an earlier version did not have.
NEWER = {
    "claude": (CLIENTS["claude"], "|Read|Grep|Glob"),
    "gemini": (CLIENTS["gemini"], "|read_file|grep_search|glob|list_directory"),
    "opencode": (".config/opencode/plugin/outlive.js", ', "read", "grep", "glob", "list"'),
    "openclaw": (".openclaw/extensions/outlive/index.js", ', "read", "ls"'),
}
OTHERWISE_MINE = {
    "openclaw": "// mine\n{\n  gateway: { mode: 'local', name: \"x\" },  // a\n  plugins: {\n    allow: ['a'],\n  }\n}",
    "cursor": '{\n  "version": 1,\n  "name": "x",\n  "hooks": {"stop": [{"command": "./a.sh"}]}\n}\n',
}


SCHEMA = "https://opencode.ai/config.json"
OPENCLAW = ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH")


def mine(client: str) -> str:
    """Return the configuration that a user had before the installation."""
    return OTHERWISE_MINE.get(client, MINE)


@pytest.fixture
def user(bench: Bench) -> Path:
    """Return the home directory of a user."""
    home = bench.root / "user"
    home.mkdir()
    bench.env["HOME"] = str(home)
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "OPENCODE_CONFIG_DIR",
        *OPENCLAW,
    ):
        bench.env.pop(name, None)
    return home


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the content of every path below a directory."""
    return {
        str(path.relative_to(top)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in top.rglob("*")
    }


def settings(user: Path, client: str, text: str | None = None) -> Path:
    """Write a configuration as it was before the installation, and return its path."""
    file = user / CLIENTS[client]
    file.parent.mkdir(parents=True)
    file.write_text(mine(client) if text is None else text)
    return file


def install(bench: Bench, client: str, *options: str) -> str:
    """Install for a client as a user does. For Codex, the program may be missing."""
    return bench.ok("install", "--yes", "--client", client, *(("--untrusted",) if client == "codex" else ()), *options)


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_restores_every_byte_mode_and_directory(bench: Bench, user: Path, client: str) -> None:
    """After installing and uninstalling, the user's configuration is as before."""
    settings(user, client).chmod(0o640)
    before = tree(user)
    install(bench, client)
    assert tree(user) != before
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_removes_every_file_when_the_client_had_none(bench: Bench, user: Path, client: str) -> None:
    """The files and directories that the installation created are removed."""
    install(bench, client)
    assert (user / CLIENTS[client]).exists()
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_second_install_changes_nothing(bench: Bench, user: Path, client: str) -> None:
    """All files stay the same, and uninstalling still restores the configuration byte for byte."""
    settings(user, client)
    before = tree(user)
    install(bench, client)
    once = tree(user)
    assert "nothing to change" in install(bench, client)
    assert tree(user) == once
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_keeps_edits_made_after_the_installation(bench: Bench, user: Path, client: str) -> None:
    """The user's later edits stay, and only Outlive's entries are removed."""
    file = settings(user, client)
    install(bench, client)
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", client)
    assert file.read_text() == mine(client).replace('"x"', '"y"')


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_removes_only_entries_of_outlive_when_its_backups_are_gone(
    bench: Bench, user: Path, client: str
) -> None:
    """Without a backup, the user's entries stay and Outlive's files are removed."""
    file = settings(user, client)
    install(bench, client)
    shutil.rmtree(bench.state)
    bench.ok("uninstall", "--yes", "--client", client)
    assert file.read_text() == mine(client)
    assert [path for path in tree(user) if path.endswith(("SKILL.md", ".js"))] == []


def test_uninstall_keeps_edits_made_between_two_installations(bench: Bench, user: Path) -> None:
    """Uninstalling leaves the file as the user last edited it, without Outlive's entries."""
    file = settings(user, "claude")
    install(bench, "claude")
    file.write_text(file.read_text().replace('"x"', '"y"'))
    install(bench, "claude", "--guard", "off")
    assert "PreToolUse" not in file.read_text()
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert file.read_text() == MINE.replace('"x"', '"y"')


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("client", NEWER)
def test_install_updates_the_tools_of_an_older_installation(
    bench: Bench, user: Path, client: str, is_edited: bool
) -> None:
    """Installing adds the missing tools. Uninstalling restores the state before the older installation."""
    settings(user, client)
    before = tree(user)
    install(bench, client)
    name, newer = NEWER[client]
    assert re.findall(r"\w+", newer) == list(import_module(f"outlive.hooks.clients.{client}").READERS)
    file, home = user / name, open_home(bench.env)
    now = file.read_text()
    assert newer in now
    file.write_text(now.replace(newer, ""))
    if not is_edited:
        kept = backup.recall(home, client)[str(file)]
        backup.keep(home, client, [str(file)], [kept.but(after=backup.mark_of(file.read_text()))])
    install(bench, client)
    assert file.read_text() == now
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


def test_install_dry_run_changes_nothing(bench: Bench, user: Path) -> None:
    """`--dry-run` shows each change with the lines around it, and masks keys."""
    key = "sk-ant-api03-" + "Ab3dEf6h" * 12
    settings(user, "claude", MINE.replace('"x"', f'"{key}"'))
    before = tree(user)
    shown = install(bench, "claude", "--dry-run")
    assert "+++" in shown
    assert key not in shown, "the key is not masked"
    assert '"SessionStart"' in shown
    assert tree(user) == before
    assert '"model"' in shown, "the lines around the change are missing"


def test_installed_hooks_call_the_script_isolated_and_by_absolute_path(bench: Bench, user: Path) -> None:
    """Neither a directory nor a variable can replace the program that a hook calls."""
    install(bench, "claude")
    found = json.loads((user / CLIENTS["claude"]).read_text())
    hooks = [hook for groups in found["hooks"].values() for group in groups for hook in group["hooks"]]
    for hook in hooks:
        assert hook["command"] == sys.executable
        assert hook["args"][0] == "-I"
        assert os.path.isabs(hook["args"][1])
        assert os.path.exists(hook["args"][1])


def test_install_adds_the_server_to_the_file_that_opencode_reads(bench: Bench, user: Path) -> None:
    """The user's entries stay, and no permission rule is added."""
    plain = user / ".config/opencode/opencode.json"
    plain.parent.mkdir(parents=True)
    plain.write_text('{"permission": {"bash": "ask"}}')
    install(bench, "opencode", "--guard", "rewrite")
    found = json.loads(plain.read_text())
    assert found["permission"] == {"bash": "ask"}
    assert found["mcp"]["outlive"]["command"] == [sys.executable, "-I", "-m", "outlive", "mcp"]
    assert not plain.with_suffix(".jsonc").exists()
    plugin = (plain.parent / "plugin/outlive.js").read_text()
    words = [sys.executable, "-I", str(SCRIPT), "hook", "opencode"]
    assert [json.loads(line[16:]) for line in plugin.splitlines() if line.startswith("const COMMAND = ")] == [words]
    assert 'const GUARD = "rewrite"' in plugin


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (None, ("60000", "90000"), None),
        ("", ("60000", "90000"), "{}"),
        (None, ("60000", '90000,\n      "x": 1'), None),
        (None, ("{\n", "{\n  // mine\n"), "{\n  // mine\n}"),
        (None, (',\n  "mcp"', ',\n  "model": "x",\n  "mcp"'), f'{{\n  "$schema": "{SCHEMA}",\n  "model": "x"\n}}'),
    ],
    ids=["ours", "ours in an empty file", "more of ours", "a comment", "more than ours"],
)
def test_uninstall_keeps_the_schema_of_opencode_only_with_entries_of_the_user(
    bench: Bench, user: Path, before: str | None, edit: tuple[str, str], after: str | None
) -> None:
    """OpenCode itself adds `$schema` to a file with entries of the user.

    A file that was made for Outlive's entries only is deleted.
    """
    file = user / CLIENTS["opencode"]
    if before is not None:
        settings(user, "opencode", before)
    install(bench, "opencode")
    text = file.read_text()
    assert edit[0] in text
    file.write_text(text.replace(*edit, 1))
    bench.ok("uninstall", "--yes", "--client", "opencode")
    assert (file.read_text().strip() if file.exists() else None) == after


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR"])
def test_install_finds_opencode_by_its_variables(bench: Bench, user: Path, name: str) -> None:
    """`XDG_CONFIG_HOME` and `OPENCODE_CONFIG_DIR` change the place of OpenCode's configuration."""
    place = bench.root / "elsewhere"
    bench.env[name] = str(place)
    install(bench, "opencode")
    top = place / "opencode" if name == "XDG_CONFIG_HOME" else place
    assert (top / "plugin/outlive.js").exists()
    assert tree(user) == {}
    bench.ok("uninstall", "--yes", "--client", "opencode")
    assert not place.exists()


def test_install_enables_the_plugin_of_openclaw_without_a_webhook(bench: Bench, user: Path) -> None:
    """The plugin may load, and calls the script by its absolute path with `python -I`."""
    settings(user, "openclaw")
    install(bench, "openclaw", "--guard", "off")
    text = (user / CLIENTS["openclaw"]).read_text()
    found: Any = jsonc.value_of(text, jsonc.parse(text))
    entry = found["plugins"]["entries"]["outlive"]
    assert entry["config"] == {"command": [sys.executable, "-I", str(SCRIPT)], "guard": "off"}
    assert entry["hooks"] == {"allowConversationAccess": True}
    assert found["plugins"]["allow"] == ["a", "outlive"]
    assert found["mcp"]["servers"]["outlive"]["args"] == ["-I", "-m", "outlive", "mcp"]
    assert "hooks" not in found, "a webhook was configured, but waking needs none"
    for name in FILES:
        shipped = Path(openclaw.__file__).parent / "openclaw_plugin" / name
        assert (user / ".openclaw/extensions/outlive" / name).read_bytes() == shipped.read_bytes()


def test_install_keeps_a_symbolic_link_to_the_configuration(bench: Bench, user: Path) -> None:
    """The link stays, and its target is edited, because users keep such files elsewhere."""
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


def test_uninstall_removes_the_directories_of_an_interrupted_installation(bench: Bench, user: Path) -> None:
    """Directories are recorded before they are created, so uninstalling finds and removes them."""
    home, is_ours = open_home(bench.env), "ours".__eq__
    files = [whole(str(user / name), "ours", is_ours) for name in ("a/b/one", "c/two")]
    changes = plan_install(home, "some", files)
    (user / "c").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        make(home, "some", changes)
    (user / "c").unlink()
    uninstall(home, "some", plan_uninstall(home, "some", files))
    assert tree(user) == {}


@pytest.mark.parametrize("name", [".claude/skills", "store"])
def test_install_writes_nothing_when_one_file_cannot_be_written(bench: Bench, user: Path, name: str) -> None:
    """If one directory is read-only, no file is changed, even if that directory has only the target of a link."""
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
    """Installing exits with code 2 for such a file, as for a file that is not JSON."""
    settings(user, "claude", '{"a": ' + "[" * 3000 + "]" * 3000 + "}")
    done = bench.run("install", "--yes", "--client", "claude")
    assert done.returncode == 2
    assert "nested too deeply" in done.stderr


def test_install_writes_nothing_when_a_configuration_is_broken(bench: Bench, user: Path) -> None:
    """Installing exits with code 2, and changes no other file of the client."""
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
    """The exit code is 2, because a client may use the first entry while a person reads the second one, or vice versa.

    Where Outlive was never installed, uninstalling succeeds and changes nothing.
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
    """The error says that a key occurs twice. The file is not changed."""
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
    """The backup may contain keys, so its mode is 0600. Uninstalling deletes it."""
    settings(user, "claude")
    install(bench, "claude")
    (kept,) = bench.state.glob("*/install/claude.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (command,) = bench.state.glob("*/bin/*")
    assert command.resolve() == SCRIPT
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert not kept.exists()
    assert not os.path.lexists(command)


def test_install_finds_the_clients_of_the_user(bench: Bench, user: Path) -> None:
    """A client is found by its directory or by its program."""
    bench.env["PATH"] = "/usr/bin:/bin"
    assert "no client was found" in bench.run("install").stderr
    (user / ".claude").mkdir()
    (user / ".gemini").mkdir()
    found = bench.json("install", "--dry-run")
    assert [each["client"] for each in found["clients"]] == ["claude", "gemini"]
    assert found["applied"] is False


@pytest.mark.parametrize("verb", ["install", "uninstall"])
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "JSON"])
def test_install_and_uninstall_change_nothing_when_there_is_no_terminal(
    bench: Bench, user: Path, verb: str, options: tuple[str, ...]
) -> None:
    """Without a terminal and without `--yes`, the changes are shown, and the exit code is 2."""
    path = settings(user, "claude")
    if verb == "uninstall":
        install(bench, "claude")
    before = tree(user)
    done = bench.run(verb, "--client", "claude", *options)
    assert (done.returncode, tree(user)) == (2, before)
    assert str(path) in done.stdout
    assert "there is no terminal to ask on" in done.stderr
    if options:
        assert json.loads(done.stdout)["applied"] is False
    assert bench.run(verb, "--client", "claude", "--yes", *options).returncode == 0
    assert tree(user) != before
    assert bench.run(verb, "--client", "claude", *options).returncode == 0, "a second run without changes failed"


@pytest.mark.parametrize("broken", ["codex", "gemini"])
def test_install_skips_a_client_that_cannot_be_installed(bench: Bench, user: Path, broken: str) -> None:
    """Other clients are installed, and the output gives the reason for the skip."""
    bench.env["PATH"] = "/usr/bin:/bin"
    settings(user, "claude")
    if broken == "codex":
        (user / ".codex").mkdir()
    else:
        settings(user, "gemini", '{"model": ')
    before = tree(user)
    told = bench.ok("install", "--yes")
    assert f"{broken}: skipped, because " in told
    assert "claude: installed" in told
    assert "outlive" in (user / CLIENTS["claude"]).read_text()
    rows = {each["client"]: each for each in bench.json("install", "--yes")["clients"]}
    assert set(rows) == {"claude", broken}
    assert rows[broken]["skipped"]
    bench.ok("uninstall", "--yes")
    assert tree(user) == before


def test_install_and_uninstall_name_only_the_clients_that_they_changed(bench: Bench, user: Path) -> None:
    """For every other client, the output says that there is nothing to change."""
    bench.env["PATH"] = "/usr/bin:/bin"
    (user / ".claude").mkdir()
    (user / ".gemini").mkdir()
    bench.ok("install", "--client", "claude", "--yes")
    told = bench.ok("install", "--yes").splitlines()
    assert told[-2:] == ["gemini: installed; it takes effect in new sessions", "claude: nothing to change"]
    bench.ok("uninstall", "--client", "gemini", "--yes")
    told = bench.ok("uninstall", "--yes").splitlines()
    assert told[-2:] == ["claude: uninstalled; it takes effect in new sessions", "gemini: nothing to change"]


def test_install_fails_when_the_only_client_cannot_be_installed(bench: Bench, user: Path) -> None:
    """Installing exits with code 2, and stderr has the client's error."""
    bench.env["PATH"] = "/usr/bin:/bin"
    (user / ".codex").mkdir()
    done = bench.run("install", "--yes")
    assert done.returncode == 2
    assert "codex is not on the PATH" in done.stderr


def test_install_writes_nothing_for_codex_when_its_program_is_missing(bench: Bench, user: Path) -> None:
    """No file is written, because only the program can tell how Codex trusts hooks."""
    bench.env["PATH"] = "/usr/bin:/bin"
    done = bench.run("install", "--yes", "--client", "codex")
    assert done.returncode == 2
    assert "codex is not on the PATH" in done.stderr
    assert tree(user) == {}


def test_plugin_is_installed_and_uninstalled_as_a_folder(bench: Bench, user: Path) -> None:
    """Only the plugin's own folder is created and removed. No file of the user's configuration is changed."""
    folder = bench.root / "plugin"
    bench.ok("install", "--yes", "--client", "claude", "--plugin", str(folder))
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == "outlive"
    assert "SessionStart" in json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert tree(user) == {}
    bench.ok("uninstall", "--yes", "--client", "claude", "--plugin", str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("options", [(), ("--client", "claude")])
def test_uninstall_removes_plugins_without_being_given_their_folders(
    bench: Bench, user: Path, options: tuple[str, ...]
) -> None:
    """Outlive removes the folders that it has recorded, and then the record."""
    bench.env["PATH"] = "/usr/bin:/bin"
    folders = [bench.root / "one", bench.root / "deep/other"]
    for folder in folders:
        bench.ok("install", "--yes", "--client", "claude", "--plugin", str(folder))
    assert str(folders[0]) in bench.ok("uninstall", *options, "--dry-run")
    assert all(folder.exists() for folder in folders)
    bench.ok("uninstall", "--yes", *options)
    assert not [folder for folder in (*folders, bench.root / "deep") if folder.exists()]
    assert not list(bench.state.glob("*/install/*"))
    assert tree(user) == {}


def test_uninstall_names_and_keeps_an_edited_file_of_a_plugin(bench: Bench, user: Path) -> None:
    """A file that the user added stays, too. A file that was deleted causes no error."""
    (user / ".claude").mkdir()
    install(bench, "claude")
    folder = bench.root / "plugin"
    bench.ok("install", "--yes", "--client", "claude", "--plugin", str(folder))
    hooks = folder / "hooks/hooks.json"
    hooks.write_text(hooks.read_text() + "\n")
    (folder / ".claude-plugin/plugin.json").unlink()
    (folder / "mine").touch()
    (found,) = [each for each in bench.json("uninstall", "--dry-run")["clients"] if "plugin" in each["client"]]
    assert str(hooks) not in found["changed"]
    assert [text.partition(" ")[0] for text in found["left_out"]] == [str(hooks)]
    assert f"{hooks} was edited" in bench.ok("uninstall", "--yes")
    assert sorted(path for path in tree(folder) if (folder / path).is_file()) == ["hooks/hooks.json", "mine"]
    assert sorted(tree(user)) == [".claude"]
    assert str(folder) not in bench.ok("uninstall", "--yes"), "files of the user are still named as Outlive's"


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
    """A second installation adds no second table for a hook, because Codex would not start with two tables."""
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
    """Uninstalling removes only the trust in Outlive's hooks."""
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
    """Outlive adds no server, because a second table would keep Codex from starting."""
    codex.write_text(text)
    servers = tomllib.loads(text)["mcp_servers"]
    assert "not added" in bench.ok("install", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"] == servers
    codex.write_text("# new\n" + codex.read_text())
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == "# new\n" + text


@pytest.mark.parametrize("text", ["hooks = {}\n", "hooks.state = {}\n", "model = \n"])
def test_install_writes_nothing_when_codex_could_not_read_the_result(bench: Bench, codex: Path, text: str) -> None:
    """Installing exits with code 2 when the resulting TOML would be invalid."""
    codex.write_text(text)
    before = tree(codex.parent)
    done = bench.run("install", "--yes", "--client", "codex")
    assert done.returncode == 2
    assert "TOML" in done.stderr
    assert tree(codex.parent) == before


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/gone/python"])
def test_uninstall_removes_a_server_with_the_exact_command_of_outlive(bench: Bench, user: Path, python: str) -> None:
    """A server with exactly Outlive's command is removed although no backup exists.

    A server with another command stays.
    """
    file = user / ".claude.json"
    mine = {"command": "outlive", "args": ["mcp"]}
    for server, is_left in ((mine, True), ({"command": python, "args": ["-I", "-m", "outlive", "mcp"]}, False)):
        file.write_text(json.dumps({"mcpServers": {"outlive": server, "b": {"command": "/b"}}}))
        assert ("-m" in bench.ok("uninstall", "--yes", "--client", "claude", "--dry-run")) is not is_left
        bench.ok("uninstall", "--yes", "--client", "claude")
        assert ("outlive" in json.loads(file.read_text())["mcpServers"]) is is_left


def test_uninstall_removes_tables_below_the_server_in_codex(bench: Bench, codex: Path) -> None:
    """Such a table is removed too, because it would otherwise define a server without a command."""
    bench.ok("install", "--yes", "--client", "codex")
    codex.write_text(codex.read_text() + '\n[mcp_servers.outlive.env]\nA = "b"\n\n[mcp_servers.b]\ncommand = "/b"\n')
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text()) == {"model": "x", "mcp_servers": {"b": {"command": "/b"}}}


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_install_and_uninstall_keep_a_string_in_codex_that_looks_like_the_server(
    bench: Bench, codex: Path, quotes: str
) -> None:
    """A multi-line string of the user stays, although its lines look like a server."""
    args = '["-I", "-m", "outlive", "mcp"]' if quotes == "'''" else "[]"
    text = f'model = "x"\nnotes = {quotes}\n[mcp_servers.outlive]\ncommand = 1\nargs = {args}\n{quotes}\n'
    codex.write_text(text)
    bench.ok("install", "--yes", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"]["outlive"]["command"] == sys.executable
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert codex.read_text() == text.replace('"x"', '"y"')


def test_trust_in_a_codex_hook_of_the_user_moves_with_the_hook(bench: Bench, codex: Path) -> None:
    """The user's hook stays trusted, although its position, by which Codex stores trust, changes."""
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
    """Uninstalling keeps the recorded trust in hooks that no longer exist, even if Outlive was never installed."""
    codex.write_text(f'[hooks.state."{codex.parent}/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n')
    before = tree(codex.parent)
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tree(codex.parent) == before
    bench.ok("install", "--yes", "--client", "codex")
    bench.ok("uninstall", "--yes", "--client", "codex")
    assert tree(codex.parent) == before


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
    """Uninstalling restores the file after an installation, and leaves it unchanged without one."""
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
    """The comment survives an edit of the file between installing and uninstalling."""
    file = settings(user, client, '{\n  "a": "x",\n  "hooks": {\n    // later\n  }\n}\n')
    install(bench, client)
    assert "// later" in file.read_text()
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", client)
    text = file.read_text()
    assert "// later" in text
    assert jsonc.value_of(text, jsonc.parse(text)) == {"a": "y", "hooks": {}}


def test_install_leaves_a_server_of_the_same_name_alone(bench: Bench, user: Path) -> None:
    """The user's server stays unchanged, and the output says that it was kept."""
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
    """If a file that Outlive would write already exists with other content, the exit code is 2."""
    file = user / name
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")
    before = tree(user)
    done = bench.run("install", "--yes", "--client", client)
    assert done.returncode == 2
    assert "was not written by Outlive" in done.stderr
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


def test_install_and_uninstall_leave_a_plugin_folder_of_another_program_alone(bench: Bench, user: Path) -> None:
    """A folder with a plugin of another name is neither overwritten nor removed."""
    folder = bench.root / "plugin"
    for name in (".mcp.json", "hooks/hooks.json", ".claude-plugin/plugin.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"name": "mine"}')
    before = tree(folder)
    bench.ok("uninstall", "--yes", "--client", "claude", "--plugin", str(folder))
    assert tree(folder) == before
    assert bench.run("install", "--yes", "--client", "claude", "--plugin", str(folder)).returncode == 2
    assert tree(folder) == before
    assert tree(user) == {}


def test_uninstall_restores_two_configuration_directories_of_one_client(bench: Bench, user: Path) -> None:
    """Each directory that `CLAUDE_CONFIG_DIR` named gets its own content back."""
    places = [bench.root / "one", bench.root / "other"]
    for each in places:
        each.mkdir()
        (each / "settings.json").write_text('{"hooks":{ }, "model":"x"}')
    before = [tree(each) for each in places]
    for verb in ("install", "uninstall"):
        for each in places:
            bench.env["CLAUDE_CONFIG_DIR"] = str(each)
            bench.ok(verb, "--yes", "--client", "claude")
    assert [tree(each) for each in places] == before
    assert not list(bench.state.glob("*/install/*"))
    assert tree(user) == {}


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_install_and_uninstall_keep_a_hook_that_the_user_added(bench: Bench, user: Path, client: str) -> None:
    """A second installation adds no hook twice. Uninstalling leaves the user's hook."""
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
    """Hook entries of unexpected types stay, because Outlive has not written them."""
    odd = '{"x": "x", "hooks": {"Stop": [{"hooks": [{"command": "a", "args": 5}, 7]}, 3], "PreCompact": [], "a": {}}}'
    file = settings(user, "claude", odd)
    bench.ok("uninstall", "--yes", "--client", "claude")
    assert file.read_text() == odd


def test_install_keeps_a_variable_that_the_user_added_to_the_server(bench: Bench, user: Path) -> None:
    """Installing again keeps the variable. Uninstalling removes it together with the server."""
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


def test_install_keeps_settings_that_the_user_added_to_the_server_in_codex(bench: Bench, user: Path) -> None:
    """A second installation keeps the settings, including those in a table of their own."""
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


def test_install_and_uninstall_refuse_a_configuration_that_is_no_regular_file(bench: Bench, user: Path) -> None:
    """A pipe, for example, is refused, because reading it would block the command."""
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
    """The file is not left empty, because no client reads an empty file as JSON."""
    file = user / name
    file.parent.mkdir()
    file.write_text(text)
    install(bench, client)
    file.write_text(file.read_text() + "\n")
    bench.ok("uninstall", "--yes", "--client", client)
    assert json.loads(file.read_text()) == json.loads(text)


@pytest.mark.parametrize("text", ['{"name": "x"}', '{"name": "x", "hooks": {"stop": [{"command": "./a.sh"}]}}'])
def test_uninstall_removes_the_version_that_it_added_to_cursors_hooks(bench: Bench, user: Path, text: str) -> None:
    """The version stays if the user has added hooks, because a file with hooks must have a version."""
    file = settings(user, "cursor", text)
    install(bench, "cursor")
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", "cursor")
    assert file.read_text() == text.replace('"x"', '"y"')
    install(bench, "cursor")
    found = json.loads(file.read_text())
    found["hooks"]["stop"].append({"command": "./b.sh"})
    file.write_text(json.dumps(found))
    bench.ok("uninstall", "--yes", "--client", "cursor")
    left = json.loads(file.read_text())
    assert left["version"] == 1
    assert left["hooks"]["stop"][-1] == {"command": "./b.sh"}


def test_uninstall_keeps_the_version_that_the_user_wrote_for_cursor(bench: Bench, user: Path) -> None:
    """A file in which the user wrote a version keeps it, and any other file has no version afterwards."""
    file = settings(user, "cursor", '{"version": 1, "name": "x"}')
    for name in ("y", "z"):
        install(bench, "cursor")
        file.write_text(file.read_text().replace('"name"', f'"{name}": 1, "name"'))
    bench.ok("uninstall", "--yes", "--client", "cursor")
    assert json.loads(file.read_text()) == {"version": 1, "y": 1, "z": 1, "name": "x"}
    file.write_text('{"name": "x"}')
    for name in ("y", "z"):
        install(bench, "cursor")
        file.write_text(file.read_text().replace('"name"', f'"{name}": 1, "name"'))
    bench.ok("uninstall", "--yes", "--client", "cursor")
    assert json.loads(file.read_text()) == {"y": 1, "z": 1, "name": "x"}
