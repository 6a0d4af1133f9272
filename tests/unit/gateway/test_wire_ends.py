"""The wire while its gateway ends: new requests are sent elsewhere, and an answer that streams is judged to its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from extgate.enforce.mcp.http_server import Request
from tests.unit.enforce.wire.world import body, call, message, streamed
from tests.unit.gateway.test_wire import TOOLS, served
from tests.unit.gateway.world import run


def test_while_it_ends_new_requests_are_sent_elsewhere_and_a_running_stream_is_judged_to_its_end(
    tmp_path: Path,
) -> None:
    async def work() -> None:
        async with served(tmp_path) as made:
            begun: list[Request] = []

            def begin(request: Request) -> None:
                request.stream({})
                begun.append(request)

            made.model.answer = begin
            streaming = made.begin(data=body(tools=TOOLS, stream=True))
            while not begun:
                await asyncio.sleep(0)
            made.front.drain()
            ending = asyncio.ensure_future(made.front.drain_wire())
            refused = await made.ask(data=body(tools=TOOLS))
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert "ending" in json.loads(refused.body)["error"]["message"]
            assert len(made.model.requests) == 1
            assert not ending.done()
            begun[0].push(streamed(message(call("Read", file_path="/x"), call("Bash", command="ls"))))
            begun[0].end()
            await asyncio.wait_for(streaming.done, 30)
            await asyncio.wait_for(ending, 30)
            assert b'"Read"' in streaming.body
            assert b'"ls"' not in streaming.body
            assert [e["outcome"] for e in made.world.events if e["question"] == "use"] == ["allowed", "refused"]

    run(work())
