"""Invalid input and broken environments: the error has a hint and the right exit code, and no record is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from outlive import Outlive, UserError
from tests.support import is_alive, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support import Bench


def _refused(done: subprocess.CompletedProcess[str], code: int, said: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    fact, hint = done.stderr.splitlines()
    assert fact.startswith("outlive: ")
    assert said in fact, fact
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "tzzzz"), "no task has an id that begins with tzzzz"),
        (("show", "../../etc"), "is not a task id"),
        (("show", "a\nb"), "is not a task id"),
        (("show", "x" * 41), "is not a task id"),
        (("show",), "show takes one id"),
        (("output", "t1", "t2"), "output takes one id"),
        (("run", ""), "there is no command to run"),
        (("run", "--"), "there is no command to run"),
        (("run", "echo", "hi"), "several words and no `--`"),
        (("run", "--timeout", "soon", "true"), "--timeout: 'soon' is not a duration"),
        (("run", "--wait", "make", "test"), "--wait: 'make' is not a duration"),
        (("run", "--timeout", "100000d", "true"), "longer than ten years"),
        (("run", "--max-output", "1", "true"), "too small"),
        (("run", "--max-output", "much", "true"), "is not a size"),
        (("run", "--env", "novalue", "true"), "is not an environment setting"),
        (("run", "--notify", "maybe", "true"), "--notify cannot be 'maybe'"),
        (("run", "--key", "", "true"), "the key is not usable"),
        (("run", "--timout", "5s", "true"), "has no option --timout"),
        (("run", "--timeout"), "--timeout needs a value"),
        (("run", "--after", "--description", "x", "true"), "--after needs a value (ID), but --description follows"),
        (("run", "--description", "--timeout=5s", "--", "true"), "but --timeout=5s follows"),
        (("run", "--description", "--", "true"), "--description needs a value"),
        (("list", "--limit", "-3"), "--limit cannot be '-3'"),
        (("list", "--state", "done"), "--state cannot be 'done'"),
        (("session", "begin", "x.py"), "session begin takes no words"),
        (("session", "edited"), "session edited needs a path"),
        (("list", "--all=yes"), "--all takes no value"),
        (("mcp", "--http", "99999"), "--http cannot be '99999'"),
        (("fly",), "there is no command 'fly'"),
    ],
)
def test_wrong_usage_exits_with_two(bench: Bench, words: tuple[str, ...], said: str) -> None:
    """Each wrong command line prints an error that names the mistake, exits with 2 and starts no task."""
    _refused(bench.run(*words), 2, said)
    assert bench.json("list", "--all")["tasks"] == []


@pytest.mark.parametrize(
    ("words", "hint"),
    [(("list", "--state", "runing"), "did you mean running?"), (("session", "begn"), "did you mean begin?")],
)
def test_hint_names_the_most_similar_word(bench: Bench, words: tuple[str, ...], hint: str) -> None:
    """For a mistyped state or session command, the hint is the word that the user may have meant."""
    done = bench.run(*words)
    assert (done.returncode, done.stderr.splitlines()[1]) == (2, f"hint: {hint}")


@pytest.mark.parametrize(("name", "value"), [("OUTLIVE_OBSERVE", "syscals"), ("OUTLIVE_MAX_DISK", "lots")])
def test_launch_is_refused_when_a_variable_has_a_wrong_value(bench: Bench, name: str, value: str) -> None:
    """If an environment variable has a wrong value, the launch is refused, and the error names variable and value.

    An empty value counts as not set.
    """
    _refused(bench.run("run", "true", env={name: value}), 2, name)
    assert value in bench.run("run", "true", env={name: value}).stderr
    assert bench.json("list", "--all")["tasks"] == []
    assert bench.run("run", "true", env={name: ""}).returncode == 0


def test_command_notes_a_session_that_is_not_recorded(bench: Bench) -> None:
    """If a session is not recorded, the command says so on stderr, because its name may be misspelled.

    It exits with 0.
    """
    bench.launch("true", "--session", "s-1")
    for words in (("wait", "--session", "s-2"), ("inbox", "--session", "s-2"), ("gate", "--session", "s-2")):
        done = bench.run(*words)
        assert (done.returncode, done.stderr) == (0, "note: no session s-2 is recorded in this project\n"), words
        assert bench.run(*words[:-1], "s-1").stderr == "", words


def test_session_begin_notes_an_earlier_session_or_a_directory_that_does_not_exist(bench: Bench) -> None:
    """`session begin` records the session in any case, and says on stderr which option may be misspelled."""
    begin = ("session", "begin", "--session", "s-3")
    done = bench.run(*begin, "--continues", "s-404")
    assert (done.returncode, done.stderr) == (0, "note: no session s-404 is recorded in this project\n")
    done = bench.run(*begin, "--cwd", "/nonexist")
    assert (done.returncode, done.stderr) == (0, "note: there is no directory /nonexist, so check --cwd\n")
    assert bench.run("session", "begin", "--session", "s-4", "--continues", "s-3").stderr == ""


def test_ambiguous_id_prefix_is_refused(bench: Bench) -> None:
    """If the prefix of an id matches two tasks, the error names both tasks."""
    tasks = [bench.launch("true") for _ in range(2)]
    done = bench.run("show", "t")
    _refused(done, 2, "may be any of")
    assert all(task in done.stderr for task in tasks)


def test_result_is_refused_while_the_task_runs(bench: Bench) -> None:
    """`result` of a running task exits with 2 and prints a hint."""
    _refused(bench.run("result", bench.launch("sleep 30")), 2, "has no result yet (after ")


def test_result_of_a_queued_task_names_no_time(bench: Bench) -> None:
    """`result` of a queued task prints no running time, because the task has not started."""
    waiting = bench.launch("true", "--after", bench.launch("sleep 30"))
    done = bench.run("result", waiting)
    _refused(done, 2, "is queued and has no result yet")
    assert done.stderr.splitlines()[0].endswith("yet")


def test_error_is_json_when_the_caller_passes_json(bench: Bench) -> None:
    """With `--json`, an error is one JSON document on stderr, with a stable code."""
    done = bench.run("show", "tzzzz", "--json")
    assert done.returncode == 2
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "unknown_id"
    assert set(error) == {"code", "message", "hint"}


def test_sdk_refuses_commands_that_cannot_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK raises `UserError` with a hint if a command is empty, too long or contains a NUL byte."""
    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    for command in ("x" * (1 << 20), "echo a\0b", ["echo", "a\0b"], "", [], "  "):
        with pytest.raises(UserError) as caught:
            client.run(command)
        assert caught.value.hint
    assert client.tasks() == []


