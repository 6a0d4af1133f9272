"""Tasks of the stateless era over real processes: a server that makes them, over each transport, and its clients."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.enforce.mcp.call import META_CAPABILITIES, META_SUBSCRIPTION, META_VERSION
from extgate.enforce.mcp.tasks import EXTENSION
from tests.unit.gateway.world import Client, World, run, text_of

SERVER = str(Path(__file__).with_name("task_server.py"))
META = {META_VERSION: "2026-07-28", META_CAPABILITIES: {"extensions": {EXTENSION: {}}, "elicitation": {}}}
YES = {"action": "accept", "content": {"confirm": True}}


class Stateless(Client):
    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return await super().ask(method, {**(params or {}), "_meta": META})

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.ask("tools/call", {"name": f"tasks__{tool}", "arguments": arguments})

    async def about(self, id: str, method: str = "tasks/get", **more: Any) -> dict[str, Any]:
        return await self.ask(method, {"taskId": id, **more})


@asynccontextmanager
async def clients(root: Path, transport: str) -> AsyncIterator[tuple[World, Stateless, Stateless]]:
    """A client of each of two agents before a server that makes tasks."""
    world = World(root, a="mcp: {disabled: ['*/secret']}", b="")
    child = subprocess.Popen([sys.executable, SERVER, "0"], stdout=subprocess.PIPE) if transport == "http" else None
    try:
        port = int(child.stdout.readline()) if child is not None and child.stdout is not None else 0
        entry = {"url": f"http://127.0.0.1:{port}/mcp"} if port else {"command": sys.executable, "args": [SERVER]}
        world.servers(tasks=entry)
        async with world.open() as gateway:
            yield world, Stateless(gateway, "a"), Stateless(gateway, "b")
    finally:
        if child is not None and child.stdout is not None:
            child.terminate()
            child.wait(20)
            child.stdout.close()


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_call_becomes_a_task_that_is_asked_answered_heard_of_and_ended(tmp_path: Path, transport: str) -> None:
    async def work() -> None:
        async with clients(tmp_path, transport) as (_, client, other):
            offered = (await client.ask("server/discover"))["result"]["capabilities"]
            assert offered["extensions"] == {EXTENSION: {}}
            begun = (await client.call("multi_input"))["result"]
            assert begun["resultType"] == "task"
            id = begun["taskId"]
            for method in ("tasks/get", "tasks/update", "tasks/cancel"):
                assert text_of(await other.about(id, method)) == "no such task"
            found = (await client.about(id))["result"]
            assert (found["taskId"], found["status"], len(found["inputRequests"])) == (id, "input_required", 2)
            listening = client.begin("subscriptions/listen", {"notifications": {"taskIds": [id, "t1"]}, "_meta": META})
            acknowledged = await client.news("notifications/subscriptions/acknowledged")
            assert acknowledged["params"]["notifications"] == {"taskIds": [id]}
            answers = dict.fromkeys(found["inputRequests"], YES)
            said = await client.about(id, "tasks/update", inputResponses=answers)
            assert said["result"] == {"resultType": "complete"}
            told = (await client.news("notifications/tasks"))["params"]
            assert (told["taskId"], told["status"]) == (id, "completed")
            assert told["_meta"] == {META_SUBSCRIPTION: acknowledged["params"]["_meta"][META_SUBSCRIPTION]}
            done = (await client.about(id))["result"]
            assert json.loads(done["result"]["content"][0]["text"]) == answers
            ended = (await client.call("slow_compute", seconds=3600))["result"]["taskId"]
            assert (await client.about(ended, "tasks/cancel"))["result"] == {"resultType": "complete"}
            assert (await client.about(ended))["result"]["status"] == "cancelled"
            assert not listening.done()
            assert other.told == []

    run(work())


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_client_of_an_older_version_gets_answers_and_no_tasks(tmp_path: Path, transport: str) -> None:
    async def work() -> None:
        async with clients(tmp_path, transport) as (_, client, _other):
            old = await Client(client_gateway(client), "a").hello()
            params = {"name": "tasks__slow_compute", "arguments": {}, "task": {"ttl": 60000}}
            assert text_of(await old.ask("tools/call", params)) == "done"
            # A tool that must be a task says what it needs.
            assert "capability" in text_of(await old.ask("tools/call", {"name": "tasks__failing_job", "arguments": {}}))

    run(work())


def client_gateway(client: Client) -> Any:
    from types import SimpleNamespace

    return SimpleNamespace(hub=client.hub)


def test_a_denied_tool_begins_no_task_and_one_denied_meanwhile_gives_no_result(tmp_path: Path) -> None:
    async def work() -> None:
        async with clients(tmp_path, "stdio") as (world, client, _):
            assert "secret" in text_of(await client.call("secret"))
            id = (await client.call("confirm_delete"))["result"]["taskId"]
            seat = client.session.door.gate
            version = seat.profile.version
            world.profile("a", "mcp: {disabled: ['*/secret', '*/confirm*']}")
            while seat.profile.version == version:
                answer = await client.about(id)
            assert "confirm_delete" in text_of(await client.about(id))
            assert "error" not in await client.about(id, "tasks/cancel")
            assert "error" in answer or answer["result"]["taskId"] == id
            refused = [e for e in world.events if e["outcome"] == "refused" and e["action"] == "task get"]
            assert refused

    run(work())
