"""Malformed messages, requests and answers against the gateway, for as long as one likes.

    python -m tests.e2e.fuzz_gateway [--minutes N] [--seed N] [--out FILE]

One `extgate serve` and one `extgate mcp` run all the time, before servers that answer as nobody should
(`fuzz_server.py`) over stdio and HTTP. Valid messages are mutated as JSON, as bytes and as HTTP, from a seed. Holds:
both processes live; every request that is one is answered once, and every HTTP request that is whole gets a response;
a session that speaks plainly is answered all the while; memory, open files and child processes stay what they were.
Exit 1, with what was sent, when something does not hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

from extgate.enforce.mcp import envelope
from extgate.enforce.mcp.envelope import EnvelopeError
from tests.e2e.test_conformance import free_port

SERVER = str(Path(__file__).with_name("fuzz_server.py"))
EXTGATE = [sys.executable, "-m", "extgate.cli.main"]
LIMITS = "call_s: 2, message_bytes: 1000000, answer_bytes: 2500000"
PATIENCE_S = 90.0
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"sampling": {}},
}
CORPUS: list[tuple[str, dict[str, Any]]] = [
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "f", "version": "1"}}),
    ("ping", {}),
    ("tools/list", {"cursor": "x.1"}),
    ("tools/call", {"name": "pipe__echo", "arguments": {"a": 1}, "_meta": {"progressToken": 7}}),
    ("tools/call", {"name": "web__fuzz", "arguments": {"seed": 1}}),
    ("prompts/get", {"name": "pipe__p", "arguments": {}}),
    ("resources/read", {"uri": "fuzz://a"}),
    ("resources/templates/list", {}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "x", "value": "y"}}),
    ("logging/setLevel", {"level": "info"}),
    ("tools/call", {"name": "web__echo", "arguments": {}, "_meta": MODERN}),
    ("server/discover", {"_meta": MODERN}),
    ("tools/call", {"name": "pipe__echo", "arguments": {}, "task": {"ttl": 1}}),
    ("tasks/get", {"taskId": "x"}),
    ("tasks/list", {}),
]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    2**70,
    1e308,
    0.1,
    "",
    "\ud800",
    "\u202e",
    "x" * 5000,
    [],
    {},
    [[]],
    {"": {}},
]
ODD += ["pipe__echo", "PIPE__ECHO", "fuzz://a/../a", "2024-11-05", {"name": "x"}, [1] * 500]


def mutated(dice: random.Random, number: int) -> bytes:
    """One message that may or may not be one."""
    method, params = dice.choice(CORPUS)
    if method == "tools/call" and dice.random() < 0.6:
        name = dice.choice(["pipe__fuzz", "web__fuzz"])
        params = {"name": name, "arguments": {"seed": dice.randrange(10**6)}, "_meta": {"progressToken": number}}
    id = dice.choice([number, number, f"n{number}", number + 0.5])
    message: Any = {"jsonrpc": "2.0", "id": id, "method": method, "params": json.loads(json.dumps(params))}
    for _ in range(dice.choice([0, 0, 1, 1, 2, 4])):
        message = twist(dice, message)
    data = json.dumps(message, ensure_ascii=dice.random() < 0.5).encode("utf-8", "surrogatepass")
    for _ in range(dice.choice([0, 0, 0, 0, 1, 3])):
        data = cut(dice, data)
    return data.replace(b"\n", b" ")


def twist(dice: random.Random, message: Any) -> Any:
    """The message with one value, somewhere in it, gone or another."""
    spots = list(_spots(message))
    if not spots or dice.random() < 0.02:
        return deepcopy(dice.choice([message, [message], *ODD]))
    holder, key = dice.choice(spots)
    what = dice.randrange(4)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[dice.choice(["id", "method", "params", "_meta", "name", "uri", "x\u0000", "result"])] = deepcopy(
            holder[key]
        )
    else:
        holder[key] = deepcopy(dice.choice(ODD))
    return message


def _spots(value: Any) -> Any:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(rows):
        yield value, key
        yield from _spots(inner)


def cut(dice: random.Random, data: bytes) -> bytes:
    """The bytes with a few of them gone, doubled or others."""
    at, size = dice.randrange(len(data) + 1), dice.randrange(1, 9)
    junk = dice.choice(
        [b'"id":1,', b"\x00", b"\xff\xfe", b"{", b"}", b'"', b"\\u0000", b"1e999", b"[" * 600, b"\r", b" "]
    )
    return dice.choice([
        data[:at] + data[at + size :], data[:at] + junk + data[at:], data[:at] + data[at : at + size] * 3 + data[at:],
        data[:at], data[:at] + bytes(b ^ 1 << dice.randrange(8) for b in data[at : at + 1]) + data[at + 1 :],
    ])  # fmt: skip


def expected(data: bytes) -> bytes | None:
    """The id that the answer must have: `null` for what is no message, None where no answer is due."""
    if not data.strip():
        return None
    try:
        message = envelope.read(data)
    except EnvelopeError as error:
        return error.id
    return message.id if message.is_request and message.method != "subscriptions/listen" else None


# ---------------------------------------------------------------------------------------------- stdio


class Pipe:
    """A client of `extgate mcp`, that counts the answers by id."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        self.child, self.sent = child, 0
        self.due: Counter[bytes] = Counter()
        self.news = asyncio.Event()
        self.reading = asyncio.ensure_future(self._read())

    async def _read(self) -> None:
        assert self.child.stdout is not None
        while line := await self.child.stdout.readline():
            fields = envelope.fields_of(line)
            id = bytes(fields.get("id", b""))
            if "method" in fields and id:
                self._send(envelope.result(id, b"{}"))
            elif "method" not in fields:
                self.due[id] -= 1
                if self.due[id] < 0:
                    raise AssertionError(f"an answer that nobody asked for: {line[:300]!r}")
            self.news.set()

    def _send(self, data: bytes) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(data + b"\n")

    async def round(self, dice: random.Random) -> None:
        """Sends some, and waits until all that is due has come."""
        batch = [mutated(dice, self.sent + n) for n in range(300)]
        self.sent += len(batch)
        for data in batch:
            id = expected(data)
            if id is not None:
                self.due[id] += 1
            self._send(data)
        try:
            async with asyncio.timeout(PATIENCE_S):
                while any(count > 0 for count in self.due.values()):
                    await self._more()
        except TimeoutError:
            missing = {id: count for id, count in self.due.items() if count > 0}
            raise AssertionError(
                f"unanswered over stdio: {missing}; sent {[d[:300] for d in batch if expected(d) in missing]}"
            ) from None
        self.due.clear()

    async def _more(self) -> None:
        self.news.clear()
        waiting = asyncio.ensure_future(self.news.wait())
        await asyncio.wait({waiting, self.reading}, return_when=asyncio.FIRST_COMPLETED)
        if self.reading.done():
            waiting.cancel()
            self.reading.result()
            raise AssertionError(f"`extgate mcp` ended with {await self.child.wait()}")


