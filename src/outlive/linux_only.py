"""The error message on systems other than Linux.

This module imports no other module of Outlive.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

FACT = f"Outlive needs Linux (also as WSL2 or in a container), and this is {sys.platform}"
HINT = "install and run Outlive inside of a Linux system"


def exit_with_reason() -> NoReturn:
    """Print the error and exit, before any module is imported that only Linux has."""
    sys.stderr.write(f"outlive: {FACT}\nhint: {HINT}\n")
    sys.exit(3)
