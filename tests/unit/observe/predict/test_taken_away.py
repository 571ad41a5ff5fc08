"""Commands whose text moves or removes files, and whether it also restores them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from outlive.domain.effects.predicted import may_take_away
from tests.git_steps import Worktree
from tests.unit.observe.predict.test_declared import of_text

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "text",
    [
        *(
            "git stash && make; git stash pop",
            "git stash push -u -m x; (make); git stash apply",
            "git stash -q; git stash pop",
            "trap 'git stash pop' EXIT; git stash; make",
        ),
        *("git checkout v1 && make && git checkout -", "git switch v1; make; git switch main", "git bisect run make"),
        *("mv a b; make; mv b a", "cp a /tmp/b; make > a; cp /tmp/b a", "sed -i s/a/b/ x; make; git checkout x"),
        *("git apply x; make; git apply -R x", "patch -p1 < x; make; patch -R -p1 < x", "git rebase -x make main"),
        "for v in 1 2; do git checkout v$v; make; done",
        *(
            "git reset --hard HEAD~1 && pytest; git reset --hard ORIG_HEAD",
            "git merge --no-commit a; git merge --abort",
        ),
        *("mv src{,.bak}; pytest; mv src{.bak,}", "tar cf x src; rm -rf src; pytest; tar xf x"),
        "tar -czf ../x.tgz src && rm -r src && pytest; tar --extract --file=../x.tgz",
        *("rm -rf src; pytest; git checkout src", "rm -r a/b && pytest; git restore a/b"),
        *("git revert -n HEAD && pytest; git reset --hard", "perl -pi -e s/a/b/ x; pytest; git reset --hard"),
        *("git rebase main || git rebase --abort", "sed -E -i s/a/b/ x; pytest; git reset -q --hard"),
    ],
)
def test_text_that_removes_and_restores_files_opens_a_window(text: str) -> None:
    """If a text removes files and restores them later, `opens_window` is true.

    The quick search `may_take_away` finds the text, too.
    """
    assert may_take_away(text)
    assert of_text(text).opens_window


@pytest.mark.parametrize(
    "text",
    [
        *("git stash", "git stash pop", "git checkout x", "mv a b; mv c d", "git stash list; git stash pop"),
        *("sed -i s/a/b/ x", "cd a && git checkout x; cd ../b && git checkout y"),
        *("git fetch && git reset --hard origin/main", "git reset -q; git add a; git reset -q b", "git merge a"),
        *("tar cf x src; tar xf x", "tar cf x src; rm -rf build; tar xf y", "rm -rf build; git checkout main"),
    ],
)
def test_text_that_does_not_restore_files_opens_no_window(text: str) -> None:
    """If a text does not restore the files that it changes, `opens_window` is false."""
    assert not of_text(text).opens_window


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("git stash", ["git stash"]),
        ("git stash push -u -- src && npm test", ["git stash push -u -- src"]),
        ("make; git checkout main && make", ["git checkout main"]),
        ("git checkout v1.0 -- src", ["git checkout v1.0 -- src"]),
        ("git checkout -b fix origin/main", ["git checkout -b fix origin/main"]),
        ("git switch -", ["git switch -"]),
        ("git bisect start HEAD v1 && make", ["git bisect start HEAD v1"]),
        ("git bisect run make test", ["git bisect run make test"]),
        ("git fetch && git reset --hard origin/main", ["git reset --hard origin/main"]),
        ("git clean -fdx", ["git clean -fdx"]),
        ("git restore .", ["git restore ."]),
        ("git rebase main", ["git rebase main"]),
        ("git pull --rebase --autostash", ["git pull --rebase --autostash"]),
        ("git pull --rebase", ["git pull --rebase"]),
        ("git pull -q --rebase=merges up main", ["git pull -q --rebase=merges up main"]),
        ("git read-tree -u --reset v1", ["git read-tree -u --reset v1"]),
        ("git checkout-index -af", ["git checkout-index -af"]),
        ("git sparse-checkout set docs", ["git sparse-checkout set docs"]),
        ("gh pr checkout 12 && npm test", ["gh pr checkout 12"]),
        ("bash -c 'sleep 9; git -C sub stash'; make", ["git -C sub stash"]),
        ("git stash; make; git stash pop", ["git stash"]),
        *((text, []) for text in ("git stash list", "git stash pop", "git stash show -p", "git stash drop")),
        *((text, []) for text in ("git checkout -b fix", "git switch -c fix", "git checkout", "git bisect log")),
        *((text, []) for text in ("git reset", "git reset --soft HEAD~1", "git clean -nd", "git clean -d -n -f")),
        *((text, []) for text in ("git restore --staged a", "git rebase --abort", "git pull", "git status")),
        *((text, []) for text in ("git pull --rebase=false", "git pull --no-rebase", "git merge x", "git revert HEAD")),
        *((text, []) for text in ("git cherry-pick v1", "git read-tree v1", "git checkout-index -a")),
        *((text, []) for text in ("git sparse-checkout list", "git sparse-checkout disable")),
        *((text, []) for text in ("echo git stash", "ssh host git stash", "gh pr list", "make clean")),
    ],
)
def test_commands_that_take_files_away_are_found(text: str, taken: list[str]) -> None:
    """`taken_away` finds every command that moves or removes files, even if its text restores them.

    The quick search `may_take_away` finds these texts, too.
    """
    assert [each.by for each in of_text(text).taken_away] == taken
    assert not taken or may_take_away(text)


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        *((text, ["src"]) for text in ("rm -rf src", "make && rm -r src/*", "mv src ../elsewhere", "mv -t .. src")),
        *((text, ["src"]) for text in ("cd docs && rm -rf ../src", "rm -r -- {src,build}", "rm --recursive src/")),
        ("rm -rf *", ["."]),
        ("rm -rf src/lib docs", ["src/lib", "docs"]),
        *((text, []) for text in ("rm -rf build", "rm -rf sr lib", "rm -rf *.egg-info build/*", "mv build src")),
        *((text, []) for text in ("rm src/a.py", "mv src/a.py b.py", "rm -rf $X", "ssh web rm -rf src")),
        *(
            (text, [])
            for text in ("mkdir x; rm -r x", "rm -rf ~/src", "rm -rf /nowhere/src", "cp -r src b", "rm -r ../src")
        ),
    ],
)
def test_directories_with_tracked_files_are_taken_away(tmp_path: Path, text: str, taken: list[str]) -> None:
    """A directory counts only if git tracks files in it, even if it has been removed already.

    Removing build outputs removes no tracked file.
    """
    top = tmp_path / "repo"
    Worktree(top).commit(**{"src/a.py": "1\n", "src/lib/b.py": "1\n", "docs/x": "1\n", ".gitignore": "build\n"})
    (top / "build/src").mkdir(parents=True)
    for _ in range(2):
        found = of_text(text, str(top)).taken_away
        assert [(each.kind, each.what) for each in found] == [("path", str(top / each)) for each in taken]
        assert not taken or may_take_away(text)
        shutil.rmtree(top / "src", ignore_errors=True)


def test_directory_may_be_taken_away_when_the_index_is_unreadable(tmp_path: Path) -> None:
    """If git's index cannot be read, any removed directory counts, because it may have tracked files."""
    Worktree(tmp_path).commit(**{"src/a.py": "1\n"})
    (tmp_path / ".git/index").write_bytes(b"broken")
    assert len(of_text("rm -rf build", str(tmp_path)).taken_away) == 1
