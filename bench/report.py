"""The report of a benchmark run: a page, the samples as JSON, and plots."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import statistics
from typing import TYPE_CHECKING, NamedTuple

import goals
import plot
from stages.failed import FILES as LEFT_FILES
from stages.failed import TASKS as TASKS_FAILED
from stages.hooks import TASKS
from stages.launch import BARE, DIRECT
from stages.listing import SIZES
from stages.requests import TASKS as TASKS_WAITED_FOR
from stages.telling import FEW, MANY, VERBS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from measure import Samples
    from peers.protocol import Peer
    from stages.failed import AfterFailures
    from stages.hooks import Hooks
    from stages.line import Queued
    from stages.listing import Listing
    from stages.masking import Masking
    from stages.memory import Memory
    from stages.observing import Observed
    from stages.observing_memory import Added
    from stages.requests import Session
    from stages.survival import Fate
    from stages.telling import Tellings
    from stages.throughput import Rate

_HEAD = """# Outlive compared with its peers

Written by `make bench` on {when}: {cores} cores, Linux {kernel}, Python {python}, {rounds} rounds. The load
average before the run was {load:.1f}. Other virtual machines used {stolen:.1%} of the processor time.
How each number is measured: [benchmarks](../../docs/explanation/benchmarks.md).
All samples: [results.json](results.json).
Compare the ratios, not the milliseconds. The machine is shared, but a disturbance affects a measured call and its
floor in the same round alike. The floor is the same work without the measured program.
"""


class Results(NamedTuple):
    """The results of all parts of one benchmark run."""

    rounds: int
    load: float
    stolen: float
    kinds: list[type[Peer]]
    launch: dict[str, Samples]
    start: dict[str, Samples]
    completion: dict[str, Samples]
    rates: dict[str, Rate]
    listing: Listing
    telling: Tellings
    hooks: Hooks
    after_failures: AfterFailures
    masking: Masking
    observing: Observed
    observing_memory: Added
    memory: dict[str, Memory]
    fates: list[Fate]
    syncs: tuple[int, float]
    calls: int
    queued: Queued
    requests: list[Session]
    missing: dict[str, str]


def write(results: Results, directory: Path) -> str:
    """Write the result page, the samples and the plots, and return the page's text."""
    directory.mkdir(exist_ok=True)
    shades = {kind.name: _shade(kind) for kind in results.kinds}
    for name, title, samples in (
        ("launch", "Launch: until the submit returns", results.launch),
        ("start", "Start: from the submit to the first instruction", results.start),
        ("completion", "Completion: from the last instruction until the waiter returns", results.completion),
    ):
        shown = [
            plot.Row(_plain(case), each.median, each.p95, shades.get(case, "floor")) for case, each in samples.items()
        ]
        (directory / f"{name}.svg").write_text(plot.draw(title, shown))
    (directory / "results.json").write_text(json.dumps(_raw(results), indent=1) + "\n")
    page = "\n".join(
        (
            _head(results),
            _goals(results),
            _numbers(results),
            _lists(results),
            _tellings(results),
            _hooks(results),
            _after_failures(results),
            _observed(results),
            _fates(results),
            _requests(results),
            _missing(results),
        )
    )
    (directory / "results.md").write_text(page)
    return page


def _shade(kind: type[Peer]) -> str:
    if kind.name.startswith("Outlive"):
        return "ours"
    return "durable" if kind.is_durable else "other"


