"""Two processes of one gateway and a real Redis, behind a proxy that knows nothing of sessions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.environments import environment
from tests.e2e.round_robin import RoundRobin, round_robin
from tests.e2e.test_conformance import _await, free_port
from tests.e2e.test_mcp_clients import CLIENTS, EXTGATE, SERVER
from tests.unit.discover.http_servers import sdk_app, served
from tests.unit.gateway.redis_process import RedisProcess, needs_redis
from tests.unit.gateway.test_address import HEADERS, HELLO, META, Web

pytestmark = [needs_redis, pytest.mark.e2e, pytest.mark.timeout(600)]
CONFIG = """audit: audit.jsonl
gateway:
  shared: {{url: '{redis}'}}
  limits: {{calls: [{{items: habits/big, rate: 7/day}}, {{items: habits/hang, at_once: 3}}]}}
"""


class Cluster:
    """The workspace, Redis, and both processes."""

    def __init__(self, root: Path, redis: RedisProcess) -> None:
        self.root, self.redis = root, redis
        self.ports = [free_port(), free_port()]
        self.children: list[subprocess.Popen[bytes]] = [self.start(port) for port in self.ports]

    def start(self, port: int) -> subprocess.Popen[bytes]:
        command = [*EXTGATE, "-w", str(self.root), "serve", "--trust", "--port", str(port)]
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _await(f"http://127.0.0.1:{port}/readyz")
        return child

    def profile(self, agent: str, text: str) -> None:
        made = self.root / "agents" / f"{agent}.new"
        made.write_text(f"id: {agent}\n{text}\n")
        made.replace(made.with_suffix(".yaml"))

    @property
    def calls(self) -> list[dict[str, Any]]:
        path = self.root / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    root, redis = tmp_path_factory.mktemp("cluster"), RedisProcess().start()
    (root / "agents").mkdir()
    (root / "extgate.yaml").write_text(CONFIG.format(redis=redis.url))
    for agent in ("a", "b"):
        (root / "agents" / f"{agent}.yaml").write_text(f"id: {agent}\n")
    with served(sdk_app("http")) as url:
        habits = {"command": sys.executable, "args": [SERVER, str(root / "calls.jsonl")]}
        (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"demo": {"url": f"{url}/mcp"}, "habits": habits}}))
        cluster = Cluster(root, redis)
        try:
            yield cluster
        finally:
            for child in cluster.children:
                child.kill()
                child.wait()
            redis.stop()


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[RoundRobin]:
    with round_robin(*cluster.ports) as found:
        yield found


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, 300))


async def call(web: Web, tool: str, **said: str) -> Any:
    return await web.rpc("tools/call", {"name": f"habits__{tool}", "arguments": {}}, **said)


async def modern(web: Web, tool: str) -> Any:
    name = f"habits__{tool}"
    said = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": name}
    return await web.rpc("tools/call", {"name": name, "arguments": {}, "_meta": META}, **said)


async def until(holds: Any) -> None:
    async with asyncio.timeout(60):
        while not await holds():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("client", list(CLIENTS))
def test_an_sdk_client_is_served_whichever_replica_each_request_reaches(
    client: str, cluster: Cluster, proxy: RoundRobin
) -> None:
    release, era, version = CLIENTS[client]
    wanted = {"tools": ["habits__echo", "demo__add", "habits__echo"], "resources": [], "prompts": []}
    done = subprocess.run(
        [environment(release), str(Path(__file__).with_name("mcp_client.py")), "http",
         f"http://127.0.0.1:{proxy.port}/agents/a/mcp"],
        capture_output=True, text=True, env=os.environ | {"ASK_FOR": json.dumps(wanted), "ERA": era}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found["version"] == version
    assert found["calls"] == {"habits__echo": '{"a": 1, "b": 2}', "demo__add": "3"}
    assert set(proxy.used) == set(cluster.ports)


def test_a_limit_counts_over_both(cluster: Cluster, proxy: RoundRobin) -> None:
    async def work() -> None:
        web = Web(proxy.port)
        session = await web.hello()
        found = [(await call(web, "big", **session)).json["result"] for _ in range(5)]
        found += [(await modern(web, "big")).json["result"] for _ in range(5)]
        assert [row.get("isError", False) for row in found] == [False] * 7 + [True] * 3
        assert "try again in" in found[-1]["content"][0]["text"]
        web.origin.close()

    run(work())


def test_an_edit_is_obeyed_by_both_and_told_to_the_sessions_of_both(cluster: Cluster, proxy: RoundRobin) -> None:
    async def work() -> None:
        webs = [Web(port) for port in cluster.ports]
        sessions = [await web.hello() for web in webs]
        streams = []
        for web, other, session in zip(webs, reversed(webs), sessions, strict=True):
            await web.rpc("tools/list", **session)
            lines = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
            streams.append(other.begin("GET", "/agents/a/mcp", lines)[0])  # through the replica that has it not
        for stream in streams:
            await until(lambda stream=stream: _is(stream.status == 200))
        cluster.profile("a", "mcp: {disabled: ['habits/echo']}")
        for stream in streams:
            assert (await stream.event())["method"] == "notifications/tools/list_changed"
        for web in webs:
            for session in sessions:
                answer = await call(web, "echo", **session)
                assert answer.status == 503 or answer.json["result"]["isError"] is True
            await until(lambda web=web: _refuses(web))
        known = len(cluster.calls)
        cluster.profile("a", "")
        for web in webs:
            await until(lambda web=web: _serves(web))
        assert len(cluster.calls) > known
        for web in webs:
            web.origin.close()

    run(work())


async def _is(found: bool) -> bool:
    return found


async def _refuses(web: Web) -> bool:
    answer = await modern(web, "echo")
    return bool(answer.status == 200 and answer.json["result"].get("isError"))


async def _serves(web: Web) -> bool:
    answer = await modern(web, "echo")
    return bool(answer.status == 200 and not answer.json["result"].get("isError"))


def test_a_replica_that_dies_takes_its_sessions_with_it_and_nothing_else(cluster: Cluster, proxy: RoundRobin) -> None:
    async def work() -> None:
        webs = [Web(port) for port in cluster.ports]
        session, lasting = await webs[0].hello(), await webs[1].hello()
        hanging = [asyncio.ensure_future(call(webs[0], "hang", **session)) for _ in range(3)]
        await until(lambda: _is(sum(row.get("tool") == "hang" for row in cluster.calls) == 3))
        assert (await call(webs[1], "hang", **lasting)).json["result"]["isError"] is True
        cluster.children[0].send_signal(signal.SIGKILL)
        cluster.children[0].wait()
        for task in hanging:
            task.cancel()
        answer = await call(webs[1], "echo", **session)
        assert answer.status in (404, 502)  # 502 while its lease lasts: whether the call ran is not known
        await until(lambda: _gone(webs[1], session))
        assert (await call(webs[1], "echo", **lasting)).json["result"]["content"][0]["text"] == "{}"
        assert (await webs[1].rpc("initialize", HELLO)).status == 200
        cluster.children[0] = await asyncio.to_thread(cluster.start, cluster.ports[0])
        assert (await call(webs[0], "echo", **lasting)).status == 200
        for web in webs:
            web.origin.close()

    run(work())


async def _gone(web: Web, session: dict[str, str]) -> bool:
    return bool((await call(web, "echo", **session)).status == 404)


def test_while_redis_is_gone_nothing_is_served_for_long_and_all_comes_back_by_itself(
    cluster: Cluster, proxy: RoundRobin
) -> None:
    async def work() -> None:
        webs = [Web(port) for port in cluster.ports]
        session = await webs[0].hello()
        assert (await call(webs[1], "echo", **session)).status == 200
        cluster.redis.stop()
        try:
            limited = (await modern(webs[0], "big")).json
            assert "cannot be reached" in json.dumps(limited)
            for web in webs:
                await until(lambda web=web: _is_blind(web))
            known = len(cluster.calls)
            for web in webs:
                refused = await call(web, "echo", **session)
                assert refused.status == 503
                assert "cannot be reached" in refused.json["error"]["message"]
            assert len(cluster.calls) == known
        finally:
            cluster.redis.start()
        for web in webs:
            await until(lambda web=web: _serves(web))
        assert (await call(webs[1], "echo", **session)).status == 200
        for web in webs:
            web.origin.close()

    run(work())


async def _is_blind(web: Web) -> bool:
    return bool((await web.send("GET", "/readyz")).status == 503)
