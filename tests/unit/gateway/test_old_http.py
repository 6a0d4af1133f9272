"""Servers of the older HTTP transport, with one stream of events: relayed, gated, and opened again when lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.discover.http_servers import sdk_app, served
from tests.unit.gateway.world import Client, World, run, text_of


def test_a_server_of_the_older_transport_is_listed_called_and_gated(tmp_path: Path) -> None:
    async def work(url: str) -> None:
        world = World(tmp_path, a="mcp: {disabled: ['old/add']}", b="")
        world.servers(old={"type": "sse", "url": f"{url}/sse"})
        async with world.open() as gateway:
            client, other = await Client(gateway).hello(), await Client(gateway, "b").hello()
            assert gateway.hub.bases["old"].target.transport == "sse"
            names = [row["name"] for row in (await client.ask("tools/list"))["result"]["tools"]]
            assert "old__add" not in names
            call = {"name": "old__add", "arguments": {"a": 2, "b": 3}}
            assert "disabled" in text_of(await client.ask("tools/call", call))
            assert text_of(await other.ask("tools/call", call)) == "5"
            many = [other.begin("tools/call", {"name": "old__add", "arguments": {"a": n, "b": 1}}) for n in range(30)]
            assert [text_of(answer) for answer in await asyncio.gather(*many)] == [str(n + 1) for n in range(30)]

    with served(sdk_app("sse")) as url:
        run(work(url))


def test_a_server_of_the_older_transport_whose_stream_ended_is_opened_again(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        with served(sdk_app("sse")) as url:
            world.servers(old={"type": "sse", "url": f"{url}/sse"})
            async with world.open() as gateway:
                client = await Client(gateway).hello()
                base = gateway.hub.bases["old"]
                base.on_failed(None, "it ended the stream")
                call = {"name": "old__add", "arguments": {"a": 2, "b": 3}}
                assert "lost" in text_of(await client.ask("tools/call", call)) or base.restarts
                while text_of(await client.ask("tools/call", call)) != "5":
                    await asyncio.sleep(0.05)
                assert base.restarts == 1

    run(work())