# ---------------------------------------------------------------------------------------------- HTTP


async def exchange(port: int, data: bytes, *, is_cut: bool = False) -> bytes:
    """What comes back, to the end of the response or of the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**25)
    try:
        async with asyncio.timeout(PATIENCE_S):
            writer.write(data[: len(data) // 2])
            await writer.drain()
            if is_cut:
                return b"cut"
            writer.write(data[len(data) // 2 :])
            return await _response(reader)
    except (ConnectionError, asyncio.IncompleteReadError):
        return b""
    finally:
        writer.close()


async def _response(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    low = head.lower()
    if b"content-length:" in low:
        return head + await reader.readexactly(int(low.split(b"content-length:")[1].split(b"\r\n")[0]))
    body = b""
    while size := int(await reader.readline() or b"0", 16):
        body += await reader.readexactly(size)
        await reader.readline()
    return head + body


def request(dice: random.Random, body: bytes, session: str, *, is_plain: bool = False) -> bytes:
    """A request around a body, odd now and then."""
    headers = {
        "host": "127.0.0.1", "content-type": "application/json", "accept": "application/json, text/event-stream",
        "content-length": str(len(body)), "mcp-session-id": session, "connection": "close",
    }  # fmt: skip
    verb, path = "POST", "/agents/all/mcp"
    if not is_plain and dice.random() < 0.4:
        odd = [
            "",
            "x",
            "\xff",
            "evil.example",
            "-1",
            "99999999999",
            "chunked",
            "2026-07-28",
            "y" * 300,
            "=?base64?eA==?=",
        ]
        names = [*headers, "transfer-encoding", "mcp-protocol-version", "mcp-method", "mcp-name", "origin", "expect"]
        headers[dice.choice([*names, "last-event-id", "x-" + "z" * 70])] = dice.choice(odd)
    if not is_plain and dice.random() < 0.1:
        verb, path = (
            dice.choice(["GET", "DELETE", "PUT", "post", "X\0"]),
            dice.choice([path, "/", "/agents/../mcp", "//", "/agents/%61ll/mcp"]),
        )
        headers["accept"] = "application/json"
    lines = [f"{verb} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items() if v or dice.random() < 0.5)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + body


class Web:
    """Clients of `extgate serve`."""

    def __init__(self, port: int) -> None:
        self.port, self.sent, self.session = port, 0, ""

    async def hello(self) -> str:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CORPUS[0][1]}).encode()
        head = (await exchange(self.port, request(random.Random(0), body, "", is_plain=True))).split(b"\r\n\r\n")[0]
        return next(line[16:].decode() for line in head.split(b"\r\n") if line.lower().startswith(b"mcp-session-id: "))

    async def round(self, dice: random.Random) -> None:
        """Some odd requests at once; then a plain one, which must be answered as ever."""
        self.session = self.session or await self.hello()
        await asyncio.gather(*(self._one(dice) for _ in range(60)))
        call = {"name": "pipe__echo", "arguments": {"n": self.sent}}
        plain = {"jsonrpc": "2.0", "id": "plain", "method": "tools/call", "params": call}
        for _ in range(20):
            got = await exchange(self.port, request(dice, json.dumps(plain).encode(), self.session, is_plain=True))
            if b"no such session" in got:  # a DELETE was among them
                self.session = await self.hello()
            elif b'"n\\": %d' % self.sent in got:
                return
            await asyncio.sleep(0.5)  # its server may have died a moment ago
        raise AssertionError(f"a plain call got {got[:500]!r}")

    async def _one(self, dice: random.Random) -> None:
        self.sent += 1
        is_http_odd, is_cut = dice.random() < 0.4, dice.random() < 0.05
        body = mutated(dice, self.sent)
        data = request(dice, body, self.session, is_plain=not is_http_odd)
        data = cut(dice, data) if is_http_odd and dice.random() < 0.3 else data
        if is_http_odd:
            # What has no end by itself waits for more, so only that it does not hurt can be asked.
            with_end = asyncio.wait_for(exchange(self.port, data, is_cut=is_cut), 2.0)
            await asyncio.gather(with_end, return_exceptions=True)
            return
        try:
            got = await exchange(self.port, data)
        except TimeoutError:
            raise AssertionError(f"unanswered over HTTP: {data!r}") from None
        id = expected(body)
        if not got.startswith(b"HTTP/1.1 ") or (id and id != b"null" and b"200 OK" in got and id not in got):
            raise AssertionError(f"{data!r} got {got[:300]!r}")


# ---------------------------------------------------------------------------------------------- the run


def standing(pid: int) -> dict[str, int]:
    """Memory in kB, open files, and child processes of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    rss = int(status.split("VmRSS:")[1].split()[0])
    return {"rss_kb": rss, "files": len(os.listdir(f"/proc/{pid}/fd")), "children": len(children)}


