"""`outlive hook`: the command that agent clients call at each event of a session."""

from __future__ import annotations

from outlive.cli.parser import Command, Given, Option


def act(_: Given) -> int:
    """Return 0; never called, because `main` calls `outlive.hooks.entry` instead."""
    return 0


COMMAND = Command(
    name="hook",
    summary="answer an event of an agent client (JSON in, JSON out)",
    usage="outlive hook claude|codex|gemini|opencode|openclaw|cursor EVENT [options]",
    takes=("claude", "codex", "gemini", "opencode", "openclaw", "cursor"),
    details=(
        "`outlive install` writes these calls into a client's configuration. If a hook fails, the client\n"
        "goes on: the exit code is 0, and one line on stderr names the failure. Only the event Wake,\n"
        "which wakes an idle session, exits with 2."
    ),
    options=(
        Option(
            name="--guard",
            metavar="HOW",
            help="before a tool: what to do about nohup, &, sleep and pkill",
            choices=("advise", "rewrite", "off"),
        ),
    ),
    examples=(("outlive hook claude Stop < payload.json", "the gate's answer as Claude Code reads it"),),
    act=act,
)
