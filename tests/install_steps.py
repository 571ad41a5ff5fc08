"""Steps of tests that install Outlive into the configuration of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support import Bench

MINE = '{\n    // mine\n    "model": "x",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}\n}'
CLIENTS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "openclaw": ".openclaw/openclaw.json",
    "cursor": ".cursor/hooks.json",
}
OTHERWISE_MINE = {
    "openclaw": "// mine\n{\n  gateway: { mode: 'local', name: \"x\" },  // a\n  plugins: {\n    allow: ['a'],\n  }\n}",
    "cursor": '{\n  "version": 1,\n  "name": "x",\n  "hooks": {"stop": [{"command": "./a.sh"}]}\n}\n',
}


def mine(client: str) -> str:
    """Return a client's configuration as it was before the installation."""
    return OTHERWISE_MINE.get(client, MINE)


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Return the mode and the content of every path below a directory."""
    return {
        str(path.relative_to(top)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in top.rglob("*")
    }


def settings(user: Path, client: str, text: str | None = None) -> Path:
    """Write a client's configuration as it was before the installation, and return its path."""
    file = user / CLIENTS[client]
    file.parent.mkdir(parents=True)
    file.write_text(mine(client) if text is None else text)
    return file


def install(bench: Bench, client: str, *options: str) -> str:
    """Install Outlive for a client, as a user does. The program of Codex need not exist."""
    return bench.ok("install", "--yes", "--client", client, *(("--untrusted",) if client == "codex" else ()), *options)
