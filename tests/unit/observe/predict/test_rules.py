"""The rules about commands: their examples, their source files, and the table that is compiled from them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.effects.predicted import TOUCH_KINDS
from outlive.observe.predict import conditions, rules_table
from outlive.observe.predict.predict import declare
from outlive.observe.predict.rule import find_program

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[4]
HOME = "/home/dev"


@pytest.fixture(scope="module")
def compiler() -> ModuleType:
    """Return the script `rules/compile.py` as a module. The script is in no package."""
    spec = importlib.util.spec_from_file_location("compile_rules", ROOT / "rules/compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def rules(compiler: ModuleType) -> list[dict[str, Any]]:
    """Read all rules from their source files."""
    return [rule for _, program in compiler.read_programs() for rule in program["rule"]]


def test_rules_table_is_compiled_from_the_files(compiler: ModuleType) -> None:
    """The compiled table is the one that `make rules` would write now."""
    assert compiler.compile_rules() == Path(rules_table.__file__).read_text(), "stale: run `make rules`"


def test_every_example_of_a_rule_holds(rules: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """For each example of a rule, exactly the paths that the example lists are touched."""
    monkeypatch.setenv("HOME", HOME)
    monkeypatch.delenv("TMPDIR", raising=False)
    differing = {}
    for text, _, expected in (example.rpartition("=>") for rule in rules for example in rule["examples"]):
        touches = declare(("/bin/sh", "-c", text.strip()), "/w").touches
        found = " ".join(f"{touch.kind}:{touch.what}" for touch in touches)
        if found != expected.strip().replace(":~", f":{HOME}"):
            differing[text] = found
    assert not differing


def test_every_rule_has_an_example_and_known_kinds(rules: list[dict[str, Any]]) -> None:
    """Every rule has an example, and names only kinds of touch that are in `TOUCH_KINDS`."""
    assert [rule for rule in rules if not rule["examples"]] == []
    assert {touch.partition(":")[0] for rule in rules for touch in rule["touches"].split()} <= set(TOUCH_KINDS)


def test_every_condition_of_a_rule_is_known(rules: list[dict[str, Any]]) -> None:
    """Each condition of a rule is one that the code knows.

    A condition is parsed at its first use, so a wrong name would be found late.
    """
    for text in {rule["asks"] for rule in rules} - {""}:
        conditions.parse(text)
    with pytest.raises(KeyError):
        conditions.parse("not no_such_condition")


def test_every_program_stands_in_one_table() -> None:
    """Every program is in one table only. An entry in a second table would never be used."""
    names = [name for row in rules_table.TABLE for name in row[1].split()]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_find_program_ignores_a_version() -> None:
    """`find_program` ignores a version: `python3.12` is found as `python`."""
    assert find_program("python3.12") is find_program("python") is not None
    assert find_program("prettier@3") is find_program("prettier") is not None
    assert find_program("no-such-program") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[program]\n", "wrong.toml: Expected"),
        ("[[programs]]\n", "wrong.toml: unknown key `programs`; known are program"),
        ('[[program]]\nnames = "x y"\ntakse = "-a"\n', "wrong.toml: x y: unknown key `takse`; known are names"),
        ('[[program]]\nnames = ["x"]\n', "`names` must be str, and is list"),
        ('[[program]]\nnames = "x"\n[[program.rule]]\nalso = 1\n', "wrong.toml: x: `also` must be bool, and is int"),
    ],
)
def test_compile_names_the_file_of_a_mistake(
    compiler: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    """For a mistake in a rule, the compiler's message names the file, the program and the key."""
    (tmp_path / "wrong.toml").write_text(text)
    monkeypatch.setattr(compiler, "HERE", tmp_path)
    with pytest.raises(compiler.BadRuleError) as caught:
        compiler.compile_rules()
    assert message in str(caught.value)
