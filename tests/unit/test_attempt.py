"""The files of an attempt: removing them while somebody is still at them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outlive.bundle.attempt import discard_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle with an attempt."""
    made = tmp_path / "bundle" / "attempts" / "1"
    made.mkdir(parents=True)
    (made / "record").write_text("x")
    (tmp_path / "bundle" / "spec.json").write_text("{}")
    return tmp_path / "bundle"


def test_what_is_added_meanwhile_goes_too(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keeper has just been told to go."""
    rmdir = os.rmdir

    def adding(path: str) -> None:
        monkeypatch.setattr(os, "rmdir", rmdir)
        (Path(path) / "effects").touch()
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", adding)
    discard_bundle(str(bundle))
    assert not bundle.exists()


def test_what_is_taken_meanwhile_is_not_missed(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a bundle that another one has removed."""
    unlink = os.unlink

    def taking(path: str) -> None:
        monkeypatch.setattr(os, "unlink", unlink)
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", taking)
    discard_bundle(str(bundle))
    assert not bundle.exists()
    discard_bundle(str(bundle))


def test_what_cannot_be_removed_is_an_error(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that can only be read, for one."""

    def refusing(_: str) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "unlink", refusing)
    with pytest.raises(PermissionError):
        discard_bundle(str(bundle))
