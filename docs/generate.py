"""The generator of the reference pages.

`make docs` runs it, and a test checks that the pages are current.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ForwardRef, is_typeddict

import outlive
from outlive.cli.main import VERBS, load
from outlive.cli.parser import HELP, JSON, option_help
from outlive.domain import errors
from outlive.domain.tasks.lifecycle import CONDITIONS, MOVES, TERMINAL
from outlive.mcp.resources import TEMPLATE
from outlive.mcp.tools.catalogue import TOOLS
from outlive.sdk import documents
from outlive.sdk.aio import AsyncOutlive, AsyncSession
from outlive.sdk.outlive import Outlive, Task
from outlive.sdk.session import Session
from outlive.settings.schema import AGENTS, KIND_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from outlive.settings.schema import Key, Table

HERE = Path(__file__).resolve().parent / "reference"
EXIT_CODES = (
    (0, "success; for `wait`, `result` and `run --wait`, every task succeeded"),
    (1, "a task did not succeed, or could not be started"),
    (2, "wrong usage, an unknown or ambiguous id, or an operation that the task's state does not allow"),
    (3, "an error of the environment (state directory, ledger, disk) or of Outlive itself"),
    (4, "the task still ran when the time of `wait --timeout` or `run --wait` was over"),
    (5, "the cancel failed, because a process of the task is still alive"),
)


def cli_page() -> str:
    """Return the page of the command line: all commands, options and examples."""
    lines = ["# Command line", "", "Made from the code by `make docs`.", "", "| exit code | meaning |", "|---|---|"]
    lines += [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES]
    lines += ["", "An error is two lines on stderr, a fact and a hint. With `--json`, it is one JSON document."]
    for verb in VERBS:
        command = load(verb)
        also = f" (also `{command.alias}`)" if command.alias else ""
        lines += ["", f"## {verb}{also}", "", f"{command.summary[0].upper()}{command.summary[1:]}.", ""]
        lines += ["```", command.usage, "```", ""]
        if command.details:
            lines += [command.details, ""]
        lines += ["| option | |", "|---|---|"]
        for option in (*command.options, JSON, HELP):
            name = f"{option.name} {option.metavar}" if option.metavar else option.name
            more = f": {', '.join(f'`{choice}`' for choice in option.choices)}" if option.choices else ""
            lines.append(f"| `{name}` | {option.help}{more}{'; may be repeated' if option.repeat else ''} |")
        for line, meaning in command.examples:
            lines += ["", f"`{line}` - {meaning}"]
    return "\n".join(lines) + "\n"


def man_page() -> str:
    """Return the manual page with every command."""
    lines = ['.\\" Made from the code by `make docs`.', '.TH OUTLIVE 1 "" "Outlive" "User Commands"', ".SH NAME"]
    lines += ["outlive \\- background tasks that outlive the session that started them"]
    lines += [".SH SYNOPSIS", ".B outlive", "COMMAND [options] [words]", ".SH COMMANDS"]
    for verb in VERBS:
        command = load(verb)
        lines += [f".SS {_roff(verb)}", _roff(f"{command.summary[0].upper()}{command.summary[1:]}."), ".PP"]
        lines += [f"\\fB{_roff(command.usage)}\\fR"]
        if command.alias:
            lines += [".PP", _roff(f"Also: outlive {command.alias}.")]
        if command.details:
            for paragraph in command.details.split("\n\n"):
                lines += [".PP", _roff(paragraph)]
        for option in (*command.options, JSON, HELP):
            name = f"\\fB{_roff(option.name)}\\fR" + (f" \\fI{_roff(option.metavar)}\\fR" if option.metavar else "")
            lines += [".TP", name, _roff(option_help(option))]
        for line, meaning in command.examples:
            lines += [".PP", f"Example: \\fB{_roff(line)}\\fR", ".br", _roff(meaning)]
    lines += [".SH EXIT STATUS"]
    for code, meaning in EXIT_CODES:
        lines += [".TP", f"\\fB{code}\\fR", _roff(meaning)]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Return a text in which all characters that have a meaning in roff are escaped."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n"))


def lifecycle_page() -> str:
    """Return the page with the state changes of a task, as a table and as a diagram."""
    lines = [
        "# Life of a task",
        "",
        "`make docs` writes this page from the table of state changes in `domain/tasks/lifecycle.py`.",
        "",
    ]
    lines += ["```mermaid", "stateDiagram-v2", "    [*] --> queued"]
    lines += [f"    {before} --> {after}" for before, afters in MOVES.items() for after in afters]
    lines += [f"    {state} --> [*]" for state in TERMINAL]
    lines += ["```", "", "| from | to |", "|---|---|"]
    lines += [f"| `{before}` | {', '.join(f'`{after}`' for after in afters)} |" for before, afters in MOVES.items()]
    lines += ["", f"An attempt never leaves these terminal states: {', '.join(f'`{state}`' for state in TERMINAL)}."]
    conditions = ", ".join(f"`{each}`" for each in CONDITIONS)
    lines += ["", f"A running task can also have conditions, which are not states: {conditions}."]
    return "\n".join(lines) + "\n"


def signature(name: str, subject: Callable[..., object]) -> str:
    """Return the signature of a function as a reader would write it.

    A long signature has one argument per line.
    """
    parts = list(inspect.signature(subject).parameters.values())
    words = [str(part).replace("'", "") for part in parts if part.name != "self"]
    starred = next((i for i, part in enumerate(parts[1:]) if part.kind is part.KEYWORD_ONLY), None)
    if starred is not None and not any(part.kind is part.VAR_POSITIONAL for part in parts):
        words.insert(starred, "*")
    line = f"{name}({', '.join(words)})"
    return line if len(line) < 90 else f"{name}(\n    " + ",\n    ".join(words) + ",\n)"


def sdk_page() -> str:
    """Return the page of the Python SDK: public classes, methods and errors."""
    lines = ["# Python SDK", "", "Made from the code by `make docs`.", "", "```python", "import outlive", "```"]
    lines += ["", inspect.cleandoc(sys.modules["outlive.sdk.outlive"].__doc__ or "")]
    for each in (Outlive, Task, Session, AsyncOutlive, AsyncSession):
        lines += ["", f"## {each.__name__}", "", inspect.getdoc(each) or ""]
        for name, member in vars(each).items():
            if name.startswith("_") and (name != "__init__" or each is Task):
                continue
            subject = member.fget if isinstance(member, property) else member
            title = each.__name__ if name == "__init__" else name
            lines += ["", f"### {title}", ""]
            if not isinstance(member, property):
                lines += ["```python", signature(title, subject), "```", ""]
            if doc := "" if name == "__init__" and subject.__doc__ is None else inspect.getdoc(subject):
                lines += [doc]
    lines += ["", "## Documents", "", "The types of the JSON that methods return, from `outlive.sdk.documents`."]
    for name, kind in vars(documents).items():
        if is_typeddict(kind):
            # `inspect.getdoc` would return the docstring of `dict` for a type that has none.
            lines += ["", f"### {name}", "", inspect.cleandoc(kind.__doc__ or ""), "", "| field | type |", "|---|---|"]
            lines += [f"| `{field}` | `{each}` |" for field, each in fields_of(kind).items()]
    lines += ["", "## Errors", "", "| error | code | exit code | |", "|---|---|---|---|"]
    for name in sorted(outlive.__all__):
        kind = getattr(errors, name, None)
        if inspect.isclass(kind):
            lines.append(f"| `{name}` | `{kind.code}` | {kind.exit_code} | {inspect.getdoc(kind)} |")
    return "\n".join(lines) + "\n"


def fields_of(kind: type) -> dict[str, str]:
    """Return the fields of a typed dictionary, with the types as in the source.

    The types are escaped for a cell of a Markdown table.
    """
    found: dict[str, ForwardRef] = kind.__annotations__
    return {name: each.__forward_arg__.replace("|", "\\|") for name, each in found.items()}


def mcp_page() -> str:
    """Return the page of the MCP server: its tools with their arguments."""
    lines = ["# MCP tools", "", "Made from the code by `make docs`. [How to use the tools](../how-to/mcp.md)."]
    for tool in TOOLS:
        lines += ["", f"## {tool.name}", "", tool.description, ""]
        properties = tool.schema["properties"]
        if properties:
            lines += ["| argument | type | |", "|---|---|---|"]
        for name, found in properties.items():
            kind = found.get("type") or " or ".join(each["type"] for each in found["anyOf"])
            must = "; required" if name in tool.schema.get("required", ()) else ""
            default = f"; default {found['default']}" if "default" in found else ""
            lines.append(f"| `{name}` | {kind} | {found.get('description', '')}{default}{must} |")
    lines += [
        "",
        "## Resources",
        "",
        f"`{TEMPLATE}`: the end of a task's output. Subscribers are notified when the output grows.",
    ]
    return "\n".join(lines) + "\n"


SETTINGS_EXAMPLE = """\
[agents]
at_once = 3                         # three agents of one model run at once; the others wait in order
budget_usd = 2.50
idle_timeout = "15m"
fallback = ["sonnet", "codex:gpt-5"]

