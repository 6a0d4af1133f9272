"""A server's process that ends while it is being closed."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from extgate.enforce.mcp.options import Limits
from extgate.enforce.mcp.pipe import _Child


def test_whoever_ends_the_gateway_is_heard_at_the_moment_in_which_the_server_ends() -> None:
    async def run(turns: int) -> bool:
        child = _Child(cast(Any, None), Limits())
        waiting = asyncio.ensure_future(child._has_exited())
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        child.exited.set()
        for _ in range(turns):
            await asyncio.sleep(0.0)
        was_over = waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})
        return was_over or waiting.cancelled()

    assert all(asyncio.run(run(turns)) for turns in range(6))
