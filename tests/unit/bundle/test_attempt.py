"""Removing a bundle while another process changes its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from outlive.bundle.attempt import discard_bundle


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Create a bundle with one attempt."""
    made = tmp_path / "bundle" / "attempts" / "1"
    made.mkdir(parents=True)
    (made / "record").write_text("x")
    (tmp_path / "bundle" / "spec.json").write_text("{}")
    return tmp_path / "bundle"


def test_discard_bundle_removes_files_that_are_added_meanwhile(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`discard_bundle` removes a bundle even if another process adds a file meanwhile.

    A keeper that was asked to stop may still do so.
    """
    rmdir = os.rmdir

    def adding(path: str) -> None:
        monkeypatch.setattr(os, "rmdir", rmdir)
        (Path(path) / "effects").touch()
        rmdir(path)

    monkeypatch.setattr(os, "rmdir", adding)
    discard_bundle(str(bundle))
    assert not bundle.exists()


def test_discard_bundle_ignores_files_that_are_removed_meanwhile(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`discard_bundle` raises no error if another process has removed a file or the whole bundle."""
    unlink = os.unlink

    def taking(path: str) -> None:
        monkeypatch.setattr(os, "unlink", unlink)
        unlink(path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", taking)
    discard_bundle(str(bundle))
    assert not bundle.exists()
    discard_bundle(str(bundle))


def test_discard_bundle_raises_when_a_file_cannot_be_removed(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file cannot be removed, `discard_bundle` raises `PermissionError`."""

    def refusing(_: str) -> None:
        raise PermissionError(1, "not permitted")

    monkeypatch.setattr(os, "unlink", refusing)
    with pytest.raises(PermissionError):
        discard_bundle(str(bundle))
