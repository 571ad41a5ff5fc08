"""The stop hook of a headless session, which waits until the tasks of the session have ended."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any

import pytest

from outlive.hooks.clients import gemini
from outlive.hooks.state.session_files import word
from tests.hook_steps import SESSION, call, context, ended, launch, said, state
from tests.session_steps import until
from tests.support import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support import Bench

STAYS = [sys.executable, "-c", "import time; time.sleep(600)"]


class Session:
    """A client that was started for one prompt, with a method that calls its stop hook."""

    def __init__(self, bench: Bench, *words: str, stdin: IO[str] | None = None) -> None:
        self.bench = bench
        self.client = subprocess.Popen([*STAYS, *(words or ("-p", "do it"))], stdin=stdin)
        self.env = {"CLAUDE_PID": str(self.client.pid)}
        self._started: list[subprocess.Popen[str]] = []

    def stop(self, env: dict[str, str] | None = None, **fields: Any) -> subprocess.Popen[str]:
        """Start the stop hook, as the client does at the end of a turn."""
        hook = subprocess.Popen(
            self.bench.command("hook", "claude", "Stop"),
            env={**self.bench.env, **self.env, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(hook)
        assert hook.stdin is not None
        hook.stdin.write(json.dumps({"session_id": SESSION, "cwd": str(self.bench.project), **fields}))
        hook.stdin.close()
        hook.stdin = None
        return hook

    def sleeper(self, **fields: Any) -> subprocess.Popen[str]:
        """Start a stop hook, and wait until it sleeps because a task runs."""
        hook = self.stop(**fields)
        wait_until(lambda: word(self.bench.home, SESSION, "sleeper") == str(hook.pid), "the hook that sleeps")
        return hook

    def answer(self, hook: subprocess.Popen[str]) -> str:
        """Wait until a stop hook exits without error, and return its text for the model."""
        out, err = hook.communicate(timeout=PATIENCE_S)
        assert (hook.returncode, err) == (0, "")
        return context(json.loads(out)) if out else ""

    def clean(self) -> None:
        """Kill the hooks and the client."""
        for hook in self._started:
            if hook.poll() is None:
                hook.kill()
            hook.communicate()
        self.client.kill()
        self.client.wait()


@pytest.fixture
def session(bench: Bench) -> Iterator[Session]:
    """Yield a headless session that has begun."""
    found = Session(bench)
    said(call(bench, "claude", "SessionStart", source="startup", env=found.env))
    yield found
    found.clean()


def test_stop_hook_reports_all_endings_together_when_no_task_runs(bench: Bench, session: Session) -> None:
    """The stop hook reports all endings together when no task runs any more. Then it lets the session stop.

    So the model needs one turn for any number of tasks.
    """
    tasks = [launch(bench, until(f"go-{number}")) for number in range(3)]
    hook = session.sleeper()
    for number, task in enumerate(tasks):
        (bench.project / f"go-{number}").touch()
        wait_until(lambda task=task: bench.row(task).current.settled_at, "the ending")  # type: ignore[misc]
    told = session.answer(hook)
    assert [told.count(f"n{task}01ended") for task in tasks] == [1, 1, 1]
    assert session.answer(session.stop(stop_hook_active=True)) == ""
    assert {state(bench, task) for task in tasks} == {"acked"}


def test_stop_hook_reports_the_first_failure_at_once_and_the_rest_together(bench: Bench, session: Session) -> None:
    """The stop hook reports the first failure at once, and the other endings together when no task runs any more.

    The failure may change what the model does next.
    """
    rest = [launch(bench, until("go")), launch(bench, f"{until('second')}; exit 4")]
    first = ended(bench, "exit 3")
    told = session.answer(session.stop())
    assert f"n{first}01ended" in told
    assert not any(task in told for task in rest)
    hook = session.sleeper(stop_hook_active=True)
    for name, task in zip(("second", "go"), reversed(rest), strict=True):
        (bench.project / name).touch()
        wait_until(lambda task=task: bench.row(task).current.settled_at, "the ending")  # type: ignore[misc]
    told = session.answer(hook)
    assert all(f"n{task}01ended" in told for task in rest)


@pytest.mark.parametrize("ceiling", ["300ms", "0"])
def test_stop_hook_lets_the_session_stop_at_the_ceiling_and_does_not_wait_again(
    bench: Bench, session: Session, ceiling: str
) -> None:
    """The stop hook waits once per turn, for at most `OUTLIVE_HEADLESS_WAIT`, and then reports the endings so far.

    The ending of a task that still runs is reported to the session that continues this one.
    """
    ended_one, endless = ended(bench), launch(bench, "sleep 600")
    env = {"OUTLIVE_HEADLESS_WAIT": ceiling}
    told = session.answer(session.stop(env))
    assert f"n{ended_one}01ended" in told
    assert endless not in told
    assert session.answer(session.stop({"OUTLIVE_HEADLESS_WAIT": "1h"}, stop_hook_active=True)) == ""
    bench.run("cancel", endless)
    assert state(bench, endless) == "pending"


def test_stop_hook_exits_without_a_report_when_its_client_died(bench: Bench, session: Session) -> None:
    """If the client died, its stop hook exits without output, and the notice stays pending."""
    task = launch(bench, until("go"))
    hook = session.sleeper()
    session.client.kill()
    session.client.wait()
    assert session.answer(hook) == ""
    (bench.project / "go").touch()
    wait_until(lambda: bench.row(task).current.settled_at, "the ending")
    assert state(bench, task) == "pending"


def test_stop_hook_exits_when_a_newer_stop_hook_of_the_session_sleeps(bench: Bench, session: Session) -> None:
    """If a session has two stop hooks, the older hook exits, and the newer hook reports the ending."""
    task = launch(bench, until("go"))
    older = session.sleeper()
    newer = session.sleeper()
    assert session.answer(older) == ""
    (bench.project / "go").touch()
    assert f"n{task}01ended" in session.answer(newer)


def test_stop_hook_does_not_wait_for_tasks_whose_success_is_not_reported(bench: Bench, session: Session) -> None:
    """The stop hook does not wait for tasks with `--notify failure` or `--notify never`."""
    tasks = [launch(bench, "sleep 600", "--notify", how) for how in ("failure", "never")]
    assert session.answer(session.stop()) == ""
    for task in tasks:
        bench.run("cancel", task)


def test_stop_hook_names_a_quiet_server_once_and_does_not_wait_for_it(bench: Bench, session: Session) -> None:
    """The stop hook names a quiet server once and does not wait for it.

    A quiet server is a task that listens on a port and has printed no output for a minute.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    task = launch(bench, f"exec {sys.executable} -m http.server --bind 127.0.0.1 {port}")

    def answers() -> bool:
        with socket.socket() as line:
            return line.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers, "the server")
    os.utime(bench.files(task).output, (0, 0))
    told = session.answer(session.stop())
    assert f"task {task}" in told
    assert f"listens on port {port}" in told
    assert f"outlive cancel {task}" in told
    assert session.answer(session.stop(stop_hook_active=True)) == ""
    gate = bench.json("gate", "--session", SESSION)
    assert (gate["may_stop"], gate["servers"]) == (True, [{"task": task, "port": port}])
    bench.run("cancel", task)


