"""The directories from which an isolated interpreter can import Outlive."""

from __future__ import annotations

import os


def package_directories() -> list[str]:
    """Return the directories that Outlive and its apsw were imported from."""
    import apsw  # noqa: PLC0415 - apsw is already loaded, and only its path is needed here

    return list(dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(f))) for f in (__file__, apsw.__file__)))
