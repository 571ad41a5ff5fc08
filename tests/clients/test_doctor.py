"""The doctor with real clients. The doctor confirms the ways of delivery that work, and names those that do not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.rig import PATIENCE_S
from tests.clients.rigs.openclaw import OpenClaw
from tests.clients.rigs.opencode import OpenCode

if TYPE_CHECKING:
    from pathlib import Path

    from tests.clients.rig import Rig
    from tests.clients.rigs.claude import Claude
    from tests.clients.rigs.codex import Codex
    from tests.clients.rigs.gemini import Gemini

HOOKED = ("gate", "hand-off", "delivery", "wake")


def examined(rig: Rig, *before: str) -> dict[str, dict[str, Any]]:
    """Return the doctor's findings about a client, for each way of delivering notices.

    `before` is a command that runs the doctor, for example a sandbox.
    """
    rig.bench.env["OUTLIVE_HOOK_DEADLINE_S"] = "30"
    done = subprocess.run(
        [*before, *rig.bench.command("doctor", "--client", rig.name, "--json")],
        env=rig.bench.env,
        cwd=rig.bench.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout, done.stderr
    found = [each for each in json.loads(done.stdout)["findings"] if each["of"] == rig.name]
    assert done.returncode == any(each["works"] is False for each in found), done.stdout
    return {each["what"]: each for each in found}


def files_of(rig: Rig) -> dict[Path, int]:
    """Return each file in the user's home directory with the time of its last change."""
    return {path: path.stat().st_mtime_ns for path in rig.home.rglob("*") if path.is_file()}


def test_doctor_confirms_every_delivery_path_that_works(configured: Rig) -> None:
    """The doctor starts the client, which calls its hooks, and confirms each way of delivering notices that works.

    The check sends no request to the model and leaves no task.
    """
    rig = configured
    found = examined(rig)
    assert {what: each["works"] for what, each in found.items()} == {
        "hooks": True,
        "launch": True,
        "gate": True,
        "hand-off": True,
        "delivery": True,
        "wake": True if rig.name in ("claude", "opencode") else None,
    }
    assert rig.model.asked == []
    assert rig.bench.json("list", "--all", "--state", "running")["tasks"] == []


@pytest.mark.parametrize("configured", [OpenCode, OpenClaw], ids=lambda kind: kind.name, indirect=True)
def test_doctor_finds_a_plugin_that_does_not_load(configured: Rig) -> None:
    """The doctor starts the client, and reports that the plugin called no hook. No file of the user changes."""
    rig = configured
    (plugin,) = (*rig.home.rglob("plugin/outlive.js"), *rig.home.rglob("extensions/outlive/index.js"))
    plugin.write_text(plugin.read_text() + "\nthrow new Error('not today')\n")
    before = files_of(rig)
    found = examined(rig)
    assert (found["hooks"]["works"], found["hooks"]["why"]) == (False, "the client was started, but called no hook")
    assert [found[what]["works"] for what in HOOKED] == [False] * 4
    assert files_of(rig) == before


def test_doctor_finds_hooks_that_codex_does_not_trust(codex: Codex) -> None:
    """The doctor reports hooks that Codex does not trust. It reads the trust in Codex's configuration.

    If hooks have changed since, the doctor asks Codex whether it trusts them.
    """
    config = codex.configure()
    codex.install("--untrusted")
    found = examined(codex)
    assert "hooks are not trusted" in found["hooks"]["why"]
    assert "/hooks in Codex" in found["hooks"]["hint"]
    assert [found[what]["works"] for what in HOOKED] == [False] * 4

    codex.install()
    config.write_text(config.read_text().replace('trusted_hash = "sha256:', 'trusted_hash = "sha256:0'))
    found = examined(codex)
    assert (found["hooks"]["works"], found["hooks"]["why"]) == (False, "the client was started, but called no hook")


def test_doctor_finds_a_sandbox_that_ends_tasks(codex: Codex) -> None:
    """The doctor launches a test task in the sandbox of Codex, and reports that the sandbox killed the task."""
    config = codex.configure()
    config.write_text(config.read_text().replace('sandbox_mode = "danger-full-access"\n', ""))
    codex.install()
    found = examined(codex)
    assert found["hooks"]["works"] is True
    assert found["launch"]["works"] is False
    assert "sandbox" in found["launch"]["why"]
    assert "outside of its sandbox" in found["launch"]["hint"]


def test_doctor_finds_hooks_that_a_setting_disables(gemini: Gemini) -> None:
    """The doctor starts the client, and reports that the client called no hook.

    A setting that the doctor does not know has disabled the hooks.
    """
    file = gemini.configure()
    file.write_text(file.read_text().replace("{\n", '{\n  "hooksConfig": {"enabled": false},\n', 1))
    gemini.install()
    found = examined(gemini)
    assert (found["hooks"]["works"], found["hooks"]["why"]) == (False, "the client was started, but called no hook")
    assert [found[what]["works"] for what in HOOKED] == [False] * 4


@pytest.mark.skipif(os.getuid() != 0 or shutil.which("unshare") is None, reason="needs a file system of its own")
@pytest.mark.parametrize("name", ["disableAllHooks", "allowManagedHooksOnly"])
def test_doctor_names_the_file_of_a_managed_policy(claude: Claude, tmp_path: Path, name: str) -> None:
    """The doctor names the file of a managed policy, which only the administrator can change."""
    claude.configure()
    claude.install()
    etc = tmp_path / "etc"
    script = (
        f"mkdir {etc} && cp -a /etc/. {etc} && mkdir -p {etc}/claude-code && "
        f"echo '{{\"{name}\": true}}' > {etc}/claude-code/managed-settings.json && "
        f'mount --bind {etc} /etc && exec "$@"'
    )
    found = examined(claude, "unshare", "--mount", "sh", "-c", script, "sh")
    assert found["hooks"]["why"] == f"/etc/claude-code/managed-settings.json sets {name}"
    assert found["hooks"]["hint"] == "only the owner of that file can change it"
    assert [found[what]["works"] for what in HOOKED] == [False] * 4
