"""`extgate mcp` beside replicas: its limits are counted with theirs, and what they know in force it obeys."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from extgate.gateway.replicas import Replicas
from tests.unit.gateway.redis_process import Common, Member, RedisProcess, needs_redis
from tests.unit.gateway.test_replicas import SETTINGS, replicas, two, until
from tests.unit.gateway.world import World, run, text_of

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
LIMIT = "gateway: {shared: {url: 'URL', stale_s: 2}, limits: {calls: [{items: habits, rate: 1/day}]}}\n"


def test_one_without_an_address_serves_no_policy_that_others_have_replaced(tmp_path: Path) -> None:
    async def work() -> None:
        common, (ours, theirs) = Common(), two(tmp_path)
        async with replicas(common, theirs) as (served,), ours.open(is_exclusive=True) as gateway:
            alone = Replicas(SETTINGS, gateway, Member(common, "f" * 16, ""))
            assert "not yet heard" in alone.why_not("a")
            await alone.shared.on_empty()  # type: ignore[attr-defined]
            assert alone.why_not("a") == ""
            theirs.profile("a", "mcp: {disabled: ['habits/die']}")
            await served.reload()
            await until(lambda: "another version" in alone.why_not("a"))
            ours.profile("a", "mcp: {disabled: ['habits/die']}")
            await until(lambda: alone.why_not("a") == "")
            common.is_gone = True
            assert "cannot be reached" in alone.why_not("a")
            alone.close()

    run(work())


class Stdio:
    """`extgate mcp a` as a client starts it."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, "-m", "extgate.cli.main", "-w", str(root), "mcp", "a", "--trust"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}), file=stdin, flush=True)
        found: dict[str, Any] = json.loads(stdout.readline())
        return found

    def close(self) -> int:
        self._process.communicate(timeout=60)
        return self._process.returncode


@contextmanager
def clients(root: Path, count: int) -> Iterator[list[Stdio]]:
    found = [Stdio(root) for _ in range(count)]
    try:
        yield found
    finally:
        ended = [client.close() for client in found]
    assert ended == [0] * count


@needs_redis
def test_two_processes_of_one_agent_count_their_calls_together(tmp_path: Path) -> None:
    redis = RedisProcess().start()
    try:
        world = World(tmp_path, LIMIT.replace("URL", redis.url))
        with clients(tmp_path, 2) as (one, other):
            for client in (one, other):
                assert "result" in client.ask("initialize", HELLO)
            assert "used up" not in text_of(one.ask("tools/call", {"name": "habits__echo", "arguments": {}}))
            assert "used up" in text_of(other.ask("tools/call", {"name": "habits__echo", "arguments": {}}))
        assert len(world.calls) == 1
    finally:
        redis.stop()


def test_a_process_that_cannot_reach_what_is_shared_says_so_and_serves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("redis")
    world = World(tmp_path, LIMIT.replace("URL", "redis://127.0.0.1:1/0"))
    with clients(tmp_path, 1) as (client,):
        for method in ("initialize", "server/discover", "tools/list", "tools/call"):
            assert client.ask(method, HELLO)["error"]["code"] == -32003
        assert client.ask("ping", {}) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert world.calls == []
