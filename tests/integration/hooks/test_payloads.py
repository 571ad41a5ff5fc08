"""The payloads that hooks receive: recorded, malformed, huge or incomplete."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from outlive.install.clients.registry import CLIENTS
from tests.hook_steps import MODULES, call, context, ended, launch, recorded, said
from tests.integration.hooks.test_unusable_ledger import EVERY
from tests.support import PATIENCE_S

if TYPE_CHECKING:
    from tests.support import Bench

WRONG: tuple[Any, ...] = (None, 7, True, [], {}, [1], {"a": 1}, "")


@pytest.mark.parametrize("client", MODULES)
def test_payload_field_counts_as_missing_when_its_type_is_wrong(client: str) -> None:
    """A field of a payload counts as missing if its value has a wrong type."""
    tried = 0
    for name, each in recorded(client).items():
        event, given = name.partition(":")[0], each["payload"]
        for field in (*given, "source", "reason", "tool_name", "tool_input", "prompt", "transcript_path"):
            for wrong in WRONG if field != "session_id" and event in MODULES[client].KINDS else ():
                seen = MODULES[client].read(event, {**given, field: wrong}, {})
                texts = (seen.session, seen.cwd, seen.text, seen.tool, seen.reason or "", seen.transcript or "")
                assert [type(text) for text in texts] == [str] * 6, (event, field, wrong)
                tried += 1
    assert tried > 100


@pytest.mark.parametrize("wrong", [None, 7, {"a": 1}])
def test_hook_reports_an_ending_when_payload_fields_have_wrong_types(bench: Bench, wrong: Any) -> None:
    """A hook reports an ending even if the fields for the tool and the transcript have wrong types."""
    task = ended(bench, "exit 3")
    fields = {"transcript_path": wrong, "tool_name": wrong, "tool_calls": wrong, "permission_mode": wrong}
    assert task in context(said(call(bench, "claude", "PostToolBatch", **fields)))


@pytest.mark.parametrize("wrong", ["\0", "a\0b", "\ud800"])
def test_hook_reports_an_ending_when_paths_of_the_payload_are_invalid(bench: Bench, wrong: str) -> None:
    """A hook reports an ending even if the system refuses the payload's paths of directory and transcript."""
    task = ended(bench, "exit 3")
    assert task in context(said(call(bench, "claude", "PostToolBatch", cwd=wrong, transcript_path=wrong)))


@pytest.mark.parametrize("client", MODULES)
def test_hook_answers_every_recorded_payload(bench: Bench, client: str) -> None:
    """For every recorded payload, the hook prints JSON or no output, exits with 0 and writes nothing to stderr."""
    kinds = MODULES[client].KINDS
    seen = set()
    for name, each in recorded(client).items():
        event = name.partition(":")[0]
        if event not in kinds:
            continue
        payload = {**each["payload"], "cwd": str(bench.project)}
        env = {**each["env"], "CLAUDE_PROJECT_DIR": str(bench.project), "CLAUDE_PID": str(os.getpid())}
        said(call(bench, client, event, env=env, **payload))
        seen.add(event)
    assert len(seen) >= 6


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_installed_events_are_known_to_the_hook(client: str) -> None:
    """The hook knows every event that `install` writes into a configuration."""
    groups = [group for each in CLIENTS[client].groups("rewrite").values() for group in each]
    commands = [" ".join((hook["command"], *hook.get("args", ()))) for group in groups for hook in group["hooks"]]
    assert {each.partition(f" hook {client} ")[2].split()[0] for each in commands} <= set(MODULES[client].KINDS)


