"""The doctor: canaries through what is really installed, and the truth about what is in the way."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench


@pytest.fixture
def user(bench: Bench, tmp_path: Path) -> Path:
    """Give the calls a home directory of their own; hooks may take their time."""
    home = tmp_path / "user"
    home.mkdir()
    # Without any client: those that are installed here are none of the test's business.
    bench.env.update(HOME=str(home), OUTLIVE_HOOK_DEADLINE_S=str(PATIENCE_S), PATH="/usr/bin:/bin")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR"):
        bench.env.pop(name, None)
    return home


def examined(bench: Bench, client: str) -> dict[str, Any]:
    """What was found of a client, by path."""
    found = bench.json("doctor", "--client", client)["findings"]
    return {each["what"]: each for each in found if each["of"] == client}


@pytest.mark.parametrize("client", ["claude", "gemini", "opencode", "openclaw", "cursor"])
def test_every_path_that_works_is_seen_to(bench: Bench, user: Path, client: str) -> None:
    """By calling what the client would call; and nothing of it is left behind."""
    assert examined(bench, client)["hooks"]["why"] == "not installed"
    bench.ok("install", "--client", client, "--yes")
    found = examined(bench, client)
    works = {what: each["works"] for what, each in found.items()}
    woken = ("claude", "opencode")  # the others' own part in it can only be seen in them
    assert works == {
        "hooks": None,
        "launch": True,
        "gate": True,
        "hand-off": True,
        "delivery": True,
        "wake": True if client in woken else None,
    }
    assert bench.json("list", "--all", "--state", "running")["tasks"] == []
    assert user.exists()


@pytest.mark.parametrize("text", ['{"hooks": ', None], ids=["no JSON", "no file"])
def test_a_configuration_that_cannot_be_read_is_a_finding_of_that_client(
    bench: Bench, user: Path, text: str | None
) -> None:
    """It is named, and the others are looked at all the same."""
    file = user / ".gemini/settings.json"
    file.parent.mkdir()
    if text is None:
        file.mkdir()
    else:
        file.write_text(text)
    bench.ok("install", "--client", "cursor", "--yes")
    found = bench.json("doctor")["findings"]
    hooks = {each["of"]: each for each in found if each["what"] == "hooks"}
    assert hooks["gemini"]["works"] is False
    assert str(file) in hooks["gemini"]["why"]
    assert [each["works"] for each in found if each["of"] == "cursor" and each["what"] == "gate"] == [True]


def test_hooks_that_call_nothing_any_more_are_found_out(bench: Bench, user: Path) -> None:
    """The interpreter that was installed is gone, say."""
    bench.ok("install", "--client", "claude", "--yes")
    settings = user / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace(bench.command("x")[0], "/nonexistent/python"))
    found = examined(bench, "claude")
    assert [found[what]["works"] for what in ("gate", "hand-off", "delivery", "wake")] == [False] * 4
    done = bench.run("doctor", "--client", "claude")
    assert (done.returncode, "BLOCKED" in done.stdout, "hint: claude gate" in done.stdout) == (1, True, True)


@pytest.mark.usefixtures("user")
def test_what_the_client_itself_forbids_is_said(bench: Bench, user: Path) -> None:
    """All hooks are off in its own settings; Codex does not trust ours; OpenCode is to load no plugin."""
    bench.ok("install", "--client", "claude", "--yes")
    settings = user / ".claude" / "settings.json"
    document = json.loads(settings.read_text())
    settings.write_text(json.dumps({**document, "disableAllHooks": True}))
    assert "says disableAllHooks" in examined(bench, "claude")["hooks"]["why"]
    bench.ok("install", "--client", "codex", "--untrusted", "--yes")
    assert "hooks are not trusted" in examined(bench, "codex")["hooks"]["why"]
    bench.ok("install", "--client", "opencode", "--yes")
    bench.env["OPENCODE_PURE"] = "true"
    assert "keeps plugins out" in examined(bench, "opencode")["hooks"]["why"]


def test_what_keeps_openclaw_from_loading_the_plugin_is_said(bench: Bench, user: Path) -> None:
    """Somebody has switched it off, taken its permission, or a file of it away."""
    bench.ok("install", "--client", "openclaw", "--yes")
    file = user / ".openclaw/openclaw.json"
    text = file.read_text()
    assert examined(bench, "openclaw")["hooks"]["works"] is None
    for old, new, why in (
        ('"enabled": true', '"enabled": false', "has the plugin disabled"),
        ('"allowConversationAccess": true', '"allowConversationAccess": false', "from the events of a turn"),
        ('"entries": {', '"deny": ["outlive"], "entries": {', "does not let the plugin load"),
    ):
        assert old in text
        file.write_text(text.replace(old, new))
        assert why in examined(bench, "openclaw")["hooks"]["why"]
    file.write_text(text)
    (user / ".openclaw/extensions/outlive/index.js").unlink()
    assert "lacks index.js" in examined(bench, "openclaw")["hooks"]["why"]


def in_namespace(bench: Bench, *words: str) -> str:
    """What a command has on stderr whose processes end with it, because it is the first of their PID namespace."""
    if shutil.which("unshare") is None:
        pytest.skip("util-linux's unshare is not installed")
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", *words],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip("no PID namespace may be made here")
    return done.stderr


def test_a_sandbox_that_will_kill_the_task_is_named_beforehand(bench: Bench, tmp_path: Path) -> None:
    """Not by a task that is never heard of again."""
    maker = tmp_path / "bwrap"
    shutil.copy("/bin/bash", maker)
    script = f"{' '.join(bench.command('run', '--', 'sleep', '0.1'))}; true"
    warned = in_namespace(bench, str(maker), "-c", script)
    assert "note: this runs in a sandbox of bwrap, and everything in it is killed when that ends" in warned
    assert "sandbox" not in bench.run("run", "true").stderr


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("{run}",), "python"),
        (("sh", "-c", "{run}; true"), "sh"),
        (("sh", "-c", "sh -c '{run}; true'; true"), "sh"),
        (("sh", "-c", "python3 -c 'import os; os.system(\"{run}; true\")'; true"), None),
    ],
    ids=["itself", "a step of it", "a step of a step", "of a program in it"],
)
def test_a_namespace_that_was_made_for_the_launch_is_named_beforehand(
    bench: Bench, words: tuple[str, ...], first: str | None
) -> None:
    """It ends with its first process, which is the launch; one that has a program in it is meant to last."""
    run = bench.command("run", "true")
    words = tuple(word.format(run=" ".join(run)) for word in words)
    warned = in_namespace(bench, *(run if len(words) == 1 else words))
    assert (f"note: this runs in a sandbox of {first}" in warned) is (first is not None), warned
    assert ("sandbox" in warned) is (first is not None)
