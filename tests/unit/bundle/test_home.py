"""The state directory: where it is, and whether it is safe to use."""

from __future__ import annotations

import itertools
import os
import stat
from typing import TYPE_CHECKING

import pytest

from outlive.bundle import mounts
from outlive.bundle.home import UNSAFE_FILE_SYSTEMS, Home, locate, open_home
from outlive.domain.errors import Unavailable
from outlive.linux.syscalls import file_system_magic

if TYPE_CHECKING:
    from pathlib import Path

CHOICES = {
    "OUTLIVE_HOME": (None, "", "/given"),
    "XDG_STATE_HOME": (None, "", "/xdg"),
    "HOME": (None, "", "/home/u"),
}
ENVIRONMENTS = [
    {name: value for name, value in zip(CHOICES, values, strict=True) if value is not None}
    for values in itertools.product(*CHOICES.values())
]
# Magic numbers from linux/magic.h, and from the source code of the file systems.
LOCAL = {
    "ext4": 0xEF53,
    "xfs": 0x58465342,
    "btrfs": 0x9123683E,
    "tmpfs": 0x01021994,
    "overlay": 0x794C7630,
    "zfs": 0x2FC12FC1,
    "f2fs": 0xF2F52010,
}
SHARED = {
    "NFS": 0x6969,
    "SMB": 0x517B,
    "CIFS": 0xFF534D42,
    "SMB2": 0xFE534D42,
    "9P": 0x01021997,
    "FUSE": 0x65735546,
    "Ceph": 0x00C36400,
}


@pytest.mark.parametrize("environ", ENVIRONMENTS, ids=str)
def test_locate_uses_the_first_variable_that_is_set(environ: dict[str, str]) -> None:
    """The state directory is that of OUTLIVE_HOME, else of XDG_STATE_HOME, else of HOME.

    Empty variables are ignored.
    """
    if environ.get("OUTLIVE_HOME"):
        base = "/given"
    elif environ.get("XDG_STATE_HOME"):
        base = "/xdg/outlive"
    elif environ.get("HOME"):
        base = "/home/u/.local/state/outlive"
    else:
        with pytest.raises(Unavailable, match="HOME is not set"):
            locate(environ)
        return
    assert os.path.dirname(locate(environ)) == base


def test_path_of_the_home_ends_with_an_id_of_the_machine() -> None:
    """The path of the state directory ends with an id of the machine.

    So machines that share a home directory have separate state directories.
    """
    machine = os.path.basename(locate({"HOME": "/home/u"}))
    assert machine == os.path.basename(locate({"OUTLIVE_HOME": "/given"}))
    assert machine
    assert machine.replace("-", "").isalnum()


def test_relative_home_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative OUTLIVE_HOME is resolved against the current directory."""
    monkeypatch.chdir(tmp_path)
    assert os.path.dirname(locate({"OUTLIVE_HOME": "state/../here"})) == str(tmp_path / "here")


def test_shared_file_systems_are_refused_by_name() -> None:
    """File systems that several machines may share are refused. Such machines do not see each other's locks."""
    for name, magic in SHARED.items():
        assert UNSAFE_FILE_SYSTEMS[magic] == name


def test_local_file_systems_are_not_refused() -> None:
    """Local file systems are accepted.

    The numbers that identify them are unsigned and have 32 bits, as in the kernel.
    """
    assert not set(LOCAL.values()) & set(UNSAFE_FILE_SYSTEMS)
    assert all(0 < magic < 1 << 32 for magic in UNSAFE_FILE_SYSTEMS)


def test_file_system_magic_returns_the_number_of_the_kernel(tmp_path: Path) -> None:
    """`file_system_magic` returns the kernel's number for /proc. For a missing path, it raises an error."""
    assert file_system_magic("/proc") == 0x9FA0
    assert file_system_magic(str(tmp_path)) not in UNSAFE_FILE_SYSTEMS
    with pytest.raises(FileNotFoundError):
        file_system_magic(str(tmp_path / "missing"))


def opened(path: Path) -> Home:
    """Open the state directory below a path."""
    return open_home({"OUTLIVE_HOME": str(path)})


