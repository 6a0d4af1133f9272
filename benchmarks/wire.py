"""What a model's request costs through the wire, beside no relay, the same relay without a gate, and LiteLLM's proxy.

    python benchmarks/wire.py [--requests N] [--rounds N] [--kilobytes N] [--tools N] [--only WORD]

A request of 200 kB with 100 tools goes to a provider on loopback that answers at once, with a stream of 60 events; the
paths take turns in one run. first: p50 and p99 of the time to the first byte of the answer's body. cpu: processor time
of the process in between for one request, its stream included. "relay" is extgate's own relay with a dialect that
reads nothing. "gate, all allowed" and "gate, 10 denied" are `extgate serve` under such profiles; what is hidden or let
through is recorded to disk. LiteLLM is installed under `.cache/bench/peers`; where it cannot be, the reason is named,
and the exit code is 3.

Claims: the gate adds under 2 ms to the first byte at p50 and under 5 ms of processor time to the relay without it, and
both are less than LiteLLM's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.mcp_gateways import LITELLM, NotInstalledError, environment

HERE = str(Path(__file__).resolve())
TICKS = os.sysconf("SC_CLK_TCK")
KEY = "sk-" + secrets.token_urlsafe(24)
"""What clients send; LiteLLM starts only with a key that nobody could guess."""

# ---------------------------------------------------------------------------------------------- what runs on the way


def body(kilobytes: int, tools: int) -> bytes:
    """A request of about this size, of which the tools are two thirds."""
    fields = {f"field_{n}": {"type": "string", "description": "what it is for, in some words"} for n in range(9)}
    each = kilobytes * 1000 * 2 // 3 // max(tools, 1)
    rows = []
    for number in range(tools):
        schema = {"type": "object", "properties": fields, "required": ["field_0"]}
        row = {"name": f"tool_{number}", "description": "", "input_schema": schema}
        row["description"] = "Does it. " + "And says how. " * max(0, (each - len(json.dumps(row))) // 14)
        rows.append(row)
    text = "What was said before, at some length. " * (kilobytes * 1000 // 3 // 40 // 38)
    turns = [{"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": text}]} for n in range(39)]
    turns.append({"role": "user", "content": "Go on."})
    return json.dumps({"model": "m", "max_tokens": 999, "stream": True, "tools": rows, "messages": turns}).encode()


def events() -> tuple[bytes, bytes]:
    """The first event of an answer, and the rest."""

    def one(kind: str, **more: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}\n\n".encode()

    usage = {"input_tokens": 9, "output_tokens": 9}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": usage}  # fmt: skip
    rest = [one("content_block_start", index=0, content_block={"type": "text", "text": ""})]
    rest += [one("content_block_delta", index=0, delta={"type": "text_delta", "text": "some words "})] * 50
    call = {"type": "tool_use", "id": "toolu_1", "name": "tool_1", "input": {}}
    rest += [one("content_block_stop", index=0), one("content_block_start", index=1, content_block=call)]
    rest += [one("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": "{}"})]
    rest += [one("content_block_stop", index=1)]
    rest += [one("message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None}, usage={"output_tokens": 9})]
    return one("message_start", message=message), b"".join([*rest, one("message_stop")])


async def serve_model(port: int) -> None:
    from extgate.enforce.mcp.http_server import Request
    from extgate.enforce.mcp.listening import listen
    from extgate.enforce.mcp.options import Limits

    first, rest = events()

    def handle(request: Request) -> None:
        request.stream({})
        request.push(first)
        request.push(rest)
        request.end()

    await listen("127.0.0.1", port, handle, Limits())
    await asyncio.Event().wait()


async def serve_relay(port: int, back: str) -> None:
    """The wire's own relay with a dialect that reads nothing."""
    from extgate.core.extension import Inventory
    from extgate.core.policy import ALLOW_ALL, Profile
    from extgate.enforce.gate import Gate
    from extgate.enforce.mcp.door import Door
    from extgate.enforce.mcp.front_http import Front
    from extgate.enforce.mcp.hub import Hub
    from extgate.enforce.mcp.listening import listen
    from extgate.enforce.mcp.options import Limits, Options
    from extgate.enforce.wire import providers
    from extgate.enforce.wire.front import Upstream, Wire, WireSettings
    from extgate.enforce.wire.provider import Api, Provider, Route

    class Through:
        def feed(self, data: bytes) -> bytes:
            return data

        def close(self) -> bytes:
            return b""

    api = Api(name="none", request=lambda data, turn, options: data, answer=lambda data, turn: data,
              stream=lambda turn: Through(), failure=lambda why: b"")  # fmt: skip
    row = Provider(name="none", url=back, route=lambda method, path: Route(act="gate", api=api),
                   error=lambda status, why: why.encode(), keys=(), credential=lambda key: {})  # fmt: skip
    providers.PROVIDERS["none"] = row
    hub = Hub(Limits())
    profile = Profile(id="a", layers=(ALLOW_ALL,))
    hub.doors["a"] = Door(Gate(profile, Inventory(), door="none"), Options(), lambda: ())
    settings = WireSettings(upstreams={"none": Upstream(url=back)})
    front = Front(hub, wire=Wire(hub.doors, lambda agent: settings))
    await listen("127.0.0.1", port, front.handle, Limits())
    await asyncio.Event().wait()


