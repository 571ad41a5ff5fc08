"""Where this very Outlive lies, for an isolated interpreter that has to find it again."""

from __future__ import annotations

import os


def package_directories() -> list[str]:
    """The directories that Outlive and its apsw were imported from."""
    import apsw  # noqa: PLC0415 - it is loaded; only to learn where it lies

    return list(dict.fromkeys(os.path.dirname(os.path.dirname(os.path.abspath(f))) for f in (__file__, apsw.__file__)))
