"""A list of all keys of the settings file: type, range, default and meaning.

`read_settings` refuses every other key. `make docs` writes docs/reference/settings.md from this list.
"""

from __future__ import annotations

from outlive.domain.agents.agent_settings import AgentSettings
from outlive.domain.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal[
        "text", "texts", "whole", "money", "yes_no", "duration", "choice", "program", "template", "conditions"
    ]

MOST = 1 << 53  # many programs cannot read a larger number from JSON exactly


class Key(Value):
    """One key of the settings: its name, the values that it may have, and its meaning."""

    name: str
    kind: Kind
    help: str
    default: object = None
    """The value if the key is missing, or None if there is no default."""
    choices: tuple[str, ...] = ()
    """The values that a key of the kind `choice` may have.

    If the key is of the kind `template`, at least one text of its list must contain each of these choices.
    """


class Table(Value):
    """A table of the settings, with keys, or with tables that the user names."""

    name: str
    help: str
    keys: tuple[Key, ...]
    entry: str | None = None
    """If the user names the tables in this table: the placeholder for the name in the documentation."""
    names: tuple[str, ...] = ()
    """The names that the tables in this table may have. Empty if every name is allowed."""
    tables: tuple[Table, ...] = ()


KIND_TEXTS: dict[Kind, str] = {
    "text": "text",
    "texts": "list of texts",
    "whole": "whole number, 1 or more",
    "money": "number above 0",
    "yes_no": "true or false",
    "duration": "duration, such as `90s`, `15m` or `2h`",
    "choice": "",
    "program": "list of texts, the first of which is a name on PATH or an absolute path",
    "template": "list of texts",
    "conditions": "table of texts, numbers, or true or false",
}

