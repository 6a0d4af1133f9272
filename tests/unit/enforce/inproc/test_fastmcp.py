"""What the doors table does not ask of FastMCP: ways around a resource, instructions, completions, mounts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import fastmcp
import pytest
from fastmcp import Client, FastMCP

from extgate.core.extension import Inventory
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.fastmcp_server import GateMiddleware, installed
from tests.doors.driver import Hits
from tests.doors.policies import profile

VERSION = int(fastmcp.__version__.partition(".")[0])


def wiki(hits: Hits | None = None) -> FastMCP[Any]:
    """A server with one of each."""
    count = (hits or Hits()).by_id
    server: FastMCP[Any] = FastMCP("whatever it says", instructions="WIKI INSTRUCTIONS")

    @server.tool
    def search(text: str = "") -> str:
        count["search"] += 1
        return "found"

    @server.resource("wiki://public/a")
    def public() -> str:
        count["public"] += 1
        return "public"

    @server.resource("wiki://secret/b")
    def secret() -> str:
        count["secret"] += 1
        return "secret"

    @server.resource("wiki://page/{name}")
    def page(name: str) -> str:
        count[f"page {name}"] += 1
        return "page"

    @server.prompt
    def triage(topic: str = "") -> str:
        count["triage"] += 1
        return "triage"

    return server


def ask(text: str, question: Callable[[Client[Any]], Awaitable[Any]], server: FastMCP[Any] | None = None) -> Any:
    """The answer to one question of a client, behind a profile."""

    async def run() -> Any:
        made = server or wiki()
        gate = Gate(profile(text), await installed(made, "wiki"), door="test")
        made.add_middleware(GateMiddleware(gate, server="wiki"))
        async with Client(made) as client:
            return await question(client)

    return asyncio.run(run())


def test_everything_that_a_server_offers_is_in_its_inventory() -> None:
    found = asyncio.run(installed(wiki(), "wiki"))
    assert {ext.id for ext in found.extensions} == {
        "mcp_tool:wiki/search",
        "mcp_resource:wiki/wiki://public/a",
        "mcp_resource:wiki/wiki://secret/b",
        "mcp_resource:wiki/wiki://page/{name}",
        "mcp_prompt:wiki/triage",
    }
    assert [server.name for server in found.servers] == ["wiki"]


@pytest.mark.parametrize(
    "uri",
    ["wiki://secret/b", "wiki://public/../secret/b", "wiki://%73ecret/b", "wiki://page/..%2f..%2fsecret%2fb", "x://y"],
)
def test_no_spelling_of_a_denied_resource_is_read(uri: str) -> None:
    hits = Hits()

    async def read(client: Client[Any]) -> None:
        with pytest.raises(Exception, match=r"disabled for this agent|not among|refused"):
            await client.read_resource(uri)

    ask("resources: {disabled: ['wiki/wiki://secret/*', 'wiki/*secret*']}", read, wiki(hits))
    assert not hits.by_id


def test_a_page_that_a_visible_template_gives_is_read() -> None:
    hits = Hits()
    ask(
        "resources: {disabled: ['wiki/wiki://secret/*']}",
        lambda client: client.read_resource("wiki://page/one"),
        wiki(hits),
    )
    assert hits.by_id == {"page one": 1}


@pytest.mark.parametrize(("text", "is_sent"), [("{}", True), ("mcp: {disabled: [wiki]}", False)])
def test_instructions_go_with_the_last_that_is_visible(text: str, is_sent: bool) -> None:
    async def instructions(client: Client[Any]) -> Any:
        session = client.session
        results = [getattr(session, name, None) for name in ("discover_result", "initialize_result")]
        return str([client.initialize_result, *results])

    assert ("WIKI INSTRUCTIONS" in ask(text, instructions)) == is_sent


@pytest.mark.skipif(VERSION < 4, reason="FastMCP has completions since 4")
@pytest.mark.parametrize(("text", "values"), [("{}", ["one"]), ("prompts: {disabled: ['wiki/triage']}", [])])
def test_a_completion_for_something_hidden_is_empty(text: str, values: list[str]) -> None:
    from mcp.types import PromptReference

    server = wiki()
    server.completion(lambda ref, argument, context: ["one"])

    async def complete(client: Client[Any]) -> Any:
        found = await client.complete(
            PromptReference(type="ref/prompt", name="triage"), {"name": "topic", "value": "o"}
        )
        return found.values

    assert ask(text, complete, server) == values


def test_what_a_mounted_server_brings_is_judged_under_the_name_that_clients_see() -> None:
    hits = Hits()
    server: FastMCP[Any] = FastMCP("top")
    server.mount(wiki(hits), namespace="sub")

    async def use(client: Client[Any]) -> list[str]:
        with pytest.raises(Exception, match="'wiki/sub_search' is disabled for this agent"):
            await client.call_tool("sub_search", {})
        return [tool.name for tool in await client.list_tools()]

    assert ask("mcp: {disabled: ['wiki/sub_search']}", use, server) == []
    assert not hits.by_id


def test_a_new_deny_binds_the_next_call_of_the_same_session() -> None:
    hits = Hits()

    async def run() -> None:
        server = wiki(hits)
        gate = Gate(profile("{}"), await installed(server, "wiki"), door="test")
        server.add_middleware(GateMiddleware(gate, server="wiki"))
        async with Client(server) as client:
            await client.call_tool("search", {})
            gate.swap(profile=profile("mcp: {disabled: ['wiki/search']}"))
            with pytest.raises(Exception, match="disabled for this agent"):
                await client.call_tool("search", {})
            assert await client.list_tools() == []

    asyncio.run(run())
    assert hits.by_id == {"search": 1}


def test_a_resource_that_the_gate_does_not_know_of_is_not_read() -> None:
    hits = Hits()

    async def run() -> None:
        server = wiki(hits)
        server.add_middleware(GateMiddleware(Gate(profile("{}"), Inventory(), door="test"), server="wiki"))
        async with Client(server) as client:
            with pytest.raises(Exception, match="not among the server's resources"):
                await client.read_resource("wiki://public/a")

    asyncio.run(run())
    assert not hits.by_id