SERVER = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print('up', flush=True); time.sleep(600)"


def test_stop_hook_recognises_a_server_without_the_environment_of_its_task(bench: Bench, session: Session) -> None:
    """The stop hook recognises a server by its process, even if the process lacks the variables of its task.

    The server has cleared its environment, or was adopted.
    """
    bare = launch(bench, f'exec env -i {sys.executable} -c "{SERVER}"')
    with (bench.project / "log").open("wb") as log:
        adopted_one = subprocess.Popen([sys.executable, "-c", SERVER], stdout=log, cwd=bench.project)
    try:
        wait_until(lambda: (bench.project / "log").read_text() == "up\n", "the server that is adopted")
        adopted = bench.ok("adopt", str(adopted_one.pid), "--session", SESSION).strip()
        for task in (bare, adopted):
            output = bench.files(task).output
            wait_until(lambda output=output: os.stat(output).st_size, "the server's output")  # type: ignore[misc]
            os.utime(output, (0, 0))
        told = session.answer(session.stop({"OUTLIVE_HEADLESS_WAIT": "20s"}))
        assert all(f"task {task} " in told for task in (bare, adopted))
        bench.run("cancel", bare, adopted)
    finally:
        adopted_one.kill()
        adopted_one.wait()


@pytest.mark.parametrize(
    ("option", "is_prompt"),
    [
        *(("-p", True), ("--prompt", True), ("--prompt=do", True), ("-p=do", True), ("-yp", True), ("-dsyp", True)),
        *(("-i", False), ("--prompt-interactive", False), ("-py", False), ("-mp", False), ("p", False), ("-", False)),
    ],
)
def test_gives_prompt_finds_the_option_of_gemini_also_behind_other_options(option: str, is_prompt: bool) -> None:
    """`gives_prompt` finds the option `-p` of Gemini CLI even if it is joined to other short options, as in `-yp`.

    It does not take the value of an option, as in `-mp`, for the option `-p`.
    """
    assert gemini.gives_prompt(option) is is_prompt


