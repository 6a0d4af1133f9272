"""A gateway process under load that would hurt: ten thousand connections, and answers of a hundred megabytes."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.fuzz_gateway import EXTGATE, exchange, until_ready
from tests.e2e.test_conformance import free_port

SERVER = str(Path(__file__).parents[1] / "unit" / "gateway" / "server.py")
CONNECTIONS = 10_000
SPARE = 300
"""Files that a process needs besides its connections."""
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@contextmanager
def serving(root: Path, config: str = "") -> Iterator[tuple[int, int]]:
    """The port and the process id of a gateway."""
    (root / "agents").mkdir()
    (root / "agents" / "a.yaml").write_text("id: a\n")
    (root / "extgate.yaml").write_text(f"audit: audit.jsonl\n{config}")
    entry = {"command": sys.executable, "args": [SERVER, str(root / "calls.jsonl")]}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"habits": entry}}))
    port = free_port()
    child = subprocess.Popen([*EXTGATE, "-w", str(root), "serve", "--trust", "--port", str(port)])
    try:
        asyncio.run(until_ready(port))
        yield port, child.pid
    finally:
        child.terminate()
        child.wait(30)


def memory(pid: int, what: str) -> int:
    """A figure of a process, in kB."""
    return int(Path(f"/proc/{pid}/status").read_text().split(f"{what}:")[1].split()[0])


def post(message: dict[str, Any], session: str = "") -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    head = f"POST /agents/a/mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n"
    head += "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
    return f"{head}{f'mcp-session-id: {session}' if session else 'x-none: 1'}\r\n\r\n".encode() + body


async def opened(port: int) -> str:
    """A new session."""
    head = (await exchange(port, post({"method": "initialize", "params": HELLO}))).split(b"\r\n\r\n")[0]
    return next(line[16:].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id: "))


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": f"habits__{tool}", "arguments": arguments}}


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_calls_pass_beside_ten_thousand_connections_and_nothing_of_them_is_left(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if min(soft, hard) < CONNECTIONS + SPARE:
        pytest.skip(f"a process may have {soft} files open here, and this needs {CONNECTIONS + SPARE}")

    async def crowd(port: int, pid: int) -> None:
        session = await opened(port)
        files = len(os.listdir(f"/proc/{pid}/fd"))
        before, pairs = memory(pid, "VmRSS"), []
        for start in range(0, CONNECTIONS, 250):
            pairs += await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(250)))
            answer = await exchange(port, post(call("echo", n=start), session))
            assert str(start).encode() in answer
        for reader, writer in pairs[::100]:
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            assert b"200" in await reader.readline()
        assert len(os.listdir(f"/proc/{pid}/fd")) >= CONNECTIONS
        with_all = memory(pid, "VmRSS")
        for _, writer in pairs:
            writer.close()
        while len(os.listdir(f"/proc/{pid}/fd")) > files + 5:
            await asyncio.sleep(0.05)
        assert b"hello" in await exchange(port, post(call("echo", x="hello"), session))
        print(f"RSS: {before} kB, with {CONNECTIONS} connections {with_all} kB, after {memory(pid, 'VmRSS')} kB")
        assert (with_all - before) / CONNECTIONS < 20, "kB a connection"

    with serving(tmp_path) as (port, pid):
        asyncio.run(crowd(port, pid))


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_an_answer_of_a_hundred_megabytes_passes_and_is_not_held_in_memory(tmp_path: Path) -> None:
    size = 100_000_000

    async def big(port: int, pid: int) -> None:
        session, peak, is_over = await opened(port), 0, False

        async def watch() -> None:
            nonlocal peak
            while not is_over:
                peak = max(peak, memory(pid, "RssAnon"))
                await asyncio.sleep(0.01)

        await exchange(port, post(call("echo"), session))
        before, watching = memory(pid, "RssAnon"), asyncio.ensure_future(watch())
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post(call("big", size=size), session))
            head = await reader.readuntil(b"\r\n\r\n")
            left = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            assert left > size
            while left:
                data = await reader.read(min(left, 2**20))
                assert data
                left -= len(data)
            writer.close()
        is_over = True
        await watching
        print(f"memory of its own: {before} kB before, {peak} kB at most, {memory(pid, 'RssAnon')} kB after")
        assert peak - before < 48 * 1024
        assert memory(pid, "VmRSS") < before + 40 * 1024

    with serving(tmp_path) as (port, pid):
        asyncio.run(big(port, pid))


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_an_answer_past_the_setting_is_refused_readably(tmp_path: Path) -> None:
    async def big(port: int) -> None:
        session = await opened(port)
        answer = await exchange(port, post(call("big", size=50_000_000), session))
        assert b"the server's answer is longer than 30000000 bytes" in answer
        assert b"true" in answer.partition(b'"isError":')[2][:5] or b'"error"' in answer
        assert b"hello" in await exchange(port, post(call("echo", x="hello"), session))

    with serving(tmp_path, "gateway: {limits: {answer_bytes: 30000000}}\n") as (port, _):
        asyncio.run(big(port))


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_a_client_that_goes_in_the_middle_of_a_call_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.yaml").write_text("id: a\n")
    (tmp_path / "extgate.yaml").write_text("audit: audit.jsonl\n")
    calls = tmp_path / "calls.jsonl"
    entry = {"command": sys.executable, "args": [SERVER, str(calls)]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"habits": entry}}))
    command = [*EXTGATE, "-w", str(tmp_path), "mcp", "a", "--trust"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None
    assert child.stdout is not None
    for message in ({"id": 1, "method": "initialize", "params": HELLO}, {"id": 2, **call("echo")}):
        child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        child.stdin.flush()
        pid = json.loads(child.stdout.readline())["result"].get("pid")
    child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 3, **call("hang")}).encode() + b"\n")
    child.stdin.flush()
    while '"hang"' not in calls.read_text():
        pass
    child.stdin.close()
    child.stdout.close()
    assert child.wait(60) == 0
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.e2e
@pytest.mark.timeout(300)
def test_clients_that_go_in_the_middle_of_their_calls_cost_nobody_else_anything(tmp_path: Path) -> None:
    async def go(port: int, pid: int) -> None:
        session, files = await opened(port), len(os.listdir(f"/proc/{pid}/fd"))
        for _ in range(100):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(post({**call("hang"), "id": os.urandom(8).hex()}, await opened(port)))
            await writer.drain()
            writer.close()
            assert b"hello" in await exchange(port, post(call("echo", x="hello"), session))
        while len(os.listdir(f"/proc/{pid}/fd")) > files + 3:
            await asyncio.sleep(0.05)

    with serving(tmp_path) as (port, pid):
        asyncio.run(go(port, pid))
