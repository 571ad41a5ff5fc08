"""The metadata of the package: version, dependencies and installed files."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.+!-]+)")


def pins() -> dict[str, str]:
    """Return constraints.txt as {name: version}. A line of another form fails the test."""
    found: dict[str, str] = {}
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pin = PIN.fullmatch(line)
            assert pin, f"constraints.txt: not of the form name==version: {line!r}"
            found[canonicalize_name(pin["name"])] = pin["version"]
    return found


def required(name: str, extras: frozenset[str]) -> set[str]:
    """Return the names of all packages that must be installed with a package.

    `name` is the package, and `extras` are the chosen extras.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(canonicalize_name(name), extras)]
    while todo:
        if (current := todo.pop()) in seen:
            continue
        seen.add(current)
        try:
            texts = metadata.requires(current[0]) or []
        except metadata.PackageNotFoundError:
            continue  # The tests do not install the packages of the extra `bench`, but they must be pinned too.
        for text in texts:
            wanted = Requirement(text)
            marker = wanted.marker
            if not marker or any(marker.evaluate({"extra": e}) for e in current[1] | {""}):
                todo.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return {found for found, _ in seen} - {canonicalize_name(name)}


def test_version_is_the_same_in_pyproject_and_in_the_package() -> None:
    """`outlive.__version__` equals the version in pyproject.toml."""
    module = ast.parse((ROOT / "src" / "outlive" / "__init__.py").read_text())
    assigned = {
        target.id: ast.literal_eval(statement.value)
        for statement in module.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    assert assigned["__version__"] == PROJECT["project"]["version"]


def test_dependencies_are_the_decided_packages() -> None:
    """The package has exactly the dependencies that have a decision record in docs/adr."""
    names = [Requirement(text).name for text in PROJECT["project"]["dependencies"]]
    assert names == ["apsw", "tree-sitter", "tree-sitter-bash"]


def test_extra_shell_exists_and_is_empty() -> None:
    """The extra `shell` still exists, but has no packages. So `pip install 'outlive[shell]'` still succeeds."""
    assert PROJECT["project"]["optional-dependencies"]["shell"] == []


def test_constraints_pin_every_installed_package() -> None:
    """constraints.txt pins a version of the build backend and of every direct or indirect dependency."""
    extras = frozenset(PROJECT["project"]["optional-dependencies"])
    backend = {Requirement(text).name for text in PROJECT["build-system"]["requires"]}
    assert (required("outlive", extras) | backend) - set(pins()) == set()


def test_pinned_packages_can_be_installed_on_the_oldest_python() -> None:
    """No pinned package needs a newer Python than the one in `requires-python`. Debian has this version."""
    oldest = PROJECT["project"]["requires-python"].removeprefix(">=") + ".0"
    names = {canonicalize_name(name) for name in pins()}
    found = {canonicalize_name(each.metadata["Name"]): each for each in metadata.distributions()}
    needs = {name: str(each.metadata.json.get("requires_python", "")) for name, each in found.items() if name in names}
    assert {name: text for name, text in needs.items() if not SpecifierSet(text).contains(oldest)} == {}


def test_repository_has_no_lock_file_and_names_no_package_index() -> None:
    """No file of the repository is a lock file or names a package index.

    The user who installs Outlive chooses the index.
    """
    for pattern in ("*.lock", "*-lock.*", "pylock*"):
        assert list(ROOT.glob(pattern)) == []
    for name in ("constraints.txt", "pyproject.toml", "Makefile", ".ci/run"):
        text = (ROOT / name).read_text()
        assert not re.search(r"index-url|extra-index|find-links|trusted-host|tool\.uv", text), name


def test_start_script_is_executable_and_begins_with_the_python_line() -> None:
    """The start script is executable and begins with `#!python`.

    Installers replace this line with the interpreter's path, and keep the file executable.
    """
    script = ROOT / "bin" / "outlive"
    assert script.read_text().startswith("#!python\n")
    assert os.access(script, os.X_OK)
    assert "scripts" not in PROJECT["project"]


def test_wheel_installs_the_manual_page() -> None:
    """The wheel installs the manual page at share/man/man1, where `man outlive` finds it."""
    shared = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    assert shared == {"docs/reference/outlive.1": "share/man/man1/outlive.1"}
    page = (ROOT / "docs/reference/outlive.1").read_text()
    assert page.splitlines()[1].startswith(".TH OUTLIVE 1 ")
    assert ".SS run\n" in page
