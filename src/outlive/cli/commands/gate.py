"""`outlive gate`: print whether a session may stop now."""

from __future__ import annotations

from outlive.cli import context
from outlive.cli.formatting import print_json
from outlive.cli.parser import TRACE, Command, Given, option
from outlive.domain.text.units import parse_duration
from outlive.keeper.spawn import launch_adopter
from outlive.linux.reader_gone import reader_of_output, watch_departures
from outlive.service.sessions.gate import CEILING_S, gate, gate_document, wait_at_gate, window_lines


def act(given: Given) -> int:
    """Print whether the session may stop now.

    With `--wait`, wait until the session may stop or only has to read notices, and then print it.
    """
    context.begin_trace(wanted=given.trace)
    home = context.here()
    ceiling = CEILING_S if given.ceiling is None else given.ceiling.total_seconds()
    asked = (home, context.own_session(given.session), context.project(), launch_adopter, ceiling)
    answer = wait_at_gate(*asked, watch_departures(ends=(reader_of_output(),))) if given.wait else gate(*asked)
    if given.json:
        print_json(gate_document(home, answer))
    else:
        print(f"{'may stop' if answer.may_stop else 'wait'}: {answer.reason}")
        for line in window_lines(answer, context.project()):
            print(line)
    if answer.session is None:
        context.note_unknown_session(home, given.session)
    return 1 if given.exit_code and not answer.may_stop else 0


COMMAND = Command(
    name="gate",
    summary="print whether a session may stop, which tasks it waits for, and which tasks are lost",
    usage="outlive gate [options]",
    refuses_words=True,
    details=(
        "A session should wait for its running tasks that have --notify all, end or output, for child sessions that\n"
        "work in its client (OpenCode), and for endings that were not reported to it. It need not wait for lost\n"
        "tasks. After the time of --ceiling, the session may stop in any case."
    ),
    options=(
        option("--session ID", "ask for this session (default: the current session)"),
        option("--wait", "block until the session may stop, or has notices to read"),
        option("--ceiling D", "let the session stop after this time in any case (default 15m)", parse_duration),
        option("--exit-code", "exit with 1 if the session should wait"),
        TRACE,
    ),
    examples=(("outlive gate --session s-1 --exit-code", "exit with 1 while the session should wait"),),
)
