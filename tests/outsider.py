"""Another user, for tests in which Outlive runs without privileges."""

from __future__ import annotations

import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path


class Outsider:
    """Another user, with a copy of Outlive that this user can read."""

    def __init__(self, root: Path) -> None:
        self.root = root
        packages = root / "packages"
        for module in ("outlive", "apsw", "watchfiles"):
            found = find_spec(module)
            assert found is not None
            source = Path(found.origin or "").parent
            shutil.copytree(source, packages / source.name, ignore=shutil.ignore_patterns("*.pyi"))
        setpriv = root / "setpriv"
        shutil.copy(shutil.which("setpriv") or "/usr/bin/setpriv", setpriv)
        setpriv.chmod(0o4755)
        self.become_root = f"{setpriv} --reuid=0"
        """A prefix that runs a command as root, like a set-id program. The user cannot signal its processes."""
        (root / "state").mkdir()
        os.chown(root / "state", 65534, 65534)
        (root / "state").chmod(0o700)

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Call the command line as this user."""
        return subprocess.run(
            ["/usr/bin/python3", "-m", "outlive", *words],
            env={
                "PATH": os.environ["PATH"],
                "OUTLIVE_HOME": str(self.root / "state"),
                "PYTHONPATH": str(self.root / "packages"),
            },
            cwd="/",
            user=65534,
            group=65534,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
