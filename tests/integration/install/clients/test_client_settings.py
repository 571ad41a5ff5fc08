"""Settings of one client: OpenCode's schema, OpenClaw's plugin, Cursor's version, Claude Code's plugin folders."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.install.clients import openclaw
from outlive.install.clients.openclaw import FILES
from outlive.install.config import jsonc
from tests.install_steps import CLIENTS, install, settings, tree
from tests.support import SCRIPT

if TYPE_CHECKING:
    from tests.support import Bench

SCHEMA = "https://opencode.ai/config.json"


def test_install_adds_the_server_to_the_file_that_opencode_reads(bench: Bench, user: Path) -> None:
    """Installing adds the server to the file that OpenCode reads.

    Entries of the user stay, and no permission is added.
    """
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
    """Uninstalling deletes a file of OpenCode that has only Outlive's entries.

    With entries of the user, `$schema` stays.
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
    """Installing finds OpenCode's configuration by `XDG_CONFIG_HOME` and `OPENCODE_CONFIG_DIR`."""
    place = bench.root / "elsewhere"
    bench.env[name] = str(place)
    install(bench, "opencode")
    top = place / "opencode" if name == "XDG_CONFIG_HOME" else place
    assert (top / "plugin/outlive.js").exists()
    assert tree(user) == {}
    bench.ok("uninstall", "--yes", "--client", "opencode")
    assert not place.exists()


def test_install_enables_the_plugin_of_openclaw_without_a_webhook(bench: Bench, user: Path) -> None:
    """Installing allows OpenClaw to load the plugin.

    The plugin calls the script by its absolute path with `python -I`.
    """
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


def test_plugin_is_installed_and_uninstalled_as_a_folder(bench: Bench, user: Path) -> None:
    """Installing a plugin creates its folder, and uninstalling removes it.

    No file of the user's configuration is changed.
    """
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
    """Uninstalling removes the plugin folders that Outlive has recorded, and then the record."""
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
    """Uninstalling keeps a plugin file that the user edited or added, and names it. A deleted file causes no error."""
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


def test_install_and_uninstall_leave_a_plugin_folder_of_another_program_alone(bench: Bench, user: Path) -> None:
    """A folder that has a plugin of another program is neither overwritten nor removed."""
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
    """Uninstalling restores the content of each directory that `CLAUDE_CONFIG_DIR` named during an installation."""
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


@pytest.mark.parametrize("text", ['{"name": "x"}', '{"name": "x", "hooks": {"stop": [{"command": "./a.sh"}]}}'])
def test_uninstall_removes_the_version_that_it_added_to_cursors_hooks(bench: Bench, user: Path, text: str) -> None:
    """Uninstalling removes the version that Outlive added to Cursor's hooks file, unless the user has added hooks.

    A file with hooks must have a version.
    """
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
    """Uninstalling keeps a version that the user wrote into Cursor's hooks file, and removes Outlive's own."""
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
