"""The doctor tries out the installed configuration, and reports what keeps notices from reaching a client."""

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
    """Set a home directory for the commands of the test, and a long deadline for the hooks."""
    home = tmp_path / "user"
    home.mkdir()
    # PATH has no client. A client that is installed on this machine would change the findings.
    bench.env.update(HOME=str(home), OUTLIVE_HOOK_DEADLINE_S=str(PATIENCE_S), PATH="/usr/bin:/bin")
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR"):
        bench.env.pop(name, None)
    return home


def examined(bench: Bench, client: str) -> dict[str, Any]:
    """Return the doctor's findings about a client, for each way of delivering notices."""
    found = bench.json("doctor", "--client", client)["findings"]
    return {each["what"]: each for each in found if each["of"] == client}


@pytest.mark.parametrize("client", ["claude", "gemini", "opencode", "openclaw", "cursor"])
def test_doctor_reports_every_path_that_works(bench: Bench, user: Path, client: str) -> None:
    """The doctor tries each way of delivering notices with a call of its own, and reports which ones work.

    It makes the calls that the client would make, and leaves no task running.
    """
    assert examined(bench, client)["hooks"]["why"] == f"Outlive is not installed in {client}"
    bench.ok("install", "--client", client, "--yes")
    found = examined(bench, client)
    works = {what: each["works"] for what, each in found.items()}
    woken = ("claude", "opencode")  # For other clients, only a run of the client can show this.
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


def test_doctor_hints_at_install_only_for_clients_that_exist(bench: Bench, user: Path) -> None:
    """A user without Cursor gets no hint to install Outlive into Cursor."""
    (user / ".gemini").mkdir()
    found = bench.json("doctor")["findings"]
    hints = {each["of"]: each["hint"] for each in found if each["why"].startswith("Outlive is not installed")}
    absent = dict.fromkeys(("claude", "codex", "opencode", "openclaw", "cursor"), "")
    assert hints == {**absent, "gemini": "outlive install --client gemini"}


@pytest.mark.parametrize("text", ['{"hooks": ', None], ids=["no JSON", "no file"])
def test_doctor_reports_a_configuration_that_cannot_be_read(bench: Bench, user: Path, text: str | None) -> None:
    """The doctor names an unreadable configuration file, and still examines the other clients."""
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


@pytest.mark.parametrize(
    ("text", "works", "why"),
    [
        (None, None, "the defaults apply"),
        ("[agents]\ndepth = 2\n", True, "is read"),
        ("[agents]\ndeph = 2\n", False, "line 2: there is no key agents.deph"),
    ],
    ids=["no file", "good", "broken"],
)
def test_doctor_checks_the_settings_file(
    bench: Bench, user: Path, text: str | None, works: bool | None, why: str
) -> None:
    """If the settings file has an error, the doctor reports a failed check with the line and a hint."""
    file = user / ".config" / "outlive" / "config.toml"
    file.parent.mkdir(parents=True, mode=0o700)
    if text is not None:
        file.write_text(text)
        file.chmod(0o600)
    done = bench.run("doctor", "--client", "cursor", "--json")
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["what"] == "settings"]
    assert (found["works"], str(file) in found["why"]) == (works, True)
    assert why in found["why"]
    assert found["hint"] == ("did you mean depth?" if works is False else "")
    assert (done.returncode == 1) == (works is False)


def test_doctor_prints_the_whole_reason_of_a_blocked_check(bench: Bench, user: Path) -> None:
    """If the table cuts the reason of a blocked check, the doctor prints the whole reason below the table."""
    bench.env["XDG_CONFIG_HOME"] = str(user / ("d" * 150))
    file = user / ("d" * 150) / "outlive" / "config.toml"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("[agents]\ndeph = 2\n")
    file.chmod(0o600)
    (line,) = [each for each in bench.run("doctor", "--client", "cursor").stdout.splitlines() if "deph" in each]
    assert line.startswith("reason: outlive settings: ")


