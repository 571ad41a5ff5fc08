"""Importing our own modules: quickly, and without a second copy of their code."""

from __future__ import annotations

import py_compile
import subprocess
import sys
from importlib.util import module_from_spec
from typing import TYPE_CHECKING

from outlive.quick_import import QuickFinder

if TYPE_CHECKING:
    from pathlib import Path

DEAR = ("collections", "dataclasses", "enum", "itertools", "json", "re", "subprocess", "typing")


def test_a_module_does_not_keep_the_bytes_that_it_came_from(tmp_path: Path) -> None:
    """Its spec stays as long as it does: a keeper would hold all of its code twice."""
    source = tmp_path / "planted.py"
    source.write_text("word = 'said'\n")
    py_compile.compile(str(source))
    spec = QuickFinder().find_spec("outlive.planted", [str(tmp_path)])
    assert spec is not None
    assert spec.loader_state is not None
    module = module_from_spec(spec)
    QuickFinder().exec_module(module)
    assert (module.word, spec.loader_state) == ("said", None)


def test_what_is_not_compiled_as_it_is_now_is_left_to_others(tmp_path: Path) -> None:
    """Not compiled, or changed since."""
    source = tmp_path / "planted.py"
    source.write_text("word = 'said'\n")
    assert QuickFinder().find_spec("outlive.planted", [str(tmp_path)]) is None
    py_compile.compile(str(source))
    source.write_text("word = 'said otherwise'\n")
    assert QuickFinder().find_spec("outlive.planted", [str(tmp_path)]) is None


def test_what_every_keeper_loads_loads_nothing_dear() -> None:
    """There are a hundred of them with a hundred tasks."""
    program = (
        "import sys, outlive.keeper.keeper, outlive.keeper.supervision, outlive.keeper.looks, outlive.observe.going;"
        "from outlive.keeper.observation import load; load();"
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
