"""`outlive gate`: whether a session may stop, or go on, now."""

from __future__ import annotations

from outlive.cli import place
from outlive.cli.options import Command, Given, Option
from outlive.cli.render import print_json
from outlive.domain.digest import held_line
from outlive.domain.errors import UserError
from outlive.domain.quantity import parse_duration
from outlive.keeper.launching import launch_adopter
from outlive.service.clock import utc_now
from outlive.service.gate import CEILING_S, gate, gate_document, wait_at_gate


def act(given: Given) -> int:
    """Answer, at once or when it may."""
    if given.words:
        raise UserError("gate takes no words", "`outlive gate --help` shows what it takes")
    place.begin_trace(wanted=given.trace)
    home = place.here()
    ask = wait_at_gate if given.wait else gate
    ceiling = CEILING_S if given.ceiling is None else given.ceiling.total_seconds()
    answer = ask(home, place.own_session(given.session), place.project(), launch_adopter, ceiling)
    if given.json:
        print_json(gate_document(home, answer))
    else:
        print(f"{'may stop' if answer.may_stop else 'wait'}: {answer.reason}")
        for task, window in answer.windows:
            print(held_line(task, window, utc_now(), place.project()))
    return 1 if given.exit_code and not answer.may_stop else 0


COMMAND = Command(
    name="gate",
    summary="say whether a session may stop: what it waits for, what is lost, what it was not told",
    usage="outlive gate [options]",
    details=(
        "It waits for running tasks that it launched to be told of (--notify all or end), and for endings that it\n"
        "has not been told. What is gone does not keep it; after the ceiling nothing does."
    ),
    options=(
        Option(name="--session", metavar="ID", help="the session (default: the one we run in)"),
        Option(name="--wait", help="block until it may stop"),
        Option(name="--ceiling", metavar="D", help="let it go after this long (default 15m)", parse=parse_duration),
        Option(name="--exit-code", help="exit code 1 if it should wait"),
        Option(name="--trace", help="write every decision to a file"),
    ),
    examples=(("outlive gate --session s-1 --exit-code", "exit code 1 while something is waited for"),),
    act=act,
)
