"""Outlive's own importer, which imports modules quickly and does not keep their bytes in memory."""

from __future__ import annotations

import importlib
import py_compile
import subprocess
import sys
from importlib.util import cache_from_source, module_from_spec
from typing import TYPE_CHECKING

import pytest

from outlive.quick_import import FormerNames, QuickFinder

if TYPE_CHECKING:
    from pathlib import Path

DEAR = ("collections", "dataclasses", "enum", "itertools", "json", "re", "subprocess", "typing")


def test_imported_module_does_not_keep_its_bytes(tmp_path: Path) -> None:
    """An imported module does not keep the bytes from which it was loaded. This saves memory."""
    source = tmp_path / "planted.py"
    source.write_text("word = 'said'\n")
    py_compile.compile(str(source))
    spec = QuickFinder().find_spec("outlive.planted", [str(tmp_path)])
    assert spec is not None
    assert spec.loader_state is not None
    module = module_from_spec(spec)
    QuickFinder().exec_module(module)
    assert (module.word, spec.loader_state) == ("said", None)


def test_missing_module_is_named_when_the_installation_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the installation is deleted, the error for a missing module names the module that was requested."""
    monkeypatch.setitem(sys.modules, "outlive.former_modules", None)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, FormerNames()])
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'outlive\.planted'"):
        importlib.import_module("outlive.planted")


def test_quick_finder_names_the_bytecode_as_the_import_system_does(tmp_path: Path) -> None:
    """The importer gives each module the path of its bytecode, as Python's import system does."""
    source = tmp_path / "planted.py"
    source.write_text("word = 'said'\n")
    py_compile.compile(str(source))
    spec = QuickFinder().find_spec("outlive.planted", [str(tmp_path)])
    assert spec is not None
    assert spec.__dict__["_cached"] == cache_from_source(str(source))


def test_quick_finder_leaves_a_module_without_current_bytecode_to_other_finders(tmp_path: Path) -> None:
    """A module that has no bytecode, or was changed since, is left to Python's other finders."""
    source = tmp_path / "planted.py"
    source.write_text("word = 'said'\n")
    assert QuickFinder().find_spec("outlive.planted", [str(tmp_path)]) is None
    py_compile.compile(str(source))
    source.write_text("word = 'said otherwise'\n")
    assert QuickFinder().find_spec("outlive.planted", [str(tmp_path)]) is None


def test_keeper_imports_no_expensive_modules() -> None:
    """A keeper imports none of these slow modules, because a hundred keepers may start at once."""
    program = (
        "import sys, outlive.keeper.keeper, outlive.keeper.supervise;"
        "import outlive.keeper.observation.task_snapshots, outlive.observe.shell.cd_targets;"
        "from outlive.keeper.observation.observation import load; load();"
        f"print(*(name for name in {DEAR} if name in sys.modules))"
    )
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert found.stdout == "\n"
