"""One word per thing: names that say nothing are not used in the sources.

Only names we choose are looked at (modules, classes, functions), and only whole words of them:
`metadata` and `worked` pass, `load_data` and `JobQueue` do not. Whether "process" is meant as a
verb is left to the reader.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "outlive"
SILENT = {"job", "worker", "manager", "handler", "helper", "util", "common", "data", "info"}
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def says_nothing(name: str) -> bool:
    """Whether a silent word, or its plural, is part of a snake_case or CamelCase name."""
    words = {word.lower() for word in WORD.findall(name)}
    return not SILENT.isdisjoint(words | {word.removesuffix("s") for word in words})


def silent_names(top: Path) -> list[str]:
    """Return the modules, classes and functions under `top` whose names say nothing."""
    found = []
    for path in sorted(top.rglob("*.py")):
        where = path.relative_to(top)
        if any(says_nothing(part) for part in where.with_suffix("").parts):
            found.append(str(where))
        found += [
            f"{where}:{node.lineno}: {node.name}"
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and says_nothing(node.name)
        ]
    return found


def test_names_in_the_sources_say_something() -> None:
    """No module, class or function is a job, a manager, a helper or some data."""
    assert silent_names(SRC) == []


@pytest.mark.parametrize("name", ["utils", "load_data", "JobQueue", "_handlers", "SQLInfo", "HTTPManager", "common"])
def test_silent_words_are_seen(name: str) -> None:
    """A silent word is found in any spelling of a name."""
    assert says_nothing(name)


@pytest.mark.parametrize("name", ["metadata", "worked", "handle", "database", "inform", "Settlement"])
def test_words_that_only_contain_one_pass(name: str) -> None:
    """The check is about words, not about letters."""
    assert not says_nothing(name)


def test_a_planted_name_is_seen(tmp_path: Path) -> None:
    """Modules, packages, classes and methods are all looked at."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").touch()
    (tmp_path / "good.py").write_text("class Worker:\n    async def get_info(self): ...\n    data = 1\n")
    assert silent_names(tmp_path) == [
        "good.py:1: Worker",
        "good.py:2: get_info",
        "helpers/__init__.py",
    ]
