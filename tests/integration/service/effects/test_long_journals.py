"""Running tasks that changed many files: guard and gate answer correctly, and with bounded work."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from outlive.domain.effects.replay.replay import Replay
from outlive.ledger.sqlite import SqliteLedger
from outlive.linux.seccomp import is_known_machine
from outlive.observe import path_state
from outlive.observe.journal import is_bare
from outlive.service.clock import utc_now
from outlive.service.effects.guard import answer_for_command, answer_for_paths, answer_lines
from outlive.service.effects.open_windows import MOST_COMPARED, OpenWindows
from outlive.service.sessions.gate import gate
from tests.git_steps import ENVIRON, Worktree
from tests.integration.service.effects.test_left_open import failed, hook, settle_in_the_past
from tests.session_steps import begin, until
from tests.support import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from outlive.service.effects.guard import Answer
    from tests.support import Bench

pytestmark = pytest.mark.skipif(not is_known_machine(), reason="the calls of this machine are not known")
FILES = 400
CHANGE = "import sys; [open(f'src/f{n}', 'w').write(sys.argv[1]) for n in range(400)]"
QUIET = {"outlive.ledger.sqlite", "outlive.observe.predict.rule"}


@pytest.fixture
def repo(bench: Bench) -> Path:
    """Make a repository with many committed files."""
    bench.env.update({name: each for name, each in ENVIRON.items() if name.startswith("GIT_")})
    Worktree(bench.project).commit(**{"other.py": "one\n", **{f"src/f{number}": "one" for number in range(FILES)}})
    return bench.project


def change_all(bench: Bench, then: str) -> str:
    """Launch a task that changes all files, and wait until all changes are recorded."""
    task = bench.launch(f'{sys.executable} -c "{CHANGE}" two; {then}')
    wait_until(lambda: b"src/f399" in _content(bench, task), "the task's changes in the journal")
    return task


def _content(bench: Bench, task: str) -> bytes:
    path = bench.files(task).effects
    if not os.path.exists(path):
        return b""
    with open(path, "rb") as file:
        return file.read()


class Work:
    """The number of recorded changes that were evaluated, and the number of paths that were compared."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines = self.compared = 0
        line, pin = Replay._line, path_state.pin

        def count_line(replay: Replay, *words: Any) -> None:
            self.lines += 1
            line(replay, *words)

        def count_pin(*words: Any) -> Any:
            self.compared += 1
            return pin(*words)

        monkeypatch.setattr(Replay, "_line", count_line)
        monkeypatch.setattr(path_state, "pin", count_pin)


def asked(bench: Bench, *, path: str = "", command: str = "") -> Answer:
    """Return the answer of the guard for a path or a command, as a hook gets it."""
    with SqliteLedger(bench.home.ledger, utc_now()) as ledger:
        held = OpenWindows(bench.home, ledger, None, MOST_COMPARED)
        if path:
            return answer_for_paths(bench.home, held, [str(bench.project / path)])
        return answer_for_command(bench.home, held, tuple(command.split()), str(bench.project))


