"""The contracts about imports between layers.

The contracts are in pyproject.toml. A wrong contract could check nothing, and every check would still pass. So
each contract is also checked against a copy of the package that breaks it.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from outlive import entry_points

ROOT = Path(__file__).resolve().parents[2]
LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


def lint_imports(top: Path) -> subprocess.CompletedProcess[str]:
    """Check the package under `top`/src against the contracts in `top`/pyproject.toml."""
    return subprocess.run(
        [sys.executable, "-c", LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=top,
        # PYTHONPATH comes before the editable installation, which would import the original package.
        # The report is wrapped at COLUMNS, and a wrapped line would not match the expected text.
        env=os.environ | {"PYTHONPATH": str(top / "src"), "COLUMNS": "200", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the package and its contracts, which a test may change."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_package_keeps_all_import_contracts() -> None:
    """import-linter finds no forbidden import in the package."""
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "planted", "contract"),
    [
        ("domain/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("bundle/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("agents/__init__.py", "outlive.settings", "Each layer imports only what is below it"),
        ("settings/__init__.py", "outlive.service", "Each layer imports only what is below it"),
        ("observe/__init__.py", "outlive.ledger", "Each layer imports only what is below it"),
        ("ledger/__init__.py", "outlive.observe", "Each layer imports only what is below it"),
        ("ledger/__init__.py", "outlive.service", "Each layer imports only what is below it"),
        ("service/__init__.py", "outlive.cli", "Each layer imports only what is below it"),
        ("cli/__init__.py", "outlive.mcp.server", "Each layer imports only what is below it"),
        ("mcp/__init__.py", "outlive.cli", "Each layer imports only what is below it"),
        ("linux/__init__.py", "outlive.bundle", "Each layer imports only what is below it"),
        ("domain/git/__init__.py", "outlive.domain.effects", "Each room of the domain imports only what is below it"),
        (
            "domain/effects/__init__.py",
            "outlive.domain.notices",
            "Each room of the domain imports only what is below it",
        ),
        ("keeper/witness.py", "outlive.ledger", "The witness never opens the ledger"),
        ("bundle/record.py", "apsw", "The witness never opens the ledger"),
        ("domain/__init__.py", "time", "The domain does no I/O and reads no clock"),
        ("domain/__init__.py", "os.path", "The domain does no I/O and reads no clock"),
    ],
)
def test_contract_is_reported_broken_when_a_forbidden_import_is_added(
    copy: Path, module: str, planted: str, contract: str
) -> None:
    """If a module gets an import that a contract forbids, import-linter reports the broken contract by its name."""
    with (copy / "src" / "outlive" / module).open("a") as source:
        source.write(f"\nimport {planted}\n")
    result = lint_imports(copy)
    assert result.returncode != 0
    assert f"{contract} BROKEN" in result.stdout, result.stdout + result.stderr


def test_layers_refuse_a_package_that_is_in_no_layer(copy: Path) -> None:
    """The check fails for a new package that is not among the layers in pyproject.toml."""
    (copy / "src" / "outlive" / "elsewhere").mkdir()
    (copy / "src" / "outlive" / "elsewhere" / "__init__.py").write_text('"""Nowhere."""\n')
    result = lint_imports(copy)
    assert result.returncode != 0
    assert "elsewhere" in result.stdout, result.stdout + result.stderr


def test_code_for_other_interpreters_imports_only_entry_points() -> None:
    """Source code that Outlive passes to a new interpreter imports only entry points.

    The interpreter may run after an upgrade that has renamed other modules.
    """
    pattern = re.compile(r"(?:from|import) (outlive\.[\w.]+)")
    named = {
        match
        for path in (ROOT / "src" / "outlive").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in pattern.findall(node.value)
    }
    assert named == {"outlive.entry_points"}


def test_entry_points_keep_their_names_and_parameters() -> None:
    """The entry points have the names and parameters that processes started by an older version still use."""
    public = {
        name: list(inspect.signature(each).parameters)
        for name, each in inspect.getmembers(entry_points, inspect.isfunction)
        if not name.startswith("_")
    }
    assert public == {"load_keeper": [], "serve_spawner": ["fd"], "deliver_to_sinks": ["home"]}
