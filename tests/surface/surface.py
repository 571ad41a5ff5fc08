"""Everything that users' scripts depend on, called the surface, read from the program itself.

`make surface` writes one file per part into this directory, and `test_surface.py` compares them. If a file changes,
users notice. The texts of help and of tool descriptions have their own files, `*_prose.txt`, because texts may change
more freely than names.
"""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import inspect
import json
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, is_typeddict

import outlive
from outlive.cli.main import ALIASES, VERBS, load
from outlive.cli.parser import HELP, JSON, help_text
from outlive.domain import errors
from outlive.domain.tasks.lifecycle import CONDITIONS, MOVES, TERMINAL
from outlive.mcp.resources import TEMPLATE
from outlive.mcp.tools.catalogue import TOOLS
from outlive.sdk import documents
from tests.git_steps import Worktree
from tests.session_steps import until
from tests.support import Bench

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src" / "outlive"
CLIENTS = ("claude", "codex", "gemini", "opencode", "openclaw", "cursor")
ID = re.compile(r"\b[0-9a-hjkmnp-tv-z]{8}\b")


def commands() -> str:
    """Return every command with its options, without their help texts."""
    found = {}
    for verb in VERBS:
        command = load(verb)
        found[verb] = {
            "usage": command.usage,
            "alias": command.alias,
            "words": command.takes,
            "options": [
                {
                    "name": option.name,
                    "metavar": option.metavar,
                    "choices": option.choices,
                    "repeat": option.repeat,
                    "value": option.takes,
                }
                for option in (*command.options, JSON, HELP)
            ],
        }
    return as_json({"aliases": ALIASES, "commands": found})


def commands_prose() -> str:
    """Return the help text of every command."""
    return "\n\n".join(f"$ outlive {verb} --help\n{help_text(load(verb))}" for verb in VERBS) + "\n"


def mcp_tools() -> str:
    """Return the tools of the MCP server with their schemas, without descriptions."""
    tools = {tool.name: without_prose(tool.definition().model_dump(mode="json")) for tool in TOOLS}
    return as_json({"resource": TEMPLATE, "tools": tools})


def mcp_tools_prose() -> str:
    """Return the descriptions that the MCP server sends to models."""
    lines = []
    for tool in TOOLS:
        lines += [f"# {tool.name}: {tool.title}", tool.description]
        lines += [f"  {name}: {each.get('description', '')}" for name, each in tool.schema["properties"].items()]
        lines.append("")
    return "\n".join(lines)


def sdk() -> str:
    """Return the signatures of the Python SDK, and the fields of its documents."""
    lines = []
    for name in sorted(outlive.__all__):
        found = getattr(outlive, name)
        if not inspect.isclass(found):
            lines.append(name)
            continue
        lines.append(f"class {name}({', '.join(base.__name__ for base in found.__bases__)})")
        if issubclass(found, errors.OutliveError):
            lines.append(f"    code={found.code} exit_code={found.exit_code}")
            continue
        lines += [f"    {line}" for line in members(found)]
    for name, kind in vars(documents).items():
        if is_typeddict(kind):
            lines.append(f"document {name}")
            lines += [f"    {field}: {each.__forward_arg__}" for field, each in kind.__annotations__.items()]
    return "\n".join(lines) + "\n"


def members(kind: type) -> Iterator[str]:
    """Yield the public methods and properties of a class, with their signatures."""
    for name, member in vars(kind).items():
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, property):
            yield f"{name}: {inspect.signature(member.fget).return_annotation}" if member.fget else name
        elif inspect.isfunction(member):
            yield f"{name}{inspect.signature(member)}"


def error_codes() -> str:
    """Return the codes of errors, and the states, moves and conditions of tasks."""
    lines = [
        f"{name}: {kind.code}, exit code {kind.exit_code}"
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, errors.OutliveError)
    ]
    lines += [f"{before} -> {', '.join(afters)}" for before, afters in MOVES.items()]
    return "\n".join([*lines, f"terminal: {', '.join(TERMINAL)}", f"conditions: {', '.join(CONDITIONS)}"]) + "\n"