[agents.models."claude:opus"]
unstable = true
at_once = 1

[agents.categories.review]          # outlive agent --category review
client = "codex"
model = "gpt-5"
max_turns = 40

[agents.projects."/home/me/client-a"]
model = "claude:opus"               # for this directory and everything below it

[agents.clients.mybot]              # any program that prints JSON Lines
command = ["mybot", "--json"]
model_arguments = ["--model", "{model}"]
resume = ["--resume", "{session}"]
session = "session_id"

[agents.clients.mybot.lines]
answer = { when = { type = "result" }, text = "result" }
text = { when = { type = "message" }, text = "content" }
tool = { when = { type = "call" }, name = "tool", input = "args", id = "id" }
result = { when = { type = "output" }, text = "output", id = "id" }
usage = { when = { type = "usage" }, input = "in", output = "out", cost = "usd" }
error = { when = { type = "error" }, text = "message" }
question = { when = { type = "ask" }, text = "question" }
"""


SETTINGS_INTRODUCTION = """\
Your settings are in `$XDG_CONFIG_HOME/outlive/config.toml`, or `~/.config/outlive/config.toml` if the variable
`XDG_CONFIG_HOME` is not set. The file is in TOML format. If there is no file, the defaults apply. If a key is
unknown or a value is wrong, Outlive refuses the file, and the error names the key and its line. `outlive doctor`
checks the file.
"""
SETTINGS_RULES = """\
## Which settings file does Outlive refuse?