def test_guard_answers_for_one_path_with_bounded_work(
    bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one path, the guard evaluates few recorded changes, and compares few paths with their first state.

    The answer has the number of paths that were not compared.
    """
    task = change_all(bench, until("go"))
    work = Work(monkeypatch)
    (holder,) = asked(bench, path="src/f7").holders
    assert (holder.task, f"{repo}/src/f7" in holder.window.paths) == (task, True)
    assert holder.unchecked >= FILES - 2 * MOST_COMPARED
    assert asked(bench, path="other.py").is_clear
    assert asked(bench, command="cat other.py").is_clear
    assert work.lines < 6 * MOST_COMPARED
    assert work.compared < 8 * MOST_COMPARED
    (holder,) = asked(bench, command="git status").holders
    assert len(holder.window.paths) + holder.unchecked == FILES
    assert work.lines < 12 * MOST_COMPARED


def test_guard_answers_unknown_when_not_all_paths_were_compared(bench: Bench, repo: Path) -> None:
    """The guard answers `unknown` if the compared paths are restored, but others were not compared."""
    task = change_all(bench, until("go"))
    for number in range(FILES):
        (repo / f"src/f{number}").write_text("one")
    answer = asked(bench, command="git status")
    assert ([each.task for each in answer.unsure], answer.is_clear) == ([task], False)
    (line,) = answer_lines(answer, utc_now(), str(repo))
    assert line.startswith(f"cannot tell whether task {task} holds a path: 300 paths that it has changed there were")
    assert asked(bench, path="src/f7").is_clear, "a query for one path did not compare this path"
    assert bench.json("guard", ".")["clear"], "the command did not compare all paths"


def test_gate_compares_a_few_paths_of_a_running_task(bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a running task, the gate compares few paths. Its text has the number of paths that were not compared."""
    begin(bench, "s-1")
    task = change_all(bench, until("go"))
    work = Work(monkeypatch)
    found = gate(bench.home, "s-1", str(repo), None).windows
    assert [(each, len(window.paths), window.uncompared) for each, window in found.windows] == [
        (task, MOST_COMPARED, FILES - MOST_COMPARED)
    ]
    assert max(work.lines, work.compared) < 5 * MOST_COMPARED
    assert f"and up to {FILES - MOST_COMPARED} that were not compared" in bench.run("gate", "--session", "s-1").stdout


def test_gate_compares_a_few_paths_of_a_failed_task(bench: Bench, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a failed task, the gate compares few paths, and reads them from the ledger alone."""
    begin(bench, "s-1")
    task = failed(bench, f'{sys.executable} -c "{CHANGE}" two; exit 1')
    work = Work(monkeypatch)
    found = gate(bench.home, "s-1", str(repo), None).windows
    assert [(each, len(window.paths), window.uncompared) for each, window in found.windows] == [
        (task, MOST_COMPARED, FILES - MOST_COMPARED)
    ]
    assert (work.lines, work.compared < 3 * MOST_COMPARED) == (0, True)


@pytest.mark.parametrize("is_quiet", [True, False])
def test_hook_opens_no_ledger_while_a_task_changes_only_other_files(
    bench: Bench, repo: Path, *, is_quiet: bool
) -> None:
    """If a running task changes only other files, the hook for an edit or a read of a file does not open the ledger."""
    task = bench.launch(until("go")) if is_quiet else change_all(bench, until("go"))
    wait_until(lambda: _content(bench, task), "the first lines of the journal")
    assert is_bare(bench.files(task).effects) == is_quiet
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    for tool, given in (("Edit", {"file_path": str(repo / "other.py")}), ("Bash", {"command": "cat other.py"})):
        told, loaded = hook(bench, tool, **given)
        assert (told, loaded & QUIET) == ("", set()), tool
    told, _ = hook(bench, "Edit", file_path=str(repo / "src/f7"))
    assert (f"task {task} has changed" in told) is not is_quiet


def test_hook_opens_no_ledger_for_a_command_that_reads_one_file_after_a_failure(bench: Bench, repo: Path) -> None:
    """After a failure, the hook for `cat` and `sed` does not open the ledger. These name every file that they read."""
    failed(bench, "echo two > src/f7; exit 1")
    settle_in_the_past(bench)
    hook(bench, "Edit", file_path=str(repo / "other.py"))
    told, loaded = hook(bench, "Bash", command="cat other.py")
    assert (told, loaded & QUIET) == ("", set())
    told, loaded = hook(bench, "Bash", command="sed -n 1,5p other.py")
    assert (told, "outlive.ledger.sqlite" in loaded) == ("", False)
    assert "left src/f7 changed" in hook(bench, "Bash", command="cat src/f7")[0]
    assert "left src/f7 changed" in hook(bench, "Bash", command="git status", session="s-2")[0]