def workspace(root: Path, back: int) -> None:
    (root / "agents").mkdir()
    (root / "agents" / "all.yaml").write_text("id: all\n")
    (root / "extgate.yaml").write_text(f"audit: /dev/null\ngateway: {{limits: {{{LIMITS}}}}}\n")
    pipe = {"command": sys.executable, "args": [SERVER, "stdio"]}
    servers = {"pipe": pipe, "web": {"url": f"http://127.0.0.1:{back}/mcp"}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


async def started(*command: str, **streams: Any) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*command, limit=2**25, **streams)


async def until_ready(port: int) -> None:
    for _ in range(600):
        try:
            if (await exchange(port, b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")).startswith(b"HTTP/1.1 200"):
                return
        except OSError:
            pass
        await asyncio.sleep(0.1)
    raise AssertionError("the gateway never was ready")


async def fuzz(seconds: float, seed: int, out: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        back, front = free_port(), free_port()
        workspace(Path(folder), back)
        errors = open(Path(folder) / "errors", "wb")  # noqa: SIM115
        there = [*EXTGATE, "-w", folder]
        server = await started(sys.executable, SERVER, "http", str(back))
        serve = await started(*there, "serve", "--trust", "--port", str(front), stderr=errors)
        mcp = await started(*there, "mcp", "all", "--trust", stdin=-1, stdout=-1, stderr=errors)
        try:
            await until_ready(front)
            await _run(seconds, random.Random(seed), Pipe(mcp), Web(front), serve, out)
        finally:
            for child in (mcp, serve, server):
                if child.returncode is None:
                    child.terminate()
                    await child.wait()
            said = (Path(folder) / "errors").read_text(errors="replace")
            assert "Traceback" not in said, said[-3000:]


async def _run(
    seconds: float, dice: random.Random, pipe: Pipe, web: Web, serve: asyncio.subprocess.Process, out: Any
) -> None:
    began = said = time.monotonic()
    while time.monotonic() - began < seconds:
        await asyncio.gather(pipe.round(dice), web.round(dice))
        assert serve.returncode is None, f"`extgate serve` ended with {serve.returncode}"
        if time.monotonic() - said > min(30.0, seconds / 4):
            said = time.monotonic()
            row = {"s": round(said - began), "messages": pipe.sent, "requests": web.sent}
            row |= {"serve": standing(serve.pid), "mcp": standing(pipe.child.pid)}
            print(json.dumps(row), file=out, flush=True)
    print(json.dumps({"held": True, "messages": pipe.sent, "requests": web.sent}), file=out, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", default="")
    args = parser.parse_args()
    out = open(args.out, "a") if args.out else sys.stdout  # noqa: SIM115
    print(json.dumps({"seed": args.seed}), file=out, flush=True)
    asyncio.run(fuzz(args.minutes * 60, args.seed, out))


if __name__ == "__main__":
    main()