def test_long_command_text_is_run_and_recorded_in_full(bench: Bench) -> None:
    """A shell text of 100 kilobytes is executed, and `show` prints it without a change."""
    text = "# " + "x" * 100_000 + "\necho whole"
    task = bench.launch(text)
    bench.ok("wait", task)
    assert bench.ok("output", task) == "whole"
    assert bench.show(task)["command"] == text


def test_names_that_are_not_utf8_are_preserved(bench: Bench) -> None:
    """Arguments, working directory and key are recorded without a change, even if they are not UTF-8."""
    odd = os.fsdecode(b"d\xff\xfe")
    place = bench.project / odd
    place.mkdir()
    task = bench.ok("run", "--key", odd, "--", "printf", "%s", odd, cwd=place)
    bench.ok("wait", task)
    assert Path(bench.files(task).output).read_bytes() == b"d\xff\xfe"
    assert bench.ok("run", "--key", odd, "--", "printf", "%s", odd, cwd=place) == task
    shown = bench.show(task)
    assert os.fsencode(shown["argv"][2]) == b"d\xff\xfe"
    assert "\\xff" in bench.ok("list", cwd=place) or "\\udcff" in bench.ok("list", cwd=place)
    assert bench.ok("show", task)


def test_state_directory_that_is_a_symbolic_link_is_refused(bench: Bench) -> None:
    """`run` refuses a state directory that is a symbolic link, and writes nothing into the target of the link."""
    target = bench.root / "target"
    target.mkdir(mode=0o700)
    link = bench.root / "link"
    link.symlink_to(target)
    _refused(bench.run("run", "true", env={"OUTLIVE_HOME": str(link)}), 3, "is a symbolic link")
    assert list(target.iterdir()) == []


def test_state_directory_is_refused_when_other_users_can_access_it(bench: Bench) -> None:
    """A command refuses a state directory with mode 0755, and works again after `chmod 700`."""
    bench.launch("true")
    state = Path(bench.home.path)
    state.chmod(0o755)
    _refused(bench.run("list"), 3, "is open to other users")
    state.chmod(0o700)
    bench.ok("list")


