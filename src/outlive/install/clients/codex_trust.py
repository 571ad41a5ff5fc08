"""Codex's names and hashes of hooks, which `codex app-server` reports.

Codex trusts a hook only if its configuration contains the hook's hash.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version

from outlive.domain.errors import UserError
from outlive.domain.text.sanitize import from_json, to_json
from outlive.install.clients.codex import NAME, Trusted
from outlive.install.outlive_command import is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PATIENCE_S = 30


def ask_codex(text: str, path: str) -> list[Trusted]:
    """Return Codex's names and hashes of Outlive's hooks in a `hooks.json`.

    `text` is the text of the file, and `path` its path. Codex runs with a temporary home directory and does not change
    the user's files. Raises `UserError` if Codex does not report them.
    """
    program = shutil.which("codex")
    if program is None:
        raise UserError(
            "codex is not on the PATH, and only codex knows the keys and hashes by which it trusts hooks",
            "add codex to the PATH, or install with --untrusted and trust the hooks in the /hooks view of codex",
        )
    with tempfile.TemporaryDirectory(prefix="outlive-codex-") as place:
        with open(f"{place}/hooks.json", "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        try:
            listed = _list_hooks(program, place)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise UserError(
                f"codex did not report the hashes of its hooks: {error}", "try again, or use --untrusted"
            ) from error
        here = os.path.realpath(place) + "/hooks.json"
        return [
            Trusted(key=path + hook["key"].removeprefix(hook["sourcePath"]), hash=hook["currentHash"])
            for hook in listed
            if os.path.realpath(hook["sourcePath"]) == here and is_ours(hook.get("command", ""), NAME)
        ]


def _list_hooks(program: str, place: str) -> list[dict[str, Any]]:
    calls = (
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "outlive", "version": version("outlive")}}},
        {"method": "initialized"},
        {"id": 2, "method": "hooks/list", "params": {"cwds": [place]}},
    )
    server = subprocess.Popen(
        [program, "app-server"],
        env={**os.environ, "CODEX_HOME": place},
        cwd=place,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdin is not None  # noqa: S101 - Popen was called with a pipe, so this is not None
        assert server.stdout is not None  # noqa: S101
        for call in calls:
            server.stdin.write(to_json(call) + "\n")
        server.stdin.flush()
        for line in server.stdout:
            answer = from_json(line)
            if isinstance(answer, dict) and answer.get("id") == 2:
                result: Any = answer.get("result") or {}
                return [hook for each in result["data"] for hook in each["hooks"]]
        raise ValueError("codex app-server exited without an answer")
    finally:
        server.kill()
        server.communicate(timeout=_PATIENCE_S)
