"""The JSON that describes the launch of a task. It is stored in the task's bundle.

A lost ledger is rebuilt from the JSON in all bundles.
"""

from __future__ import annotations

from outlive.domain.tasks.task import Launch
from outlive.domain.timestamps import from_micros, timedelta, to_micros

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SPANS = ("timeout", "idle_timeout", "queue_timeout", "retain")


def spec_of(launch: Launch) -> dict[str, object]:
    """Return every field of a launch as JSON values, with times in microseconds."""
    spec = dict(launch.__dict__)
    spec["created_at"] = to_micros(launch.created_at)
    for name in _SPANS:
        length: timedelta | None = spec[name]
        spec[name] = None if length is None else length // timedelta(microseconds=1)
    spec["after"] = [[each.task, each.any_ending] for each in launch.after]
    spec["claims"] = [[each.name, each.room] for each in launch.claims]
    if launch.agent is not None:
        from outlive.domain.agents.request import request_json  # noqa: PLC0415 - only agent tasks need this import

        spec["agent"] = request_json(launch.agent)
    return spec


def launch_from_spec(spec: dict[str, Any]) -> Launch:
    """Return the launch that JSON values from a bundle describe.

    A field that an older version of Outlive did not write gets its default. Unknown fields of a newer version are left
    out. Raises `KeyError`, `TypeError` or `ValueError` if the values are not valid.
    """
    from outlive.domain.tasks.queueing import Claim, Dependency  # noqa: PLC0415 - only a rebuild of the ledger needs this import

    known = {name: value for name, value in spec.items() if name in Launch._fields}
    known["created_at"] = from_micros(int(spec["created_at"]))
    for name in _SPANS:
        if known.get(name) is not None:
            known[name] = timedelta(microseconds=int(known[name]))
    known["argv"] = tuple(map(str, spec["argv"]))
    known["touches"] = tuple(map(str, spec.get("touches", ())))
    known["after"] = tuple(Dependency(task=task, any_ending=bool(any_)) for task, any_ in spec.get("after", ()))
    known["claims"] = tuple(Claim(name=name, room=int(room)) for name, room in spec.get("claims", ()))
    if known.get("agent") is not None:
        from outlive.domain.agents.request import request_from  # noqa: PLC0415 - only agent tasks need this import

        known["agent"] = request_from(known["agent"])
    return Launch(**known)