@pytest.mark.root
def test_state_directory_of_another_user_is_refused(bench: Bench) -> None:
    """`run` refuses a directory that another user owns, and writes nothing into it."""
    bench.state.mkdir(mode=0o700)
    os.chown(bench.state, 65534, 65534)
    _refused(bench.run("run", "true"), 3, "belongs to user 65534")
    assert list(bench.state.iterdir()) == []


def test_state_directory_that_is_a_file_is_refused(bench: Bench) -> None:
    """`run` exits with 3 if the path of the state directory is a file, and leaves the file unchanged."""
    bench.state.write_text("hello")
    done = bench.run("run", "true")
    assert done.returncode == 3
    assert "hint:" in done.stderr
    assert bench.state.read_text() == "hello"


def test_command_fails_when_no_state_directory_is_configured(bench: Bench) -> None:
    """Without HOME, XDG_STATE_HOME and OUTLIVE_HOME, a command exits with 3 and does not guess a directory."""
    env = {name: text for name, text in bench.env.items() if name not in ("HOME", "OUTLIVE_HOME", "XDG_STATE_HOME")}
    done = subprocess.run(bench.command("list"), env=env, capture_output=True, text=True, check=False)
    _refused(done, 3, "HOME is not set")


@pytest.fixture
def mounted(bench: Bench) -> Iterator[Path]:
    """Mount a small file system as the state directory, and unmount it after the test."""
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    yield bench.state
    bench.clean()
    subprocess.run(["umount", "-l", str(bench.state)], check=False)


@pytest.mark.root
@pytest.mark.usefixtures("mounted")
def test_read_only_state_directory_is_refused(bench: Bench) -> None:
    """`run` exits with 3 if the state directory is on a read-only file system.

    After a writable remount, the recorded tasks can be read.
    """
    task = bench.launch("true")
    bench.ok("wait", task)
    subprocess.run(["mount", "-o", "remount,ro", str(bench.state)], check=True)
    done = bench.run("run", "true")
    assert done.returncode == 3
    assert "hint:" in done.stderr
    assert "Traceback" not in done.stderr
    subprocess.run(["mount", "-o", "remount,rw", str(bench.state)], check=True)
    assert bench.show(task)["state"] == "succeeded"


@pytest.mark.root
def test_launch_is_refused_when_too_little_disk_space_is_free(bench: Bench, mounted: Path) -> None:
    """Below the required free space, `run` is refused, but the exit code of a running task is still recorded."""
    running = bench.launch("sleep 0.5; exit 7")
    with open(mounted / "hog", "wb") as hog:
        hog.write(bytes(20 << 20))
    _refused(bench.run("run", "true"), 3, "MB are free")
    bench.run("wait", running)
    assert bench.show(running)["exit_code"] == 7
    (mounted / "hog").unlink()
    assert bench.launch("true")


@pytest.mark.root
def test_exit_codes_are_recorded_when_the_disk_is_full(bench: Bench, mounted: Path) -> None:
    """Exit codes are recorded without a free block, because the space for them was reserved in advance."""
    tasks = [bench.launch(f"sleep 0.8; exit {code}") for code in (11, 12, 13)]
    hog = os.open(mounted / "hog", os.O_WRONLY | os.O_CREAT)
    for size in (1 << 20, 4096, 1):
        try:
            while True:
                os.write(hog, bytes(size))
        except OSError:
            continue
    os.close(hog)
    for task in tasks:
        command = bench.process(task)
        wait_until(lambda command=command: not is_alive(command), "the command's end")  # type: ignore[misc]
    wait_until(lambda: not any(bench.find_keeper(task) for task in tasks), "the keepers' end")
    (mounted / "hog").unlink()
    assert [bench.show(task)["exit_code"] for task in tasks] == [11, 12, 13]


@pytest.mark.root
def test_task_fails_at_its_output_limit_when_holes_cannot_be_punched(bench: Bench) -> None:
    """If holes cannot be punched into files, a task fails at its output limit. `run` prints a warning before.

    On other file systems, Outlive removes the middle of the output instead.
    """
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "ramfs", "-o", "mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        done = bench.run("run", "--max-output", "256K", "yes")
        assert "cannot free space" in done.stderr
        task = done.stdout.strip()
        bench.run("wait", task)
        shown = bench.show(task)
        assert (shown["state"], shown["reason"]) == ("failed", "output_limit")
    finally:
        bench.clean()
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


