"""The package's description of itself: one version, complete pins, no word about where they are."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.+!-]+)")


def pins() -> dict[str, str]:
    """Return constraints.txt as {name: version}, refusing lines of any other form."""
    found: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pin = PIN.fullmatch(line)
            assert pin, f"constraints.txt: not of the form name==version: {line!r}"
            found[canonicalize_name(pin["name"])] = pin["version"]
    return found


def required(name: str, extras: frozenset[str]) -> set[str]:
    """Return the names of everything that installing `name` with `extras` brings along here."""
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(canonicalize_name(name), extras)]
    while todo:
        if (current := todo.pop()) in seen:
            continue
        seen.add(current)
        try:
            texts = metadata.requires(current[0]) or []
        except metadata.PackageNotFoundError:
            continue  # of the extra `bench`, which the tests do not install: its own name is pinned all the same
        for text in texts:
            wanted = Requirement(text)
            marker = wanted.marker
            if not marker or any(marker.evaluate({"extra": e}) for e in current[1] | {""}):
                todo.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return {found for found, _ in seen} - {canonicalize_name(name)}


def test_the_version_is_one() -> None:
    """pyproject.toml and `outlive.__version__` say the same, read without importing."""
    module = ast.parse((ROOT / "src" / "outlive" / "__init__.py").read_text())
    assigned = {
        target.id: ast.literal_eval(statement.value)
        for statement in module.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    assert assigned["__version__"] == PROJECT["project"]["version"]


def test_apsw_is_the_only_dependency() -> None:
    """A second one would be a decision, and a decision has a record in docs/adr."""
    names = [Requirement(text).name for text in PROJECT["project"]["dependencies"]]
    assert names == ["apsw"]


def test_everything_installed_is_pinned() -> None:
    """constraints.txt leaves no version to the day of installation."""
    extras = frozenset(PROJECT["project"]["optional-dependencies"])
    backend = {Requirement(text).name for text in PROJECT["build-system"]["requires"]}
    assert (required("outlive", extras) | backend) - set(pins()) == set()


def test_no_lock_file_and_no_index() -> None:
    """Where packages come from is the business of whoever installs them."""
    for pattern in ("*.lock", "*-lock.*", "pylock*"):
        assert list(ROOT.glob(pattern)) == []
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        text = (ROOT / name).read_text()
        assert not re.search(r"index-url|extra-index|find-links|trusted-host|tool\.uv", text), name


def test_the_start_script_can_be_installed() -> None:
    """Installers know the script by its first line, and keep its mode."""
    script = ROOT / "bin" / "outlive"
    assert script.read_text().startswith("#!python\n")
    assert os.access(script, os.X_OK)
    assert "scripts" not in PROJECT["project"]
