"""The state directory: where it is, and whether it is ours."""

from __future__ import annotations

import itertools
import os
import stat
from typing import TYPE_CHECKING

import pytest

from outlive.bundle.home import UNSAFE_FILE_SYSTEMS, Home, locate, open_home
from outlive.bundle.kernel import file_system_magic
from outlive.domain.errors import Unavailable

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
# linux/magic.h, and what other file systems call themselves.
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
def test_the_first_variable_that_says_something_decides(environ: dict[str, str]) -> None:
    """OUTLIVE_HOME, else the XDG state directory, else below HOME; an empty one says nothing."""
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


def test_the_machine_is_in_the_path() -> None:
    """The same for every base, and safe as a name: a shared home has a directory per machine."""
    machine = os.path.basename(locate({"HOME": "/home/u"}))
    assert machine == os.path.basename(locate({"OUTLIVE_HOME": "/given"}))
    assert machine
    assert machine.replace("-", "").isalnum()


def test_a_relative_home_does_not_move_with_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made absolute where it was read."""
    monkeypatch.chdir(tmp_path)
    assert os.path.dirname(locate({"OUTLIVE_HOME": "state/../here"})) == str(tmp_path / "here")


def test_shared_file_systems_are_refused_by_name() -> None:
    """Locks of two of their clients do not see each other."""
    for name, magic in SHARED.items():
        assert UNSAFE_FILE_SYSTEMS[magic] == name


def test_local_file_systems_are_not_refused() -> None:
    """Numbers are unsigned and 32 bits wide, as they are looked up."""
    assert not set(LOCAL.values()) & set(UNSAFE_FILE_SYSTEMS)
    assert all(0 < magic < 1 << 32 for magic in UNSAFE_FILE_SYSTEMS)


def test_the_kernel_is_asked_for_the_number(tmp_path: Path) -> None:
    """The file system of /proc is /proc's, and tests run on one that may be used."""
    assert file_system_magic("/proc") == 0x9FA0
    assert file_system_magic(str(tmp_path)) not in UNSAFE_FILE_SYSTEMS
    with pytest.raises(FileNotFoundError):
        file_system_magic(str(tmp_path / "missing"))


def opened(path: Path) -> Home:
    """The state directory below a path."""
    return open_home({"OUTLIVE_HOME": str(path)})


def test_a_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """Whatever the umask: every directory is 0700, and opening it again changes nothing."""
    old = os.umask(0)
    try:
        home = opened(tmp_path / "deep" / "state")
    finally:
        os.umask(old)
    for path in (tmp_path / "deep", tmp_path / "deep" / "state", home.path, home.tasks):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert opened(tmp_path / "deep" / "state").path == home.path
    assert home.bundle("t7k2m9q4") == f"{home.tasks}/t7k2m9q4"


def test_a_home_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    """With the command that closes it."""
    home = opened(tmp_path / "state")
    os.chmod(home.path, 0o750)  # noqa: S103 - that is the fault
    with pytest.raises(Unavailable, match="open to other users") as refusal:
        opened(tmp_path / "state")
    assert refusal.value.hint == f"chmod 700 {home.path}"


def test_a_base_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    """Whoever can rename our directory can replace it."""
    opened(tmp_path / "state")
    os.chmod(tmp_path / "state", 0o775)  # noqa: S103 - that is the fault
    with pytest.raises(Unavailable, match="open to other users"):
        opened(tmp_path / "state")


def test_a_linked_home_is_refused(tmp_path: Path) -> None:
    """Two paths to one directory are two homes to look at and one to break."""
    opened(tmp_path / "state")
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(Unavailable, match="symbolic link"):
        opened(tmp_path / "link")


def test_a_file_in_the_way_is_a_clear_refusal(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "state").write_text("")
    with pytest.raises(Unavailable, match="state"):
        opened(tmp_path / "state")


def test_another_mount_of_the_same_home_is_refused(tmp_path: Path) -> None:
    """Within one boot the directory stays on the device that it was first seen on."""
    home = opened(tmp_path / "state")
    place = os.path.join(home.path, "place")
    with open(place, encoding="ascii") as file:
        boot, device, punch = file.read().split()
    with open(place, "w", encoding="ascii") as file:
        file.write(f"{boot} {int(device) + 1} {punch}\n")
    with pytest.raises(Unavailable, match="another mount"):
        opened(tmp_path / "state")


@pytest.mark.parametrize("stale", ["", "torn", "an-earlier-boot 12345 yes\n"])
def test_the_pin_holds_for_one_boot(tmp_path: Path, stale: str) -> None:
    """Device numbers may change with a boot; a torn pin is no pin."""
    home = opened(tmp_path / "state")
    place = os.path.join(home.path, "place")
    with open(place, encoding="ascii") as file:
        fresh = file.read()
    with open(place, "w", encoding="ascii") as file:
        file.write(stale)
    opened(tmp_path / "state")
    with open(place, encoding="ascii") as file:
        assert file.read() == fresh