# ---------------------------------------------------------------------------------------------- measuring


@dataclass
class Path_:
    """One way to the provider. pid: of the process in between; 0 without one."""

    name: str
    port: int
    url: str
    pid: int = 0
    firsts: list[float] = field(default_factory=list)
    cpu_s: float = 0.0


def processor_s(pid: int) -> float:
    if not pid:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: Path_, data: bytes) -> float:
    """Seconds to the first byte of the body; returns when the answer is over."""
    head = f"POST {path.url} HTTP/1.1\r\nhost: 127.0.0.1:{path.port}\r\ncontent-type: application/json\r\n"
    head += f"x-api-key: {KEY}\r\nauthorization: Bearer {KEY}\r\nanthropic-version: 2023-06-01\r\n"
    head += f"content-length: {len(data)}\r\n\r\n"
    started = time.perf_counter()
    writer.write(head.encode() + data)
    answer = await reader.readuntil(b"\r\n\r\n")
    if b" 200 " not in answer.partition(b"\r\n")[0]:
        raise RuntimeError(f"{path.name}: {answer[:300]!r} {(await reader.read(500))!r}")
    await reader.readuntil(b"message_start")
    first = time.perf_counter() - started
    await reader.readuntil(b"0\r\n\r\n")
    return first


async def measure(paths: list[Path_], data: bytes, requests: int, rounds: int) -> None:
    for number in range(rounds + 1):  # the first round warms up
        for path in paths:
            reader, writer = await asyncio.open_connection("127.0.0.1", path.port, limit=2**24)
            before = processor_s(path.pid)
            firsts = [await ask(reader, writer, path, data) for _ in range(requests)]
            if number:
                path.firsts += firsts
                path.cpu_s += processor_s(path.pid) - before
            writer.close()


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def start(
    stack: ExitStack, command: list[str], port: int, env: dict[str, str] | None = None, wait_s: float = 300
) -> int:
    """Starts a process and waits until its port is open; its pid."""
    import socket

    out = subprocess.DEVNULL
    child = subprocess.Popen(command, env=os.environ | (env or {}), stdout=out, stderr=out, start_new_session=True)

    def end() -> None:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()

    stack.callback(end)
    until = time.monotonic() + wait_s
    while time.monotonic() < until and child.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return child.pid
        except OSError:
            time.sleep(0.05)
    raise NotInstalledError(f"`{Path(command[0]).name}` did not open its port")


