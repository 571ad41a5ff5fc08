"""Outlive: background tasks that outlive the session that started them.

    from outlive import Outlive

    task = Outlive().run("make test", timeout=timedelta(minutes=20))
    print(task.wait().state)

Names are loaded when they are first used: `import outlive` alone costs next to nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from outlive.client.aio import AsyncOutlive
    from outlive.client.sdk import Outlive, Task
    from outlive.client.session import Session
    from outlive.domain.errors import (
        AmbiguousId,
        Broken,
        Conflict,
        NotStarted,
        OutliveError,
        Unavailable,
        UnknownTask,
        UserError,
    )

_HOMES = {
    "Outlive": "outlive.client.sdk",
    "Task": "outlive.client.sdk",
    "Session": "outlive.client.session",
    "AsyncOutlive": "outlive.client.aio",
    **dict.fromkeys(
        (
            "AmbiguousId",
            "Broken",
            "Conflict",
            "NotStarted",
            "OutliveError",
            "Unavailable",
            "UnknownTask",
            "UserError",
        ),
        "outlive.domain.errors",
    ),
}

__all__ = [
    "AmbiguousId",
    "AsyncOutlive",
    "Broken",
    "Conflict",
    "NotStarted",
    "Outlive",
    "OutliveError",
    "Session",
    "Task",
    "Unavailable",
    "UnknownTask",
    "UserError",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'outlive' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_HOMES[name]), name)
