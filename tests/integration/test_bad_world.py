"""Bad input and a bad world: two lines, the right exit code, nothing lost, no traceback."""

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
        (("run", "--timeout", "soon", "true"), "is not a duration"),
        (("run", "--timeout", "100000d", "true"), "longer than ten years"),
        (("run", "--max-output", "1", "true"), "too small"),
        (("run", "--max-output", "much", "true"), "is not a size"),
        (("run", "--env", "novalue", "true"), "is not an environment setting"),
        (("run", "--notify", "maybe", "true"), "--notify cannot be 'maybe'"),
        (("run", "--key", "", "true"), "the key is not usable"),
        (("run", "--timout", "5s", "true"), "has no option --timout"),
        (("run", "--timeout"), "--timeout needs a value"),
        (("list", "--limit", "-3"), "--limit cannot be '-3'"),
        (("list", "--state", "done"), "--state cannot be 'done'"),
        (("list", "--all=yes"), "--all takes no value"),
        (("fly",), "there is no command 'fly'"),
    ],
)
def test_wrong_usage_is_exit_code_two(bench: Bench, words: tuple[str, ...], said: str) -> None:
    """Every mistake is named, and nothing was started."""
    _refused(bench.run(*words), 2, said)
    assert bench.json("list", "--all")["tasks"] == []


def test_an_ambiguous_prefix_names_the_candidates(bench: Bench) -> None:
    """`t` may be any of them."""
    tasks = [bench.launch("true") for _ in range(2)]
    done = bench.run("show", "t")
    _refused(done, 2, "may be any of")
    assert all(task in done.stderr for task in tasks)


def test_the_result_of_a_running_task_is_refused(bench: Bench) -> None:
    """Exit code 2 and the way to wait for it."""
    _refused(bench.run("result", bench.launch("sleep 30")), 2, "has no result yet")


def test_errors_are_json_where_json_was_asked_for(bench: Bench) -> None:
    """One JSON document on stderr, with a stable code."""
    done = bench.run("show", "tzzzz", "--json")
    assert done.returncode == 2
    error = json.loads(done.stderr)["error"]
    assert error["code"] == "unknown_id"
    assert set(error) == {"code", "message", "hint"}