@pytest.mark.root
def test_state_directory_on_a_fuse_mount_is_refused(bench: Bench) -> None:
    """`run` refuses a state directory on a FUSE file system.

    There, a lock taken through one mount may not exclude a lock taken through another mount.
    """
    if not shutil.which("bindfs") or not os.path.exists("/dev/fuse"):
        pytest.skip("needs bindfs and /dev/fuse")
    behind = bench.root / "behind"
    behind.mkdir(mode=0o700)
    bench.state.mkdir(mode=0o700)
    if subprocess.run(["bindfs", str(behind), str(bench.state)], capture_output=True, check=False).returncode:
        pytest.skip("cannot mount FUSE here")
    try:
        _refused(bench.run("run", "true"), 3, "FUSE")
    finally:
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


class Overlay:
    """An overlay mount, whose files can be reached through the mount and through the directory of its upper layer."""

    def __init__(self, root: Path) -> None:
        self.upper, self.merged = root / "upper", root / "merged"
        self._layers = f"lowerdir={root / 'lower'},upperdir={self.upper},workdir={root / 'work'}"
        self._between = root / "between"
        for each in (self.upper, self.merged, root / "lower", root / "work", self._between):
            each.mkdir()

    def mount(self) -> None:
        """Mount the overlay. The test is skipped if this is not possible."""
        call = ["mount", "-t", "overlay", "-o", self._layers, "outlive-test", str(self.merged)]
        if subprocess.run(call, capture_output=True, check=False).returncode:
            pytest.skip("cannot mount an overlay here")

    def mount_again(self) -> None:
        """Mount the overlay with another device number, as happens when a container restarts."""
        self.unmount()
        subprocess.run(["mount", "-t", "tmpfs", "outlive-test", str(self._between)], check=True)
        self.mount()

    def unmount(self) -> None:
        """Unmount the overlay, and the mount that took its device number."""
        for each in (self.merged, self._between):
            subprocess.run(["umount", "-l", str(each)], capture_output=True, check=False)


@pytest.fixture
def overlay(bench: Bench) -> Iterator[Overlay]:
    """Mount an overlay, and unmount it after the test."""
    made = Overlay(bench.root)
    made.mount()
    yield made
    made.unmount()


def test_state_directory_opens_after_a_container_restart(bench: Bench, overlay: Overlay) -> None:
    """If a restart changes the file system's device number, old tasks can be read and new tasks launched."""
    env = {"OUTLIVE_HOME": str(overlay.merged / "state")}
    task = bench.launch("exit 3", env=env)
    bench.run("wait", task, env=env)
    before = overlay.merged.stat().st_dev
    overlay.mount_again()
    assert overlay.merged.stat().st_dev != before
    assert bench.json("show", task, env=env)["exit_code"] == 3
    assert bench.run("run", "--wait", "30s", "true", env=env).returncode == 0


@pytest.mark.parametrize("first", ["merged", "upper"])
def test_state_directory_is_refused_while_another_mount_uses_it(bench: Bench, overlay: Overlay, first: str) -> None:
    """While a task runs through one mount, every command through another mount of the same directory is refused."""
    used = {"OUTLIVE_HOME": str(overlay.merged if first == "merged" else overlay.upper) + "/state"}
    other = {"OUTLIVE_HOME": str(overlay.upper if first == "merged" else overlay.merged) + "/state"}
    task = bench.launch("sleep 60", env=used)
    for words in (("list",), ("run", "true")):
        _refused(bench.run(*words, env=other), 3, "through another mount")
    bench.ok("cancel", task, env=used)
    wait_until(lambda: bench.run("list", env=other).returncode == 0, "the last process of the task to leave")
    assert task in bench.ok("list", env=other)


def test_state_directory_is_refused_when_processes_outside_a_container_may_use_it(
    bench: Bench, overlay: Overlay
) -> None:
    """In a container, commands are refused if the host may use the state directory through another mount."""
    bench.launch("true", env={"OUTLIVE_HOME": str(overlay.upper / "state")})
    contained = ["unshare", "-pf", "--mount-proc"]
    if subprocess.run([*contained, "true"], capture_output=True, check=False).returncode:
        pytest.skip("cannot make a PID namespace here")
    env = {"OUTLIVE_HOME": str(overlay.merged / "state")}
    refused = bench.run("list", env=env, before=contained)
    _refused(refused, 3, "through another mount")
    (place,) = (overlay.merged / "state").glob("*/place")
    assert f"delete {place}" in refused.stderr
    place.unlink()
    assert bench.run("list", env=env, before=contained).returncode == 0


