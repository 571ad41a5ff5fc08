"""The rules for names and docstrings, as functions that return the violations."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

from outlive.cli.main import VERBS, load
from outlive.cli.parser import help_text
from outlive.install.clients.registry import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

SRC = Path(__file__).resolve().parents[2] / "src" / "outlive"

MOST_MODULES = 20
LONGEST_SUMMARY = 80
LONGEST_TEST_FILE = 600
# Words that the name of a module must not contain, because they do not say what the module is for.
SAYS_NOTHING = {
    *("again", "beside", "doer", "doers", "held", "look", "looks", "mark", "marks", "met", "misc", "said"),
    *("story", "stuff", "util", "utils", "word", "words"),
}
# Words that help texts must not use. Help names the process, the user or the session instead.
UNKNOWN_PEOPLE = {"anybody", "nobody", "somebody", "whoever"}
# Module names that may occur in several layers. A command or a client has a module of the same name in each layer.
SHARED_NAMES = frozenset({verb.replace("-", "_") for verb in VERBS} | set(CLIENTS))
# The docstring of a function must begin with one of these verbs.
VERBS_OF_SUMMARIES = frozenset(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())


def crowded_rooms(top: Path) -> Iterator[str]:
    """Yield the packages that have more than `MOST_MODULES` modules.

    Modules that are named after a command or a client are not counted.
    """
    for package in sorted({path.parent for path in top.rglob("*.py")}):
        number = sum(path.stem not in {"__init__", *SHARED_NAMES} for path in package.glob("*.py"))
        if number > MOST_MODULES:
            yield f"crowded: {package.relative_to(top.parent)}"


def misplaced_tests(tests: Path, top: Path) -> Iterator[str]:
    """Yield folders of tests that have no package of the same name, and folders with too many files.

    The folders of unit and integration tests must have the names of the packages below `top`.
    """
    for suite in (tests / "unit", tests / "integration"):
        for folder in sorted({path.parent for path in suite.rglob("*.py")}):
            if not (top / folder.relative_to(suite) / "__init__.py").exists():
                yield f"no such package: {folder.relative_to(tests)}"
            if len(list(folder.glob("*.py"))) > MOST_MODULES:
                yield f"crowded: {folder.relative_to(tests)}"


def shared_names(top: Path) -> Iterator[str]:
    """Yield the module names that are used twice. A name of a command or of a client may be used twice."""
    found: dict[str, list[str]] = {}
    for path in sorted(top.rglob("*.py")):
        if path.stem not in SHARED_NAMES and path.name not in ("__init__.py", "__main__.py"):
            found.setdefault(path.stem, []).append(str(path.relative_to(top)))
    for name, paths in found.items():
        if len(paths) > 1:
            yield f"same name: {name}: {' '.join(paths)}"


def silent_names(top: Path) -> Iterator[str]:
    """Yield the modules whose names say nothing about their content."""
    for path in sorted(top.rglob("*.py")):
        if not SAYS_NOTHING.isdisjoint(path.stem.split("_")):
            yield f"says nothing: {path.relative_to(top)}"


def poor_summaries(top: Path) -> Iterator[str]:
    """Yield the docstrings whose first line is too long or begins with no verb.

    Only the docstrings of functions need a verb.
    """
    for path in sorted(top.rglob("*.py")):
        for name, node in documented(ast.parse(path.read_text(encoding="utf-8")), ""):
            text = ast.get_docstring(node)
            if not text:
                continue
            summary = text.split("\n", 1)[0]
            where = f"{path.relative_to(top)}:{name}"
            if len(summary) > LONGEST_SUMMARY:
                yield f"long summary: {where}"
            if needs_verb(node) and summary.split()[0].rstrip(".,:;") not in VERBS_OF_SUMMARIES:
                yield f"no verb: {where}"


def unclear_help() -> Iterator[str]:
    """Yield the commands whose help does not begin with a verb, or contains a word such as `nobody`."""
    for verb in VERBS:
        if load(verb).summary.split()[0].capitalize() not in VERBS_OF_SUMMARIES:
            yield f"no verb: {verb}"
        found = UNKNOWN_PEOPLE.intersection(re.findall(r"\w+", help_text(load(verb)).lower()))
        yield from (f"{word}: {verb}" for word in sorted(found))


def long_files(top: Path) -> Iterator[tuple[str, int]]:
    """Yield each test file with more than `LONGEST_TEST_FILE` lines, and its number of lines.

    Files of the clients that the tests have installed below the folder are ignored.
    """
    for path in sorted(top.rglob("*.py")):
        name = str(path.relative_to(top))
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > LONGEST_TEST_FILE and ".clients/" not in name:
            yield name, lines


def documented(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Module | ast.ClassDef | ast.FunctionDef]]:
    """Yield a module, its classes and its functions, each with its dotted name."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        yield name or "module", node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from documented(child, f"{name}.{child.name}" if name else child.name)


def needs_verb(node: ast.AST) -> bool:
    """Return whether a node is a function that is not a property."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    return not any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)


def findings(top: Path) -> list[str]:
    """Return all violations of the rules in the package at `top`."""
    return sorted({*crowded_rooms(top), *shared_names(top), *silent_names(top), *poor_summaries(top)})
