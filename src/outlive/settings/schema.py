"""Every key of the user's settings file: its type, range, default and meaning.

`read_settings` accepts what is listed here and nothing else, and the page docs/reference/settings.md is made from it.
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

MOST = 1 << 53  # a larger number is not exact in JSON


class Key(Value):
    """One key: what its value may be, and what it means."""

    name: str
    kind: Kind
    help: str
    default: object = None
    """The value that a missing key stands for. None if it then says nothing."""
    choices: tuple[str, ...] = ()
    """The values of a key of the kind `choice`. For a `template`, what must be in one of its texts."""


class Table(Value):
    """A table of keys, or of tables that the user names."""

    name: str
    help: str
    keys: tuple[Key, ...]
    entry: str | None = None
    """For a table of named tables: what to write for the name in the documentation."""
    names: tuple[str, ...] = ()
    """The only names that its tables may have. Empty if they are free."""
    tables: tuple[Table, ...] = ()


KIND_TEXTS: dict[Kind, str] = {
    "text": "text",
    "texts": "list of texts",
    "whole": "whole number, 1 or more",
    "money": "number above 0",
    "yes_no": "true or false",
    "duration": "duration, such as `90s`, `15m` or `2h`",
    "choice": "",
    "program": "list of texts; the first is a name on PATH or an absolute path",
    "template": "list of texts",
    "conditions": "table of texts, numbers, or true or false",
}

_FALLBACK = "Models to try in this order if the chosen one is unavailable, each as `MODEL` or `CLIENT:MODEL`."
_LIMITS = (
    Key(name="budget_usd", kind="money", help="The cost in US dollars at which an agent is ended."),
    Key(name="max_tokens", kind="whole", help="The number of tokens at which an agent is ended."),
    Key(name="max_turns", kind="whole", help="The number of turns at which an agent is ended."),
)
_CHOICE = (
    Key(name="client", kind="text", help="The client to start."),
    Key(name="model", kind="text", help="The model, as its client names it, or `CLIENT:MODEL`."),
    Key(
        name="unstable",
        kind="yes_no",
        default=False,
        help="Whether this table's own `model` is unstable. It says nothing about another model that runs instead.",
    ),
    Key(name="fallback", kind="texts", help=_FALLBACK),
)
_PATH = "A path such as `message.text` names a nested field."
LINES = Table(
    name="lines",
    entry="SIGN",
    names=("answer", "text", "tool", "result", "usage", "error", "question"),
    help=(
        "What a line of the program's output means: the final `answer`, `text`, a `tool` call, the `result` of a tool, "
        f"`usage`, an `error` or a `question`. {_PATH}"
    ),
    keys=(
        Key(name="when", kind="conditions", help="Fields that must have these values."),
        Key(name="text", kind="text", help="The field with the text."),
        Key(name="name", kind="text", help="The field with the name of the tool."),
        Key(name="input", kind="text", help="The field with the tool's input, or with the input tokens."),
        Key(name="id", kind="text", help="The field with the id of the tool call."),
        Key(name="output", kind="text", help="The field with the output tokens."),
        Key(name="cost", kind="text", help="The field with the cost in US dollars."),
        Key(
            name="total",
            kind="yes_no",
            default=False,
            help="Whether tokens and cost are those of the whole run, not of one line.",
        ),
    ),
)
DESCRIBED_ONLY = ("prompt", "model_arguments", "resume", "session", "lines")
"""The keys of clients that have no adapter of their own."""
CLIENTS = Table(
    name="clients",
    entry="NAME",
    help=(
        "One table per client. Any name that is not a client of Outlive describes a program that prints JSON Lines; it "
        "needs `command`, and only it may have `prompt`, `model_arguments`, `resume`, `session` and `lines`."
    ),
    keys=(
        Key(name="command", kind="program", help="The program and its first arguments."),
        Key(name="arguments", kind="texts", help="Further arguments."),
        Key(name="model", kind="text", help="The client's default model."),
        Key(name="provider", kind="text", help="The provider of the client's models, whose agents are counted."),
        Key(
            name="at_once",
            kind="whole",
            help="How many agents of each model of this client run at once. Without it, `agents.at_once` holds.",
        ),
        Key(
            name="prompt",
            kind="choice",
            choices=("stdin", "argument"),
            default="stdin",
            help="Whether the prompt is the program's standard input or its last argument.",
        ),
        Key(
            name="model_arguments",
            kind="template",
            choices=("{model}",),
            help="Arguments that are added if a model is asked for. `{model}` stands for its name.",
        ),
        Key(
            name="resume",
            kind="template",
            choices=("{session}",),
            help="Arguments that resume a session. `{session}` stands for its id. Without it, none can be resumed.",
        ),
        Key(name="session", kind="text", help=f"The field with the session's id, in any line. {_PATH}"),
    ),
    tables=(LINES,),
)
MODELS = Table(
    name="models",
    entry='"CLIENT:MODEL"',
    help='One table per model. `"MODEL"` stands for that model with any client; `"CLIENT:MODEL"` goes before it.',
    keys=(
        Key(
            name="unstable",
            kind="yes_no",
            help="Whether this model is unstable, wherever the choice comes from, so that its silence is cut short.",
        ),
        Key(
            name="at_once",
            kind="whole",
            help="How many agents of this model run at once. Without it, the client's `at_once` holds.",
        ),
    ),
)
CATEGORIES = Table(
    name="categories",
    entry="NAME",
    help="One table per category. `outlive agent --category NAME` takes it.",
    keys=(*_CHOICE, *_LIMITS),
)
PROJECTS = Table(
    name="projects",
    entry='"/absolute/path"',
    help=(
        "One table per directory. It holds for tasks whose project is that directory or lies below it. The longest "
        "path wins. It goes before the category, and an option goes before it."
    ),
    keys=_CHOICE,
)
AGENTS = Table(
    name="agents",
    help="Agent tasks. The limits hold for agents whose command or category names none.",
    keys=(
        Key(name="client", kind="text", default=AgentSettings.client, help="The client that is started by default."),
        Key(
            name="depth",
            kind="whole",
            default=AgentSettings.depth,
            help="How deep agents may launch further agents.",
        ),
        Key(
            name="at_once",
            kind="whole",
            default=AgentSettings.at_once,
            help="How many agents of one model run at once. The others wait in order.",
        ),
        Key(
            name="at_once_per_provider",
            kind="whole",
            default=AgentSettings.at_once_per_provider,
            help=(
                "How many agents of all models of one provider run at once. They then begin in the order of their"
                " launch, whichever model they use."
            ),
        ),
        Key(
            name="most_calls",
            kind="whole",
            default=AgentSettings.most_calls,
            help="The number of tool calls after which an agent is ended as a runaway.",
        ),
        *_LIMITS,
        Key(name="idle_timeout", kind="duration", help="How long an agent may make no progress before it is ended."),
        Key(name="fallback", kind="texts", default=AgentSettings.fallback, help=_FALLBACK),
    ),
    tables=(CLIENTS, MODELS, CATEGORIES, PROJECTS),
)
ROOT = Table(name="", help="", keys=(), tables=(AGENTS,))
