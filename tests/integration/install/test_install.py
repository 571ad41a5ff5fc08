"""Installing shows changes before it makes them, and uninstalling restores every byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.home import open_home
from outlive.install.apply import install as make
from outlive.install.apply import plan_install, plan_uninstall, uninstall
from outlive.install.config import backup
from outlive.install.config.target_file import whole
from tests.install_steps import CLIENTS, MINE, install, mine, settings, tree

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

# For each client: the file that lists the tools before which the guard runs, and the tools that an earlier version left
# out.
NEWER = {
    "claude": (CLIENTS["claude"], "|Read|Grep|Glob"),
    "gemini": (CLIENTS["gemini"], "|read_file|grep_search|glob|list_directory"),
    "opencode": (".config/opencode/plugin/outlive.js", ', "read", "grep", "glob", "list"'),
    "openclaw": (".openclaw/extensions/outlive/index.js", ', "read", "ls"'),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_restores_every_byte_mode_and_directory(bench: Bench, user: Path, client: str) -> None:
    """After installing and uninstalling, the user's configuration has its former content, modes and directories."""
    settings(user, client).chmod(0o640)
    before = tree(user)
    install(bench, client)
    assert tree(user) != before
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_removes_every_file_when_the_client_had_none(bench: Bench, user: Path, client: str) -> None:
    """If a client had no configuration, uninstalling removes every file and directory of the installation."""
    install(bench, client)
    assert (user / CLIENTS[client]).exists()
    bench.ok("uninstall", "--yes", "--client", client)
    assert tree(user) == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_second_install_changes_nothing(bench: Bench, user: Path, client: str) -> None:
    """A second installation changes no file. Uninstalling then still restores every byte."""
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
    """Uninstalling keeps the edits that the user made after the installation, and removes only Outlive's entries."""
    file = settings(user, client)
    install(bench, client)
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--yes", "--client", client)
    assert file.read_text() == mine(client).replace('"x"', '"y"')


@pytest.mark.parametrize("client", CLIENTS)
def test_uninstall_removes_only_entries_of_outlive_when_its_backups_are_gone(
    bench: Bench, user: Path, client: str
) -> None:
    """If the backups are gone, uninstalling removes only Outlive's entries and files."""
    file = settings(user, client)
    install(bench, client)
    shutil.rmtree(bench.state)
    bench.ok("uninstall", "--yes", "--client", client)
    assert file.read_text() == mine(client)
    assert [path for path in tree(user) if path.endswith(("SKILL.md", ".js"))] == []


def test_uninstall_keeps_edits_made_between_two_installations(bench: Bench, user: Path) -> None:
    """If the user edits the file between two installations, uninstalling keeps these edits."""
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
    """Installing adds tools that an older installation lacks.

    Uninstalling restores the state before the older installation.
    """
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
    """`install --dry-run` changes nothing. It shows each change with the lines around it, and masks keys."""
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
    """Installed hooks call the script by its absolute path, so neither a directory nor a variable can replace it."""
    install(bench, "claude")
    found = json.loads((user / CLIENTS["claude"]).read_text())
    hooks = [hook for groups in found["hooks"].values() for group in groups for hook in group["hooks"]]
    for hook in hooks:
        assert hook["command"] == sys.executable
        assert hook["args"][0] == "-I"
        assert os.path.isabs(hook["args"][1])
        assert os.path.exists(hook["args"][1])


def test_uninstall_removes_the_directories_of_an_interrupted_installation(bench: Bench, user: Path) -> None:
    """Uninstalling removes directories that an interrupted installation created.

    They are recorded before they are created.
    """
    home, is_ours = open_home(bench.env), "ours".__eq__
    files = [whole(str(user / name), "ours", is_ours) for name in ("a/b/one", "c/two")]
    changes = plan_install(home, "some", files)
    (user / "c").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        make(home, "some", changes)
    (user / "c").unlink()
    uninstall(home, "some", plan_uninstall(home, "some", files))
    assert tree(user) == {}


def test_install_finds_the_clients_of_the_user(bench: Bench, user: Path) -> None:
    """Installing finds a client by its directory or by its program."""
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
    """Without a terminal and `--yes`, installing and uninstalling only show their changes, and exit with 2."""
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
    """If one client cannot be installed, the output gives the reason, and the other clients are installed."""
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
    """The output names only clients that were changed. For the others it says that there is nothing to change."""
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
    """If the only client cannot be installed, installing exits with 2, and stderr has the error."""
    bench.env["PATH"] = "/usr/bin:/bin"
    (user / ".codex").mkdir()
    done = bench.run("install", "--yes")
    assert done.returncode == 2
    assert "codex is not on the PATH" in done.stderr
