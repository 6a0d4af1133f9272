"""What clients are told while a server is slow, lost or not there yet: never that its items are not installed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from extgate.enforce.mcp import upstream
from extgate.gateway.running import Gateway
from tests.unit.gateway.world import Client, World, run, text_of


@pytest.fixture(autouse=True)
def _nothing_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "RETRY_S", (1000.0,))


async def lost(gateway: Gateway, server: str = "habits") -> None:
    """Returns when the gates know that the server is lost."""
    known = asyncio.Event()
    tell = gateway.hub.on_servers

    def told() -> None:
        tell()
        known.set()

    gateway.hub.on_servers = told
    gateway.hub.bases[server].on_failed(None, "slow")
    await asyncio.wait_for(known.wait(), 60)


def test_a_tool_of_a_lost_server_is_not_available_right_now_and_listed_no_longer(tmp_path: Path) -> None:
    async def work() -> None:
        async with World(tmp_path).open() as gateway:
            client = await Client(gateway).hello()
            assert "echo" in await client.tools()
            gateway.hub.bases["habits"].on_failed(None, "no answer to a ping within 10 s")
            await client.news("notifications/tools/list_changed")
            assert await client.tools() == []
            told = text_of(await client.call("echo"))
            assert told == "the server `habits` is not available right now: no answer to a ping within 10 s"
            assert "not installed" in text_of(await client.call("surprise"))
            assert client.told == []

    run(work())


def test_an_agent_whose_required_server_is_lost_is_unavailable_though_its_items_are_remembered(tmp_path: Path) -> None:
    async def work() -> None:
        async with World(tmp_path, a="mcp: {required: [habits]}").open() as gateway:
            client = await Client(gateway).hello()
            await lost(gateway)
            assert "this agent is unavailable" in text_of(await client.call("echo"))

    run(work())


def test_no_other_server_is_reached_by_the_name_of_a_lost_one_s_tool(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="gateway: {prefix: on-clash}")
        world.servers("habits", "other")
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            await lost(gateway)
            plain = text_of(await client.ask("tools/call", {"name": "echo", "arguments": {}}))
            assert "not installed" in plain
            assert "not available right now: slow" in text_of(await client.call("echo"))
            assert text_of(await client.ask("tools/call", {"name": "other__echo", "arguments": {}})) == "{}"

    run(work())


def test_a_name_that_nobody_has_may_be_of_a_server_that_has_listed_nothing_yet(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        world.servers(habits={"command": "/no/such/server"})
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert "'habits__echo' is not available right now" in text_of(await client.call("echo"))

    run(work())


def test_a_server_reached_in_another_way_inherits_no_names(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            assert "echo" in await client.tools()
            world.servers(habits={"command": "/no/such/server"})
            gateway.host.reload()
            await client.news("notifications/tools/list_changed")
            assert not [ext for ext in gateway.host.dispatcher.inventory.extensions if ext.server == "habits"]

    run(work())
