"""`pipx install` of the built wheel, in a home directory where nothing was installed before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def python(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a module with the interpreter of the tests."""
    return subprocess.run([sys.executable, "-m", *words], env=env, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of Outlive, and gather the wheels that it depends on."""
    place = tmp_path_factory.mktemp("wheels")
    into = ("--quiet", "--no-build-isolation", "--wheel-dir", str(place), "-c", str(ROOT / "constraints.txt"))
    built = python("pip", "wheel", *into, str(ROOT), "pip>=26.1")  # Pipx upgrades its own pip, so it needs a wheel.
    if "No matching distribution" in built.stderr:
        pytest.skip("no package index can be reached")
    assert built.returncode == 0, built.stderr
    return place


def test_pipx_installs_a_wheel_that_runs_a_task(wheels: Path, tmp_path: Path) -> None:
    """The installed command runs a task and reports its exit code, with only the wheel and its dependencies."""
    (wheel,) = wheels.glob("outlive-*.whl")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OUTLIVE_", "PYTHON", "PIP"))}
    env = {**kept, "HOME": str(tmp_path), "PIPX_HOME": str(tmp_path / "pipx"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    arguments = f"--no-index --find-links={wheels}"
    done = python("pipx", "install", "--quiet", "--pip-args", arguments, str(wheel), env=env)
    assert done.returncode == 0, done.stderr
    outlive = str(tmp_path / "bin/outlive")
    words = [outlive, "run", "--wait", "30s", "--json", "--", "sh", "-c", "cd . && exit 3"]
    ran = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert json.loads(ran.stdout)["exit_code"] == 3, ran.stderr
    # pipx has also installed the parser of shell text, which is a dependency.
    inside = str(tmp_path / "pipx/venvs/outlive/bin/python")
    assert subprocess.run([inside, "-c", "import tree_sitter_bash"], env=env, check=False).returncode == 0
