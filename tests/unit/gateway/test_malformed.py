"""A server that lists malformed items: `explain` and the relay know the same of it, and tell it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from extgate.workspace import Workspace
from tests.unit.gateway.world import Client, World, run

SERVER = str(Path(__file__).parents[1] / "discover" / "fixture_server.py")


def test_the_relay_lists_what_explain_knows_and_tells_what_it_leaves_out(tmp_path: Path) -> None:
    world = World(tmp_path)
    flags = json.dumps({"tools": 2, "malformed": True})
    world.servers(odd={"command": sys.executable, "args": [SERVER, flags]})

    async def work() -> None:
        async with world.open() as gateway:
            client = await Client(gateway).hello()
            listed = (await client.ask("tools/list"))["result"]["tools"]
            assert [tool["name"] for tool in listed] == ["odd__tool_0", "odd__tool_1"]
            answer = await client.ask("tools/call", {"name": "odd__bad", "arguments": {}})
            assert answer["result"]["isError"]
            (held,) = gateway.host.servers.held
            assert [found.code for found in held.findings].count("EG317") == 4  # those without a name are one

    run(work())
    inventory = Workspace.open(tmp_path).inventory(trust=True)
    assert [ext.name for ext in inventory.extensions if ext.server == "odd"] == ["tool_0", "tool_1"]
