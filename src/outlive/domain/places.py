"""Places where what a task leaves behind is nobody else's business."""

from __future__ import annotations

TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/", "/proc/", "/sys/", "/run/")  # noqa: S108 - never written to by us