def test_damaged_ledger_is_moved_aside_and_restored(bench: Bench) -> None:
    """If the ledger is damaged, one command moves it aside and exits with 3. The next command restores the records.

    Row 51 of the acceptance scenarios.
    """
    task = bench.launch("true")
    bench.ok("wait", task)
    ledger = Path(bench.home.ledger)
    for suffix in ("-wal", "-shm"):
        ledger.with_name(ledger.name + suffix).unlink()
    garbage = b"this is not a database" * 500
    ledger.write_bytes(garbage)
    done = bench.run("list")
    _refused(done, 3, "is damaged")
    (aside,) = [path for path in ledger.parent.iterdir() if ".broken-" in path.name]
    assert aside.read_bytes() == garbage
    assert [each["id"] for each in bench.json("list")["tasks"]] == [task]
    assert Path(bench.home.bundle(task), "spec.json").exists()
    assert bench.launch("true")


def test_launch_works_or_fails_with_a_hint_when_few_descriptors_are_allowed(bench: Bench) -> None:
    """With a limit of 4 to 14 file descriptors, `run` prints the id of a task that runs, or an error with a hint."""
    bench.ok("list")
    codes = {limit: _run_with_descriptors(bench, limit) for limit in range(4, 15)}
    assert codes[14] == 0, "`run` failed with 14 descriptors"


def _run_with_descriptors(bench: Bench, limit: int) -> int:
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n {limit}; exec {' '.join(bench.command('run', '--', 'true'))}"],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        assert bench.run("wait", done.stdout.strip()).returncode == 0, limit
    elif limit >= 8:  # With fewer than 8 descriptors, the interpreter itself cannot start.
        assert done.stdout == ""
        assert "Traceback" not in done.stderr, (limit, done.stderr)
        assert "hint:" in done.stderr, (limit, done.stderr)
        assert "permissions" not in done.stderr, (limit, done.stderr)
    return done.returncode


def test_state_files_are_private_under_any_umask(bench: Bench) -> None:
    """In the state directory, files have mode 0600 and directories mode 0700, whatever the umask of the caller is."""
    for mask in ("000", "022"):
        script = f"umask {mask}; {' '.join(bench.command('run', '--wait', '20s', '--', 'true'))}"
        subprocess.run(["sh", "-c", script], env=bench.env, cwd=bench.project, check=True, capture_output=True)
    bench.run("list")
    for path in (Path(bench.home.path), *Path(bench.home.path).rglob("*")):
        mode = path.lstat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_launch_is_refused_when_the_file_size_limit_is_too_small(bench: Bench) -> None:
    """If RLIMIT_FSIZE is too small for the ledger, `run` exits with 3 and a hint, and leaves no running task."""
    bench.ok("list")
    done = subprocess.run(
        ["bash", "-c", f"ulimit -f 1; exec {' '.join(bench.command('run', '--', 'true'))}"],
        env=bench.env,
        cwd=bench.project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert "hint:" in done.stderr
    assert all(task["state"] in ("lost", "failed") for task in bench.json("list")["tasks"])


def test_readers_work_while_the_keeper_is_stopped(bench: Bench) -> None:
    """`show` and `output` answer while the keeper of the task is stopped by SIGSTOP."""
    import signal

    task = bench.launch("echo hi; sleep 30")
    keeper = bench.keeper(task)
    os.kill(keeper, signal.SIGSTOP)
    assert bench.show(task)["state"] == "running"
    assert bench.ok("output", task) == "hi"
    os.kill(keeper, signal.SIGCONT)


def test_modules_in_the_working_directory_are_not_imported(bench: Bench) -> None:
    """A Python file in the project cannot take the place of a module that the command line imports."""
    for name in ("apsw.py", "_json.py", "zlib.py", "select.py"):
        (bench.project / name).write_text("raise SystemExit('imported from the project')")
    task = bench.launch("true")
    assert bench.run("wait", task).returncode == 0