def _plain(name: str) -> str:
    return name.replace("`", "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def _head(results: Results) -> str:
    return _HEAD.format(
        when=dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        cores=os.cpu_count(),
        kernel=platform.release(),
        python=platform.python_version(),
        rounds=results.rounds,
        load=results.load,
        stolen=results.stolen,
    )


def _goals(results: Results) -> str:
    rows = [
        (goal.what, goal.found, goal.bound, "met" if goal.is_met else "**missed**") for goal in goals.check(results)
    ]
    ahead = "\n".join(f"- {line}" for line in goals.ahead_of_us(results))
    return (
        "## Goals\n\n" + _table(("what", "found", "goal", ""), rows)
        + "\n## Peers that are faster than Outlive\n\n"
        + "These are medians of the same run. A peer's command is compared with Outlive's CLI, and a call from a\n"
        + "running program is compared with Outlive's SDK.\n\n"
        + (ahead or "- none") + "\n"
    )  # fmt: skip


def _numbers(results: Results) -> str:
    head = (
        "",
        "record",
        "launch",
        "start",
        "completion",
        "the waiter",
        "per short task",
        "PSS per running task",
        "PSS idle",
    )
    rows = [
        (f"floor: {BARE}", "", _cell(results.launch[BARE], None), "", "", "", "", "", ""),
        (
            f"floor: {DIRECT}",
            "none",
            _cell(results.launch[DIRECT], results.launch[BARE]),
            _cell(results.start[DIRECT], None),
            _cell(results.completion[DIRECT], None),
            "`waitpid`",
            f"{statistics.median(rate.floor_ms for rate in results.rates.values()):.1f} ms",
            "",
            "",
        ),
    ]
    for kind in results.kinds:
        rate, memory = results.rates[kind.name], results.memory[kind.name]
        rows.append(
            (
                kind.name,
                kind.record,
                _cell(results.launch[kind.name], results.launch[BARE]),
                _cell(results.start[kind.name], results.start[DIRECT]),
                _cell(results.completion[kind.name], results.completion[DIRECT]),
                kind.waiter,
                f"{rate.ms:.1f} ms x{rate.ms / rate.floor_ms:.1f} ({rate.tasks:,} tasks)",
                f"{memory.task_kb:,.0f} kB ({memory.tasks} tasks)",
                f"{memory.base_kb / 1024:.1f} MB",
            )
        )
    plots = "\n".join(f"![{name}]({name}.svg)\n" for name in ("launch", "start", "completion"))
    return (
        "## The numbers\n\nTimes are median / p95 in ms, followed by the median ratio to the floor of the same round."
        " The floor of a\nlaunch is a bare interpreter. The floor of all other times is the command itself, started"
        " without a supervisor.\n\n"
        + _table(head, rows) + "\n" + plots
    )  # fmt: skip


def _cell(samples: Samples, floor: Samples | None) -> str:
    ratio = "x1" if floor is None else f"x{samples.ratio_to(floor):.2f}"
    return f"{samples.median:.1f} / {samples.p95:.1f}, {ratio}"


def _lists(results: Results) -> str:
    found = results.listing
    rows = [
        (
            "`outlive list`, the whole call, which shows 20 tasks",
            *(_cell(found.calls[size], found.bare) for size in SIZES),
        ),
        ("the query of 20 tasks alone, inside a process", *(f"{found.queries[size].median:.3f}" for size in SIZES)),
    ]
    for kind in results.kinds:
        if any(by_size := found.peers[kind.name]):
            cells = (_cell(by_size[size], None).rpartition(",")[0] if size in by_size else "-" for size in SIZES)
            rows.append(
                (
                    f"{kind.name}, shows all records"
                    + (" (in process)" if kind.is_warm or "huey" in kind.name else ""),
                    *cells,
                )
            )
    return (
        "## Listing\n\nTimes are median / p95 in ms. Outlive's times are followed by the ratio to a bare"
        " interpreter.\n"
        "`-` means that the peer could not be filled within a minute, or has no list.\n\n"
        + _table(("records", *(f"{size:,}" for size in SIZES)), rows)
    )  # fmt: skip


def _tellings(results: Results) -> str:
    few, many = results.telling
    rows = [
        (verb, f"{few[verb].median:.2f}", f"{many[verb].median:.2f}", f"x{many[verb].median / few[verb].median:.2f}")
        for verb in VERBS
    ]
    return (
        "## Inbox, gate and hand-off\n\nMedians in ms inside the process, for a session with three pending notices and"
        " one running task.\n\n"
        + _table(("", *(f"{tasks:,} tasks, {sessions:,} sessions" for tasks, sessions in (FEW, MANY)), "ratio"), rows)
    )  # fmt: skip


def _hooks(results: Results) -> str:
    found = results.hooks
    rows = [
        (
            name,
            f"{found.quiet[name].median:.1f}, x{found.quiet[name].ratio_to(found.bare):.2f}"
            if name in found.quiet
            else "-",
            f"{samples.median:.1f}, x{samples.ratio_to(found.bare):.2f}",
        )
        for name, samples in found.committed.items()
    ]
    return (
        f"## Hooks\n\nMedians in ms until a client has the hook's answer, and the ratio to a bare interpreter"
        f" ({found.bare.median:.1f} ms), with {TASKS:,} tasks in the ledger.\n\n"
        + _table(("event", "nothing new", "after a commit"), rows)
    )  # fmt: skip


def _after_failures(results: Results) -> str:
    found = results.after_failures
    rows = [
        (what, f"{samples.median:.1f}", f"x{samples.ratio_to(found.none):.2f}")
        for what, samples in (
            ("an edit of an untouched file, no task has failed", found.none),
            (f"an edit of an untouched file, {TASKS_FAILED} tasks have failed", found.many),
            (f"an edit of an untouched file, one more failed task has rewritten {LEFT_FILES:,} files", found.files),
            ("an edit of one of the rewritten files", found.told),
            ("a shell command, after the same task, in a session that was notified", found.command),
            ("a shell command, after the same task, in a session that was not notified", found.first_command),
            (f"a shell command, {TASKS_FAILED} tasks have failed, in such a session", found.first_of_many),
            ("an edit of an untouched file, while a task sleeps", found.idle),
            ("a shell command, while a task sleeps", found.idle_command),
            (f"an edit of an untouched file, while a task runs that has rewritten {LEFT_FILES:,} files", found.running),
            ("a shell command, while the same task runs", found.running_command),
            ("an edit of one of the rewritten files, while the same task runs", found.running_told),
        )
    ]
    rows += [
        (f"`{verb}`, {when}", f"{samples.median:.1f}", f"x{samples.ratio_to(quiet):.2f} to no failed task")
        for verb, quiet, files, running in (
            ("gate", found.gate, found.gate_files, found.gate_running),
            ("hand-off", found.hand_off, found.hand_off_files, found.hand_off_running),
        )
        for when, samples in (
            ("no task has failed", quiet),
            ("a failed task has rewritten all files", files),
            ("a running task has rewritten all files", running),
        )
    ]
    return (
        "## The hook before a tool call, after failed tasks\n\nMedians in ms until a client has the hook's answer.\n\n"
        + _table(("what", "ms", "ratio to the first row"), rows)
    )


def _observed(results: Results) -> str:
    found = results.observing
    rows = [
        (
            name,
            str(len(found.observed[name].ms)),
            _spread(found.plain[name]),
            f"x{found.observed[name].ratio_to(found.plain[name]):.2f}",
            f"x{found.traced[name].ratio_to(found.plain[name]):.2f}" if found.traced[name].ms else "-",
        )
        for name in found.plain
    ]
    return (
        "## Observing\n\nEach ratio compares the same work in the same round with its unobserved time: once observed by"
        " Outlive, and once under `strace -f --seccomp-bpf`. If the unobserved times differ much, the ratio is not"
        " reliable.\n\n"
        + _table(("work", "runs", "unobserved", "observed", "strace"), rows)
    )  # fmt: skip


def _spread(samples: Samples) -> str:
    return f"{samples.median / 1000:.2f} s ({min(samples.ms) / 1000:.2f} to {max(samples.ms) / 1000:.2f})"


def _fates(results: Results) -> str:
    return (
        "## After SIGKILL of the processes that look after a running task\n\n"
        "The task runs for 1.5 s, prints twice and exits with 7. Its exit code and output are read after its end, when"
        " the\nserver runs again. A waiter that was notified of the end is `told`. A waiter that still waited after 4 s"
        " is `blocked`.\n\n"
        + _table(("peer", "killed", "the task", "its exit code", "its output", "the waiter"), results.fates)
    )


def _requests(results: Results) -> str:
    rows = [
        (each.client, each.mode, TASKS_WAITED_FOR[each.task], str(each.requests), f"{each.characters:,}")
        for each in results.requests
    ]
    head = ("client", "session", "task", "requests", "characters of all requests")
    return "## Model requests of a session with one task\n\n" + (_table(head, rows) if rows else "Not counted.\n")


def _missing(results: Results) -> str:
    lines = "\n".join(f"- {name}: {why}" for name, why in results.missing.items())
    return f"## Not measured\n\n{lines or '- none'}\n"


def _raw(results: Results) -> dict[str, object]:
    """Return the results as JSON. Times are in milliseconds, one for each round."""
    timed = {
        name: {case: samples.by_round for case, samples in getattr(results, name).items()}
        for name in ("launch", "start", "completion")
    }
    listing = results.listing
    return {
        "rounds": results.rounds,
        "load": results.load,
        "stolen": results.stolen,
        **timed,
        "short_tasks": {name: rate._asdict() for name, rate in results.rates.items()},
        "memory": {name: memory._asdict() for name, memory in results.memory.items()},
        "list": {
            "bare": listing.bare.ms,
            "outlive": {size: samples.ms for size, samples in listing.calls.items()},
            "query": {size: samples.ms for size, samples in listing.queries.items()},
            "peers": {name: {size: each.ms for size, each in sizes.items()} for name, sizes in listing.peers.items()},
        },
        "telling": {
            name: {verb: samples.ms for verb, samples in found.items()}
            for name, found in results.telling._asdict().items()
        },
        "hooks": {
            "bare": results.hooks.bare.ms,
            **{
                name: {event: samples.ms for event, samples in getattr(results.hooks, name).items()}
                for name in ("quiet", "committed")
            },
        },
        "after_failures": {name: samples.ms for name, samples in results.after_failures._asdict().items()},
        "observing": {
            name: {work: samples.ms for work, samples in found.items()}
            for name, found in results.observing._asdict().items()
        },
        "observing_memory": results.observing_memory._asdict(),
        "survival": [fate._asdict() for fate in results.fates],
        "syncs": {"count": results.syncs[0], "ms": results.syncs[1] * 1000},
        "system_calls_of_a_waiter": results.calls,
        "missing": results.missing,
    }
