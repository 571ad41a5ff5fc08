"""Searching a long record of changes for the lines that concern some paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from outlive.domain.effects.replay.replay import Replay
from outlive.observe.journal import escaped, fields_of
from outlive.observe.search_journal import JournalSearch, around_of, as_written, names_any

if TYPE_CHECKING:
    from outlive.domain.effects.left_open import LeftPath

ABSENT = "0"
NAMES = st.sampled_from(["a", "b", "x\ty"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: "/r/" + "/".join(names))
STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "remove", "mkdir", "rename", "exec", "final", "look"]), PATHS, PATHS),
    max_size=25,
)


class Tree:
    """A tree of files that a task changes. For each change, there is a line of the record."""

    def __init__(self) -> None:
        self.held = {"/r": "d1", "/r/a": "d2", "/r/a/a": "fa", "/r/a/b": "d3", "/r/a/b/a": "fb", "/r/b": "fc"}
        self.lines = ["1\tbegin\t0\t-\t/r\t/r/.git\t\n", "2\texec\t7\t-\tmake all\t\t\n"]
        self._count = 10

    def state_of(self, path: str, _: str = "") -> str:
        """Return the present state of a path."""
        return self.held.get(path, ABSENT)

    def step(self, operation: str, path: str, other: str) -> None:
        """Do one operation and add its line, if the operation is possible."""
        now, is_parent_there = self.state_of(path), self.state_of(path.rpartition("/")[0])[:1] == "d"
        self._count += 1
        if operation == "exec":
            self._tell("exec", "-", f"sed -i {path}", "0", thread=str(self._count % 3 + 7))
        elif operation in ("final", "look"):
            self._tell(operation, now, path)
        elif operation == "write" and is_parent_there and now[:1] != "d":
            self._tell("write", now, path)
            self.held[path] = f"f{self._count % 4}" if self._count % 3 else "fa"
        elif operation == "mkdir" and is_parent_there and now == ABSENT:
            self._tell("mkdir", now, path)
            self.held[path] = f"d{self._count}"
        elif operation == "remove" and now != ABSENT and not self._inside(path):
            self._tell("remove", now, path)
            del self.held[path]
        elif operation == "rename":
            self._rename(path, other)

    def _rename(self, source: str, target: str) -> None:
        was, there = self.state_of(source), self.state_of(target)
        is_possible = was != ABSENT and self.state_of(target.rpartition("/")[0])[:1] == "d"
        is_inside, is_replaced = f"{target}/".startswith(source + "/"), there != ABSENT
        if not is_possible or is_inside or there[:1] == "d" or is_replaced == (was[:1] == "d"):
            return
        self._tell("rename", was, source, there, target)
        for path in (source, *self._inside(source)):
            self.held[target + path[len(source) :]] = self.held.pop(path)

    def _inside(self, path: str) -> list[str]:
        return [each for each in self.held if each.startswith(path + "/")]

    def _tell(self, operation: str, *fields: str, thread: str = "") -> None:
        words = map(escaped, fields)
        self.lines.append("\t".join((str(self._count), operation, thread or str(self._count % 3 + 7), *words)) + "\n")


def left(lines: list[list[str]], tree: Tree) -> dict[str, LeftPath]:
    """Return the paths that a task left changed, according to some lines of its record."""
    replay = Replay("/home/outlive", "/home/outlive/worktrees")
    replay.read(lines)
    return {each.path: each for each in replay.left_open(tree.state_of)}


@given(STEPS)
def test_journal_search_finds_the_same_left_paths_as_the_whole_journal(steps: list[tuple[str, str, str]]) -> None:
    """For each path, a search and an evaluation of all lines agree on whether, since when and by whom it is changed."""
    tree = Tree()
    for step in steps:
        tree.step(*step)
    whole = left(list(fields_of(tree.lines)), tree)
    search = JournalSearch(["".join(tree.lines).encode()], "/home/outlive", "/home/outlive/worktrees")
    changed = {above for path in search.changed for above in around_of(path)}
    for path in {*whole, *tree.held, *(path for _, path, _ in steps)}:
        lines = search.lines_about([as_written(path)])
        assert lines is not None
        assert left(lines, tree).get(path) == whole.get(path), path
        if path in whole:
            assert changed & {as_written(path), *around_of(as_written(whole[path].name))} or any(
                each in changed for each in map(as_written, whole)
            ), path


def test_journal_search_finds_changes_in_the_worktrees_of_agents() -> None:
    """A changed path in Outlive's state directory is found only if it is in the worktree of an agent."""
    own, worktree = "/home/outlive/tasks/t/output", "/home/outlive/worktrees/t/x"
    lines = ["1\tbegin\t0\t-\t/home\t/home/.git\t\n", *(f"2\twrite\t7\tfa\t{path}\n" for path in (own, worktree))]
    search = JournalSearch(["".join(lines).encode()], "/home/outlive", "/home/outlive/worktrees")
    assert search.changed == [worktree.encode()]


@given(STEPS)
def test_names_any_misses_no_change_that_a_search_finds(steps: list[tuple[str, str, str]]) -> None:
    """`names_any`, which looks only at bytes, finds every line that the exact search finds."""
    tree = Tree()
    for step in steps:
        tree.step(*step)
    text = "".join(tree.lines).encode()
    search = JournalSearch([text], "/home/outlive", "/home/outlive/worktrees")
    for path in (as_written(path) for _, path, _ in steps):
        if any(above in search.changed for above in around_of(path)):
            assert names_any(text, [path, b"/elsewhere/x"]), path


def test_names_any_finds_changes_at_above_and_below_a_path() -> None:
    """`names_any` finds changes of a path, above it and below it.

    A path that only begins with the same letters is not found.
    """
    lines = ["1\tbegin\t0\t-\t/r\t/r/.git\t\n", "2\texec\t7\t-\tcat /r/d/f\t/r/e\t0\n", "3\twrite\t7\tfa\t/r/d/f\n"]
    text = "".join([*lines, "4\trename\t7\td1\t/r/x\t0\t/r/y\n"]).encode()
    for found in (b"/r", b"/r/d", b"/r/d/", b"/r/d/f", b"/r/d/f/below", b"/r/x/a", b"/r/y", b"/r/y/a/b"):
        assert names_any(text, [b"/r/d/other", found]), found
    for other in (b"/r/d/fa", b"/r/d/", b"/r/e", b"/r/xa", b"/q/d/f", b"/r/d/g/f"):
        assert names_any(text, [other]) == (other == b"/r/d/"), other


def test_search_skips_lines_that_were_not_written_to_their_end() -> None:
    """A line that was not written to its end is skipped. It ends with a zero byte, or has no end."""
    text = (
        b"1\tbegin\t0\t-\t/r\t/r/.git\t\n2\twrite\t7\tfa\t/r/torn\0\n3\twrite\t7\tfa\t/r/whole\n4\twrite\t7\tfa\t/r/ha"
    )
    assert JournalSearch([text], "/home/outlive", "/home/outlive/worktrees").changed == [b"/r/whole"]
