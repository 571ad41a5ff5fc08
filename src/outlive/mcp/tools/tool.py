"""The definition of an MCP tool: its arguments, and the function that it calls.

The function returns text and JSON. It runs in a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import mcp_types as types
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from outlive.domain.errors import UserError
from outlive.domain.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import timedelta

    from outlive.bundle.home import Home
    from outlive.mcp.answer import Answer
    from outlive.mcp.caller import Caller

TaskSupport = Literal["forbidden", "optional", "required"]


class Arguments(BaseModel):
    """The base class for the arguments of a tool.

    An unknown argument is an error. Otherwise, a model that guesses the name of an argument would not notice the
    mistake.
    """

    model_config = ConfigDict(extra="forbid")


Id = Annotated[str, Field(description="a task's id, or a unique prefix of it")]


class OneTask(Arguments):
    """The arguments of a tool that needs only the id of a task."""

    id: Id


class Call(Value):
    """One call of a tool: its caller, and the state directory."""

    home: Home
    caller: Caller
    environ: Mapping[str, str]


class Tool(Value):
    """One tool of the MCP server."""

    name: str
    title: str
    description: str
    takes: type[Arguments] = Arguments
    """The arguments. By default, the tool takes none."""
    act: Callable[[Call, Any], Answer]
    """The function that runs a call and returns the reply. It may block, because it runs in a thread."""
    launch: Callable[[Call, Any, timedelta | None], str] | None = None
    """The function that launches a task for a client that polls the task, and returns the task's id.

    Its last argument is how long the task's record must be kept at least. If `launch` is None, the tool launches no
    task.
    """
    task_support: TaskSupport = "forbidden"
    is_patient: bool = False
    """Whether a call may block for many seconds. Such calls run in threads of their own, so that other calls need not
    wait.
    """
    reads_only: bool = True
    destroys: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the tool's arguments."""
        found: dict[str, Any] = _lean(self.takes.model_json_schema())
        return {key: each for key, each in found.items() if key != "description"}

    def definition(self) -> types.Tool:
        """Return the tool's definition as `tools/list` shows it."""
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
        """Return the arguments of a call after a check.

        Raises `UserError` for the first wrong argument.
        """
        try:
            return self.takes.model_validate(dict(given or {}))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"])) or "the arguments"
            raise UserError(
                f"{self.name}: {where}: {first['msg']}",
                f"{self.name} takes: {', '.join(self.takes.model_fields) or 'nothing'}",
            ) from None


class LaunchTool(Tool):
    """A tool that launches a task. A client may follow the task as an MCP task."""

    task_support = "optional"
    is_patient = True
    reads_only = False
    destroys = True


def _lean(schema: Any) -> Any:
    """Return a JSON schema without titles, nulls and empty defaults.

    A model does not need them, and they would make every request to the model longer.
    """
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
