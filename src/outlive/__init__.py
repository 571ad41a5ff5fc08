"""Outlive: background tasks that outlive the session that started them.

    from outlive import Outlive

    task = Outlive().run("make test", timeout=timedelta(minutes=20))
    print(task.wait().state)

Each name is loaded when a program first uses the name, so `import outlive` alone takes little time.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    from outlive.sdk.aio import AsyncOutlive
    from outlive.sdk.outlive import Outlive, Task
    from outlive.sdk.session import Session

_HOMES = {
    "Outlive": "outlive.sdk.outlive",
    "Task": "outlive.sdk.outlive",
    "Session": "outlive.sdk.session",
    "AsyncOutlive": "outlive.sdk.aio",
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
    import sys  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    if sys.platform != "linux" and _HOMES[name].startswith("outlive.sdk."):
        from outlive.domain.errors import Unavailable  # noqa: PLC0415
        from outlive.linux_only import FACT, HINT  # noqa: PLC0415

        raise Unavailable(FACT, HINT)
    return getattr(import_module(_HOMES[name]), name)
