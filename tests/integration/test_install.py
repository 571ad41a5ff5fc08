"""Installing: shown first, done once, undone to the byte."""

from __future__ import annotations

import json
import os
import pty
import re
import shutil
import stat
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from outlive.bundle.home import open_home
from outlive.install import jsonc, openclaw, record
from outlive.install.installing import install as make
from outlive.install.installing import plan_install, plan_uninstall, uninstall
from outlive.install.openclaw import FILES
from outlive.install.target import whole
from tests.support import PATIENCE_S, SCRIPT

if TYPE_CHECKING:
    from tests.support import Bench

MINE = '{\n    // mine\n    "model": "x",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}\n}'
CLIENTS = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.jsonc",
    "openclaw": ".openclaw/openclaw.json",
    "cursor": ".cursor/hooks.json",
}
# Where each names the tools that the guard is asked about, and those of them that an earlier version did not know.
NEWER = {
    "claude": (CLIENTS["claude"], "|Read|Grep|Glob"),
    "gemini": (CLIENTS["gemini"], "|read_file|grep_search|glob|list_directory"),
    "opencode": (".config/opencode/plugin/outlive.js", ', "read", "grep", "glob", "list"'),
    "openclaw": (".openclaw/extensions/outlive/index.js", ', "read", "ls"'),
}
OTHERWISE_MINE = {
    "openclaw": "// mine\n{\n  gateway: { mode: 'local', name: \"x\" },  // a\n  plugins: {\n    allow: ['a'],\n  }\n}",
    "cursor": '{\n  "version": 1,\n  "name": "x",\n  "hooks": {"stop": [{"command": "./a.sh"}]}\n}\n',
}


SCHEMA = "https://opencode.ai/config.json"
OPENCLAW = ("OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH")


def mine(client: str) -> str:
    """What somebody had in a client's configuration before us."""
    return OTHERWISE_MINE.get(client, MINE)


@pytest.fixture
def user(bench: Bench) -> Path:
    """The home directory of a user."""
    home = bench.root / "user"
    home.mkdir()
    bench.env["HOME"] = str(home)
    for name in (
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "XDG_CONFIG_HOME",
        "OPENCODE_CONFIG_DIR",
        *OPENCLAW,
    ):
        bench.env.pop(name, None)
    return home


