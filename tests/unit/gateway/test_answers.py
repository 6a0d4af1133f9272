"""Every request is answered once, on the way that its client can take: ids that collide, streams that are preferred."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.unit.gateway.test_address import HEADERS, served
from tests.unit.gateway.world import Client, World, run, text_of


def test_a_request_whose_id_is_the_empty_text_is_answered(tmp_path: Path) -> None:
    async def test() -> None:
        async with World(tmp_path).open() as gateway:
            client = await Client(gateway).hello()
            client._waiting[""] = asyncio.get_running_loop().create_future()  # type: ignore[index]
            client.send({"id": "", "method": "tools/call", "params": {"name": "habits__echo", "arguments": {"a": 1}}})
            assert text_of(await asyncio.wait_for(client._waiting[""], 30)) == '{"a": 1}'  # type: ignore[index]

    run(test())


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_still_gets_its_answer(tmp_path: Path) -> None:
    world, until = World(tmp_path), tmp_path / "now"

    async def test() -> None:
        async with served(world) as web:
            headers = HEADERS | {"mcp-session-id": (await web.hello())["mcp_session_id"]}
            call = {"name": "habits__wait", "arguments": {"until": str(until)}}
            body = json.dumps({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": call}).encode()
            first, _ = web.begin("POST", "/agents/a/mcp", headers, body)
            while not world.calls:
                await asyncio.sleep(0.01)
            second = await web.send("POST", "/agents/a/mcp", headers, body)
            assert "in flight" in second.json["error"]["message"]
            until.touch()
            await asyncio.wait_for(first.done, 30)
            assert text_of(first.json) == "waited"

    run(test())


def test_a_client_that_names_streams_first_gets_its_answer_as_one(tmp_path: Path) -> None:
    async def test() -> None:
        async with served(World(tmp_path)) as web:
            session = await web.hello()
            kinds = {}
            for accept in ("application/json, text/event-stream", "text/event-stream, application/json", "*/*"):
                answer = await web.rpc("ping", **session, accept=accept)
                kinds[accept] = answer.headers["content-type"]
                found = answer.json if "json" in kinds[accept] else await answer.event()
                assert found["result"] == {}
            assert list(kinds.values()) == ["application/json", "text/event-stream", "application/json"]

    run(test())
