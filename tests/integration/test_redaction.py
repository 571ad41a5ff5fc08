"""Redaction: commands mask the secrets that they print. Stored files are not changed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import wait_until

if TYPE_CHECKING:
    from tests.support import Bench

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def task(bench: Bench) -> str:
    """Return an ended task with a token in its command, description and output."""
    task = bench.launch(f"echo {TOKEN}; sleep 0.1 & exit 3", "--description", f"with {TOKEN}", "--session", "s-1")
    bench.run("wait", task)
    return task


@pytest.mark.parametrize(
    "call",
    [
        *(("list",), ("show",), ("result",), ("wait",), ("output",), ("output", "--tail", "1"), ("cancel",)),
        *(("output", "--follow"), ("wait", "--until", "ghp_"), ("run", "--wait", "9s"), ("retry",), ("sweep",)),
        *(("audit",), ("completion", "tasks")),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_command_prints_a_secret(bench: Bench, task: str, call: tuple[str, ...], form: str) -> None:
    """No command prints a token that is in a task's command, description or output.

    Row 56 of the acceptance scenarios.
    """
    json = ("--json",) if form == "json" else ()
    if call[0] == "run":
        done = bench.run(*call, *json, f"echo {TOKEN}")
    elif call[0] in ("list", "sweep", "audit", "completion"):
        done = bench.run(*call, *json)
    else:
        done = bench.run(call[0], task, *call[1:], *json)
    assert TOKEN not in done.stdout + done.stderr
    if call[0] not in ("sweep", "audit", "retry", "cancel"):
        assert "ghp_[redacted]" in done.stdout


def test_output_file_keeps_the_secret(bench: Bench, task: str) -> None:
    """The output file contains the secret as the command wrote it.

    Only its owner can read it, and `--raw` prints it.
    """
    output = Path(bench.files(task).output)
    assert output.read_text() == f"{TOKEN}\n"
    assert output.stat().st_mode & 0o777 == 0o600
    assert bench.ok("output", task, "--raw") == TOKEN


def test_error_does_not_show_a_secret(bench: Bench) -> None:
    """The errors for an ambiguous `cancel` and for a missing program do not show the token."""
    for _ in range(2):
        bench.launch(f"TOKEN={TOKEN} sleep 60", "--session", "s")
    done = bench.run("cancel", env={"OUTLIVE_SESSION": "s"})
    assert TOKEN not in done.stderr
    done = bench.run("run", "--", f"/no/{TOKEN}")
    assert done.returncode == 1
    assert TOKEN not in done.stderr


def test_variable_given_with_env_is_not_stored(bench: Bench) -> None:
    """No file of the state directory contains the value of an `--env` variable."""
    task = bench.ok("run", "--env", f"DEPLOY={TOKEN}", "--", "sh", "-c", 'test -n "$DEPLOY"')
    assert bench.run("wait", task).returncode == 0
    assert not [path for path in bench.state.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def test_output_masks_a_secret_between_bytes_that_are_not_text(bench: Bench) -> None:
    """In bytes that are not text, `output` masks a secret and leaves all other bytes unchanged."""
    task = bench.launch(f"printf 'a\\377\\0b {TOKEN} \\200\\n'")
    bench.ok("wait", task)
    assert bench.run("output", task).stdout.encode("utf-8", "surrogateescape") == b"a\xff\0b ghp_[redacted] \x80\n"


def test_secret_is_masked_when_the_tail_begins_inside_it(bench: Bench) -> None:
    """If the end of the output that `show` prints begins inside a token, the rest of the token is masked."""
    task = bench.launch(f"echo {TOKEN}; head -c 2030 /dev/zero | tr '\\0' x; echo")
    bench.ok("wait", task)
    tail = bench.show(task)["output"]["tail"]
    assert 0 < len(tail) <= 2048
    assert TOKEN[-10:] not in tail


def test_follow_shows_an_unfinished_line(bench: Bench) -> None:
    """`output --follow` prints a prompt without a newline while the command waits for input."""
    os.mkfifo(bench.project / "gate")
    task = bench.launch("printf 'ready? '; read x < gate; echo yes")
    log = bench.root / "followed"
    with log.open("wb") as file:
        call = bench.command("output", task, "--follow")
        following = subprocess.Popen(call, env=bench.env, cwd=bench.project, stdout=file)
    wait_until(lambda: log.read_text() == "ready? ", "the prompt")
    bench.run("cancel", task)
    following.wait()


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("how", ["coloured", "in two writes", "after its name", "a key, slowly"])
def test_secret_is_masked_however_it_is_written(bench: Bench, how: str, form: str) -> None:
    """A secret is masked in followed and stored output, even after a color, in two writes or over several lines."""
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ" + "D" * 14
    script = {
        "coloured": f"printf '\\033[32m{TOKEN}\\033[0m\\n'",
        "in two writes": f"printf {TOKEN[:12]}; sleep 0.3; printf '{TOKEN[12:]}\\n'",
        "after its name": f"printf DB_PASSWORD=; sleep 0.3; echo {TOKEN[12:]}",
        "a key, slowly": f"for l in '-----BEGIN PRIVATE KEY-----' {line} {line} '-----END PRIVATE KEY-----'; "
        'do echo "$l"; sleep 0.2; done',
    }[how]
    json = ("--json",) if form == "json" else ()
    task = bench.launch(script)
    followed = bench.run("output", task, "--follow", *json).stdout
    read = bench.run("output", task, *json).stdout
    for text in (followed, read):
        assert TOKEN[12:] not in text
        assert line not in text
        assert "[redacted]" in text


@pytest.mark.parametrize("secret", [TOKEN, f"https://bob:{TOKEN[12:]}@example.org", f"DB_PASSWORD={TOKEN[12:]}"])
def test_both_parts_of_a_secret_are_masked_when_a_page_ends_inside_it(bench: Bench, secret: str) -> None:
    """If a page of the output ends inside a secret, both parts are masked. The words around it are shown."""
    task = bench.launch(f"echo 'one two {secret} three four'")
    bench.run("wait", task)
    for at in range(9, 8 + len(secret), 9):
        for form in ((), ("--json",)):
            first = bench.ok("output", task, "--bytes", str(at), *form)
            second = bench.ok("output", task, "--since", str(at), *form)
            for half in (TOKEN[20:24], TOKEN[-3:]):
                assert half not in first + second, at
            assert "one two" in first, at
            assert "three four" in second, at
            assert form == () or f'"next": {at}' in first


def test_page_ends_inside_a_word_that_is_no_secret(bench: Bench) -> None:
    """If a page of the output ends inside a word that is no secret, both parts of the word are shown."""
    task = bench.launch(f"echo 'one two {TOKEN} three four'")
    bench.run("wait", task)
    assert bench.ok("output", task, "--bytes", "5") == "one t"
    assert bench.ok("output", task, "--since", "5") == "wo ghp_[redacted] three four"


def test_output_reads_an_earlier_attempt(bench: Bench) -> None:
    """`output --attempt` prints an earlier attempt's output, and refuses an attempt that does not exist."""
    task = bench.launch("echo x >> n; wc -l < n; exit 1")
    bench.run("wait", task)
    bench.ok("retry", task)
    bench.run("wait", task)
    assert (bench.ok("output", task, "--attempt", "1"), bench.ok("output", task)) == ("1", "2")
    assert bench.run("output", task, "--attempt", "3").returncode == 2
