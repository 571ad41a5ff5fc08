"""The project's performance goals, checked against one run of the benchmark.

The module also lists the peers that were faster than Outlive. A peer is another tool that runs commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from measure import Samples
from peers.outlive_peer import OutliveCli, OutliveSdk
from stages.failed import FILES as LEFT_FILES
from stages.failed import GOAL as FLAT
from stages.failed import RUNNING_GOAL as WHILE_RUNNING
from stages.hooks import GOAL as HOOK_GOAL
from stages.hooks import TASKS
from stages.launch import BARE, DIRECT
from stages.masking import GOALS_MB_S as MASKING_GOALS
from stages.observing import GOALS
from stages.observing_memory import FILES, GOAL_KB
from stages.requests import MOST as MOST_REQUESTS
from stages.requests import TASKS as TASKS_WAITED_FOR

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peers.protocol import Peer
    from report import Results

CLI, SDK = OutliveCli.name, OutliveSdk.name
_MEASURES = ("launch", "start", "completion")


class Goal(NamedTuple):
    """One performance goal, the measured value, and whether the goal is met."""

    what: str
    found: str
    bound: str
    is_met: bool


def check(results: Results) -> Iterator[Goal]:
    """Yield every performance goal with its result, in the order of the report."""
    yield from _own_cost(results)
    per_second = 1000 / results.rates[SDK].ms
    count = results.rates[SDK].tasks
    yield Goal(
        f"{count:,} x `true` through the SDK, until all are recorded as ended",
        f"{per_second:.0f} a second",
        "at least 100",
        per_second >= 100,
    )
    queries = results.listing.queries
    growth = queries[100_000].median / queries[1_000].median
    yield Goal(
        "query of 20 tasks among 100,000, compared with among 1,000", f"x{growth:.2f}", "at most x1.3", growth <= 1.3
    )
    few, many = results.telling
    for verb in few:
        growth = many[verb].median / few[verb].median
        what = f"`{verb}` among 100,000 tasks and 10,000 sessions, compared with 100 tasks and 10 sessions"
        yield Goal(what, f"{many[verb].median:.2f} ms, x{growth:.2f}", "at most x1.5", growth <= 1.5)
    for how, samples in (("nothing new", results.hooks.quiet), ("after a commit", results.hooks.committed)):
        for name, found in samples.items():
            ratio = found.ratio_to(results.hooks.bare)
            what = f"hook {name}, {how}, {TASKS:,} tasks, compared with a bare interpreter"
            yield Goal(what, f"{found.median:.1f} ms, x{ratio:.2f}", f"at most x{HOOK_GOAL:.0f}", ratio <= HOOK_GOAL)
    failed = results.after_failures
    for state, timed in (
        ("an edit of an untouched file, after 300 failed tasks", failed.many),
        (f"an edit of an untouched file, after a failed task has rewritten {LEFT_FILES:,} files", failed.files),
        ("a shell command, after the same task, in a notified session", failed.command),
        ("a shell command, after the same task, in a session that was not notified", failed.first_command),
        ("a shell command, after 300 failed tasks, in a session that was not notified", failed.first_of_many),
        ("an edit of an untouched file, while a task sleeps", failed.idle),
        ("a shell command, while a task sleeps", failed.idle_command),
    ):
        ratio = timed.ratio_to(failed.none)
        what = f"hook PreToolUse: {state}, compared with an edit without failed tasks"
        yield Goal(what, f"{timed.median:.1f} ms, x{ratio:.2f}", f"at most x{FLAT}", ratio <= FLAT)
    for during, timed, quiet in (
        ("hook PreToolUse: an edit of an untouched file", failed.running, failed.none),
        ("hook PreToolUse: a shell command", failed.running_command, failed.none),
        ("`gate`", failed.gate_running, failed.gate),
    ):
        ratio = timed.ratio_to(quiet)
        what = f"{during}, while a task runs that has rewritten {LEFT_FILES:,} files, compared with no task"
        yield Goal(what, f"{timed.median:.1f} ms, x{ratio:.2f}", f"at most x{WHILE_RUNNING}", ratio <= WHILE_RUNNING)
    for name, plain in results.observing.plain.items():
        ratio = results.observing.observed[name].ratio_to(plain)
        yield Goal(
            f"{name}: observed, compared with unobserved",
            f"x{ratio:.2f}",
            f"at most x{GOALS[name]}",
            ratio <= GOALS[name],
        )
    added = results.observing_memory
    yield Goal(
        f"memory (PSS) that observing adds to keeper and witness, idle and after {FILES:,} files",
        f"{added.idle_kb / 1024:.1f} and {added.busy_kb / 1024:.1f} MB",
        f"at most {GOAL_KB / 1024:.0f} MB",
        max(added) <= GOAL_KB,
    )
    for engine, rate in results.masking.mb_per_s.items():
        bound = MASKING_GOALS[engine]
        yield Goal(
            f"masking a log of 10 MB with `{engine}`", f"{rate:.0f} MB/s", f"at least {bound:.0f}", rate >= bound
        )
    yield from _line(results)
    for each in results.requests:
        what = f"model requests: {each.client}, {each.mode}, a task {TASKS_WAITED_FOR[each.task]}"
        most = MOST_REQUESTS[each.task]
        yield Goal(what, str(each.requests), f"at most {most}", each.requests <= most)
    yield from _beside_durable_peers(results)


def _line(results: Results) -> Iterator[Goal]:
    queued = results.queued
    order = "in order" if queued.is_in_order else "out of order"
    found = f"at most {queued.most_at_once} at once, {order}, {queued.seconds:.0f} s"
    yield Goal(
        "50 tasks over `--slots x=4`",
        found,
        "never more than 4 at once, in order",
        queued.most_at_once <= 4 and queued.is_in_order,
    )
    yield Goal("wake-ups of waiting keepers while no task ends", str(queued.wakes), "none", queued.wakes == 0)
    each = queued.waiting_kb / 1024
    yield Goal("memory (PSS) of a waiting keeper, while 46 wait", f"{each:.1f} MB", "at most 3 MB", 0 < each <= 3)


def _own_cost(results: Results) -> Iterator[Goal]:
    bare = results.launch[BARE]
    count, seconds = results.syncs
    net = Samples()
    for turn, ms in results.launch[CLI].by_round.items():
        net.add(ms / 1000 - seconds, turn)
    ratio = net.ratio_to(bare)
    found = f"{net.median:.1f} ms, x{ratio:.2f} (plus {seconds * 1000:.1f} ms for its {count} syncs)"
    yield Goal("`outlive run` without its syncs, compared with a bare interpreter", found, "at most x2.5", ratio <= 2.5)
    ratio = results.launch[SDK].ratio_to(bare)
    found = f"{results.launch[SDK].median:.1f} ms, x{ratio:.2f}"
    yield Goal(
        "SDK `run`, from the second call on, compared with a bare interpreter", found, "at most x0.8", ratio <= 0.8
    )
    median = results.completion[SDK].median
    yield Goal("completion, until a blocked waiter returns (SDK)", f"{median:.1f} ms", "at most 5 ms", median <= 5)
    yield Goal("system calls of a waiter in 10 s", str(results.calls), "none", results.calls == 0)
    each = results.memory[CLI].task_kb / 1024
    what = f"memory (PSS) per running task, with {results.memory[CLI].tasks} tasks"
    yield Goal(what, f"{each:.1f} MB", "at most 9 MB", each <= 9)


def _beside_durable_peers(results: Results) -> Iterator[Goal]:
    """Yield the goals to be faster than every peer that records its tasks durably.

    There is a goal for each measure. Peers that are called as a command are compared with Outlive's CLI. Peers that a
    running program calls are compared with Outlive's SDK.
    """
    for name in _MEASURES:
        samples: dict[str, Samples] = getattr(results, name)
        for ours, way in ((CLI, "by a command"), (SDK, "in a running program")):
            rivals = [kind.name for kind in _rivals(results) if kind.is_durable and _like(kind, name) == ours]
            if rivals:
                best = min(rivals, key=lambda rival: samples[rival].median)
                ratio = samples[best].ratio_to(samples[ours])
                found = f"{samples[ours].median:.1f} ms; the fastest peer ({best}) {samples[best].median:.1f} ms"
                if name == "launch" and ratio < 1:
                    # The peer's call returns when the command is in a queue. Outlive's call returns when the command
                    # runs. So the peer's call may return sooner than a bare fork and exec could start the command.
                    found += f", but {results.start[best].median:.1f} ms until the command runs"
                    found += f" ({results.start[DIRECT].median:.1f} ms without a supervisor)"
                what = f"{name} {way}: faster than every peer with a durable record"
                yield Goal(what, f"{found}; x{ratio:.1f} in the same rounds", "more than x1", ratio > 1)


def _rivals(results: Results) -> list[type[Peer]]:
    return [kind for kind in results.kinds if kind.name not in (CLI, SDK)]


def _like(kind: type[Peer], measure: str) -> str:
    """Return which interface of Outlive a peer is compared with: the CLI or the SDK."""
    is_inside = kind.waits_inside if measure == "completion" else kind.is_warm
    return SDK if is_inside else CLI


def ahead_of_us(results: Results) -> Iterator[str]:
    """Yield a sentence for each peer that is faster than Outlive in a measure.

    Peers that are called as a command are compared with Outlive's CLI. Peers that a running program calls are compared
    with Outlive's SDK. The factor in the sentence is computed only from the rounds in which both programs ran.
    """
    for measure in _MEASURES:
        samples: dict[str, Samples] = getattr(results, measure)
        for kind in _rivals(results):
            ours = _like(kind, measure)
            if (ratio := samples[kind.name].ratio_to(samples[ours])) < 1:
                yield _sentence(measure, kind, samples[kind.name].median, ours, samples[ours].median, 1 / ratio)
    for kind in _rivals(results):
        ours = _like(kind, "short tasks")
        mine, theirs = results.rates[ours].ms, results.rates[kind.name].ms
        if theirs < mine:
            yield _sentence("short tasks", kind, theirs, ours, mine, mine / theirs)


def _sentence(measure: str, kind: type[Peer], theirs: float, ours: str, mine: float, factor: float) -> str:  # noqa: PLR0917
    kept = "durable" if kind.is_durable else "not durable"
    return f"{measure}: {kind.name} ({kept}) {theirs:.1f} ms, {ours} {mine:.1f} ms: x{factor:.1f}"