@pytest.mark.parametrize("event", [*EVERY, "Wake"])
def test_hook_gives_up_at_its_deadline_when_the_payload_never_ends(bench: Bench, event: str) -> None:
    """If a client keeps the pipe of the payload open, the hook exits with code 0 at its deadline."""
    hook = subprocess.Popen(
        bench.command("hook", "claude", event),
        env={**bench.env, "OUTLIVE_HOOK_DEADLINE_S": "0.2"},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with hook:
        assert hook.stdin is not None
        assert hook.stderr is not None
        hook.stdin.write(b'{"session_id": ')
        hook.stdin.flush()
        try:
            assert hook.wait(PATIENCE_S) == 0
        finally:
            hook.kill()
        assert b"no answer in time" in hook.stderr.read()


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("claude",),
        ("claude", "Nonsense"),
        ("nobody", "Stop"),
        ("claude", "Stop", "--guard"),
        ("claude", "Stop", "--guard", "x"),
    ],
)
def test_hook_never_blocks_the_client_when_its_arguments_are_wrong(bench: Bench, words: tuple[str, ...]) -> None:
    """With wrong arguments, the hook exits with code 0, because exit code 2 would block the client."""
    done = bench.run("hook", *words)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("outlive: ")


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"session_id": 3}'])
def test_hook_prints_one_line_when_the_payload_is_malformed(bench: Bench, payload: bytes) -> None:
    """If the payload is malformed, the hook prints one line on stderr, and exits with code 0."""
    command = bench.command("hook", "claude", "Stop")
    done = subprocess.run(command, input=payload, env=bench.env, capture_output=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(done.stderr.splitlines()) == 1
    assert b"Error" not in done.stderr, "a plain sentence, without the name of an exception"


def test_hook_reads_a_payload_of_3_mb_and_refuses_one_of_17_mb(bench: Bench) -> None:
    """The hook reads a payload of 3 MB completely, so that the client gets no broken pipe.

    It refuses a payload of 17 MB.
    """
    ended(bench)
    assert context(said(call(bench, "claude", "PostToolBatch", tool_calls=["x" * 3_000_000])))
    done = call(bench, "claude", "PostToolBatch", tool_calls=["x" * (17 << 20)])
    assert done.returncode == 0
    assert "longer than" in done.stderr


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("Stop", {"background_tasks": [{"id": "b1", "command": "echo \ud83d"}]}),
        ("PostToolBatch", {"tool_calls": [{"tool_name": "Write", "tool_input": {"file_path": "/\ud83d"}}]}),
    ],
)
def test_hook_reports_endings_when_another_field_has_a_lone_surrogate(
    bench: Bench, event: str, fields: dict[str, Any]
) -> None:
    """If a field has a lone surrogate, which cannot be encoded, the hook prints one line and reports the ending."""
    ended(bench)
    launch(bench, "sleep 60")
    done = call(bench, "claude", event, **fields)
    assert (done.returncode, len(done.stderr.splitlines())) == (0, 1)
    assert json.loads(done.stdout)


MONSTERS: dict[str, dict[str, Any]] = {
    "a cwd without end": {"cwd": "/x" * 100_000},
    "a cwd that leads upwards without end": {"cwd": "../" * 66_000},
    "a name without end": {"session_id": "s" * 200_000},
    "more than it reads": {"tool_calls": [[]] * 2_900_000},
    "nothing but brackets": {"tool_calls": [[]] * 1_000_000},
    "nothing but names": {"tool_calls": {str(number): [] for number in range(250_000)}},
    "a command without end": {"tool_name": "Bash", "tool_input": {"command": "(sleep 9 & nohup $(a;" * 190_000}},
    "a shell for every byte": {"background_tasks": [{"id": str(number)} for number in range(200_000)]},
}


@pytest.mark.parametrize("monster", MONSTERS)
@pytest.mark.parametrize("event", EVERY)
def test_hook_needs_little_cpu_time_for_a_huge_payload(bench: Bench, event: str, monster: str) -> None:
    """For a huge payload, a hook needs less than 0.5 s of CPU time."""
    ended(bench)
    before = os.times()
    done = call(bench, "claude", event, env={"OUTLIVE_HOOK_DEADLINE_S": ""}, source="startup", **MONSTERS[monster])
    after = os.times()
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) <= 1
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.5
