"""The truth test: the paths that an observed command was about to change are those that strace saw.

The same work is done twice in the same place, once observed and once traced; names that a program
makes up at random are left out on both sides.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.seccomp import is_known_machine
from outlive.observe.journal import read_journal

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

pytestmark = pytest.mark.skipif(
    not is_known_machine() or shutil.which("strace") is None, reason="needs strace, and calls that are known"
)

_CHANGING = "O_WRONLY|O_RDWR|O_CREAT|O_TRUNC"
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)")
_TEXT = re.compile(r'(AT_FDCWD(?:<[^>]*>)?|\d+<[^>]*>|"(?:[^"\\]|\\.)*"(?:\.\.\.)?)')
_RANDOM = re.compile(
    r"tmp_|\.tmp|/cc[A-Za-z0-9]{6}|/st[A-Za-z0-9]{6}$|/sed[A-Za-z0-9]{6}$|\.lock$|/t[A-Za-z0-9]{6}$|index\.stash\.\d+"
)
_NAMES = ("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat")
_MORE = ("rmdir", "mkdir", "mkdirat", "creat", "truncate", "mknod", "mknodat")

GIT = """
git init -q . && echo a > a && mkdir d && echo b > d/b && git add . && git commit -q -m one &&
echo c >> a && git stash push -q && git stash pop -q && git commit -q -a -m two &&
git checkout -q -b side HEAD~1 && git mv d/b d/c && git commit -q -m three && git checkout -q - && git tag v1 &&
git branch -D -q side && git worktree add -q wt HEAD && git worktree remove wt && rm -rf d
"""
FILES = """
mkdir -p src/deep && for i in 1 2 3 4 5; do echo $i > src/deep/f$i; done && tar cf all.tar src && rm -rf src &&
tar xf all.tar && cp -r src copy && sed -i s/3/three/ copy/deep/f3 && ln -s copy link && ln copy/deep/f1 hard &&
mv copy/deep/f2 moved && find copy -name 'f4' -delete && dd if=/dev/zero of=zeros bs=1k count=4 status=none &&
install -m 644 moved installed && touch moved && : > emptied && truncate -s 9 emptied
"""
BUILD = """
printf 'int f(void){return 1;}' > f.c && printf 'int f(void);int main(void){return f()-1;}' > m.c &&
cc -c f.c && cc -c m.c && ar rc lib.a f.o && cc -o prog m.o lib.a && ./prog
"""
THREADS = f"""{sys.executable} -B -c '
import os, threading
def work(n):
    for i in range(40):
        name = f"t{{n}}-{{i}}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY)); os.rename(name, name + "r"); os.unlink(name + "r")
ts = [threading.Thread(target=work, args=(n,)) for n in range(64)]
[t.start() for t in ts]; [t.join() for t in ts]'
"""


@pytest.mark.parametrize("work", [GIT, FILES, BUILD, THREADS], ids=["git", "files", "build", "threads"])
def test_nothing_is_missed_and_nothing_invented(bench: Bench, work: str) -> None:
    """Every path of every changing call, on both sides."""
    if "cc -c" in work and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    bench.env.update(
        GIT_AUTHOR_DATE="2026-01-01T00:00:00Z", GIT_COMMITTER_DATE="2026-01-01T00:00:00Z",
        **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "t"),
        **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "t@example.org"),
    )  # fmt: skip
    place = bench.root / "place"
    place.mkdir()
    task = bench.launch(work, "--cwd", str(place))
    assert bench.run("wait", task).returncode == 0, bench.ok("output", task)
    seen = _stable(_of_journal(bench.files(task).effects), str(place))
    shutil.rmtree(place)
    place.mkdir()
    trace = bench.root / "trace"
    subprocess.run(
        ["strace", "-f", "-y", "-s", "4096", "-o", str(trace), "-e", "trace=file,fchdir", "/bin/sh", "-c", work],
        cwd=place, env={**bench.env, "OUTLIVE_TASK": task}, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    truth = _stable(_of_trace(trace, str(place)), str(place))
    assert len(truth) > 5
    assert truth - seen == set()
    assert seen - truth == set()


def _stable(found: set[str], place: str) -> set[str]:
    """Of the place only, and without names that were made up."""
    inside = {path.removeprefix(place) for path in found if path.startswith(place + "/")}
    return {path for path in inside if not _RANDOM.search(path)}


def _of_journal(path: str) -> set[str]:
    found = set()
    for _, operation, _, *fields in read_journal(path):
        if operation in ("write", "rename", "remove", "mkdir", "make"):
            found.update(fields[1::2])
    return found


def _of_trace(path: Path, place: str) -> set[str]:
    """The paths of changing calls, whether or not they succeeded: so are those of the journal."""
    found = set()
    places: dict[str, str] = {}
    for line in path.read_text(errors="surrogateescape").splitlines():
        call = _CALL.match(re.sub(r" <unfinished \.\.\.>$", ") = ?", line))
        if call is None:
            continue
        process, name, arguments = call[1], call[2], call[3]
        here = places.get(process, place)
        if name == "chdir" and call[4] == "0":
            (places[process],) = _paths(name, arguments, here)
        if name == "fchdir":
            places[process] = arguments[arguments.index("<") + 1 : -1]
        if name in ("open", "openat", "openat2") and not re.search(_CHANGING, arguments):
            continue
        if name in ("open", "openat", "openat2", *_NAMES, *_MORE):
            found.update(_paths(name, arguments, here))
    return found


def _paths(name: str, arguments: str, place: str) -> set[str]:
    words = _TEXT.findall(arguments)
    base, found = place, []
    for word in words:
        if word.startswith('"'):
            text = word[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
            found.append(os.path.join(base, text))
            base = place
        elif "<" in word:
            base = word[word.index("<") + 1 : -1]
    wanted = [path.rstrip("/") for path in (found[1:] if name.startswith("symlink") else found)]
    return {os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path)) for path in wanted}