def test_impossible_commands_are_refused_by_the_sdk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of command text, a NUL byte: an error that says what to do instead."""
    monkeypatch.chdir(bench.project)
    client = Outlive(home=str(bench.state))
    for command in ("x" * (1 << 20), "echo a\0b", ["echo", "a\0b"], "", [], "  "):
        with pytest.raises(UserError) as caught:
            client.run(command)
        assert caught.value.hint
    assert client.tasks() == []


def test_a_long_command_line_that_the_kernel_takes_is_run(bench: Bench) -> None:
    """A hundred kilobytes of shell text arrive whole."""
    text = "# " + "x" * 100_000 + "\necho whole"
    task = bench.launch(text)
    bench.ok("wait", task)
    assert bench.ok("output", task) == "whole"
    assert bench.show(task)["command"] == text


def test_names_that_are_not_utf8_survive(bench: Bench) -> None:
    """Arguments, working directory and key with arbitrary bytes: run, recorded, found again."""
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


def test_a_home_that_is_a_link_is_refused(bench: Bench) -> None:
    """Nothing is written through a symbolic link."""
    target = bench.root / "target"
    target.mkdir(mode=0o700)
    link = bench.root / "link"
    link.symlink_to(target)
    _refused(bench.run("run", "true", env={"OUTLIVE_HOME": str(link)}), 3, "is a symbolic link")
    assert list(target.iterdir()) == []


def test_a_home_open_to_others_is_refused(bench: Bench) -> None:
    """Group- or world-accessible state is not private, and says how to mend it."""
    bench.launch("true")
    state = Path(bench.home.path)
    state.chmod(0o755)
    _refused(bench.run("list"), 3, "is open to other users")
    state.chmod(0o700)
    bench.ok("list")


@pytest.mark.root
def test_somebody_elses_home_is_refused(bench: Bench) -> None:
    """A directory prepared by another user is not trusted."""
    bench.state.mkdir(mode=0o700)
    os.chown(bench.state, 65534, 65534)
    _refused(bench.run("run", "true"), 3, "belongs to user 65534")
    assert list(bench.state.iterdir()) == []


def test_a_home_that_is_a_file_is_refused(bench: Bench) -> None:
    """Not a directory at all."""
    bench.state.write_text("hello")
    done = bench.run("run", "true")
    assert done.returncode == 3
    assert "hint:" in done.stderr
    assert bench.state.read_text() == "hello"


def test_without_a_home_there_is_a_clear_error(bench: Bench) -> None:
    """HOME, XDG_STATE_HOME and OUTLIVE_HOME unset: where to put the state is not guessed."""
    env = {name: text for name, text in bench.env.items() if name not in ("HOME", "OUTLIVE_HOME", "XDG_STATE_HOME")}
    done = subprocess.run(bench.command("list"), env=env, capture_output=True, text=True, check=False)
    _refused(done, 3, "HOME is not set")


@pytest.fixture
def mounted(bench: Bench) -> Iterator[Path]:
    """A small file system of its own for the state; the test may remount and fill it."""
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    yield bench.state
    bench.clean()
    subprocess.run(["umount", "-l", str(bench.state)], check=False)


@pytest.mark.root
@pytest.mark.usefixtures("mounted")
def test_a_read_only_home_is_refused(bench: Bench) -> None:
    """Exit code 3, and the tasks are still there afterwards."""
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
def test_a_launch_below_the_floor_of_free_space_is_refused(bench: Bench, mounted: Path) -> None:
    """`run` refuses while a running task can still be settled; with space back, all is as before."""
    running = bench.launch("sleep 0.5; exit 7")
    with open(mounted / "hog", "wb") as hog:
        hog.write(bytes(20 << 20))
    _refused(bench.run("run", "true"), 3, "MB are free")
    bench.run("wait", running)
    assert bench.show(running)["exit_code"] == 7
    (mounted / "hog").unlink()
    assert bench.launch("true")


@pytest.mark.root
def test_a_full_disk_loses_no_exit_code(bench: Bench, mounted: Path) -> None:
    """Not one block is free when the command ends: the preallocated record and the ballast carry it."""
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
def test_a_file_system_without_holes_ends_a_runaway(bench: Bench) -> None:
    """Where holes cannot be punched the launch says so, and the task ends at its limit."""
    bench.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "ramfs", "-o", "mode=700", "outlive-test", str(bench.state)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("cannot mount here")
    try:
        done = bench.run("run", "--max-output", "256K", "yes")
        assert "cannot give back" in done.stderr
        task = done.stdout.strip()
        bench.run("wait", task)
        shown = bench.show(task)
        assert (shown["state"], shown["reason"]) == ("failed", "output_limit")
    finally:
        bench.clean()
        subprocess.run(["umount", "-l", str(bench.state)], check=False)


@pytest.mark.root
def test_a_network_like_file_system_is_refused(bench: Bench) -> None:
    """A FUSE mount, where locks of two mounts do not see each other, is refused by name."""
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


def test_a_home_reached_through_a_second_mount_is_refused(bench: Bench) -> None:
    """The place is pinned for a boot: another device under the same directory is another mount."""
    bench.launch("true")
    place = Path(bench.home.path) / "place"
    boot, device, punch = place.read_text().split()
    place.write_text(f"{boot} {int(device) + 1} {punch}\n")
    _refused(bench.run("list"), 3, "through another mount")
    place.write_text(f"other-boot {int(device) + 1} {punch}\n")
    bench.ok("list")


def test_a_corrupt_ledger_is_moved_aside_and_never_overwritten(bench: Bench) -> None:
    """Row 51: reported with exit code 3, kept byte for byte; the next command begins a new one."""
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
    assert bench.json("list")["tasks"] == []
    assert Path(bench.home.bundle(task), "spec.json").exists()
    assert bench.launch("true")


def test_few_file_descriptors_are_enough_or_a_clear_error(bench: Bench) -> None:
    """With 4 to 14 descriptors allowed: it works, or says so; an id is printed only if it runs."""
    bench.ok("list")
    codes = {limit: _run_with_descriptors(bench, limit) for limit in range(4, 15)}
    assert codes[14] == 0, "fourteen are enough"


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
    elif limit >= 8:  # with fewer the interpreter itself does not come up
        assert done.stdout == ""
        assert "Traceback" not in done.stderr, (limit, done.stderr)
        assert "hint:" in done.stderr, (limit, done.stderr)
        assert "permissions" not in done.stderr, (limit, done.stderr)
    return done.returncode


def test_every_file_is_private_under_any_umask(bench: Bench) -> None:
    """0600 and 0700, also when the caller's umask is 000."""
    for mask in ("000", "022"):
        script = f"umask {mask}; {' '.join(bench.command('run', '--wait', '20s', '--', 'true'))}"
        subprocess.run(["sh", "-c", script], env=bench.env, cwd=bench.project, check=True, capture_output=True)
    bench.run("list")
    for path in (Path(bench.home.path), *Path(bench.home.path).rglob("*")):
        mode = path.lstat().st_mode & 0o777
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_a_small_file_size_limit_is_a_clear_error(bench: Bench) -> None:
    """RLIMIT_FSIZE below what the ledger needs: refused, not half done."""
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


def test_a_stopped_peer_blocks_no_reader(bench: Bench) -> None:
    """A keeper that is SIGSTOPped leaves list, show and output working."""
    import signal

    task = bench.launch("echo hi; sleep 30")
    keeper = bench.keeper(task)
    os.kill(keeper, signal.SIGSTOP)
    assert bench.show(task)["state"] == "running"
    assert bench.ok("output", task) == "hi"
    os.kill(keeper, signal.SIGCONT)


def test_modules_in_the_working_directory_are_not_imported(bench: Bench) -> None:
    """A project with its own `apsw.py` or `outlive/` does not get to run inside the command line."""
    for name in ("apsw.py", "_json.py", "zlib.py", "select.py"):
        (bench.project / name).write_text("raise SystemExit('imported from the project')")
    task = bench.launch("true")
    assert bench.run("wait", task).returncode == 0