_FALLBACK = (
    "The models to try, in this order, if the chosen model is unavailable. Write a model as `MODEL` or `CLIENT:MODEL`."
)
_LIMITS = (
    Key(
        name="budget_usd",
        kind="money",
        help="The highest cost of an agent in US dollars. Above it, the agent is ended.",
    ),
    Key(
        name="max_tokens", kind="whole", help="The highest number of tokens of an agent. Above it, the agent is ended."
    ),
    Key(name="max_turns", kind="whole", help="The highest number of turns of an agent. Above it, the agent is ended."),
)
_CHOICE = (
    Key(name="client", kind="text", help="The client to start."),
    Key(name="model", kind="text", help="The model, as its client names it, or `CLIENT:MODEL`."),
    Key(
        name="unstable",
        kind="yes_no",
        default=False,
        help=(
            "Whether the `model` of this table is unstable. An unstable model is ended earlier if it makes no progress."
            " The key does not concern another model that runs instead."
        ),
    ),
    Key(name="fallback", kind="texts", help=_FALLBACK),
)
_PATH = "A path such as `message.text` names a nested field."
LINES = Table(
    name="lines",
    entry="SIGN",
    names=("answer", "text", "tool", "result", "usage", "error", "question"),
    help=(
        "One table per kind of output line: the final `answer`, `text`, a `tool` call, the `result` of a tool, "
        f"`usage`, an `error` or a `question`. {_PATH}"
    ),
    keys=(
        Key(
            name="when",
            kind="conditions",
            help="The fields that a line of this kind has, each with its value.",
        ),
        Key(name="text", kind="text", help="The field with the text."),
        Key(name="name", kind="text", help="The field with the name of the tool."),
        Key(
            name="input",
            kind="text",
            help="In `tool`: the field with the tool's input. In `usage`: the field with the number of input tokens.",
        ),
        Key(name="id", kind="text", help="The field with the id of the tool call."),
        Key(name="output", kind="text", help="The field with the number of output tokens."),
        Key(name="cost", kind="text", help="The field with the cost in US dollars."),
        Key(
            name="total",
            kind="yes_no",
            default=False,
            help="Whether the tokens and the cost in a line are those of the whole run so far.",
        ),
    ),
)
DESCRIBED_ONLY = ("prompt", "model_arguments", "resume", "session", "lines")
"""The keys that are allowed only for clients without an adapter in Outlive."""
CLIENTS = Table(
    name="clients",
    entry="NAME",
    help=(
        "One table per client. If Outlive does not know NAME, the table describes a program that prints JSON Lines. "
        "Such a table must have `command`. Only such a table may have `prompt`, `model_arguments`, `resume`, "
        "`session` and `lines`."
    ),
    keys=(
        Key(name="command", kind="program", help="The program and its first arguments."),
        Key(name="arguments", kind="texts", help="Further arguments of the program."),
        Key(name="model", kind="text", help="The client's default model."),
        Key(
            name="provider",
            kind="text",
            help="The provider of the client's models. `agents.at_once_per_provider` counts the agents of a provider.",
        ),
        Key(
            name="at_once",
            kind="whole",
            help=(
                "How many agents of each model of this client run at once. Without this key, `agents.at_once` applies."
            ),
        ),
        Key(
            name="prompt",
            kind="choice",
            choices=("stdin", "argument"),
            default="stdin",
            help="Whether the program gets the prompt as its standard input or as its last argument.",
        ),
        Key(
            name="model_arguments",
            kind="template",
            choices=("{model}",),
            help=(
                "The arguments that are added if a model is chosen. `{model}` stands for the name of the model. "
                "Without this key, no model can be chosen."
            ),
        ),
        Key(
            name="resume",
            kind="template",
            choices=("{session}",),
            help=(
                "The arguments that resume a session. `{session}` stands for the id of the session. Without this key, "
                "no session can be resumed."
            ),
        ),
        Key(name="session", kind="text", help=f"The field, in any line, with the id of the session. {_PATH}"),
    ),
    tables=(LINES,),
)
MODELS = Table(
    name="models",
    entry='"CLIENT:MODEL"',
    help=(
        'One table per model. A table `"MODEL"` applies to this model with any client. '
        'A table `"CLIENT:MODEL"` has precedence over it.'
    ),
    keys=(
        Key(
            name="unstable",
            kind="yes_no",
            help=(
                "Whether this model is unstable, whichever source chose it. An unstable model is ended earlier if it "
                "makes no progress."
            ),
        ),
        Key(
            name="at_once",
            kind="whole",
            help="How many agents of this model run at once. Without this key, the `at_once` of the client applies.",
        ),
    ),
)
CATEGORIES = Table(
    name="categories",
    entry="NAME",
    help="One table per category. `outlive agent --category NAME` uses the table of this name.",
    keys=(*_CHOICE, *_LIMITS),
)
PROJECTS = Table(
    name="projects",
    entry='"/absolute/path"',
    help=(
        "One table per directory. The table applies to tasks whose project is this directory or is below it. If "
        "several tables apply, the one with the longest path is used. The table of a project has precedence over the "
        "category, and an option has precedence over both."
    ),
    keys=_CHOICE,
)
AGENTS = Table(
    name="agents",
    help="Settings of agent tasks. The limits apply if neither the command nor the category sets them.",
    keys=(
        Key(name="client", kind="text", default=AgentSettings.client, help="The client that is started by default."),
        Key(
            name="depth",
            kind="whole",
            default=AgentSettings.depth,
            help="How many tasks may be nested. No agent is launched from inside this many nested tasks.",
        ),
        Key(
            name="at_once",
            kind="whole",
            default=AgentSettings.at_once,
            help="How many agents of one model run at once. Further agents wait in the order of their launch.",
        ),
        Key(
            name="at_once_per_provider",
            kind="whole",
            default=AgentSettings.at_once_per_provider,
            help=(
                "How many agents of one provider run at once, whichever of its models they use. Further agents wait, "
                "and begin in the order of their launch."
            ),
        ),
        Key(
            name="most_calls",
            kind="whole",
            default=AgentSettings.most_calls,
            help="The number of tool calls at which an agent is ended, because it probably repeats itself.",
        ),
        *_LIMITS,
        Key(name="idle_timeout", kind="duration", help="The time without progress after which an agent is ended."),
        Key(name="fallback", kind="texts", default=AgentSettings.fallback, help=_FALLBACK),
    ),
    tables=(CLIENTS, MODELS, CATEGORIES, PROJECTS),
)
ROOT = Table(name="", help="", keys=(), tables=(AGENTS,))
