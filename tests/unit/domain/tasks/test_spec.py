"""The specification of a launch, as its bundle stores it."""

from __future__ import annotations

import json
from datetime import timedelta

from outlive.domain.tasks.queueing import Claim, Dependency
from outlive.domain.tasks.spec import launch_from_spec, spec_of
from outlive.domain.text.sanitize import to_json
from tests.unit.values import launch

FULL = launch(
    description="for the tests",
    session="s-1",
    group="g",
    key="k",
    timeout=timedelta(seconds=90),
    idle_timeout=timedelta(minutes=5),
    queue_timeout=timedelta(hours=1),
    retries=3,
    after=(Dependency(task="tdep"), Dependency(task="tany", any_ending=True)),
    claims=(Claim(name="lock:x", room=1),),
    touches=("/home/u/repo/src", "/odd/\udcff"),
)


def test_a_launch_is_read_back_as_it_was_written() -> None:
    """A launch that is written as JSON and read back has the same value in every field."""
    assert launch_from_spec(json.loads(to_json(spec_of(FULL)))) == FULL
    assert launch_from_spec(json.loads(to_json(spec_of(launch())))) == launch()


def test_an_older_and_a_newer_spec_can_be_read() -> None:
    """A specification of another version can be read: a missing field has its default, an unknown one is ignored."""
    spec = json.loads(to_json(spec_of(launch())))
    for name in ("after", "claims", "touches", "retries", "idle_timeout", "queue_timeout"):
        del spec[name]
    assert launch_from_spec({**spec, "of_the_future": 1}) == launch()
