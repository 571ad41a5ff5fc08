"""Tasks and commands that run while Outlive is upgraded or uninstalled.

Most tests use copies of the package and of apsw in their own directory. They replace a copy as an installer does: they
remove the old files and write the new ones. One test builds wheels and lets pip replace them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

import outlive
from outlive.domain.errors import NewerLedger
from outlive.ledger.open_ledger import SCHEMA_VERSION
from tests.hook_steps import SESSION, call, said
from tests.session_steps import begin, told, until
from tests.support import PATIENCE_S, is_alive, kill, open_files, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.session_steps import Clients
    from tests.support import Bench

# Modules that sleeping processes import when they wake. The next version in these tests has other names for them.
RENAMED = (
    "sdk.spawner.serve_launches",
    "hooks.wake.wait_for_change",
    "hooks.wake.claude_message",
    "keeper.take_over",
    "keeper.sink_process",
    "keeper.keeper",
    "keeper.spawn",
    "keeper.observation.observation",
    "keeper.supervise",
    "ledger.sinks",
    "service.notices.deliver",
    "service.notices.inbox",
    "service.tasks.wait_turn",
    "service.maintenance.reconcile",
    "service.notices.sink_transport",
    "service.notices.compose",
    "service.tasks.read",
)
# The end of the program with which keepers slept before `entry_points.py` existed. They had no copy of their code.
FORMER_WAKE = """sys.path[:0] = sys.argv[7:]
from outlive.quick_import import install
install()
from outlive.service.queue import wake
wake(int(note))
"""
FORMER_SPAWNER = (
    "import sys; sys.path[:0] = sys.argv[2:];"
    "from outlive.quick_import import install; install();"
    "from outlive.client.spawner import serve; serve(int(sys.argv[1]))"
)
NEXT_VERSION = "999.0"
CHANGES = ("deleted", "renamed", "migrated")
PYTHON = getattr(sys, "_base_executable", sys.executable)


class Installation:
    """A copy of Outlive that a test may upgrade or delete."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.place = bench.root / "packages"
        for module in (outlive, apsw):
            source = Path(module.__file__ or "").parent
            shutil.copytree(source, self.place / source.name, copy_function=_link)
        self._started: list[subprocess.Popen[str]] = []

    @property
    def env(self) -> dict[str, str]:
        """The environment variables with which Python imports this copy."""
        return {**self.bench.env, "PYTHONPATH": str(self.place)}

    def words(self, *words: str) -> list[str]:
        """Return the command line, as a list, that calls this copy."""
        return [PYTHON, "-S", "-m", "outlive", *words]

    def ok(self, *words: str) -> str:
        """Call this copy, which must succeed, and return its output."""
        done = subprocess.run(
            self.words(*words), env=self.env, cwd=self.bench.project, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def start(self, *words: str, **env: str) -> subprocess.Popen[str]:
        """Start a call of this copy and do not wait for it."""
        return self.start_program(self.words(*words), **env)

    def start_program(self, words: list[str], **env: str) -> subprocess.Popen[str]:
        """Start a program that uses this copy."""
        pipe = subprocess.PIPE
        self._started.append(
            subprocess.Popen(
                words, env={**self.env, **env}, cwd=self.bench.project, stdin=pipe, stdout=pipe, stderr=pipe, text=True
            )
        )
        return self._started[-1]

    def change(self, how: str) -> None:
        """Delete this copy, or put the next version in its place."""
        shutil.rmtree(self.place / "outlive")
        if how == "deleted":
            shutil.rmtree(self.place)
            return
        source = Path(outlive.__file__ or "").parent
        shutil.copytree(source, self.place / "outlive", copy_function=_link)
        _rename_modules(self.place / "outlive")
        if how == "migrated":
            opening = self.place / "outlive" / "ledger" / "open_ledger.py"
            text = opening.read_text()
            _replace(opening, re.sub(r"SCHEMA_VERSION = \d+", f"SCHEMA_VERSION = {SCHEMA_VERSION + 1}", text))
            migrations = self.place / "outlive" / "ledger" / "migrations"
            (migrations / f"{SCHEMA_VERSION + 1:04d}_next.sql").write_text("CREATE TABLE next_version (a TEXT);")

    def show(self, task: str, how: str) -> Any:
        """Return what `show` prints about a task. It is called with a version of Outlive that can read the task."""
        if how == "migrated":
            return json.loads(self.ok("show", task, "--json"))
        return self.bench.show(task)

    def until_ended(self, task: str, how: str) -> Any:
        """Wait until a task has ended, and return what `show` prints about it.

        While this function waits, it only reads the ledger, because a command would settle the task.
        """
        wait_until(lambda: _has_ended(self.bench, task, how), "the end of the task")
        return self.show(task, how)

    def clean(self) -> None:
        """Kill the processes that the test has left running."""
        for each in self._started:
            if each.poll() is None:
                each.kill()
            each.communicate()


def _rename_modules(package: Path) -> None:
    """Rename the modules of `RENAMED` in a copy of the package."""
    pattern = re.compile(r"outlive\.(" + "|".join(map(re.escape, RENAMED)) + r")\b")
    for path in package.rglob("*.py"):
        text = path.read_text()
        if pattern.search(text):
            _replace(path, pattern.sub(r"outlive.\1_renamed", text))
    for name in RENAMED:
        path = package / (name.replace(".", "/") + ".py")
        path.rename(path.with_name(f"{path.stem}_renamed.py"))


def _link(source: str, target: str) -> None:
    """Make a hard link of a file instead of a copy.

    This is possible because tests replace files and never write to them.
    """
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _replace(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def _has_ended(bench: Bench, task: str, how: str) -> bool:
    try:
        row = bench.row(task)
    except NewerLedger:
        assert how == "migrated"
        database = apsw.Connection(bench.home.ledger, flags=apsw.SQLITE_OPEN_READONLY)
        database.set_busy_timeout(5000)
        query = "SELECT count(*) FROM attempt WHERE task = ? AND settled_at IS NULL"
        return bool(next(database.execute(query, (task,)))[0] == 0)
    return row.current.settled_at is not None


class Wheels:
    """Wheels of two versions.

    In the second version, the modules of `RENAMED` have other names.
    """

    def __init__(self, place: Path) -> None:
        root, tree = Path(__file__).resolve().parents[2], place / "tree"
        for name in ("src", "bin", "docs/reference"):
            shutil.copytree(root / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy2(root / name, tree)
        self.first = self._build(tree, place / "first")
        _rename_modules(tree / "src" / "outlive")
        for name in ("pyproject.toml", "src/outlive/__init__.py"):
            text = (tree / name).read_text()
            _replace(tree / name, text.replace(f'"{outlive.__version__}"', f'"{NEXT_VERSION}"', 1))
        self.second = self._build(tree, place / "second")

    def _build(self, tree: Path, place: Path) -> Path:
        pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(place), str(tree))
        (wheel,) = place.glob("outlive-*.whl")
        return wheel


def pip(*words: str) -> None:
    """Call pip without the network. The call must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *words],
        env={**os.environ, "PIP_CONFIG_FILE": os.devnull, "SOURCE_DATE_EPOCH": "1700000000"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    """Build wheels of the present version and of the next version."""
    return Wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture
def installation(bench: Bench) -> Iterator[Installation]:
    """Yield a copy of Outlive, and kill its processes afterwards."""
    made = Installation(bench)
    yield made
    made.clean()


def until_asleep(bench: Bench, pid: int) -> None:
    """Wait until a process has opened the file to which it copied Outlive's code."""
    wait_until(lambda: any(f"{bench.home.path}/code/" in path for path in open_files(pid)), "the copy of the code")


def until_keeper_sleeps(bench: Bench, task: str) -> None:
    """Wait until the keeper of a queued task sleeps in a new, small interpreter."""
    keeper = bench.keeper(task)
    wait_until(lambda: any("outlive-note" in path for path in open_files(keeper)), "the sleep of the keeper")


@pytest.mark.parametrize("how", CHANGES)
def test_queued_task_runs_when_the_installation_changes(bench: Bench, installation: Installation, how: str) -> None:
    """A task that waits for a lock begins and ends as usual, even if Outlive was upgraded or deleted meanwhile."""
    holder = installation.ok("run", "--lock", "l", until("go"))
    waiting = installation.ok("run", "--lock", "l", "echo mine; exit 7")
    until_keeper_sleeps(bench, waiting)
    installation.change(how)
    if how == "migrated":
        installation.ok("list")  # The first command of the next version changes the ledger.
    (bench.project / "go").touch()
    shown = installation.until_ended(waiting, how)
    assert (shown["state"], shown["exit_code"], shown["settled_by"]) == ("failed", 7, "keeper")
    assert shown["output"]["tail"] == "mine\n"
    assert installation.show(holder, how)["exit_code"] == 0


def test_queued_task_runs_when_its_keeper_slept_before_the_modules_moved(
    bench: Bench, installation: Installation
) -> None:
    """If a keeper sleeps during an upgrade, it wakes by a function's former name, and its task runs."""
    sleep = installation.place / "outlive" / "keeper" / "hibernate.py"
    text = sleep.read_text()
    _replace(sleep, text[: text.index("sys.path[:0]")] + FORMER_WAKE + text[text.index('""".replace(') :])
    holder = installation.ok("run", "--lock", "l", until("go"))
    waiting = installation.ok("run", "--lock", "l", "echo mine; exit 7")
    until_keeper_sleeps(bench, waiting)
    installation.change("renamed")
    (bench.project / "go").touch()
    shown = installation.until_ended(waiting, "renamed")
    assert (shown["state"], shown["exit_code"], shown["settled_by"]) == ("failed", 7, "keeper")
    assert installation.show(holder, "renamed")["exit_code"] == 0


def test_program_of_the_first_version_can_start_a_spawner(bench: Bench, installation: Installation) -> None:
    """A program of the first version can start a helper process of the next version, by its former name.

    The helper process launches tasks, and ends when the program closes the socket.
    """
    ours, theirs = socket.socketpair()
    words = [PYTHON, "-S", "-c", FORMER_SPAWNER, str(theirs.fileno()), str(installation.place)]
    with ours, theirs:
        done = subprocess.run(
            words, env=bench.env, pass_fds=(theirs.fileno(),), capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_task_is_retried_when_the_installation_changes(bench: Bench, installation: Installation, how: str) -> None:
    """If Outlive is upgraded or deleted during a first attempt, the keeper still makes the second attempt."""
    task = installation.ok("run", "--retries", "1", f"[ -e go ] && exit 0; {until('go')}; exit 1")
    keeper = bench.keeper(task)
    until_asleep(bench, keeper)
    installation.change(how)
    (bench.project / "go").touch()
    shown = installation.until_ended(task, how)
    assert [attempt["exit_code"] for attempt in shown["attempts"]] == [1, 0]
    assert shown["settled_by"] == "keeper"


def test_queued_task_fails_when_no_code_is_left_to_start_it(bench: Bench, installation: Installation) -> None:
    """If Outlive and the copy of its code are gone, a queued task fails with `installation_gone`, and `retry` works."""
    holder = installation.ok("run", "--lock", "l", until("go"))
    waiting = installation.ok("run", "--lock", "l", "echo mine")
    until_keeper_sleeps(bench, waiting)
    installation.change("deleted")
    for copy in Path(bench.home.path, "code").iterdir():
        copy.write_bytes(b"")
    (bench.project / "go").touch()
    bench.run("wait", holder)
    shown = wait_until(lambda: (found := bench.show(waiting))["state"] != "queued" and found, "the end of the task")
    assert (shown["state"], shown["reason"], shown["started_at"]) == ("failed", "installation_gone", None)
    assert "outlive retry" in bench.ok("show", waiting)
    bench.ok("retry", waiting)
    assert bench.run("wait", waiting).returncode == 0
    assert bench.ok("output", waiting) == "mine"


def test_changed_copy_of_the_code_is_not_run(bench: Bench, installation: Installation) -> None:
    """If the copy of the code that waiting keepers share was overwritten, they run the installed code instead."""
    installation.ok("run", "--lock", "l", until("go"))
    waiting = installation.ok("run", "--lock", "l", "echo mine")
    until_keeper_sleeps(bench, waiting)
    (copy,) = Path(bench.home.path, "code").iterdir()
    with copy.open("r+b") as file:
        file.write(b"\0" * copy.stat().st_size)
    (bench.project / "go").touch()
    assert bench.run("wait", waiting).returncode == 0
    assert bench.ok("output", waiting) == "mine"


def test_keepers_of_one_version_share_one_copy_of_the_code(bench: Bench, installation: Installation) -> None:
    """Keepers of one version share one copy of the code, and their tasks run after an upgrade.

    A keeper of the next version replaces the copy by its own.
    """
    installation.ok("run", "--lock", "l", until("go"))
    waiting = [installation.ok("run", "--lock", "l", "true") for _ in range(2)]
    for task in waiting:
        until_keeper_sleeps(bench, task)
    (first,) = Path(bench.home.path, "code").iterdir()
    installation.change("renamed")
    later = installation.ok("run", "--lock", "l", "true")
    until_keeper_sleeps(bench, later)
    (second,) = Path(bench.home.path, "code").iterdir()
    assert first.name != second.name
    assert second.stat().st_mode & 0o777 == 0o600
    (bench.project / "go").touch()
    assert bench.run("wait", *waiting, later).returncode == 0


@pytest.mark.parametrize("how", ["upgraded", "uninstalled"])
def test_queued_and_retried_tasks_run_when_pip_changes_the_wheel(bench: Bench, wheels: Wheels, how: str) -> None:
    """If pip upgrades or uninstalls Outlive while two keepers sleep, their tasks run, and both endings are reported."""
    venv = bench.root / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", "--system-site-packages", str(venv)], check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "apsw").symlink_to(Path(apsw.__file__ or "").parent)
    into = ("--python", str(venv / "bin" / "python"))
    pip(*into, "install", "--no-deps", "--no-index", str(wheels.first))

    def ok(*words: str) -> str:
        command = [str(venv / "bin" / "outlive"), *words]
        return subprocess.run(
            command, env=bench.env, cwd=bench.project, capture_output=True, text=True, check=True
        ).stdout.strip()

    ok("session", "begin", "--session", "s-1")
    options = ("--session", "s-1")
    ok("run", *options, "--notify", "never", "--lock", "l", until("go"))
    waiting = ok("run", *options, "--lock", "l", "echo mine; exit 7")
    retried = ok("run", *options, "--retries", "9", f"[ -e go ] && exit 0; {until('failed')}; exit 1")
    until_keeper_sleeps(bench, waiting)
    keeper = bench.keeper(retried)
    (bench.project / "failed").touch()
    wait_until(lambda: any("outlive-note" in path for path in open_files(keeper)), "the pause before the retry")
    os.kill(keeper, signal.SIGSTOP)  # Pip may take longer than the pause before the retry.
    if how == "upgraded":
        pip(*into, "install", "--no-deps", "--no-index", "--no-compile", "--upgrade", str(wheels.second))
        assert ok("--version").split()[-1] == NEXT_VERSION
    else:
        pip(*into, "uninstall", "--yes", "outlive")
        assert not (site / "outlive").exists()
    (bench.project / "go").touch()
    os.kill(keeper, signal.SIGCONT)
    for task in (waiting, retried):
        wait_until(lambda task=task: bench.row(task).current.settled_at, "the end of the task")  # type: ignore[misc]
    shown = bench.show(waiting)
    assert (shown["state"], shown["exit_code"], shown["settled_by"]) == ("failed", 7, "keeper")
    assert shown["output"]["tail"] == "mine\n"
    *failed, last = [attempt["exit_code"] for attempt in bench.show(retried)["attempts"]]
    assert (set(failed), last) == ({1}, 0)
    assert set(told(bench, "s-1")) == {waiting, retried}


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_waiting_commands_answer_when_the_installation_changes(
    bench: Bench, installation: Installation, clients: Clients, how: str
) -> None:
    """If Outlive is upgraded or deleted, `wait`, `output --follow` and the hook of an idle session still answer.

    They continue with the code that they began with.
    """
    env = {"CLAUDE_PID": clients.start(), "CLAUDE_CODE_ENTRYPOINT": "cli"}
    said(call(bench, "claude", "SessionStart", source="startup", env=env))
    task = bench.launch(f"echo first; {until('go')}; echo last; exit 3", "--session", SESSION)
    hook = installation.start("hook", "claude", "Wake", **env)
    assert hook.stdin is not None
    hook.stdin.write(json.dumps({"session_id": SESSION, "cwd": str(bench.project), "source": "startup"}))
    hook.stdin.close()
    hook.stdin = None
    waiter = installation.start("wait", task, "--no-ack")
    follower = installation.start("output", task, "--follow")
    for each in (hook, waiter, follower):
        until_asleep(bench, each.pid)
    installation.change(how)
    (bench.project / "go").touch()
    assert follower.communicate(timeout=PATIENCE_S)[0] == "first\nlast\n"
    assert task in waiter.communicate(timeout=PATIENCE_S)[0]
    assert waiter.returncode == 1
    assert f"n{task}01ended" in hook.communicate(timeout=PATIENCE_S)[1]
    assert hook.returncode == 2


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_followed_inbox_prints_a_later_ending_when_the_installation_changes(
    bench: Bench, installation: Installation, how: str
) -> None:
    """If Outlive is upgraded or deleted, `inbox --follow` still prints later endings, even without a keeper."""
    begin(bench, "s-1")
    task = bench.launch(f"{until('go')}; exit 3", "--session", "s-1")
    follower = installation.start("inbox", "--session", "s-1", "--follow", "--json")
    until_asleep(bench, follower.pid)
    installation.change(how)
    bench.kill(task, "keeper")
    (bench.project / "go").touch()
    assert follower.stdout is not None
    document = json.loads(follower.stdout.readline())
    assert (document["task"]["id"], document["task"]["exit_code"]) == (task, 3)


_PROGRAM = """
import sys
sys.path[:0] = [sys.argv[1]]
from outlive import Outlive
client = Outlive(home=sys.argv[2])
print(client.run("exit 3").wait().exit_code, flush=True)
sys.stdin.readline()
try:
    print(client.run("exit 4").wait().exit_code, flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_program_launches_when_the_installation_changes(bench: Bench, installation: Installation, how: str) -> None:
    """If Outlive is upgraded, a program still launches tasks by the helper process that it started before."""
    program = installation.start_program([PYTHON, "-S", "-c", _PROGRAM, str(installation.place), str(bench.state)])
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "3\n"
    spawner = wait_until(lambda: _spawner_with_copy(bench), "the copy of the spawner")
    installation.change(how)
    program.stdin.write("\n")
    program.stdin.flush()
    assert program.stdout.readline() == "4\n"
    assert is_alive(spawner)


@pytest.mark.parametrize(("how", "expected"), [("deleted", "Unavailable"), ("renamed", "4")])
def test_program_without_a_spawner_starts_one_from_the_next_version(
    bench: Bench, installation: Installation, how: str, expected: str
) -> None:
    """A program that first launches a task after an upgrade starts a helper process of the next version.

    If Outlive was deleted, the launch fails, and the error says that the installation is gone.
    """
    program = installation.start_program([PYTHON, "-S", "-c", _PROGRAM, str(installation.place), str(bench.state)])
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "3\n"
    spawner = wait_until(lambda: _spawner_with_copy(bench), "the copy of the spawner")
    installation.change(how)
    kill(spawner)
    wait_until(lambda: not is_alive(spawner), "the end of the spawner")
    program.stdin.write("\n")
    program.stdin.flush()
    answer = program.stdout.readline()
    assert answer.startswith(expected)
    assert (how == "deleted") == ("installation" in answer)


def _spawner_with_copy(bench: Bench) -> int | None:
    for name in os.listdir("/proc"):
        if name.isdigit():
            opened = open_files(int(name))
            is_copied = any(f"{bench.home.path}/code/" in path for path in opened)
            if is_copied and any(path.startswith("/memfd:outlive-own") for path in opened):
                words = Path(f"/proc/{name}/cmdline").read_bytes()
                if b"serve_spawner" in words and not any(path.endswith("/control") for path in opened):
                    return int(name)
    return None


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_failed_delivery_is_tried_again_when_the_installation_changes(
    bench: Bench, installation: Installation, how: str
) -> None:
    """If a delivery fails before an upgrade, it is tried again after the upgrade."""
    script = "touch tried; [ -e go ] || exit 1; touch told"
    installation.ok("sink", "add", "s", "--run", f"cd {bench.project} && {script}")
    task = installation.ok("run", "exit 3")
    wait_until((bench.project / "tried").exists, "the first try")
    installation.change(how)
    (bench.project / "go").touch()
    wait_until((bench.project / "told").exists, "the second try")
    wait_until(lambda: bench.show(task)["notices"][0]["sinks"][0]["state"] == "delivered", "the record of the delivery")


@pytest.mark.parametrize("how", ["deleted", "renamed"])
def test_ending_is_delivered_when_the_installation_changes_before_it(
    bench: Bench, installation: Installation, how: str
) -> None:
    """An ending after an upgrade is delivered by the next version.

    If Outlive was deleted, the next command of another installation delivers the ending.
    """
    installation.ok("sink", "add", "s", "--run", f"touch {bench.project}/told")
    task = installation.ok("run", until("go"))
    keeper = bench.keeper(task)
    wait_until(lambda: bench.home.ledger in open_files(keeper), "the keeper to have the ledger open")
    installation.change(how)
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the end of the task")
    if how == "deleted":
        assert bench.show(task)["notices"][0]["sinks"][0]["state"] != "delivered"
        bench.ok("list")  # A command that reads the ledger starts the process that delivers notices.
    wait_until((bench.project / "told").exists, "the delivery")