def environment() -> str:
    """Return the variables that the program reads or sets."""
    pattern = re.compile(r"\bOUTLIVE_[A-Z_]*[A-Z]\b")
    found = {
        name
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for name in pattern.findall(node.value)
    }
    return "\n".join(sorted(found)) + "\n"


def ledger_schema() -> str:
    """Return a digest of every migration.

    A released migration must not change.
    """
    migrations = sorted((SOURCE / "ledger" / "migrations").glob("*.sql"))
    return "".join(f"{hashlib.sha256(each.read_bytes()).hexdigest()[:16]} {each.name}\n" for each in migrations)


@dataclasses.dataclass
class Scenario:
    """The results of one run of the real commands: keys of JSON documents, file names and configurations."""

    json_keys: str
    names_on_disk: str
    client_configuration: str


def run_scenario(place: Path) -> Scenario:
    """Run the real commands once in a new directory, and return their scenario."""
    bench = Bench(place)
    user = place / "user"
    user.mkdir()
    for name in [name for name in bench.env if name.startswith(("XDG_", "OPENCLAW_", "GEMINI_", "OPENCODE_"))]:
        del bench.env[name]
    bench.env["HOME"] = str(user)
    Worktree(bench.project).commit(**{"a.txt": "a\n"})
    keys = {}
    try:
        for name, words in calls(bench):
            printed = bench.run(*words)
            documents = printed.stderr if name == "error" else printed.stdout
            found = {key for line in documents.splitlines() for key in keys_of(json.loads(line))}
            if name == "retry":
                # Whether these keys are there depends on how soon the first attempt is compared, so they are removed.
                found = {key for key in found if not key.startswith("effects.unattributed[].")}
            keys[name] = sorted(found)
        configuration = installed(bench, user)
        return Scenario(as_json(keys), on_disk(bench), configuration)
    finally:
        bench.clean()


