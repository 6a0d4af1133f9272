"""What a gateway tells of itself: state, metrics, and the answers of an end that loses nothing."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from extgate.enforce.mcp.figures import BOUNDS_S, Histogram, histograms
from extgate.gateway.address import open_front
from extgate.gateway.settings import GatewaySettings
from extgate.gateway.state import MAX_ROWS, _bounded
from tests.unit.gateway.test_address import HEADERS, HELLO, Web, raw, served
from tests.unit.gateway.world import World, run


def samples(text: str) -> dict[str, float]:
    """Every sample of a page of metrics; each must be one line that Prometheus reads."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP|TYPE) [a-z_]+ .+", line)
            continue
        match = re.fullmatch(r'([a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})?) (\S+)', line)
        assert match, line
        assert match[1] not in found
        found[match[1]] = float(match[2])
    return found


def test_metrics_count_what_was_judged_and_how_long_servers_took(tmp_path: Path) -> None:
    async def work() -> None:
        limits = "gateway: {limits: {calls: [{items: habits/big, rate: 1/day}]}}\n"
        async with served(World(tmp_path, limits, a="mcp: {disabled: ['habits/die']}", b="")) as web:
            session = await web.hello()
            for name in (
                "habits__echo",
                "habits__echo",
                "habits__die",
                "nobody__is'\"this\n",
                "habits__big",
                "habits__big",
            ):
                await web.rpc("tools/call", {"name": name}, **session)
            answer = await web.send("GET", "/metrics")
            assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
            found = samples(answer.body.decode())
            assert found['extgate_calls_total{agent="a",server="habits",decision="allowed"}'] == 4
            assert found['extgate_calls_total{agent="a",server="habits",decision="refused"}'] == 1
            assert found['extgate_calls_total{agent="a",server="",decision="refused"}'] == 1
            assert found['extgate_call_seconds_count{server="habits"}'] == 3
            assert found['extgate_call_seconds_bucket{server="habits",le="+Inf"}'] == 3
            assert found['extgate_sessions{agent="a"}'] == 1
            assert found['extgate_server_state{server="habits",state="connected"}'] == 1
            assert found['extgate_agent_available{agent="b"}'] == 1
            assert found["extgate_limited_total"] == 1
            assert "nobody" not in answer.body.decode()

    run(work())


def test_the_state_says_how_servers_and_agents_are(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, a="", b="mcp: {required: [missing]}", c="mcp: [")
        world.servers("habits", broken={"command": "/nowhere/at-all"})
        async with served(world) as web:
            await web.hello()
            state = (await web.send("GET", "/api/state")).json
            agents = {row["agent"]: row for row in state["agents"]}
            assert (state["ready"], state["draining"]) == (True, False)
            assert (agents["a"]["available"], agents["a"]["sessions"]) == (True, 1)
            assert (agents["b"]["available"], agents["b"]["missing"]) == (False, ["missing"])
            assert agents["c"]["available"] is False
            servers = {row["server"]: row for row in state["servers"]}
            assert servers["habits"]["state"] == "connected"
            assert servers["habits"]["items"] == 9
            assert servers["broken"]["state"] == "failed"
            assert servers["broken"]["error"]

    run(work())


def test_labels_are_bounded_and_histograms_add_up() -> None:
    many = [({"agent": f"a{number}", "decision": "allowed"}, 1.0) for number in range(MAX_ROWS + 50)]
    found = _bounded(many)
    assert len(found) == MAX_ROWS + 1
    assert found[-1] == ({"agent": "(others)", "decision": "allowed"}, 50.0)
    histogram = Histogram()
    for seconds in (0.0, BOUNDS_S[0], 1e9):
        histogram.add(seconds)
    lines = histograms("x", "y", {'a"\\\n': histogram}, "server")
    assert lines[2] == 'x_bucket{server="a\\"\\\\\\n",le="0.001"} 2'
    assert lines[-1].endswith(" 3")


def test_while_it_ends_new_calls_are_sent_elsewhere_and_those_in_flight_are_answered(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path)
        async with served(world) as web:
            session = await web.hello()
            until = tmp_path / "now"
            call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call"}
            call["params"] = {"name": "habits__wait", "arguments": {"until": str(until)}}
            headers = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
            waiting, _ = web.begin("POST", "/agents/a/mcp", headers, json.dumps(call).encode())
            while not world.calls:
                await asyncio.sleep(0)
            web.address.drain()
            refused = await web.rpc("tools/call", {"name": "habits__echo"}, **session)
            assert (refused.status, refused.headers["retry-after"]) == (503, "1")
            assert (await web.rpc("initialize", HELLO)).status == 503
            assert (await web.send("GET", "/readyz")).status == 503
            assert (await web.send("GET", "/healthz")).status == 200
            note = {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}
            assert (await web.send("POST", "/agents/a/mcp", headers, json.dumps(note).encode())).status == 202
            until.touch()
            await waiting.done
            assert waiting.json["result"]["content"][0]["text"] == "waited"

    run(work())


def test_a_call_that_outlasts_the_end_is_answered_with_that(tmp_path: Path) -> None:
    async def work() -> None:
        world = World(tmp_path, "gateway: {limits: {drain_s: 0.05}}\n")
        async with open_front(GatewaySettings(), "127.0.0.1", 0) as front:
            async with world.open() as gateway:
                front.serve(gateway)
                web = Web(front.port)
                session = await web.hello()
                call = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "habits__hang"}}
                headers = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
                waiting, _ = web.begin("POST", "/agents/a/mcp", headers, json.dumps(call).encode())
                while not world.calls:
                    await asyncio.sleep(0)
            await asyncio.wait_for(waiting.done, 30)
            web.origin.close()
        assert "the gateway ended before" in waiting.json["result"]["content"][0]["text"]

    run(work())


CALLS = 64


def test_on_sigterm_a_process_answers_every_call_in_flight_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async def work() -> None:
        world, until = World(tmp_path), tmp_path / "now"
        command = [sys.executable, "-m", "extgate.cli.main", "-w", str(tmp_path), "serve", "--trust", "--port", "0"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            port = int(process.stderr.readline().rstrip().rpartition(":")[2])
            while "ready: " not in process.stderr.readline():
                pass
            clients = [Web(port) for _ in range(4)]
            sessions = [await client.hello() for client in clients]
            waiting = [_begin(clients[n % 4], sessions[n % 4], n, until) for n in range(CALLS)]
            while len(world.calls) < CALLS:
                await asyncio.sleep(0)
            process.send_signal(signal.SIGTERM)
            while b" 503 " not in await raw(port, b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"):
                pass
            assert (await clients[0].rpc("tools/call", {"name": "habits__echo"}, **sessions[0])).status == 503
            until.touch()
            for answer in waiting:
                await asyncio.wait_for(answer.done, 30)
            assert [answer.json["result"]["content"][0]["text"] for answer in waiting] == ["waited"] * CALLS
            assert await asyncio.to_thread(process.wait, 30) == 0
            assert not os.path.exists(f"/proc/{waiting[0].json['result']['pid']}")
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    run(work())


def _begin(client: Web, session: dict[str, str], number: int, until: Path) -> Any:
    params = {"name": "habits__wait", "arguments": {"until": str(until)}}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    headers = HEADERS | {"mcp-session-id": session["mcp_session_id"]}
    return client.begin("POST", "/agents/a/mcp", headers, json.dumps(call).encode())[0]
