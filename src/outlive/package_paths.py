"""The paths of this installation, for an isolated interpreter that must import it."""

from __future__ import annotations

import os


def package_directories() -> list[str]:
    """Return the directories that Outlive and its apsw were imported from."""
    import apsw  # noqa: PLC0415 - imported here, because it is already loaded, and only its path is needed

    return list(dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(f))) for f in (__file__, apsw.__file__)))
