"""Every protocol version before every other: what a client of one and a server of another make of each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.call import LEGACY, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN
from tests.unit.gateway.test_address import served
from tests.unit.gateway.world import Client, World, run, text_of

SERVER = str(Path(__file__).with_name("version_server.py"))
VERSIONS = (*LEGACY, *MODERN)
META = {META_VERSION: MODERN[0], META_CLIENT: {"name": "t", "version": "1"}, META_CAPABILITIES: {}, "x/kept": 7}


class AsOf:
    """A client of one version, that asks as that has it."""

    def __init__(self, client: Client, version: str) -> None:
        self.client, self.version = client, version

    async def hello(self) -> None:
        if self.version in MODERN:
            result = (await self.ask("server/discover"))["result"]
            assert self.version in result["supportedVersions"]
            return
        params = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        assert (await self.client.ask("initialize", params))["result"]["protocolVersion"] == self.version
        self.client.send({"method": "notifications/initialized"})

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = META if self.version in MODERN else {"x/kept": 7}
        return await self.client.ask(method, {**(params or {}), "_meta": meta})


def world(root: Path) -> World:
    found = World(root, a="mcp: {disabled: ['*/secret']}")
    entries = {f"v{v}": {"command": sys.executable, "args": [SERVER, v]} for v in VERSIONS}
    found.servers(**entries)
    return found


def test_every_version_is_gated_and_answered_before_every_other(tmp_path: Path) -> None:
    async def work() -> None:
        async with world(tmp_path).open() as gateway:
            assert [base.version for _, base in sorted(gateway.hub.bases.items())] == list(VERSIONS)
            for front in VERSIONS:
                client = AsOf(Client(gateway), front)
                await client.hello()
                listed = (await client.ask("tools/list"))["result"]
                assert {row["name"]: row["x-vendor"] for row in listed["tools"]} == {f"v{b}__who": b for b in VERSIONS}
                assert ("resultType" in listed) == (front in MODERN)
                for back in VERSIONS:
                    await check(client, back, is_modern=front in MODERN)
                gateway.hub.close(client.client.session)

    run(work())


async def check(client: AsOf, back: str, *, is_modern: bool) -> None:
    """One client's call that passes and one that does not, of one server."""
    answer = await client.ask("tools/call", {"name": f"v{back}__who", "arguments": {"k": 1}})
    got = json.loads(text_of(answer))
    assert (got["name"], got["arguments"], got["_meta"]["x/kept"]) == ("who", {"k": 1}, 7)
    assert got["_meta"].get(META_VERSION) == (MODERN[0] if back in MODERN else None)
    assert answer["result"]["x-vendor"] == [1]
    # What a server of the stateless era says of its result is more than an old client asks for, and does it no harm.
    assert ("resultType" in answer["result"]) == (is_modern or back in MODERN)
    refused = await client.ask("tools/call", {"name": f"v{back}__secret", "arguments": {}})
    assert refused["result"]["isError"]
    assert ("resultType" in refused["result"]) == is_modern
    gone = await client.ask("resources/read", {"uri": "v://x"})
    assert "error" in gone


@pytest.mark.parametrize("version", LEGACY)
def test_over_http_each_version_says_itself_in_the_header(version: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with served(World(tmp_path)) as web:
            params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t"}}
            answer = await web.rpc("initialize", params)
            assert answer.json["result"]["protocolVersion"] == version
            session = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": version}
            assert (
                text_of((await web.rpc("tools/call", {"name": "habits__echo", "arguments": {}}, **session)).json)
                == "{}"
            )

    run(work())
