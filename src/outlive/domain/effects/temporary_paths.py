"""Directories in which changes are not reported as effects."""

from __future__ import annotations

TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/", "/run/")  # noqa: S108 - only compared with paths, and never written to


def temporary_root(directory: str) -> str | None:
    """Return the temporary directory around a directory, without a slash at its end.

    Returns None for other directories.
    """
    return next((root.rstrip("/") for root in TEMPORARY if f"{directory}/".startswith(root)), None)