| case | what to do |
|---|---|
| your group or other users can write the file or its directory | run `chmod go-w` on it |
| the file or its directory belongs neither to you nor to root | run `chown` on it |
| the file, or a link on the way to it, is in the task's git worktree | move it: no repository may configure Outlive |
| the file is larger than 1 MiB, is not a regular file, or is not UTF-8 | correct the file |

## Which model runs?

| question | answer |
|---|---|
| Which source decides? | The first that names a client or a model: option, project, category, the client's default |
| Which client does a model of a table have? | The client in its name, else the table's client, else the default one |
| Which client does a model of an option have? | The client in its name, else the chosen client |
| What if a model belongs to a client that is not chosen? | Outlive ignores this model, and asks the next source |
| Which model does `unstable` of a category or project concern? | Only the `model` of the same table |
| Which fallback is used? | The first that is set: option, project, category, `[agents]`. An empty list counts as set |
"""


def settings_page() -> str:
    """Return the page of the settings file, with every key."""
    lines = ["# Settings", "", "Made from the code by `make docs`.", ""]
    lines += [SETTINGS_INTRODUCTION, "```toml", *SETTINGS_EXAMPLE.splitlines(), "```", "", SETTINGS_RULES.rstrip()]
    lines += [line for path, table in tables_below(AGENTS, "agents") for line in table_section(path, table)]
    return "\n".join(lines) + "\n"


def tables_below(table: Table, path: str) -> Iterator[tuple[str, Table]]:
    """Yield a table of the settings and all tables inside it, each with its full name."""
    path = path if table.entry is None else f"{path}.{table.entry}"
    yield path, table
    for each in table.tables:
        yield from tables_below(each, f"{path}.{each.name}")


def table_section(path: str, table: Table) -> list[str]:
    """Return the section of one table of the settings, with its keys."""
    names = f" Here, {table.entry} is one of {', '.join(f'`{name}`' for name in table.names)}." if table.names else ""
    lines = ["", f"## `[{path}]`", "", table.help + names, "", "| key | value | default | |", "|---|---|---|---|"]
    for key in table.keys:
        default = "" if key.default is None else f"`{toml_of(key.default)}`"
        lines.append(f"| `{key.name}` | {kind_of(key)} | {default} | {key.help} |")
    return lines


def kind_of(key: Key) -> str:
    """Return a phrase that says which values a key may have."""
    return KIND_TEXTS[key.kind] or " or ".join(f"`{toml_of(choice)}`" for choice in key.choices)


def toml_of(value: object) -> str:
    """Return a default value in TOML syntax."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(toml_of, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


PAGES = {
    "cli.md": cli_page,
    "outlive.1": man_page,
    "mcp.md": mcp_page,
    "lifecycle.md": lifecycle_page,
    "settings.md": settings_page,
    "sdk.md": sdk_page,
}


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        (HERE / name).write_text(make(), encoding="utf-8")
        print(f"docs/reference/{name}")
