"""The MCP tool `wait` with a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.mcp_steps import document_of, over_stdio, play, text_of
from tests.servers import LISTEN, PYTHON, free_ports, listening

if TYPE_CHECKING:
    from tests.support import Bench


def test_wait_tool_waits_for_a_port_and_tells_a_moved_server(bench: Bench) -> None:
    """The answer is final if the task listens on another port, and a command in a condition is refused."""
    port, taken = free_ports(2)
    words = [PYTHON, "-c", LISTEN, "0", f"127.0.0.1:{port}"]

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:

            async def wait(until: str) -> Any:
                return document_of(await client.call_tool("wait", {"ids": [task], "until": until, "seconds": 30}))

            task = document_of(await client.call_tool("run", {"command": words}))["id"]
            found = await wait(f"port:{port}")
            assert (found["done"], found["matched"], found["missing"]) == (True, f"listens on 127.0.0.1:{port}", None)
            with listening(f"127.0.0.1:{taken}"):
                moved = await wait(f"port:{taken}")
            assert (moved["done"], moved["matched"], moved["resume"]) == (True, None, None)
            assert moved["missing"].startswith(f"listens on {port}; {taken} is held by pid ")
            refused = await client.call_tool("wait", {"ids": [task], "until": "cmd:true"})
            assert refused.is_error
            assert "runs no command" in text_of(refused)
            again = await client.call_tool("run", {"command": words})
            assert again.is_error
            assert f"already running: {task}" in text_of(again)

    play(steps)


def test_wait_tool_shows_the_end_of_the_output_when_the_task_dies(bench: Bench) -> None:
    """The text has the last lines of the output, and the answer is final."""

    async def steps() -> None:
        async with over_stdio(bench, "legacy") as client:
            command = {"command": "sleep 0.3; echo Error: no such module; exit 3"}
            task = document_of(await client.call_tool("run", command))["id"]
            done = await client.call_tool("wait", {"ids": [task], "until": "port:1", "seconds": 40})
            assert document_of(done)["done"]
            assert "Error: no such module" in text_of(done)

    play(steps)
