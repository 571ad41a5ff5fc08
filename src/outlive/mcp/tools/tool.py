"""What a tool is: a verb with a schema, called in a thread, answering in words and JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import mcp_types as types
from pydantic import BaseModel, ConfigDict, ValidationError

from outlive.domain.errors import UserError
from outlive.domain.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.mcp.sessions import Caller
    from outlive.mcp.words import Answer

TaskSupport = Literal["forbidden", "optional", "required"]


class Arguments(BaseModel):
    """What a tool takes; anything else is an error, because a model that guesses should be told."""

    model_config = ConfigDict(extra="forbid")


class Call(Value):
    """One call of a tool: for whom, and with which state directory."""

    home: Home
    caller: Caller
    environ: Mapping[str, str]


class Tool(Value):
    """One tool."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    act: Callable[[Call, Any], Answer]
    """Blocks; called in a thread."""
    launch: Callable[[Call, Any, timedelta | None], str] | None = None
    """Starts a task, kept at least so long, and returns its id; for clients that want to follow it themselves."""
    task_support: TaskSupport = "forbidden"
    is_patient: bool = False
    """It may block for as long as a slice."""
    reads_only: bool = True
    destroys: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of what it takes."""
        found: dict[str, Any] = _lean(self.takes.model_json_schema())
        return {key: each for key, each in found.items() if key != "description"}

    def definition(self) -> types.Tool:
        """The tool as the protocol lists it."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.schema,
            execution=types.ToolExecution(task_support=self.task_support) if self.launch is not None else None,
            annotations=types.ToolAnnotations(
                read_only_hint=self.reads_only,
                destructive_hint=self.destroys,
                open_world_hint=self.launch is not None,
            ),
        )

    def check(self, given: Mapping[str, Any] | None) -> Arguments:
        """The arguments, or a `UserError` that says what is wrong with the first of them."""
        try:
            return self.takes.model_validate(dict(given or {}))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the arguments"
            raise UserError(
                f"{self.name}: {where}: {first['msg']}",
                f"{self.name} takes: {', '.join(self.takes.model_fields) or 'nothing'}",
            ) from None


def _lean(schema: Any) -> Any:
    """A schema without what every call would cost and no model needs: titles, nulls, defaults that say nothing."""
    if isinstance(schema, list):
        return [_lean(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _lean(each) for key, each in schema.items() if key != "title" or not isinstance(each, str)}
    if "default" in kept and not kept["default"]:
        del kept["default"]
    choices = kept.get("anyOf", [])
    if {"type": "null"} in choices:
        choices.remove({"type": "null"})
        if len(choices) == 1:
            kept.update(choices[0])
            del kept["anyOf"]
    return kept
