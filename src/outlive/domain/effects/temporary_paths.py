"""Directories in which changes are not reported as effects."""

from __future__ import annotations

TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/", "/run/")  # noqa: S108 - these names are only compared with paths


def temporary_root(directory: str) -> str | None:
    """Return the temporary directory in which a directory lies, without a final slash.

    Returns None if the directory does not lie in a temporary directory.
    """
    return next((root.rstrip("/") for root in TEMPORARY if f"{directory}/".startswith(root)), None)
