"""Complete values of the domain for tests. A test changes only the fields that it is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from outlive.domain.git.snapshot import GitState
from outlive.domain.tasks.evidence import Evidence, Intent
from outlive.domain.tasks.task import Attempt, Launch, LeftRunning

NOW = datetime(2026, 6, 21, 13, 58, 2, 113_000, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD = "1a2b3c4d" * 5


def launch(**changes: Any) -> Launch:
    """Return a launch in which some fields were changed."""
    plain = Launch(
        id="t7k2m9q4",
        command="make test",
        argv=("make", "test"),
        cwd="/home/u/repo",
        project="/home/u/repo",
        host="box",
        created_at=NOW,
        max_output=1 << 20,
        retain=timedelta(days=7),
    )
    return plain.but(**changes)


def attempt(number: int = 1, **changes: Any) -> Attempt:
    """Return an attempt that has just been recorded."""
    plain = Attempt(number=number, state="queued", created_at=NOW, boot="boot-1", pid_namespace=4026)
    return plain.but(**changes)


def exited(code: int = 0, **changes: Any) -> Evidence:
    """Return the evidence of a witness that saw the command exit."""
    seen = Evidence(kind="exited", seen_by="witness", exit_code=code, at=NOW + 2 * SECOND)
    return seen.but(**changes)


def vanished(**changes: Any) -> Evidence:
    """Return the evidence for an end that no process saw."""
    return Evidence(kind="vanished", seen_by="reconciler", cause="keeper_killed").but(**changes)


# --- strategies for evidence, intents and surviving processes -----------------------------------

moments = st.integers(-(10**12), 10**12).map(lambda micros: NOW + timedelta(microseconds=micros))
_details = st.none() | st.text(max_size=5)

exits = st.builds(
    Evidence,
    kind=st.just("exited"),
    seen_by=st.sampled_from(["witness", "keeper"]),
    exit_code=st.integers(0, 255),
    detail=_details,
    at=st.none() | moments,
)
signals = st.builds(
    Evidence,
    kind=st.just("signalled"),
    seen_by=st.sampled_from(["witness", "keeper"]),
    signal=st.integers(1, 64),
    detail=_details,
    at=st.none() | moments,
)
failed_starts = st.builds(
    Evidence,
    kind=st.just("not_started"),
    seen_by=st.just("keeper"),
    started=st.just("no"),
    detail=_details,
)
disappearances = st.builds(
    Evidence,
    kind=st.just("vanished"),
    seen_by=st.just("reconciler"),
    started=st.sampled_from(["yes", "no", "unknown"]),
    cause=st.none() | st.sampled_from(["reboot", "keeper_killed"]),
    detail=_details,
)
# A command that was never started cannot have exited.
evidence_while = {
    "queued": failed_starts | disappearances,
    "running": exits | signals | failed_starts | disappearances,
}
intents = st.builds(
    Intent,
    kind=st.sampled_from(["cancel", "timeout", "output_limit", "session_ended"]),
    at=moments,
)
remnants = st.lists(st.builds(LeftRunning, pid=st.integers(2, 1 << 22), command=st.text(max_size=5)), max_size=2).map(
    tuple
)


def git_state(**fields: object) -> GitState:
    """Return the state of a repository on main."""
    given: dict[str, object] = {
        "top": "/r",
        "git_dir": "/r/.git",
        "common_dir": "/r/.git",
        "identity": "1",
        "head": OLD,
        "branch": "refs/heads/main",
        "refs": {"refs/heads/main": OLD},
        "config": "c",
    }
    return GitState(**(given | fields))  # type: ignore[arg-type]