def test_doctor_reports_hooks_whose_interpreter_is_gone(bench: Bench, user: Path) -> None:
    """If the installed hooks name a missing interpreter, the doctor reports that no notice can be delivered."""
    bench.ok("install", "--client", "claude", "--yes")
    settings = user / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace(bench.command("x")[0], "/nonexistent/python"))
    found = examined(bench, "claude")
    assert [found[what]["works"] for what in ("gate", "hand-off", "delivery", "wake")] == [False] * 4
    done = bench.run("doctor", "--client", "claude")
    assert (done.returncode, "BLOCKED" in done.stdout, "hint: claude gate" in done.stdout) == (1, True, True)


@pytest.mark.usefixtures("user")
def test_doctor_reports_client_settings_that_disable_hooks(bench: Bench, user: Path) -> None:
    """The doctor reports settings by which a client calls no hooks: disabled, not trusted, or plugins not loaded."""
    bench.ok("install", "--client", "claude", "--yes")
    settings = user / ".claude" / "settings.json"
    document = json.loads(settings.read_text())
    settings.write_text(json.dumps({**document, "disableAllHooks": True}))
    assert "sets disableAllHooks" in examined(bench, "claude")["hooks"]["why"]
    bench.ok("install", "--client", "codex", "--untrusted", "--yes")
    assert "hooks are not trusted" in examined(bench, "codex")["hooks"]["why"]
    bench.ok("install", "--client", "opencode", "--yes")
    bench.env["OPENCODE_PURE"] = "true"
    assert "disables all plugins" in examined(bench, "opencode")["hooks"]["why"]


def test_doctor_reports_why_openclaw_does_not_load_the_plugin(bench: Bench, user: Path) -> None:
    """The doctor reports a plugin that is disabled or denied, or that lacks a permission or a file."""
    bench.ok("install", "--client", "openclaw", "--yes")
    file = user / ".openclaw/openclaw.json"
    text = file.read_text()
    assert examined(bench, "openclaw")["hooks"]["works"] is None
    for old, new, why in (
        ('"enabled": true', '"enabled": false', "disables the plugin"),
        ('"allowConversationAccess": true', '"allowConversationAccess": false', "denies the plugin the events"),
        ('"entries": {', '"deny": ["outlive"], "entries": {', "does not let the plugin load"),
    ):
        assert old in text
        file.write_text(text.replace(old, new))
        assert why in examined(bench, "openclaw")["hooks"]["why"]
    file.write_text(text)
    (user / ".openclaw/extensions/outlive/index.js").unlink()
    assert "lacks index.js" in examined(bench, "openclaw")["hooks"]["why"]


def in_namespace(bench: Bench, *words: str) -> str:
    """Return the stderr of a command that is the first process of its own PID namespace.

    The kernel kills every process of the namespace when the command ends.
    """
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


def test_run_warns_of_a_sandbox_that_will_kill_the_task(bench: Bench, tmp_path: Path) -> None:
    """In a sandbox of bwrap, `run` warns that the task is killed when the sandbox ends."""
    maker = tmp_path / "bwrap"
    shutil.copy("/bin/bash", maker)
    script = f"{' '.join(bench.command('run', '--', 'sleep', '0.1'))}; true"
    warned = in_namespace(bench, str(maker), "-c", script)
    assert "note: this runs in a sandbox of bwrap; when it ends, all processes in it are killed, the task too" in warned
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
def test_run_warns_of_a_pid_namespace_that_ends_with_the_launch(
    bench: Bench, words: tuple[str, ...], first: str | None
) -> None:
    """`run` warns if its PID namespace has no processes but `run` and its shells, because it ends with them.

    It does not warn if another program runs in the namespace, because that program may keep the namespace alive.
    """
    run = bench.command("run", "true")
    words = tuple(word.format(run=" ".join(run)) for word in words)
    warned = in_namespace(bench, *(run if len(words) == 1 else words))
    assert (f"note: this runs in a sandbox of {first}" in warned) is (first is not None), warned
    assert ("sandbox" in warned) is (first is not None)