def tree(top: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a directory, and every directory."""
    return {
        str(path.relative_to(top)): (path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in top.rglob("*")
    }


def settings(user: Path, client: str, text: str | None = None) -> Path:
    """A configuration that was there before us."""
    file = user / CLIENTS[client]
    file.parent.mkdir(parents=True)
    file.write_text(mine(client) if text is None else text)
    return file


def install(bench: Bench, client: str, *options: str) -> str:
    """As a user does it; Codex need not be there."""
    return bench.ok("install", "--client", client, *(("--untrusted",) if client == "codex" else ()), *options)


@pytest.mark.parametrize("client", CLIENTS)
def test_installed_and_uninstalled_nothing_has_changed(bench: Bench, user: Path, client: str) -> None:
    """Not a byte, not a mode, not a directory."""
    settings(user, client).chmod(0o640)
    before = tree(user)
    install(bench, client)
    assert tree(user) != before
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_from_nothing_to_nothing(bench: Bench, user: Path, client: str) -> None:
    """What was made for us goes with us."""
    install(bench, client)
    assert (user / CLIENTS[client]).exists()
    bench.ok("uninstall", "--client", client)
    assert tree(user) == {}


@pytest.mark.parametrize("client", CLIENTS)
def test_twice_is_once(bench: Bench, user: Path, client: str) -> None:
    """And still undone to the byte."""
    settings(user, client)
    before = tree(user)
    install(bench, client)
    once = tree(user)
    assert "nothing to change" in install(bench, client)
    assert tree(user) == once
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_edited_meanwhile_stays_edited(bench: Bench, user: Path, client: str) -> None:
    """Only our entries go."""
    file = settings(user, client)
    install(bench, client)
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--client", client)
    assert file.read_text() == mine(client).replace('"x"', '"y"')


@pytest.mark.parametrize("client", CLIENTS)
def test_without_the_record_only_ours_goes(bench: Bench, user: Path, client: str) -> None:
    """The state directory was deleted: nobody knows what was there, and it stays."""
    file = settings(user, client)
    install(bench, client)
    shutil.rmtree(bench.state)
    bench.ok("uninstall", "--client", client)
    assert file.read_text() == mine(client)
    assert [path for path in tree(user) if path.endswith(("SKILL.md", ".js"))] == []


def test_what_was_edited_between_two_installations_is_what_is_given_back(bench: Bench, user: Path) -> None:
    """The file without us, as it last was."""
    file = settings(user, "claude")
    install(bench, "claude")
    file.write_text(file.read_text().replace('"x"', '"y"'))
    install(bench, "claude", "--guard", "off")
    assert "PreToolUse" not in file.read_text()
    bench.ok("uninstall", "--client", "claude")
    assert file.read_text() == MINE.replace('"x"', '"y"')


@pytest.mark.parametrize("is_edited", [False, True])
@pytest.mark.parametrize("client", NEWER)
def test_an_older_installation_is_brought_up_to_date(bench: Bench, user: Path, client: str, is_edited: bool) -> None:
    """It asks about all tools that the hook knows by now; what was there before either of them is given back."""
    settings(user, client)
    before = tree(user)
    install(bench, client)
    name, newer = NEWER[client]
    assert re.findall(r"\w+", newer) == list(import_module(f"outlive.hooks.{client}").READERS)
    file, home = user / name, open_home(bench.env)
    now = file.read_text()
    assert newer in now
    file.write_text(now.replace(newer, ""))
    if not is_edited:
        kept = record.recall(home, client)[str(file)]
        record.keep(home, client, [str(file)], [kept.but(after=record.mark_of(file.read_text()))])
    install(bench, client)
    assert file.read_text() == now
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


def test_a_look_changes_nothing(bench: Bench, user: Path) -> None:
    """`--dry-run` shows what would be."""
    key = "sk-ant-api03-" + "Ab3dEf6h" * 12
    settings(user, "claude", MINE.replace('"x"', f'"{key}"'))
    before = tree(user)
    shown = install(bench, "claude", "--dry-run")
    assert "+++" in shown
    assert key not in shown, "whoever looks over the shoulder sees no key"
    assert '"SessionStart"' in shown
    assert tree(user) == before
    assert '"model"' in shown, "with the lines around it"


def test_what_is_called_is_ours_by_absolute_path_and_isolated(bench: Bench, user: Path) -> None:
    """Nothing that a directory or an environment could put in its place."""
    install(bench, "claude")
    found = json.loads((user / CLIENTS["claude"]).read_text())
    hooks = [hook for groups in found["hooks"].values() for group in groups for hook in group["hooks"]]
    for hook in hooks:
        assert hook["command"] == sys.executable
        assert hook["args"][0] == "-I"
        assert os.path.isabs(hook["args"][1])
        assert os.path.exists(hook["args"][1])


def test_opencode_calls_the_same_and_its_server_is_added_to_the_file_that_it_reads(bench: Bench, user: Path) -> None:
    """Beside what is there; without a rule that would allow anything."""
    plain = user / ".config/opencode/opencode.json"
    plain.parent.mkdir(parents=True)
    plain.write_text('{"permission": {"bash": "ask"}}')
    install(bench, "opencode", "--guard", "rewrite")
    found = json.loads(plain.read_text())
    assert found["permission"] == {"bash": "ask"}
    assert found["mcp"]["outlive"]["command"] == [sys.executable, "-I", "-m", "outlive", "mcp"]
    assert not plain.with_suffix(".jsonc").exists()
    plugin = (plain.parent / "plugin/outlive.js").read_text()
    words = [sys.executable, "-I", str(SCRIPT), "hook", "opencode"]
    assert [json.loads(line[16:]) for line in plugin.splitlines() if line.startswith("const COMMAND = ")] == [words]
    assert 'const GUARD = "rewrite"' in plugin


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        (None, ("60000", "90000"), None),
        ("", ("60000", "90000"), "{}"),
        (None, ("60000", '90000,\n      "x": 1'), None),
        (None, ("{\n", "{\n  // mine\n"), "{\n  // mine\n}"),
        (None, (',\n  "mcp"', ',\n  "model": "x",\n  "mcp"'), f'{{\n  "$schema": "{SCHEMA}",\n  "model": "x"\n}}'),
    ],
    ids=["ours", "ours in an empty file", "more of ours", "a comment", "more than ours"],
)
def test_the_schema_that_opencode_was_given_stays_only_beside_what_the_user_wrote(
    bench: Bench, user: Path, before: str | None, edit: tuple[str, str], after: str | None
) -> None:
    """OpenCode would write it there itself; where nothing else is left, nobody but us has wanted the file."""
    file = user / CLIENTS["opencode"]
    if before is not None:
        settings(user, "opencode", before)
    install(bench, "opencode")
    text = file.read_text()
    assert edit[0] in text
    file.write_text(text.replace(*edit, 1))
    bench.ok("uninstall", "--client", "opencode")
    assert (file.read_text().strip() if file.exists() else None) == after


@pytest.mark.parametrize("name", ["XDG_CONFIG_HOME", "OPENCODE_CONFIG_DIR"])
def test_opencode_is_found_where_its_variables_say(bench: Bench, user: Path, name: str) -> None:
    """As it finds its configuration itself."""
    place = bench.root / "elsewhere"
    bench.env[name] = str(place)
    install(bench, "opencode")
    top = place / "opencode" if name == "XDG_CONFIG_HOME" else place
    assert (top / "plugin/outlive.js").exists()
    assert tree(user) == {}
    bench.ok("uninstall", "--client", "opencode")
    assert not place.exists()


def test_openclaw_is_told_what_to_call_and_no_webhook_is_opened(bench: Bench, user: Path) -> None:
    """The plugin is whole, enabled, and among those that may load; its command is ours, by absolute path, isolated."""
    settings(user, "openclaw")
    install(bench, "openclaw", "--guard", "off")
    text = (user / CLIENTS["openclaw"]).read_text()
    found: Any = jsonc.value_of(text, jsonc.parse(text))
    entry = found["plugins"]["entries"]["outlive"]
    assert entry["config"] == {"command": [sys.executable, "-I", str(SCRIPT)], "guard": "off"}
    assert entry["hooks"] == {"allowConversationAccess": True}
    assert found["plugins"]["allow"] == ["a", "outlive"]
    assert found["mcp"]["servers"]["outlive"]["args"] == ["-I", "-m", "outlive", "mcp"]
    assert "hooks" not in found, "waking needs neither a webhook nor a token"
    for name in FILES:
        shipped = Path(openclaw.__file__).parent / "openclaw_plugin" / name
        assert (user / ".openclaw/extensions/outlive" / name).read_bytes() == shipped.read_bytes()


def test_a_link_stays_a_link(bench: Bench, user: Path) -> None:
    """People keep their configuration elsewhere."""
    real = bench.root / "dotfiles.json"
    real.write_text(MINE)
    (user / ".claude").mkdir()
    (user / CLIENTS["claude"]).symlink_to(real)
    install(bench, "claude")
    assert (user / CLIENTS["claude"]).is_symlink()
    assert "outlive" in real.read_text()
    bench.ok("uninstall", "--client", "claude")
    assert real.read_text() == MINE


@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_what_a_client_writes_while_a_person_is_asked_is_not_written_over(bench: Bench, user: Path, verb: str) -> None:
    """Claude Code writes this file at any time; and nothing else is changed either."""
    file = user / ".claude.json"
    settings(user, "claude")
    file.write_text('{"startups": 1}')
    if verb == "uninstall":
        install(bench, "claude", "--yes")
    leader, follower = pty.openpty()
    words = bench.command(verb, "--client", "claude")
    with subprocess.Popen(
        words, env=bench.env, stdin=follower, stdout=follower, stderr=subprocess.PIPE, text=True
    ) as asking:
        os.close(follower)
        asked = b""
        while b"[y/N]" not in asked:
            asked += os.read(leader, 1 << 16)
        file.write_text(file.read_text().replace("1", "2", 1))
        before = tree(user)
        os.write(leader, b"y\n")
        _, complaint = asking.communicate(timeout=PATIENCE_S)
    os.close(leader)
    assert asking.returncode == 2
    assert f"{file} was changed meanwhile" in complaint
    assert tree(user) == before


def test_an_installation_that_did_not_end_leaves_no_directories_behind(bench: Bench, user: Path) -> None:
    """Which ones it makes is kept before it makes them."""
    home, is_ours = open_home(bench.env), "ours".__eq__
    files = [whole(str(user / name), "ours", is_ours) for name in ("a/b/one", "c/two")]
    changes = plan_install(home, "some", files)
    (user / "c").write_text("in the way")
    with pytest.raises(OSError, match="exists"):
        make(home, "some", changes)
    (user / "c").unlink()
    uninstall(home, "some", plan_uninstall(home, "some", files))
    assert tree(user) == {}


@pytest.mark.parametrize("name", [".claude/skills", "store"])
def test_what_may_not_be_written_is_found_before_anything_is(bench: Bench, user: Path, name: str) -> None:
    """A directory of a package manager, say, that a link leads to."""
    folder = user / name
    folder.mkdir(parents=True)
    (folder / "claude.json").write_text("{}")
    (user / ".claude").mkdir(exist_ok=True)
    (user / ".claude.json").symlink_to(folder / "claude.json")
    folder.chmod(0o555)
    before = tree(user)
    rightless = ("setpriv", "--bounding-set=-dac_override") if os.geteuid() == 0 else ()
    done = bench.run("install", "--client", "claude", before=rightless)
    assert (done.returncode, tree(user)) == (2, before)
    assert "cannot be written" in done.stderr


def test_what_is_nested_without_end_is_refused(bench: Bench, user: Path) -> None:
    """As what is no JSON is."""
    settings(user, "claude", '{"a": ' + "[" * 3000 + "]" * 3000 + "}")
    done = bench.run("install", "--client", "claude")
    assert done.returncode == 2
    assert "nested too deeply" in done.stderr


def test_broken_configuration_is_not_touched(bench: Bench, user: Path) -> None:
    """Nor is anything else of the same client."""
    settings(user, "claude", '{"model": ')
    before = tree(user)
    done = bench.run("install", "--client", "claude")
    assert done.returncode == 2
    assert "no JSON" in done.stderr
    assert tree(user) == before


TWICE = (
    ("claude", ".claude/settings.json", '{"hooks": {"Stop": []},\n "hooks": {}}'),
    ("claude", ".claude/settings.json", '{"hooks": {"Stop": [],\n "Stop": []}}'),
    ("claude", ".claude.json", '{"mcpServers": {},\n "mcpServers": {"a": {"command": "/a"}}}'),
    ("codex", ".codex/hooks.json", '{"hooks": {},\n "hooks": {"Stop": []}}'),
    ("gemini", ".gemini/settings.json", '{"hooks": {}, // old\n "hooks": {}}'),
    ("gemini", ".gemini/settings.json", '{"mcpServers": {},\n "mcpServers": {}}'),
    ("opencode", ".config/opencode/opencode.jsonc", '{"mcp": {},\n "mcp": {}}'),
    ("openclaw", ".openclaw/openclaw.json", "{plugins: {},\n plugins: {entries: {}}}"),
    ("openclaw", ".openclaw/openclaw.json", "{plugins: {entries: {}, allow: ['a'],\n allow: ['b']}}"),
    ("openclaw", ".openclaw/openclaw.json", "{mcp: {servers: {},\n servers: {}}}"),
    ("cursor", ".cursor/hooks.json", '{"hooks": {},\n "hooks": {}}'),
    ("cursor", ".cursor/mcp.json", '{"mcpServers": {},\n "mcpServers": {}}'),
)


@pytest.mark.parametrize(("client", "name", "text"), TWICE)
def test_a_key_that_is_there_twice_is_for_its_owner_to_mend(
    bench: Bench, user: Path, client: str, name: str, text: str
) -> None:
    """Clients read the last and people the first: nothing is written; and where we never were, nothing is refused."""
    file = user / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = tree(user)
    done = bench.run("install", "--client", client, *(("--untrusted",) if client == "codex" else ()))
    assert done.returncode == 2
    assert f"{file}: it has " in done.stderr
    assert "twice" in done.stderr
    assert tree(user) == before
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("more", ['"hooks": {"Stop": []}, ', '"mcpServers": {}, '])
def test_a_key_that_came_a_second_time_loses_nobody_anything(bench: Bench, user: Path, more: str) -> None:
    """Uninstalling says which it is, and goes on when it is mended."""
    file = settings(user, "gemini", "{}")
    install(bench, "gemini")
    ours = file.read_text()
    for text in (ours.replace("{", "{" + more, 1), ours.rstrip()[:-1] + ", " + more[:-2] + "}"):
        file.write_text(text)
        done = bench.run("uninstall", "--client", "gemini")
        assert done.returncode == 2
        assert "twice" in done.stderr
        assert file.read_text() == text
    file.write_text(ours + "\n")
    bench.ok("uninstall", "--client", "gemini")
    assert json.loads(file.read_text()) == {}


def test_what_was_there_is_kept_where_nobody_else_reads(bench: Bench, user: Path) -> None:
    """Configuration holds keys."""
    settings(user, "claude")
    install(bench, "claude")
    (kept,) = bench.state.glob("*/install/claude.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    (command,) = bench.state.glob("*/bin/*")
    assert command.resolve() == SCRIPT
    bench.ok("uninstall", "--client", "claude")
    assert not kept.exists()
    assert not os.path.lexists(command)


def test_auto_finds_the_clients_that_are_there(bench: Bench, user: Path) -> None:
    """By their directories, or by their programs."""
    bench.env["PATH"] = "/usr/bin:/bin"
    assert "no client was found" in bench.run("install").stderr
    (user / ".claude").mkdir()
    (user / ".gemini").mkdir()
    found = bench.json("install", "--dry-run")
    assert [each["client"] for each in found["clients"]] == ["claude", "gemini"]
    assert found["applied"] is False


def test_codex_is_not_installed_half(bench: Bench, user: Path) -> None:
    """Only Codex can tell how its hooks are trusted: without it, nothing is written."""
    bench.env["PATH"] = "/usr/bin:/bin"
    done = bench.run("install", "--client", "codex")
    assert done.returncode == 2
    assert "codex is not on the PATH" in done.stderr
    assert tree(user) == {}


def test_a_plugin_is_a_folder_that_comes_and_goes(bench: Bench, user: Path) -> None:
    """Nothing of the user's configuration is touched for it."""
    folder = bench.root / "plugin"
    bench.ok("install", "--client", "claude", "--plugin", str(folder))
    assert json.loads((folder / ".claude-plugin/plugin.json").read_text())["name"] == "outlive"
    assert "SessionStart" in json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    assert tree(user) == {}
    bench.ok("uninstall", "--client", "claude", "--plugin", str(folder))
    assert not folder.exists()


@pytest.mark.parametrize("options", [(), ("--client", "claude")])
def test_a_plugin_goes_also_if_nobody_remembers_where_it_is(bench: Bench, user: Path, options: tuple[str, ...]) -> None:
    """Whether or not a client is found here; and nothing is kept of it afterwards."""
    bench.env["PATH"] = "/usr/bin:/bin"
    folders = [bench.root / "one", bench.root / "deep/other"]
    for folder in folders:
        bench.ok("install", "--client", "claude", "--plugin", str(folder))
    assert str(folders[0]) in bench.ok("uninstall", *options, "--dry-run")
    assert all(folder.exists() for folder in folders)
    bench.ok("uninstall", *options)
    assert not [folder for folder in (*folders, bench.root / "deep") if folder.exists()]
    assert not list(bench.state.glob("*/install/*"))
    assert tree(user) == {}


def test_what_was_edited_in_a_plugin_is_named_and_left(bench: Bench, user: Path) -> None:
    """Together with what somebody put beside it; what was deleted meanwhile is nobody's concern."""
    (user / ".claude").mkdir()
    install(bench, "claude")
    folder = bench.root / "plugin"
    bench.ok("install", "--client", "claude", "--plugin", str(folder))
    hooks = folder / "hooks/hooks.json"
    hooks.write_text(hooks.read_text() + "\n")
    (folder / ".claude-plugin/plugin.json").unlink()
    (folder / "mine").touch()
    (found,) = [each for each in bench.json("uninstall", "--dry-run")["clients"] if "plugin" in each["client"]]
    assert str(hooks) not in found["changed"]
    assert [text.partition(" ")[0] for text in found["left_out"]] == [str(hooks)]
    assert f"{hooks} was edited" in bench.ok("uninstall")
    assert sorted(path for path in tree(folder) if (folder / path).is_file()) == ["hooks/hooks.json", "mine"]
    assert sorted(tree(user)) == [".claude"]
    assert str(folder) not in bench.ok("uninstall"), "what is left is theirs"


CODEX = f"""#!{sys.executable}
import json, os, re, sys
path = os.environ["CODEX_HOME"] + "/hooks.json"
hooks = [
    dict(key=f"{{path}}:{{re.sub('(?<!^)(?=[A-Z])', '_', event).lower()}}:{{group}}:{{index}}", sourcePath=path,
         command=hook["command"], currentHash="sha256:0")
    for event, groups in json.load(open(path))["hooks"].items()
    for group, each in enumerate(groups)
    for index, hook in enumerate(each["hooks"])
]
for line in sys.stdin:
    if json.loads(line).get("id") == 2:
        print(json.dumps(dict(id=2, result=dict(data=[dict(hooks=hooks)]))), flush=True)
"""


@pytest.fixture
def codex(bench: Bench, user: Path) -> Path:
    """A configuration of Codex, and a program that answers as Codex does when it is asked for its hooks."""
    program = bench.root / "bin/codex"
    program.parent.mkdir()
    program.write_text(CODEX)
    program.chmod(0o755)
    bench.env["PATH"] = f"{program.parent}:{bench.env['PATH']}"
    file = user / ".codex/config.toml"
    file.parent.mkdir()
    file.write_text('model = "x"\n')
    return file


def test_codex_trusts_each_hook_once(bench: Bench, codex: Path) -> None:
    """Whatever happened to its files since: the same table twice, and Codex does not start."""
    bench.ok("install", "--client", "codex")
    trusted = tomllib.loads(codex.read_text())["hooks"]["state"]
    (codex.parent / "hooks.json").unlink()
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("install", "--client", "codex")
    assert tomllib.loads(codex.read_text())["hooks"]["state"] == trusted
    (codex.parent / "hooks.json").unlink()
    codex.write_text(codex.read_text().replace('"y"', '"z"'))
    bench.ok("uninstall", "--client", "codex")
    assert codex.read_text() == 'model = "z"\n'


def test_codex_still_trusts_what_its_user_trusts(bench: Bench, codex: Path) -> None:
    """Only what is about our hooks goes, and what is about none."""
    hooks = codex.parent / "hooks.json"
    hooks.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}')
    theirs = f'model = "x"\n[hooks.state."{hooks}:stop:0:0"]\ntrusted_hash = "sha256:1"\n'
    codex.write_text(theirs)
    bench.ok("install", "--client", "codex")
    assert len(tomllib.loads(codex.read_text())["hooks"]["state"]) > 2
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--client", "codex")
    assert codex.read_text() == theirs.replace('"x"', '"y"')


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers]\noutlive = {command="/x"}\n',
        '[mcp_servers."outlive"]\ncommand = "/x"\n',
        '[mcp_servers.outlive] # note\ncommand = "/x"\n',
        '[ mcp_servers . outlive ]\ncommand = "/x"\n',
        'mcp_servers = {other = {command = "/x"}}\n',
        'mcp_servers.outlive.command = "/x"\n',
    ],
)
def test_a_server_of_somebody_else_in_codex_is_left_alone(bench: Bench, codex: Path, text: str) -> None:
    """However it is written; a second table of the same name would keep Codex from starting."""
    codex.write_text(text)
    servers = tomllib.loads(text)["mcp_servers"]
    assert "not added" in bench.ok("install", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"] == servers
    codex.write_text("# new\n" + codex.read_text())
    bench.ok("uninstall", "--client", "codex")
    assert codex.read_text() == "# new\n" + text


@pytest.mark.parametrize("text", ["hooks = {}\n", "hooks.state = {}\n", "model = \n"])
def test_codex_is_not_left_with_what_it_cannot_read(bench: Bench, codex: Path, text: str) -> None:
    """Refused, and nothing is written."""
    codex.write_text(text)
    before = tree(codex.parent)
    done = bench.run("install", "--client", "codex")
    assert done.returncode == 2
    assert "TOML" in done.stderr
    assert tree(codex.parent) == before


@pytest.mark.parametrize("python", ["/usr/bin/python3", "/gone/python"])
def test_a_server_that_starts_exactly_ours_counts_as_ours(bench: Bench, user: Path, python: str) -> None:
    """Also where it is not known who wrote it, as after the loss of the state directory."""
    file = user / ".claude.json"
    mine = {"command": "outlive", "args": ["mcp"]}
    for server, is_left in ((mine, True), ({"command": python, "args": ["-I", "-m", "outlive", "mcp"]}, False)):
        file.write_text(json.dumps({"mcpServers": {"outlive": server, "b": {"command": "/b"}}}))
        assert ("-m" in bench.ok("uninstall", "--client", "claude", "--dry-run")) is not is_left
        bench.ok("uninstall", "--client", "claude")
        assert ("outlive" in json.loads(file.read_text())["mcpServers"]) is is_left


def test_what_was_added_below_our_server_in_codex_goes_with_it(bench: Bench, codex: Path) -> None:
    """Without the server it would be a server without a command."""
    bench.ok("install", "--client", "codex")
    codex.write_text(codex.read_text() + '\n[mcp_servers.outlive.env]\nA = "b"\n\n[mcp_servers.b]\ncommand = "/b"\n')
    bench.ok("uninstall", "--client", "codex")
    assert tomllib.loads(codex.read_text()) == {"model": "x", "mcp_servers": {"b": {"command": "/b"}}}


@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_a_text_in_codex_that_looks_like_ours_is_none_of_ours(bench: Bench, codex: Path, quotes: str) -> None:
    """A line within a string of several lines."""
    args = '["-I", "-m", "outlive", "mcp"]' if quotes == "'''" else "[]"
    text = f'model = "x"\nnotes = {quotes}\n[mcp_servers.outlive]\ncommand = 1\nargs = {args}\n{quotes}\n'
    codex.write_text(text)
    bench.ok("install", "--client", "codex")
    assert tomllib.loads(codex.read_text())["mcp_servers"]["outlive"]["command"] == sys.executable
    codex.write_text(codex.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--client", "codex")
    assert codex.read_text() == text.replace('"x"', '"y"')


def test_codex_trusts_what_its_user_trusts_wherever_it_stands_then(bench: Bench, codex: Path) -> None:
    """A key is a place: theirs came after ours, and moves up when ours goes."""
    hooks = codex.parent / "hooks.json"
    bench.ok("install", "--client", "codex")
    found = json.loads(hooks.read_text())
    found["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "theirs"}]})
    hooks.write_text(json.dumps(found))
    theirs = f'\n[hooks.state."{hooks}:stop:1:0"]\ntrusted_hash = "sha256:1"\nenabled = true\n'
    codex.write_text(codex.read_text() + theirs)
    for verb in ("install", "uninstall"):
        bench.ok(verb, "--client", "codex")
        state = tomllib.loads(codex.read_text())["hooks"]["state"]
        assert state[f"{hooks}:stop:0:0"] == {"trusted_hash": "sha256:1", "enabled": True}
        assert (f"{hooks}:stop:1:0" in state) == (verb == "install")
    assert codex.read_text() == 'model = "x"\n' + theirs.replace(":1:0", ":0:0")


def test_what_codex_once_trusted_is_not_ours_if_we_never_were_there(bench: Bench, codex: Path) -> None:
    """Its user's hooks have gone, and the trust in them has stayed."""
    codex.write_text(f'[hooks.state."{codex.parent}/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n')
    before = tree(codex.parent)
    bench.ok("uninstall", "--client", "codex")
    assert tree(codex.parent) == before
    bench.ok("install", "--client", "codex")
    bench.ok("uninstall", "--client", "codex")
    assert tree(codex.parent) == before


OWN_SERVER = '{"mcpServers": {"outlive": {"command": "/x", "args": []}}}'
COMMENT = '{"hooks": { // later\n}}'
LITTLE = (
    ("claude", ".claude/settings.json", '{"hooks": {}}'),
    ("claude", ".claude/settings.json", COMMENT),
    ("claude", ".claude/settings.json", ""),
    ("claude", ".claude/skills/outlive/SKILL.md", ""),
    ("claude", ".claude.json", OWN_SERVER),
    ("claude", ".claude.json", '{"mcpServers": {"mine": {"command": "p", "args": ["-I", "-m", "outlive", "mcp"]}}}'),
    ("gemini", ".gemini/settings.json", '{"hooks": {}}'),
    ("gemini", ".gemini/settings.json", COMMENT),
    ("gemini", ".gemini/settings.json", ""),
    ("codex", ".codex/hooks.json", "{}"),
    ("codex", ".codex/hooks.json", '{"hooks":{}}'),
    ("codex", ".codex/config.toml", ""),
    ("codex", ".codex/config.toml", '[mcp_servers.outlive]\ncommand = "/x"\n'),
    ("cursor", ".cursor/hooks.json", '{"version": 1}'),
    ("cursor", ".cursor/mcp.json", "{}"),
    ("opencode", ".config/opencode/opencode.json", ""),
    ("openclaw", ".openclaw/openclaw.json", "{}"),
)


@pytest.mark.parametrize(("client", "name", "text"), LITTLE)
def test_however_little_was_there_is_given_back(bench: Bench, user: Path, client: str, name: str, text: str) -> None:
    """Whether or not there was an installation in between."""
    file = user / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    before = tree(user)
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before
    install(bench, client)
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


@pytest.mark.parametrize("client", ["claude", "gemini"])
def test_a_comment_is_not_nothing(bench: Bench, user: Path, client: str) -> None:
    """Neither with us beside it, nor when we are taken out of what was edited meanwhile."""
    file = settings(user, client, '{\n  "a": "x",\n  "hooks": {\n    // later\n  }\n}\n')
    install(bench, client)
    assert "// later" in file.read_text()
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--client", client)
    text = file.read_text()
    assert "// later" in text
    assert jsonc.value_of(text, jsonc.parse(text)) == {"a": "y", "hooks": {}}


def test_a_server_of_the_same_name_is_left_alone(bench: Bench, user: Path) -> None:
    """And it is said that ours is not there."""
    (user / ".claude").mkdir()
    (user / ".claude.json").write_text(OWN_SERVER)
    assert "left alone" in install(bench, "claude")
    assert (user / ".claude.json").read_text() == OWN_SERVER


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("openclaw", ".openclaw/extensions/outlive/index.js"),
        ("opencode", ".config/opencode/plugin/outlive.js"),
        ("claude", ".claude/skills/outlive/SKILL.md"),
    ],
)
def test_nothing_is_written_over_what_somebody_else_wrote(bench: Bench, user: Path, client: str, name: str) -> None:
    """A file that would be ours by its name, and is not by its content."""
    file = user / name
    file.parent.mkdir(parents=True)
    file.write_text("mine\n")
    before = tree(user)
    done = bench.run("install", "--client", client)
    assert done.returncode == 2
    assert "somebody else" in done.stderr
    bench.ok("uninstall", "--client", client)
    assert tree(user) == before


def test_a_folder_that_is_no_plugin_of_ours_is_left_as_it_is(bench: Bench, user: Path) -> None:
    """Uninstalling from the wrong folder takes nothing away."""
    folder = bench.root / "plugin"
    for name in (".mcp.json", "hooks/hooks.json", ".claude-plugin/plugin.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text('{"name": "mine"}')
    before = tree(folder)
    bench.ok("uninstall", "--client", "claude", "--plugin", str(folder))
    assert tree(folder) == before
    assert bench.run("install", "--client", "claude", "--plugin", str(folder)).returncode == 2
    assert tree(folder) == before
    assert tree(user) == {}


def test_two_directories_of_one_client_do_not_forget_each_other(bench: Bench, user: Path) -> None:
    """Each is given back as it was, in whichever order."""
    places = [bench.root / "one", bench.root / "other"]
    for each in places:
        each.mkdir()
        (each / "settings.json").write_text('{"hooks":{ }, "model":"x"}')
    before = [tree(each) for each in places]
    for verb in ("install", "uninstall"):
        for each in places:
            bench.env["CLAUDE_CONFIG_DIR"] = str(each)
            bench.ok(verb, "--client", "claude")
    assert [tree(each) for each in places] == before
    assert not list(bench.state.glob("*/install/*"))
    assert tree(user) == {}


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_a_hook_that_somebody_added_beside_ours_stays(bench: Bench, user: Path, client: str) -> None:
    """Ours is not there twice after another installation, and theirs is there after the last of ours has gone."""
    file = settings(user, client, "{}")
    install(bench, client)
    found = json.loads(file.read_text())
    count = len(found["hooks"]["SessionStart"][0]["hooks"])
    theirs = {"type": "command", "command": "theirs"}
    found["hooks"]["SessionStart"][0]["hooks"].insert(0, theirs)
    file.write_text(json.dumps(found, indent=1))
    install(bench, client)
    groups = json.loads(file.read_text())["hooks"]["SessionStart"]
    hooks = [hook for group in groups for hook in group["hooks"]]
    assert hooks.count(theirs) == 1
    assert len(hooks) == 1 + count
    bench.ok("uninstall", "--client", client)
    (left,) = json.loads(file.read_text())["hooks"].values()
    assert [group["hooks"] for group in left] == [[theirs]]


def test_hooks_that_are_written_strangely_are_none_of_ours(bench: Bench, user: Path) -> None:
    """Whoever reads them may complain; we leave them where they are."""
    odd = '{"x": "x", "hooks": {"Stop": [{"hooks": [{"command": "a", "args": 5}, 7]}, 3], "PreCompact": [], "a": {}}}'
    file = settings(user, "claude", odd)
    bench.ok("uninstall", "--client", "claude")
    assert file.read_text() == odd


def test_what_somebody_added_to_our_server_stays_with_it(bench: Bench, user: Path) -> None:
    """Another installation does not take it away, and uninstalling does."""
    (user / ".claude").mkdir()
    file = user / ".claude.json"
    file.write_text('{"a": 1}')
    install(bench, "claude")
    found = json.loads(file.read_text())
    found["mcpServers"]["outlive"]["env"] = {"A": "b"}
    file.write_text(json.dumps(found))
    for _ in range(2):
        install(bench, "claude")
        assert json.loads(file.read_text()) == found
    assert "nothing to change" in install(bench, "claude")
    bench.ok("uninstall", "--client", "claude")
    assert json.loads(file.read_text()) == {"a": 1}


def test_what_somebody_added_to_our_server_in_codex_stays_with_it(bench: Bench, user: Path) -> None:
    """Also as a table of its own."""
    file = user / ".codex/config.toml"
    install(bench, "codex")
    more = 'startup_timeout_sec = 20\n[mcp_servers.outlive.env]\nA = "b"\n'
    file.write_text(file.read_text() + more)
    found = tomllib.loads(file.read_text())
    install(bench, "codex")
    assert tomllib.loads(file.read_text()) == found
    assert "nothing to change" in install(bench, "codex")
    bench.ok("uninstall", "--client", "codex")
    assert tree(user) == {}


def test_what_is_no_file_is_refused_at_once(bench: Bench, user: Path) -> None:
    """A pipe would keep whoever reads it waiting."""
    (user / ".claude").mkdir()
    os.mkfifo(user / CLIENTS["claude"])
    for verb in ("install", "uninstall"):
        done = bench.run(verb, "--client", "claude")
        assert done.returncode == 2
        assert "no regular file" in done.stderr
    assert sorted(tree(user)) == [".claude", ".claude/settings.json"]


@pytest.mark.parametrize(
    ("client", "name", "text"),
    [
        ("codex", ".codex/hooks.json", "{}"),
        ("cursor", ".cursor/hooks.json", '{"version": 1}'),
        ("cursor", ".cursor/mcp.json", "{}"),
        ("openclaw", ".openclaw/openclaw.json", "{}"),
    ],
)
def test_what_was_there_and_was_edited_is_not_left_without_a_word(
    bench: Bench, user: Path, client: str, name: str, text: str
) -> None:
    """No client reads a file without anything in it as JSON."""
    file = user / name
    file.parent.mkdir()
    file.write_text(text)
    install(bench, client)
    file.write_text(file.read_text() + "\n")
    bench.ok("uninstall", "--client", client)
    assert json.loads(file.read_text()) == json.loads(text)


@pytest.mark.parametrize("text", ['{"name": "x"}', '{"name": "x", "hooks": {"stop": [{"command": "./a.sh"}]}}'])
def test_the_version_that_cursor_needs_for_our_hooks_goes_with_them(bench: Bench, user: Path, text: str) -> None:
    """Unless somebody has written hooks beside ours, which have never been without it."""
    file = settings(user, "cursor", text)
    install(bench, "cursor")
    file.write_text(file.read_text().replace('"x"', '"y"'))
    bench.ok("uninstall", "--client", "cursor")
    assert file.read_text() == text.replace('"x"', '"y"')
    install(bench, "cursor")
    found = json.loads(file.read_text())
    found["hooks"]["stop"].append({"command": "./b.sh"})
    file.write_text(json.dumps(found))
    bench.ok("uninstall", "--client", "cursor")
    left = json.loads(file.read_text())
    assert left["version"] == 1
    assert left["hooks"]["stop"][-1] == {"command": "./b.sh"}


def test_a_version_that_was_written_for_cursor_by_somebody_else_stays(bench: Bench, user: Path) -> None:
    """Also between two installations, and where only they could know."""
    file = settings(user, "cursor", '{"version": 1, "name": "x"}')
    for name in ("y", "z"):
        install(bench, "cursor")
        file.write_text(file.read_text().replace('"name"', f'"{name}": 1, "name"'))
    bench.ok("uninstall", "--client", "cursor")
    assert json.loads(file.read_text()) == {"version": 1, "y": 1, "z": 1, "name": "x"}
    file.write_text('{"name": "x"}')
    for name in ("y", "z"):
        install(bench, "cursor")
        file.write_text(file.read_text().replace('"name"', f'"{name}": 1, "name"'))
    bench.ok("uninstall", "--client", "cursor")
    assert json.loads(file.read_text()) == {"y": 1, "z": 1, "name": "x"}
