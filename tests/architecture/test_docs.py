"""The documents agree with the tree: links lead somewhere, and invariants have their tests."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ADR = ROOT / "docs" / "adr"
NOT_OURS = {"build", "dist", "node_modules"}

CODE = re.compile(r"^ *(```+|~~~+).*?^ *\1 *$|(`+)(?!`).+?\2", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
NAMED_TEST = re.compile(r"\btests/[\w/.-]+\.py::\w+(?:::\w+)*")
SECTION = re.compile(r"^#+ .*\binvariants\b.*?$(.*?)(?=^#+ |\Z)", re.IGNORECASE | re.DOTALL | re.MULTILINE)
ITEM = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |\Z)", re.DOTALL | re.MULTILINE)


def pages(top: Path) -> list[Path]:
    """Return the Markdown files under `top` that are ours."""
    found = []
    for page in top.rglob("*.md"):
        parts = page.relative_to(top).parts
        if not any(part.startswith(".") or part in NOT_OURS for part in parts):
            found.append(page)
    return sorted(found)


def broken_links(page: Path) -> list[str]:
    """Return the relative links of a page that lead nowhere."""
    targets = LINK.findall(CODE.sub("", page.read_text()))
    paths = [target.partition("#")[0] for target in targets if "://" not in target]
    return [path for path in paths if path and not path.startswith("mailto:") and not (page.parent / path).exists()]


def unlisted(directory: Path) -> list[str]:
    """Return the records in `directory` that its README.md does not link to."""
    listed = set(LINK.findall((directory / "README.md").read_text()))
    return sorted({path.name for path in directory.glob("[0-9]*.md")} - listed)


def invariants(text: str) -> dict[int, list[str]]:
    """Return the tests that each numbered item under a heading "Invariants" names."""
    found: dict[int, list[str]] = {}
    for section in SECTION.findall(text):
        for number, item in ITEM.findall(section):
            found.setdefault(int(number), []).extend(NAMED_TEST.findall(item))
    return found


def is_test(name: str, top: Path) -> bool:
    """Whether `tests/path/test_x.py::test_name` (or `::TestClass::test_name`) exists."""
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
def test_relative_links_resolve(page: str) -> None:
    """A reader who follows a link arrives."""
    assert broken_links(ROOT / page) == []


def test_every_decision_is_in_the_index() -> None:
    """A record that is not listed is not found."""
    assert unlisted(ADR) == []


def test_decisions_are_numbered_without_gaps() -> None:
    """A number names one record for ever."""
    numbers = sorted(int(path.name[:4]) for path in ADR.glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_invariant_names_its_test() -> None:
    """ARCHITECTURE.md claims nothing that is not checked."""
    found = invariants((ROOT / "ARCHITECTURE.md").read_text())
    assert found, 'ARCHITECTURE.md has no numbered items under a heading "Invariants"'
    assert [number for number, tests in found.items() if not tests] == []


def test_every_test_named_in_the_documents_exists() -> None:
    """A renamed test is renamed where it is cited too."""
    cited = {(page, name) for page in pages(ROOT) for name in NAMED_TEST.findall(page.read_text())}
    missing = [f"{page.relative_to(ROOT)}: {name}" for page, name in cited if not is_test(name, ROOT)]
    assert sorted(missing) == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    """The checker tells a dead link from a live one, from a URL, and from an example in code."""
    page = tmp_path / "page.md"
    page.write_text(
        "[live](page.md#top) [dead](gone.md) [far](https://example.org/x) [here](#top)\n"
        '`[code](a.md)`\n\n```\n[code](b.md)\n```\n[dead too](no.md "titled")\n'
    )
    assert broken_links(page) == ["gone.md", "no.md"]


def test_an_unlisted_decision_is_seen(tmp_path: Path) -> None:
    """The checker finds the record that the index forgot."""
    for name in ("0001-listed.md", "0002-forgotten.md"):
        (tmp_path / name).touch()
    (tmp_path / "README.md").write_text("[0001](0001-listed.md), and 0002-forgotten.md unlinked")
    assert unlisted(tmp_path) == ["0002-forgotten.md"]


def test_an_invariant_without_a_test_is_seen(tmp_path: Path) -> None:
    """The checker finds items that name no test, and tests that are not there."""
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


def test_the_reference_is_made_from_the_code() -> None:
    """Every page of the reference is what `make docs` would write now."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, make in generate.PAGES.items():
        written = (ROOT / "docs" / "reference" / name).read_text(encoding="utf-8")
        assert written == make(), f"docs/reference/{name} is stale: make docs"