def calls(bench: Bench) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the command line for each JSON document.

    Before a command line is yielded, the tasks and sessions that its document shows are prepared.
    """
    here = ("--session", "s-1", "--observe", "compare")
    bench.ok("session", "begin", "--session", "s-1", "--client", "claude")
    bench.ok("sink", "add", "none", "--run", "true")
    lock = bench.launch(until("go"), *here, "--lock", "l", "--description", "a lock")
    queued = bench.launch("true", *here, "--lock", "l")
    failed = bench.launch("echo x > a.txt; echo out; exit 3", *here, "--group", "g")
    bench.run("wait", failed, "--no-ack")
    yield "error", ("show", "nothing", "--json")
    yield "run", ("run", "--json", *here, "true")
    yield "list", ("list", "--json")
    for verb in ("show", "effects", "output", "result"):
        yield verb, (verb, failed, "--json")
    yield "wait", ("wait", failed, "--no-ack", "--json")
    yield "retry", ("retry", failed, "--json")
    yield "send", ("send", bench.launch("cat", "--stdin", *here), "hello", "--json")
    yield "cancel", ("cancel", bench.launch("sleep 60", *here), "--json")
    yield "output --follow", ("output", failed, "--follow", "--json")
    yield "effects --open", ("effects", lock, "--open", "--json")
    yield "show queued", ("show", queued, "--json")
    bench.run("wait", failed, "--no-ack")
    yield "gate", ("gate", "--session", "s-1", "--json")
    yield "inbox --peek", ("inbox", "--session", "s-1", "--peek", "--json")
    yield "session begin", ("session", "begin", "--session", "s-2", "--source", "clear", "--continues", "s-1", "--json")
    yield "hand-off", ("hand-off", "--session", "s-2", "--json")
    yield "inbox", ("inbox", "--session", "s-2", "--json")
    notice = bench.show(failed)["notices"][0]["id"]
    yield "ack", ("ack", notice, "--session", "s-2", "--json")
    yield "dismiss", ("dismiss", notice, "--json")
    yield "session list", ("session", "list", "--json")
    yield "session end", ("session", "end", "--session", "s-2", "--json")
    yield "guard", ("guard", "a.txt", "--json")
    yield "sink list", ("sink", "list", "--json")
    yield "audit", ("audit", "--json")
    yield "sweep", ("sweep", "--json")
    yield "completion", ("completion", "bash", "--json")
    yield "install", ("install", "--client", "claude", "--dry-run", "--json")
    yield "uninstall", ("uninstall", "--client", "claude", "--dry-run", "--json")
    yield "doctor", ("doctor", "--client", "cursor", "--json")
    (bench.project / "go").touch()
    bench.run("wait", lock, queued, "--no-ack")


def keys_of(document: Any, place: str = "") -> Iterator[str]:
    """Yield the path of every key of a document.

    All elements of a list share one path, and all keys that are file paths are named `{path}`.
    """
    if isinstance(document, list):
        for each in document:
            yield from keys_of(each, f"{place}[]")
    elif isinstance(document, dict):
        for key, value in document.items():
            name = "{path}" if "/" in key else key
            here = f"{place}.{name}" if place else name
            yield here
            yield from keys_of(value, here)


def installed(bench: Bench, user: Path) -> str:
    """Install Outlive for every client, and return the commands in their files."""
    for name in CLIENTS:
        (user / (".config/opencode" if name == "opencode" else f".{name}")).mkdir(parents=True)
        bench.ok("install", "--client", name, "--yes", *(("--untrusted",) if name == "codex" else ()))
    lines = []
    for path in sorted(user.rglob("*")):
        if not path.is_file():
            continue
        lines.append(str(path.relative_to(user)))
        if path.suffix in (".json", ".jsonc", ".toml"):
            text = " ".join(re.split(r'[",\s\[\]]+', path.read_text()))
            called = re.findall(r"\b(?:hook [a-z]+ [A-Za-z]+(?: --guard \w+)?|-m outlive \w+|outlive mcp)", text)
            lines += sorted({f"    {each}" for each in called})
    return "\n".join(lines) + "\n"


def on_disk(bench: Bench) -> str:
    """Return the names of the files in the state directory. Ids, digests and host names are replaced or left out."""
    top = Path(bench.home.path)
    found = set()
    for path in top.rglob("*"):
        name = str(path.relative_to(top))
        name = re.sub(r"\b[0-9a-f]{32,}\b", "DIGEST", name)
        found.add(re.sub(r"^tasks/[^/]+", "tasks/ID", name))
    volatile = re.compile(r"\.tmp|-wal$|-shm$|^leases/|\.watch$")
    return "\n".join(sorted(name for name in found if not volatile.search(name))) + "\n"


def without_prose(schema: Any) -> Any:
    """Return a schema without its titles and descriptions."""
    if isinstance(schema, list):
        return [without_prose(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    prose = ("description", "title")
    return {key: without_prose(each) for key, each in schema.items() if key not in prose or not isinstance(each, str)}


def as_json(value: Any) -> str:
    """Return a value as JSON with one value per line, so that lines can be compared."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


READ: dict[str, Callable[[], str]] = {
    "commands.json": commands,
    "commands_prose.txt": commands_prose,
    "mcp_tools.json": mcp_tools,
    "mcp_tools_prose.txt": mcp_tools_prose,
    "sdk.txt": sdk,
    "errors_and_states.txt": error_codes,
    "environment.txt": environment,
    "ledger_schema.txt": ledger_schema,
}


def main() -> None:
    """Write every recorded file of the surface."""
    for name, read in READ.items():
        (HERE / name).write_text(read(), encoding="utf-8")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        scenario = run_scenario(Path(place))
    for field in dataclasses.fields(scenario):
        suffix = "json" if field.name == "json_keys" else "txt"
        (HERE / f"{field.name}.{suffix}").write_text(getattr(scenario, field.name), encoding="utf-8")


if __name__ == "__main__":
    main()
