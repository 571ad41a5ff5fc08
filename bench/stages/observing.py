"""The stage that measures how much observing file changes slows down a command.

The same command is run unobserved, observed by Outlive, and under strace. The results are ratios, so the runs
alternate. The commands are real work:

- a C program is built;
- Outlive's unit tests are run;
- about 460 packages with 9,000 files are installed from npm's cache;
- 500 files of a repository of 5,000 files are stashed and popped;
- an archive of 20,000 files is unpacked, and the files are removed;
- files are read. Reading is not observed, so it should cost nothing.

Each command has its own directory, and the removal of many files comes last. When some file systems create a file, they
first skip the inodes that were freed within the last minutes, one by one. This would cost more than observing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from measure import Samples

from outlive import Outlive

if TYPE_CHECKING:
    from collections.abc import Callable

    from outlive.domain.tasks.task import Observe

GOALS = {
    "C build": 1.05,
    "test suite": 1.05,
    "npm ci": 1.15,
    "stash of 500 of 5,000": 1.6,
    "tar x of 20,000": 2.2,
    "rm -rf of 20,000": 2.2,
    "reading 100,000 files": 1.05,
}
_REMOVAL = "rm -rf of 20,000"
_RUNS = 9
_FILES, _DIRTY, _UNPACKED, _SOURCES = 5000, 500, 20_000, 30
_OURSELVES = Path(__file__).parents[2]
_LOCKED = ("package.json", "package-lock.json")
_DEPENDENCIES = {"eslint": "8.57.1", "express": "4.21.2", "jest": "29.7.0", "webpack": "5.97.1"}
_NPM = "--ignore-scripts --silent --no-audit --no-fund --cache ../npm-cache"


class Observed(NamedTuple):
    """The measured times of each command: unobserved, observed, and under strace.

    The times under strace are missing if strace is not installed.
    """

    plain: dict[str, Samples]
    observed: dict[str, Samples]
    traced: dict[str, Samples]


def observing(place: Path, share: float, say: Callable[[str], None]) -> Observed:
    """Run every command unobserved, observed and under strace, in turns."""
    say("observing: preparing 5,000 files, an archive of 20,000, a program")
    root = place / "observing"
    root.mkdir()
    _prepare(root)
    works = _works()
    if shutil.which("npm") is None or not _has_packages(root / "app"):
        say("observing: no packages from npm here, so no `npm ci`")
        del works["npm ci"]
    client = Outlive(home=str(place / "observing-home"))
    found = Observed(*({name: Samples() for name in works} for _ in range(3)))
    runs = max(3, int(_RUNS * share))
    say(f"observing: {_REMOVAL}, unpacking the files to remove")
    places = {(number, way): _unpacked(root, f"{number}-{way}") for number in range(runs) for way in range(3)}
    for number in range(runs):
        say(f"observing: run {number + 1} of {runs}")
        for name, command in works.items():
            if name != _REMOVAL:
                _in_every_way(client, found, name, command, lambda way: _laid_out(root, name, f"{number}-{way}"))  # noqa: B023 - the lambda runs at once
    for number in range(runs):
        say(f"observing: {_REMOVAL}, run {number + 1} of {runs}")
        _in_every_way(client, found, _REMOVAL, works[_REMOVAL], lambda way: places[number, way])  # noqa: B023 - the lambda runs at once
    return found


def _in_every_way(client: Outlive, found: Observed, name: str, command: str, place_for: Callable[[int], Path]) -> None:
    """Run one command once in each way: unobserved, observed, and under strace."""
    for way, (ways, how, prefix) in enumerate(_ways(found)):
        place = place_for(way)
        os.sync()  # files that are not written to the disk yet could be removed faster
        task = client.run(prefix + f"'{command}'" if prefix else command, cwd=place, observe=how).wait()
        if task.exit_code != 0:
            raise RuntimeError(f"{name}: {task.output()[-200:]!r}")
        took = task.as_dict()["duration_s"]
        if took is None:
            raise RuntimeError(f"{name}: the task has ended without a duration")
        ways[name].add(took)


def _laid_out(root: Path, name: str, mark: str) -> Path:
    """Return a new directory for one run of a command.

    Its content is the same whether the run is unobserved, observed or under strace.
    """
    if name == "test suite":
        return _OURSELVES
    if name == "stash of 500 of 5,000":
        return root / "repo"
    place = root / f"{name.split(maxsplit=1)[0]}-{mark}"
    if name == "C build":
        shutil.copytree(root / "prog", place)
    else:
        place.mkdir()
    if name == "npm ci":
        for file in _LOCKED:
            shutil.copy(root / "app" / file, place)
    return place


def _ways(found: Observed) -> list[tuple[dict[str, Samples], Observe, str]]:
    ways: list[tuple[dict[str, Samples], Observe, str]] = [(found.plain, "off", ""), (found.observed, "syscalls", "")]
    if shutil.which("strace"):
        ways.append((found.traced, "off", "exec strace -f --seccomp-bpf -e trace=%file -o /dev/null /bin/sh -c "))
    return ways


def _works() -> dict[str, str]:
    return {
        "C build": "make -s -j2 all",
        # The seed of the random test examples is fixed. With other examples, the tests could take longer.
        "test suite": f"{sys.executable} -m pytest -q --hypothesis-seed=1 tests/unit",
        "npm ci": f"npm ci --offline {_NPM}",
        "stash of 500 of 5,000": "git stash push -q && git stash pop -q",
        "tar x of 20,000": "tar xf ../many.tar",
        "reading 100,000 files": "for turn in 1 2 3 4 5; do find ../many -type f -exec cat {} + > /dev/null; done",
        _REMOVAL: "rm -rf many",
    }


def _prepare(root: Path) -> None:
    _prepare_program(root / "prog")
    _prepare_repository(root / "repo")
    many = root / "many"
    for number in range(_UNPACKED):
        (many / f"d{number % 100}").mkdir(parents=True, exist_ok=True)
        (many / f"d{number % 100}" / f"f{number}").write_text("x" * 100)
    subprocess.run(["tar", "cf", "many.tar", "many"], cwd=root, check=True)


def _prepare_program(program: Path) -> None:
    program.mkdir()
    for number in range(_SOURCES):
        body = "".join(f"int f{number}_{i}(int x){{return x*{i}+{number};}}\n" for i in range(300))
        (program / f"s{number}.c").write_text(body)
    (program / "main.c").write_text("int main(void){return 0;}\n")
    rules = ["o := $(patsubst %.c,%.o,$(wildcard *.c))", "all: $o", "\t$(CC) -o prog $o", "%.o: %.c"]
    (program / "Makefile").write_text("\n".join((*rules, "\t$(CC) -O1 -c $<", "")))


def _has_packages(app: Path) -> bool:
    """Create a Node.js application and fetch its dependencies into npm's cache.

    Returns False if they cannot be fetched.
    """
    app.mkdir()
    (app / "package.json").write_text(json.dumps({"name": "app", "version": "1.0.0", "dependencies": _DEPENDENCIES}))
    steps = (f"npm install --package-lock-only {_NPM}", f"npm ci {_NPM}")
    return all(subprocess.run(step.split(), cwd=app, check=False).returncode == 0 for step in steps)


def _prepare_repository(repo: Path) -> None:
    for number in range(_FILES):
        (repo / f"d{number % 50}").mkdir(parents=True, exist_ok=True)
        (repo / f"d{number % 50}" / f"f{number}").write_text(f"{number}\n" * 40)
    _git(repo, ("init", "-q"), ("config", "user.name", "b"), ("config", "user.email", "b@example.org"))
    _git(repo, ("add", "."), ("commit", "-q", "-m", "all"))
    for number in range(_DIRTY):
        with (repo / f"d{number % 50}" / f"f{number}").open("a") as file:
            file.write("more\n")


def _git(repo: Path, *commands: tuple[str, ...]) -> None:
    for words in commands:
        subprocess.run(["git", *words], cwd=repo, check=True)


def _unpacked(root: Path, mark: str) -> Path:
    """Create a directory with 20,000 files, and return its path."""
    place = root / f"rm-{mark}"
    place.mkdir()
    subprocess.run(["tar", "xf", "../many.tar"], cwd=place, check=True)
    return place
