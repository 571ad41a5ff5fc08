"""The rules for the names of modules and for docstrings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.architecture.house_rules import SRC, findings

if TYPE_CHECKING:
    from pathlib import Path


def test_source_follows_the_rules_for_names_and_docstrings() -> None:
    """No package has too many modules, module names are unique and meaningful, and first lines have the right form."""
    assert findings(SRC) == []


def test_rules_report_each_kind_of_violation(tmp_path: Path) -> None:
    """A package that breaks each rule once gets one finding per rule, and modules named after commands get none."""
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