@pytest.mark.parametrize(
    "waits",
    [
        "cd /tmp && outlive wait TASK --no-ack",
        "if outlive wait TASK; then make; fi",
        "while ! outlive wait TASK --timeout 1m; do date; done",
        "outlive gate --wait",
    ],
)
def test_stop_hook_does_not_wait_when_the_client_waits_in_the_background(
    bench: Bench, session: Session, waits: str
) -> None:
    """The stop hook does not wait if the client itself waits for the task with a background command.

    The client continues when its own wait ends. A second wait would cost a turn.
    """
    task = launch(bench, "sleep 600")
    shell = {"id": "b1", "type": "shell", "status": "running", "command": waits.replace("TASK", task)}
    assert session.answer(session.stop({"OUTLIVE_HEADLESS_WAIT": "10s"}, background_tasks=[shell])) == ""
    assert not word(bench.home, SESSION, "sleeper")
    bench.run("cancel", task)


def test_stop_hook_waits_for_the_default_time_when_the_setting_is_no_duration(bench: Bench, session: Session) -> None:
    """If `OUTLIVE_HEADLESS_WAIT` is not a duration, the stop hook waits for the default time and reports the ending.

    Stderr has an error about the setting.
    """
    task = launch(bench, until("go"))
    hook = session.stop({"OUTLIVE_HEADLESS_WAIT": "10 minutes"})
    wait_until(lambda: word(bench.home, SESSION, "sleeper") == str(hook.pid), "the hook that sleeps")
    (bench.project / "go").touch()
    out, err = hook.communicate(timeout=PATIENCE_S)
    assert f"n{task}01ended" in context(json.loads(out))
    assert "OUTLIVE_HEADLESS_WAIT: '10 minutes' is not a duration" in err
    assert state(bench, task) == "presented"


def test_stop_hook_waits_when_the_client_reads_its_prompts_from_a_file(bench: Bench, tmp_path: Path) -> None:
    """The stop hook waits if the client reads its prompts from a file, because nobody will add a prompt.

    With a watcher process instead, Claude Code would wait half a minute for the watcher before it exits.
    """
    (tmp_path / "prompts").write_text("{}")
    with (tmp_path / "prompts").open() as prompts:
        session = Session(bench, "-p", "--input-format", "stream-json", stdin=prompts)
    try:
        said(call(bench, "claude", "SessionStart", source="startup", env=session.env))
        task = launch(bench, until("go"))
        assert said(call(bench, "claude", "Wake", env=session.env)) == {}
        hook = session.sleeper()
        (bench.project / "go").touch()
        assert f"n{task}01ended" in session.answer(hook)
    finally:
        session.clean()


@pytest.mark.parametrize(
    ("client", "event", "fields"),
    [("gemini", "AfterAgent", {}), ("opencode", "session.idle", {"is_one_turn": True})],
)
@pytest.mark.parametrize("is_client", [True, False], ids=["a client", "another program"])
def test_stop_hook_waits_when_its_client_is_process_1(
    bench: Bench, tmp_path: Path, client: str, event: str, fields: dict[str, Any], *, is_client: bool
) -> None:
    """The stop hook waits if its client is process 1, as in a container.

    If another program is process 1, it is not taken for the client.
    """
    first = ["unshare", "-pf", "--mount-proc", sys.executable]
    if subprocess.run([*first, "-c", ""], capture_output=True, check=False).returncode:
        pytest.skip("cannot make a PID namespace here")
    program = tmp_path / (client if is_client else "init")
    payload = json.dumps({"session_id": SESSION, "cwd": str(bench.project), **fields})
    launches = bench.command("run", "--session", SESSION, "sleep 1; exit 3")
    program.write_text(
        "import subprocess\n"
        f"subprocess.run({launches}, check=True, stdout=subprocess.DEVNULL)\n"
        f"subprocess.run({bench.command('hook', client, event)}, input={payload!r}, text=True, check=True)\n"
    )
    done = subprocess.run(
        [*first, str(program), "-p", "do it"],
        env=bench.env, cwd=bench.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S,
        check=True,
    )  # fmt: skip
    assert ("01ended" in done.stdout) is is_client, done.stderr
