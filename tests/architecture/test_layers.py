"""The layers hold, and would be seen to break.

The contracts are in pyproject.toml. A contract that nothing has ever broken may be checking
nothing, so each is also run over a copy of the package with a forbidden import planted in it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint_imports(top: Path) -> subprocess.CompletedProcess[str]:
    """Check the package under `top`/src against the contracts in `top`/pyproject.toml."""
    return subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=top,
        # PYTHONPATH precedes the editable installation, which would lead back to the original.
        # COLUMNS because the report is folded to the width of a terminal.
        env=os.environ | {"PYTHONPATH": str(top / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the package and its contracts, free to be spoiled."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_import_respects_the_layers() -> None:
    """The package as it is keeps all contracts."""
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("domain/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("bundle/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("observe/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("ledger/__init__.py", "outlive.observe", "Each layer imports only what is below it"),
        ("ledger/__init__.py", "outlive.service", "Each layer imports only what is below it"),
        ("service/__init__.py", "outlive.cli", "Each layer imports only what is below it"),
        ("cli/__init__.py", "outlive.mcp.server", "Each layer imports only what is below it"),
        ("mcp/__init__.py", "outlive.cli", "Each layer imports only what is below it"),
        ("keeper/witness.py", "outlive.ledger", "The witness never opens the ledger"),
        ("bundle/record.py", "apsw", "The witness never opens the ledger"),
        ("domain/__init__.py", "time", "The domain does no I/O and reads no clock"),
        ("domain/__init__.py", "os.path", "The domain does no I/O and reads no clock"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, planted: str, contract: str) -> None:
    """A forbidden import, also one that the witness would only inherit, is named and refused."""
    with (copy / "src" / "outlive" / module).open("a") as source:
        source.write(f"\nimport {planted}\n")
    result = lint_imports(copy)
    assert result.returncode != 0
    assert f"{contract} BROKEN" in result.stdout, result.stdout + result.stderr


def test_a_package_without_a_layer_is_refused(copy: Path) -> None:
    """A new package has to be given its place before it can be used."""
    (copy / "src" / "outlive" / "elsewhere").mkdir()
    (copy / "src" / "outlive" / "elsewhere" / "__init__.py").write_text('"""Nowhere."""\n')
    result = lint_imports(copy)
    assert result.returncode != 0
    assert "elsewhere" in result.stdout, result.stdout + result.stderr
