"""The MCP conformance suite and the MCP Inspector, run against Outlive's server.

The tests need npm packages, which `make test-clients` installs into this directory. The page docs/reference/mcp-
conformance.md lists the scenarios that do not apply, with the reasons. Every other scenario must pass.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import SCRIPT, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "mcp-conformance.md"
MODULES = Path(__file__).parent / ".clients" / "mcp" / "node_modules"
NODE = MODULES / "node" / "bin" / "node"
MCPDO = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "mcpdo" / "build" / "mcp-bin.js"
INSPECTOR = MODULES / ".bin" / "mcp-inspector"
SUITES = ("conformance", "conformance-alpha")
SCENARIO = re.compile(r"^  - (\S+) \[(.*)\]$", re.MULTILINE)

pytestmark = pytest.mark.skipif(not NODE.exists(), reason="make test-clients installs what it needs")


def suite(name: str, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run one of the two suites, and return the ended process."""
    program = MODULES / name / "dist" / "index.js"
    return subprocess.run(
        [str(NODE), str(program), *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        cwd=cwd,
        check=False,
    )


def not_applicable() -> set[str]:
    """Return the names of the scenarios that the page lists as not applicable."""
    return set(re.findall(r"^\| `([a-z0-9-]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def scenarios() -> list[tuple[str, str, str | None]]:
    """Return every scenario that applies, as the name of its suite, its own name and its revision.

    The older suite runs each scenario at a single revision.
    """
    if not NODE.exists():
        return [("conformance", "ping", None)]
    found: list[tuple[str, str, str | None]] = []
    for name in SUITES:
        for scenario, revisions in SCENARIO.findall(suite(name, "list", "--server").stdout):
            if scenario not in not_applicable():
                dated = [each for each in revisions.split(",") if each.startswith("20") and name != SUITES[0]]
                found += [(name, scenario, revision) for revision in dated or [None]]
    return found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the test's server with the suite's tools, and return the server's address."""
    bench = Bench(tmp_path_factory.mktemp("conformance"))
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.clients.mcp_fixture", "0"],
        env={**bench.env, "OUTLIVE_MCP_RUN": "on", "PYTHONPATH": str(ROOT)},
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.kill()
    server.wait()
    server.stdout.close()
    bench.clean()


@pytest.mark.parametrize(("name", "scenario", "revision"), scenarios())
def test_server_passes_the_scenario(url: str, name: str, scenario: str, revision: str | None, tmp_path: Path) -> None:
    """Outlive's server passes every scenario that applies, at each of the scenario's revisions."""
    words = ("--spec-version", revision) if revision else ()
    done = suite(name, "server", "--url", url, "--scenario", scenario, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


def test_the_page_names_only_scenarios_that_exist() -> None:
    """Each scenario that the page excludes is a scenario of the suite.

    An unknown name on the page could exclude a later scenario by mistake.
    """
    known = {scenario for name in SUITES for scenario, _ in SCENARIO.findall(suite(name, "list", "--server").stdout)}
    assert not_applicable() - known == set()
    assert len(not_applicable()) < len(known) / 2


@pytest.fixture
def node_env(bench: Bench) -> dict[str, str]:
    """Return the environment of a program that Node runs."""
    return {**bench.env, "HOME": str(bench.root), "PATH": f"{NODE.parent}:{os.environ['PATH']}"}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_follows_a_task(bench: Bench, node_env: dict[str, str], era: str) -> None:
    """If the MCP Inspector calls `run` as a task, it gets the command's result. This holds for two versions of MCP."""
    server = (sys.executable, str(SCRIPT), "mcp")
    settings = ("-e", f"OUTLIVE_HOME={bench.state}", "-e", "OUTLIVE_MCP_RUN=on")

    def mcpdo(*words: str) -> str:
        done = subprocess.run(
            [str(NODE), str(MCPDO), "--plain", "--connection", era, *words],
            env=node_env,
            cwd=bench.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    try:
        mcpdo("connect", "--era", era, *settings, "--", *server)
        said = mcpdo("tools/call", "run", "--task", "--tool-arg", "command=echo inspected; sleep 0.5")
        assert "succeeded" in said
        assert "| inspected" in said
        if era == "legacy":
            assert "completed" in mcpdo("tasks/list")
    finally:
        mcpdo("daemon", "stop")


def test_the_inspectors_command_line_follows_a_task(bench: Bench, node_env: dict[str, str]) -> None:
    """The Inspector's command line follows a task. It declares the newer protocol version by itself."""
    done = subprocess.run(
        [
            *(str(INSPECTOR), "--cli", "--protocol-era", "modern", "-e", f"OUTLIVE_HOME={bench.state}"),
            *("-e", "OUTLIVE_MCP_RUN=on", sys.executable, str(SCRIPT), "mcp", "--method", "tools/call"),
            *("--tool-name", "run", "--tool-arg", "command=echo inspected; sleep 0.5"),
        ],
        env=node_env,
        cwd=bench.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert '"state": "succeeded"' in done.stdout, done.stdout + done.stderr
