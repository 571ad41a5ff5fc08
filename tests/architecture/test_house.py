"""Tests that modules, docstrings and test files follow the rules in `house_rules`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.architecture.house_rules import SRC, findings, long_files, misplaced_tests, unclear_help

if TYPE_CHECKING:
    from pathlib import Path


def test_source_follows_the_rules_for_names_and_docstrings() -> None:
    """Packages are small, module names are unique and say something, and docstrings have the right first lines."""
    assert findings(SRC) == []


def test_rules_report_each_kind_of_violation(tmp_path: Path) -> None:
    """A package that breaks each rule once gets one finding for each rule.

    Modules named after commands get no finding.
    """
    top = tmp_path / "pkg"
    (top / "room").mkdir(parents=True)
    for number in range(21):
        (top / "room" / f"m{number}.py").touch()
    (top / "room" / "run.py").touch()
    (top / "run.py").touch()
    (top / "m1.py").write_text(f'"""{"A" * 81}"""\n')
    (top / "met.py").write_text(
        'def a():\n    """The thing."""\n\n'
        'class B:\n    """A thing."""\n\n    def c(self):\n        """Return it."""\n\n'
        '    @property\n    def d(self):\n        """The other thing."""\n'
    )
    assert findings(top) == [
        "crowded: pkg/room",
        "long summary: m1.py:module",
        "no verb: met.py:a",
        "same name: m1: m1.py room/m1.py",
        "says nothing: met.py",
    ]


def test_help_of_each_command_begins_with_a_verb_and_names_its_subjects() -> None:
    """The help of each command begins with a verb, and does not contain `nobody` or `whoever`."""
    assert list(unclear_help()) == []


def test_test_files_are_short() -> None:
    """No test file has more than 600 lines."""
    assert list(long_files(SRC.parents[1] / "tests")) == []


def test_folders_of_tests_have_the_names_of_packages() -> None:
    """Each folder of unit and integration tests has the name of a package, and has at most 20 files."""
    assert list(misplaced_tests(SRC.parents[1] / "tests", SRC)) == []


def test_folder_without_a_package_and_a_crowded_folder_are_found(tmp_path: Path) -> None:
    """`misplaced_tests` reports a folder that has no package of the same name, and a folder with 21 files."""
    for package in ("", "room"):
        (tmp_path / "src" / package).mkdir()
        (tmp_path / "src" / package / "__init__.py").touch()
    for folder in ("unit/room", "integration/room", "integration/gone"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_x.py").touch()
    for number in range(20):
        (tmp_path / "tests" / "unit" / "room" / f"test_{number}.py").touch()
    assert list(misplaced_tests(tmp_path / "tests", tmp_path / "src")) == [
        "crowded: unit/room",
        "no such package: integration/gone",
    ]


def test_long_files_are_found_in_every_folder(tmp_path: Path) -> None:
    """`long_files` reports a file of 601 lines, and does not report a file of 600 lines."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "long.py").write_text("x = 1\n" * 601)
    (tmp_path / "short.py").write_text("x = 1\n" * 600)
    assert list(long_files(tmp_path)) == [("deep/long.py", 601)]
