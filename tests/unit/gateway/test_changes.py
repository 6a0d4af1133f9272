"""Edits while clients are at work: obeyed once they are acknowledged, and told to whom they concern, once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from extgate.gateway.address import open_front
from extgate.gateway.running import Gateway
from extgate.gateway.settings import GatewaySettings
from tests.unit.gateway.test_address import Answer, Web
from tests.unit.gateway.world import World, run, text_of

DENY_ECHO = "mcp: {disabled: ['habits/echo']}"
ECHO = {"name": "habits__echo", "arguments": {}}


@asynccontextmanager
async def opened(world: World) -> AsyncIterator[tuple[Web, Gateway]]:
    async with open_front(GatewaySettings(), "127.0.0.1", 0) as front, world.open() as gateway:
        front.serve(gateway)
        web = Web(front.port)
        yield web, gateway
        web.origin.close()


class Told:
    """A session with its stream of news open. `got`: how often each method was told."""

    def __init__(self, web: Web, agent: str) -> None:
        self.web, self.agent, self.got = web, agent, Counter[str]()
        self.session: dict[str, str] = {}
        self.stream: Answer | None = None

    async def open(self) -> Told:
        self.session = await self.web.hello(self.agent)
        headers = {"accept": "text/event-stream", "mcp-session-id": self.session["mcp_session_id"]}
        self.stream, _ = self.web.begin("GET", f"/agents/{self.agent}/mcp", headers)
        return self

    async def rpc(self, method: str, params: Any = None) -> Any:
        return (await self.web.rpc(method, params, agent=self.agent, **self.session)).json

    async def tools(self) -> set[str]:
        return {row["name"] for row in (await self.rpc("tools/list"))["result"]["tools"]}

    async def echo(self) -> str:
        return text_of(await self.rpc("tools/call", ECHO))

    async def hear(self) -> None:
        """Returns when something was told."""
        assert self.stream is not None
        self.got[(await self.stream.event())["method"]] += 1

    def rest(self) -> Counter[str]:
        """All that was told by now."""
        assert self.stream is not None
        while not self.stream.events.empty():
            self.got[self.stream.events.get_nowait()[1]["method"]] += 1
        return self.got


def test_over_http_no_call_passes_under_the_old_policy_once_the_edit_is_acknowledged(tmp_path: Path) -> None:
    """The storm never pauses: what began before the acknowledgement may end either way, what begins after may not."""

    async def work() -> None:
        world = World(tmp_path, a="", b="")
        async with opened(world) as (web, gateway):
            clients = [await Told(web, agent).open() for agent in "aabb"]
            begun_after: list[tuple[str, str]] = []
            is_known = is_over = False

            async def storm(client: Told) -> None:
                while not is_over:
                    was_known = is_known
                    said = await client.echo()
                    if was_known:
                        begun_after.append((client.agent, said))

            storms = [asyncio.ensure_future(storm(client)) for client in clients for _ in range(3)]
            while len(world.calls) < 50:
                await asyncio.sleep(0)
            world.profile("a", DENY_ECHO)
            await asyncio.to_thread(gateway.host.reload)
            is_known, edge = True, len(world.events)
            while Counter(agent for agent, _ in begun_after)["a"] < 50 or len(begun_after) < 150:
                await asyncio.sleep(0)
            is_over = True
            await asyncio.gather(*storms)
            assert {said for agent, said in begun_after if agent == "b"} == {"{}"}
            assert all("disabled" in said for agent, said in begun_after if agent == "a")
            uses = [event for event in world.events[edge:] if event["question"] == "use"]
            assert {(e["agent"], e["outcome"]) for e in uses} == {("a", "refused"), ("b", "allowed")}
            ran = sum(call.get("tool") == "echo" for call in world.calls)
            assert ran == sum(e["outcome"] == "allowed" for e in world.events if e["question"] == "use")

    run(work())


def test_over_http_no_call_passes_under_the_old_policy_once_a_client_was_told(tmp_path: Path) -> None:
    """The edit of a file, noticed by the gateway itself: what a client begins after its notice is refused."""

    async def work() -> None:
        world = World(tmp_path, a="", b="")
        async with opened(world) as (web, _):
            client, other = await Told(web, "a").open(), await Told(web, "b").open()
            assert "habits__echo" in await client.tools() & await other.tools()
            is_over = False

            async def storm(client: Told) -> None:
                while not is_over:
                    await client.echo()

            storms = [asyncio.ensure_future(storm(each)) for each in (client, other)]
            world.profile("a", DENY_ECHO)
            await client.hear()
            assert all(["disabled" in await client.echo() for _ in range(20)])
            is_over = True
            await asyncio.gather(*storms)
            assert client.rest() == {"notifications/tools/list_changed": 1}
            assert not other.rest()

    run(work())


def test_a_change_is_told_to_exactly_the_sessions_whose_lists_became_others_one_notice_for_each(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="", b="mcp: {allowed: ['habits/echo']}", c="mcp: {allowed: ['more']}", d=DENY_ECHO)
        world.servers("habits", "more")
        async with opened(world) as (web, gateway):
            agents = {agent: [await Told(web, agent).open() for _ in range(2)] for agent in "abcd"}
            everyone = [client for clients in agents.values() for client in clients]
            for client in everyone:
                assert await client.tools()
            world.servers("habits")  # `more` is gone: a and d see less, c sees nothing, b what it saw
            await asyncio.to_thread(gateway.host.reload)
            assert "not installed" in text_of(
                await agents["a"][0].rpc("tools/call", {"name": "more__echo", "arguments": {}})
            )
            for agent in "acd":
                for client in agents[agent]:
                    await client.hear()
            world.profile("b", "mcp: {allowed: ['habits/big']}")
            await asyncio.to_thread(gateway.host.reload)
            for client in agents["b"]:
                await client.hear()
            for client in everyone:  # what was told before this answer has come by now
                await client.tools()
                assert client.rest() == {"notifications/tools/list_changed": 1}, client.agent
            assert await agents["b"][0].tools() == {"habits__big"}
            assert await agents["c"][0].tools() == set()

    run(work())
