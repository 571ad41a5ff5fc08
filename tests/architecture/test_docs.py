"""The documents: links, decision records, cited tests and the reference."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from typing import is_typeddict

import pytest

from outlive.sdk import documents

ROOT = Path(__file__).resolve().parents[2]
ADR = ROOT / "docs" / "adr"
NOT_OURS = {"build", "dist", "node_modules"}

CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$|(`+)(?!`).+?\2", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED_TEST = re.compile(r"\btests/[\w/.-]+\.py::\w+(?:::\w+)*")
SECTION = re.compile(r"^#+ .*\binvariants\b.*?$(.*?)(?=^#+ |\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", re.DOTALL | re.MULTILINE)


def pages(top: Path) -> list[Path]:
    """Return the Markdown files under `top`, without those of other projects."""
    found = []
    for page in top.rglob("*.md"):
        parts = page.relative_to(top).parts
        if not any(part.startswith(".") or part in NOT_OURS for part in parts):
            found.append(page)
    return sorted(found)


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page whose targets do not exist."""
    targets = LINK.findall(CODE.sub("", page.read_text()))
    paths = [target.partition("#")[0] for target in targets if "://" not in target]
    return [path for path in paths if path and not path.startswith("mailto:") and not (page.parent / path).exists()]


def unlisted(directory: Path) -> list[str]:
    """Return the decision records in `directory` that its README.md does not link to."""
    listed = set(LINK.findall((directory / "README.md").read_text()))
    return sorted({path.name for path in directory.glob("[0-9]*.md")} - listed)


def invariants(text: str) -> dict[int, list[str]]:
    """Return each numbered item under a heading "Invariants", with the tests that it names."""
    found: dict[int, list[str]] = {}
    for section in SECTION.findall(text):
        for number, item in ITEM.findall(section):
            found.setdefault(int(number), []).extend(NAMED_TEST.findall(item))
    return found


def is_test(name: str, top: Path) -> bool:
    """Return whether a test with this name exists.

    A name is `tests/path/test_x.py::test_name` or `tests/path/test_x.py::TestClass::test_name`.
    """
    path, *names = name.split("::")
    if not (top / path).is_file():
        return False
    body: list[ast.stmt] = ast.parse((top / path).read_text()).body
    for wanted in names:
        for statement in body:
            if (
                isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and statement.name == wanted
            ):
                body = statement.body
                break
        else:
            return False
    return names[-1].startswith("test")


@pytest.mark.parametrize("page", [str(page.relative_to(ROOT)) for page in pages(ROOT)])
def test_page_has_no_broken_relative_links(page: str) -> None:
    """The target of each relative link exists."""
    assert broken_links(ROOT / page) == []


def test_index_of_decisions_lists_every_record() -> None:
    """docs/adr/README.md links to every decision record."""
    assert unlisted(ADR) == []


def test_decision_records_are_numbered_without_gaps() -> None:
    """The numbers of the records begin with 1, and each number occurs once."""
    numbers = sorted(int(path.name[:4]) for path in ADR.glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_invariant_of_the_architecture_names_a_test() -> None:
    """Each numbered invariant in ARCHITECTURE.md cites at least one test."""
    found = invariants((ROOT / "ARCHITECTURE.md").read_text())
    assert found, 'ARCHITECTURE.md has no numbered items under a heading "Invariants"'
    assert [number for number, tests in found.items() if not tests] == []


def test_documents_cite_only_tests_that_exist() -> None:
    """Every test that a document cites exists."""
    cited = {(page, name) for page in pages(ROOT) for name in NAMED_TEST.findall(page.read_text())}
    missing = [f"{page.relative_to(ROOT)}: {name}" for page, name in cited if not is_test(name, ROOT)]
    assert sorted(missing) == []


def test_architecture_table_names_existing_packages_and_functions() -> None:
    """The table in ARCHITECTURE.md lists every package with three functions or files, and all of them exist."""
    rows = re.findall(r"^\| `([a-z/]+)` \|[^|]*\| (.*) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    for package, starts in rows:
        names = re.findall(r"`([^`]+)`", starts)
        assert len(names) >= 3, package
        for name in names:
            if not (ROOT / "src/outlive" / package / name).exists():
                module, *attributes = name.split(".")
                found = importlib.import_module(".".join(["outlive", *package.split("/"), module]))
                for attribute in attributes:
                    found = getattr(found, attribute)
    packages = {
        str(path.parent.relative_to(ROOT / "src/outlive"))
        for path in (ROOT / "src/outlive").rglob("[!_]*.py")
        if path.parent.name not in ("outlive", "domain", "service")
    }
    assert packages == {package for package, _ in rows}


def test_broken_links_are_found_among_other_links(tmp_path: Path) -> None:
    """`broken_links` reports missing files, and ignores URLs, anchors, existing files and links inside code."""
    page = tmp_path / "page.md"
    page.write_text(
        "[live](page.md#top) [dead](gone.md) [far](https://example.org/x) [here](#top)\n"
        '`[code](a.md)`\n\n```\n[code](b.md)\n```\n[dead too](no.md "titled")\n'
    )
    assert broken_links(page) == ["gone.md", "no.md"]


def test_unlisted_decision_records_are_found(tmp_path: Path) -> None:
    """`unlisted` reports a record that README.md mentions without a link."""
    for name in ("0001-listed.md", "0002-forgotten.md"):
        (tmp_path / name).touch()
    (tmp_path / "README.md").write_text("[0001](0001-listed.md), and 0002-forgotten.md unlinked")
    assert unlisted(tmp_path) == ["0002-forgotten.md"]


def test_invariants_without_an_existing_test_are_found(tmp_path: Path) -> None:
    """`invariants` finds items that cite no test, and `is_test` rejects names that are no tests."""
    found = invariants(
        "# A\n1. not an invariant\n## Invariants\nSome words.\n"
        "1. One. `tests/a/test_x.py::test_one`,\n   `tests/a/test_x.py::TestY::test_two`\n"
        "2. Two, unproved: tests/a/test_x.py\n## After\n3. not one either\n"
    )
    first, second = "tests/a/test_x.py::test_one", "tests/a/test_x.py::TestY::test_two"
    assert found == {1: [first, second], 2: []}

    (tmp_path / "tests" / "a").mkdir(parents=True)
    (tmp_path / "tests" / "a" / "test_x.py").write_text(
        "def test_one(): ...\nclass TestY:\n    def test_two(self): ...\ndef support(): ...\n"
    )
    assert is_test(first, tmp_path)
    assert is_test(second, tmp_path)
    assert not is_test("tests/a/test_x.py::test_two", tmp_path)
    assert not is_test("tests/a/test_x.py::support", tmp_path)
    assert not is_test("tests/a/test_z.py::test_one", tmp_path)


def test_reference_pages_are_current() -> None:
    """Each page in docs/reference equals the page that `make docs` would write."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, make in generate.PAGES.items():
        written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert written == make(), f"docs/reference/{name} is stale: make docs"


def test_every_type_of_a_json_document_has_a_docstring() -> None:
    """Every type of `outlive.sdk.documents` has a docstring of its own, and the reference has no docstring of Python.

    A type that is written as a call has no docstring, unless its `__doc__` is set.
    """
    kinds = {name: kind for name, kind in vars(documents).items() if is_typeddict(kind)}
    assert "AgentDocument" in kinds
    assert [name for name, kind in kinds.items() if not kind.__doc__] == []
    assert str(inspect.getdoc(dict)) not in (ROOT / "docs/reference/sdk.md").read_text()
