"""`outlive hook`: the command that agent clients call at each event of a session."""

from __future__ import annotations

from outlive.cli.parser import Command, Given, option


def act(_: Given) -> int:
    """Return 0. This function is never called.

    For `outlive hook`, `main` calls `outlive.hooks.entry` instead.
    """
    return 0


COMMAND = Command(
    name="hook",
    summary="answer an event of an agent client (JSON in, JSON out)",
    usage="outlive hook claude|codex|gemini|opencode|openclaw|cursor EVENT [options]",
    takes=("claude", "codex", "gemini", "opencode", "openclaw", "cursor"),
    details=(
        "`outlive install` writes calls of this command into a client's configuration. The exit code is 0 even after\n"
        "an error, so that the client continues. One line on stderr then names the error. Only the event Wake\n"
        "ends with exit code 2, to wake an idle session."
    ),
    options=(
        option(
            "--guard HOW",
            "choose what the hook does before a tool call with nohup, &, sleep or pkill",
            choices=("advise", "rewrite", "off"),
        ),
    ),
    examples=(("outlive hook claude Stop < payload.json", "print the gate's answer in the format of Claude Code"),),
)