def gate(stack: ExitStack, folder: Path, back: int) -> list[Path_]:
    (folder / "agents").mkdir()
    denied = ", ".join(f"tool_{n}" for n in range(0, 100, 10))
    (folder / "agents" / "open.yaml").write_text("id: open\n")
    (folder / "agents" / "shut.yaml").write_text(f"id: shut\ntools: {{disabled: [{denied}]}}\n")
    (folder / "extgate.yaml").write_text(
        f"audit: audit.jsonl\nwire: {{anthropic: {{url: 'http://127.0.0.1:{back}'}}}}\n"
    )
    port = free_port()
    command = [sys.executable, "-m", "extgate.cli.main", "serve", "-w", str(folder), "--port", str(port)]
    pid = start(stack, command, port)
    rows = {"gate, all allowed": "open", "gate, 10 denied": "shut"}
    return [Path_(name, port, f"/agents/{a}/wire/anthropic/v1/messages", pid) for name, a in rows.items()]


def litellm(stack: ExitStack, folder: Path, back: int) -> Path_:
    bin, port = environment(*LITELLM), free_port()
    params = {"model": "anthropic/m", "api_base": f"http://127.0.0.1:{back}", "api_key": "sk-bench"}
    (folder / "litellm.yaml").write_text(json.dumps({"model_list": [{"model_name": "m", "litellm_params": params}]}))
    where = ["--config", str(folder / "litellm.yaml"), "--host", "127.0.0.1", "--port", str(port)]
    env = {"LITELLM_LOG": "CRITICAL", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": KEY}
    pid = start(stack, [str(bin / "litellm"), *where], port, env)
    return Path_("LiteLLM proxy", port, "/v1/messages", pid)


def show(paths: list[Path_]) -> None:
    by_name = {path.name: path for path in paths}
    direct, relay = by_name["direct"], by_name["relay, no gate"]
    print(f"{'':20} {'first p50':>10} {'p99':>8} {'added':>8} {'to relay':>9} {'cpu':>8} {'to relay':>9}   ms")
    for path in paths:
        p50, base, plain = (statistics.median(one.firsts) * 1e3 for one in (path, direct, relay))
        p99 = statistics.quantiles(path.firsts, n=100)[98] * 1e3
        cpu, plain_cpu = (one.cpu_s / len(one.firsts) * 1e3 for one in (path, relay))
        has_cpu = f"{cpu:8.2f} {cpu - plain_cpu:9.2f}" if path.pid else " " * 18
        print(f"{path.name:20} {p50:10.2f} {p99:8.2f} {p50 - base:8.2f} {p50 - plain:9.2f} {has_cpu}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kilobytes", type=int, default=200)
    parser.add_argument("--tools", type=int, default=100)
    parser.add_argument("--only", default="")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        kind, port, *back = asked.serve
        asyncio.run(serve_model(int(port)) if kind == "model" else serve_relay(int(port), back[0]))
        return 0
    data, missing = body(asked.kilobytes, asked.tools), ""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        back, middle = free_port(), free_port()
        start(stack, [sys.executable, HERE, "--serve", "model", str(back)], back)
        where = f"http://127.0.0.1:{back}"
        pid = start(stack, [sys.executable, HERE, "--serve", "relay", str(middle), where], middle)
        paths = [
            Path_("direct", back, "/v1/messages"),
            Path_("relay, no gate", middle, "/agents/a/wire/none/v1/messages", pid),
            *gate(stack, folder, back),
        ]
        if asked.only in "LiteLLM proxy":
            try:
                paths.append(litellm(stack, folder, back))
            except NotInstalledError as error:
                missing = f"LiteLLM: {error}"
        until_ready(paths)
        asyncio.run(measure(paths, data, asked.requests, asked.rounds))
        print(f"{len(data):,} bytes, {asked.tools} tools, {len(paths[0].firsts)} requests each")
        show(paths)
    if missing:
        print(missing)
    return 3 if missing else 0


def until_ready(paths: list[Path_]) -> None:
    """Waits until each path answers: a port is open before what is behind it is."""
    for path in paths:
        until = time.monotonic() + 120
        while True:
            try:
                asyncio.run(measure([path], body(2, 1), 1, 0))
                break
            except (RuntimeError, OSError, asyncio.IncompleteReadError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
