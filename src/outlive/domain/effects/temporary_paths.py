"""Directories in which changes are not reported as effects."""

from __future__ import annotations

TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/", "/run/")  # noqa: S108 - only compared with paths, and never written to