def test_home_is_created_for_its_owner_alone(tmp_path: Path) -> None:
    """The state directory and its parents are created with mode 0700 for any umask.

    A second opening changes nothing.
    """
    old = os.umask(0)
    try:
        home = opened(tmp_path / "deep" / "state")
    finally:
        os.umask(old)
    for path in (tmp_path / "deep", tmp_path / "deep" / "state", home.path, home.tasks):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert opened(tmp_path / "deep" / "state").path == home.path
    assert home.bundle("t7k2m9q4") == f"{home.tasks}/t7k2m9q4"


def test_home_is_refused_when_other_users_may_enter_it(tmp_path: Path) -> None:
    """A state directory that other users may enter is refused. The hint is the command that changes this."""
    home = opened(tmp_path / "state")
    os.chmod(home.path, 0o750)  # noqa: S103 - the test checks that this mode is refused
    with pytest.raises(Unavailable, match="open to other users") as refusal:
        opened(tmp_path / "state")
    assert refusal.value.hint == f"chmod 700 {home.path}"


def test_home_is_refused_when_other_users_may_write_to_its_parent(tmp_path: Path) -> None:
    """If other users may write to its parent directory, the state directory is refused. They could replace it."""
    opened(tmp_path / "state")
    os.chmod(tmp_path / "state", 0o775)  # noqa: S103 - the test checks that this mode is refused
    with pytest.raises(Unavailable, match="open to other users"):
        opened(tmp_path / "state")


def test_home_is_refused_when_it_is_a_symbolic_link(tmp_path: Path) -> None:
    """A symbolic link is refused, because the state directory must have a single path."""
    opened(tmp_path / "state")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(Unavailable, match="symbolic link"):
        opened(tmp_path / "link")


def test_home_is_unavailable_when_a_file_is_in_its_place(tmp_path: Path) -> None:
    """If a file is in the place of the state directory, opening raises `Unavailable`."""
    (tmp_path / "state").write_text("")
    with pytest.raises(Unavailable, match="state"):
        opened(tmp_path / "state")


def _pin_elsewhere(home: Home) -> str:
    """Change the recorded device in `place`, as if another mount had been used.

    Returns the former content of `place`.
    """
    place = os.path.join(home.path, "place")
    with open(place, encoding="ascii") as file:
        boot, device, rest = file.read().split(" ", 2)
    with open(place, "w", encoding="ascii") as file:
        file.write(f"{boot} {int(device) + 1} {rest}")
    return f"{boot} {device} {rest}"


def test_home_opens_when_its_device_number_has_changed(tmp_path: Path) -> None:
    """If the device number has changed and no process uses the old mount, the directory opens.

    The new number is recorded.
    """
    home = opened(tmp_path / "state")
    fresh, files = _pin_elsewhere(home), sorted(os.listdir(home.path))
    opened(tmp_path / "state")
    with open(f"{home.path}/place", encoding="ascii") as file:
        assert file.read() == fresh
    assert sorted(os.listdir(home.path)) == files


def test_recorded_device_is_restored_when_a_process_uses_the_other_mount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a process begins to use the other mount meanwhile, the directory is refused and the old number stays."""
    home = opened(tmp_path / "state")
    _pin_elsewhere(home)
    with open(f"{home.path}/place", encoding="ascii") as file:
        before = file.read()
    looks = iter([None, (4711, "/elsewhere")])
    monkeypatch.setattr(mounts, "_user_elsewhere", lambda _: next(looks))
    with pytest.raises(Unavailable, match="another mount"):
        opened(tmp_path / "state")
    with open(f"{home.path}/place", encoding="ascii") as file:
        assert file.read() == before


@pytest.mark.parametrize("stale", ["", "torn", "an-earlier-boot 12345 yes\n"])
def test_recorded_device_is_replaced_after_a_boot(tmp_path: Path, stale: str) -> None:
    """After a boot, a new device number is recorded, because numbers may change.

    An incomplete record is replaced, too.
    """
    home = opened(tmp_path / "state")
    place = os.path.join(home.path, "place")
    with open(place, encoding="ascii") as file:
        fresh = file.read()
    with open(place, "w", encoding="ascii") as file:
        file.write(stale)
    opened(tmp_path / "state")
    with open(place, encoding="ascii") as file:
        assert file.read() == fresh
