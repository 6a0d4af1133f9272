"""How long the gateway takes to be ready, and what it holds in memory with 10 servers and 200 sessions, over time.

    python benchmarks/gateway_soak.py [--minutes N] [--servers N] [--sessions N] [--out FILE]

Each session calls now and then; some list, some hold a stream of news open, some end and begin anew. "servers alone" is
the time that the same servers take together from their start to the answer to `tools/list`, with nothing between;
"ready" is from the start of `extgate serve` to 200 from `/readyz`, once every server is connected.

Claims: ready within 1.5 s more than the servers alone; resident memory under 80 MB, and flat.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from gateway import HELLO, PYTHON, HttpClient, role, run, stdio_client

TOOLS = 30


def memory(pid: int) -> dict[str, int]:
    """Resident memory in kB, now and at most, and open files, of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = {
        key: int(status.split(f"{word}:")[1].split()[0]) for key, word in (("rss_kb", "VmRSS"), ("peak_kb", "VmHWM"))
    }
    return found | {"files": len(list(Path(f"/proc/{pid}/fd").iterdir()))}


async def alone(servers: int, folder: str) -> float:
    """Seconds until as many servers, started together, have said hello and listed."""
    began = time.perf_counter()

    async def one() -> None:
        async with stdio_client(role("echo-stdio", str(TOOLS)), folder) as ask:
            await ask("tools/list", {})

    await asyncio.gather(*(one() for _ in range(servers)))
    return time.perf_counter() - began


def workspace(folder: str, servers: int) -> None:
    root = Path(folder)
    (root / "agents").mkdir()
    for agent in "abc":
        (root / "agents" / f"{agent}.yaml").write_text(
            f"id: {agent}\nmcp: {{disabled: ['echo1/tool_*{ord(agent) % 10}']}}\n"
        )
    (root / "extgate.yaml").write_text("audit: audit.jsonl\n")
    echo = {"command": PYTHON, "args": role("echo-stdio", str(TOOLS))[1:]}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {f"echo{n}": echo for n in range(servers)}}))


class Client:
    """One session, on its own kept connection, and now and then a stream of news on another."""

    def __init__(self, port: int, number: int, servers: int) -> None:
        self.port, self.path, self.servers = port, f"/agents/{'abc'[number % 3]}/mcp", servers
        self.dice, self.http = random.Random(number), HttpClient(port, f"/agents/{'abc'[number % 3]}/mcp")
        self.calls = 0
        self.stream: asyncio.StreamWriter | None = None

    async def begin(self) -> None:
        self.http.extra = ""
        await self.http.ask("initialize", HELLO)
        await self.http.ask("notifications/initialized", {}, is_note=True)

    async def step(self) -> None:
        chance = self.dice.random()
        if chance < 0.02:
            await self._verb("DELETE")
            await self.begin()
        elif chance < 0.05:
            await self._listen()
        elif chance < 0.1:
            assert "result" in await self.http.ask("tools/list", {})
        else:
            params = {"name": f"echo{self.dice.randrange(self.servers)}__echo", "arguments": {"text": "hello world"}}
            answered = await self.http.ask("tools/call", params)
            assert answered["result"]["content"][0]["text"] == "hello world", answered
            self.calls += 1

    async def _verb(self, verb: str) -> None:
        reader, writer = (
            self.http.idle.pop() if self.http.idle else await asyncio.open_connection("127.0.0.1", self.port)
        )
        writer.write(f"{verb} {self.path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{self.http.extra}\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        self.http.idle.append((reader, writer))

    async def _listen(self) -> None:
        """Opens a stream of news, or hangs up on the one that is open."""
        if self.stream is not None:
            self.stream.close()
            self.stream = None
            return
        reader, self.stream = await asyncio.open_connection("127.0.0.1", self.port)
        head = f"GET {self.path} HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n{self.http.extra}\r\n"
        self.stream.write(head.encode())
        await reader.readuntil(b"\r\n\r\n")


async def soak(args: argparse.Namespace, folder: str, out: Any) -> None:
    workspace(folder, args.servers)
    port = args.port
    extgate = shutil.which("extgate", path=str(Path(PYTHON).parent))
    command = [extgate] if extgate else [PYTHON, "-m", "extgate.cli.main"]
    base = await alone(args.servers, folder)
    began = time.perf_counter()
    child = subprocess.Popen(
        [*command, "-w", folder, "serve", "--trust", "--port", str(port)], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE,
    )  # fmt: skip
    try:
        await _until_ready(port)
        say(
            out,
            {"servers alone s": round(base, 2), "ready s": round(time.perf_counter() - began, 2), **memory(child.pid)},
        )
        await _all(args, [Client(port, number, args.servers) for number in range(args.sessions)], child.pid, out)
    finally:
        child.terminate()
        child.wait(30)


async def _all(args: argparse.Namespace, clients: list[Client], pid: int, out: Any) -> None:
    for client in clients:
        await client.begin()
    first = await _told(clients)
    say(out, {"sessions": len(clients), **memory(pid)})
    began = said = time.monotonic()

    async def go(client: Client) -> None:
        while time.monotonic() - began < args.minutes * 60:
            await client.step()
            await asyncio.sleep(client.dice.random() * args.pause * 2)

    work = asyncio.gather(*(go(client) for client in clients))
    while not work.done():
        await asyncio.wait([work], timeout=min(30.0, args.minutes * 15))
        said = time.monotonic()
        say(out, {"s": round(said - began), "calls": first + sum(c.calls for c in clients), **memory(pid)})
    await work


async def _told(clients: list[Client]) -> int:
    """Makes every session be one in use: each has a list and a call."""
    for client in clients:
        await client.http.ask("tools/list", {})
        await client.http.ask("tools/call", {"name": "echo0__echo", "arguments": {"text": "hello world"}})
    return len(clients)


async def _until_ready(port: int) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            status = await reader.readline()
            writer.close()
            if b" 200 " in status:
                return
        except OSError:
            pass
        await asyncio.sleep(0.02)


def say(out: Any, row: dict[str, Any]) -> None:
    print(json.dumps(row), file=out, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.5)
    parser.add_argument("--servers", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between a session's steps, on average")
    parser.add_argument("--port", type=int, default=18400)
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    out = open(args.out, "a") if args.out else sys.stdout  # noqa: SIM115
    with tempfile.TemporaryDirectory() as folder:
        run(soak(args, folder, out))


if __name__ == "__main__":
    main()
