"""The MCP server gives outputs of tasks as resources, and sends messages to subscribers when the outputs grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.mcp_steps import ERAS, ask, over_stdio, play
from tests.session_steps import until
from tests.support import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support import Bench


def test_subscriber_is_notified_when_an_output_grows(bench: Bench) -> None:
    """If a client of the older protocol has sent `resources/subscribe`, it is notified when the output grows."""
    task = bench.launch(f"{until('one')}; echo 1; {until('two')}; echo 2")
    uri = f"outlive://task/{task}/output"
    told: list[str] = []

    async def heard(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            told.append(str(message.params.uri))

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}, message_handler=heard) as client:
            assert client.server_capabilities.resources is not None
            assert client.server_capabilities.resources.subscribe is True
            await ask(client, "resources/subscribe", uri=uri)
            (bench.project / "one").touch()
            await until_true(lambda: bool(told))
            found = (await client.read_resource(uri)).contents[0]
            assert isinstance(found, types.TextResourceContents)
            assert found.text == "1\n"
            await ask(client, "resources/unsubscribe", uri=uri)
            (bench.project / "two").touch()
            bench.run("wait", task)
            assert set(told) == {uri}

    play(steps)


def test_resource_that_does_not_exist_is_neither_read_nor_subscribed_to(bench: Bench) -> None:
    """Reading or subscribing to a resource that does not exist fails at once, so no subscriber waits forever."""
    other = bench.root / "other"
    other.mkdir()
    foreign = bench.launch("true", cwd=other)

    async def steps() -> None:
        async with over_stdio(bench, "legacy", {}) as client:
            for uri in ("outlive://task/tnever/output", f"outlive://task/{foreign}/output", "file:///etc/passwd"):
                errors = []
                for method in ("resources/read", "resources/subscribe"):
                    with pytest.raises(MCPError, match="Resource not found") as raised:
                        await ask(client, method, uri=uri)
                    errors.append(raised.value.error)
                assert errors[0] == errors[1]

    play(steps)


def test_listener_is_notified_when_an_output_grows(bench: Bench) -> None:
    """If a client of the newer protocol has sent `subscriptions/listen`, it is notified when the output grows."""
    task = bench.launch(f"{until('one')}; echo 1; {until('two')}")
    uri = f"outlive://task/{task}/output"

    async def steps() -> None:
        async with (
            over_stdio(bench, ERAS[1], {}) as client,
            client.listen(resource_subscriptions=[uri]) as events,
        ):
            (bench.project / "one").touch()
            async for event in events:
                assert getattr(event, "uri", None) == uri
                break
            found = (await client.read_resource(uri)).contents[0]
            assert isinstance(found, types.TextResourceContents)
            assert found.text == "1\n"

    play(steps)


async def until_true(condition: Callable[[], bool]) -> None:
    """Wait in a coroutine until a condition is true."""
    await anyio.to_thread.run_sync(lambda: wait_until(condition))
