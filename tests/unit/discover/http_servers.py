"""MCP servers over HTTP for the tests: the SDK's own, and plain HTTP answers, each on a free port of loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module, metadata
from typing import Any

import uvicorn

IS_SDK_2 = int(metadata.version("mcp").partition(".")[0]) >= 2


def sdk_app(transport: str) -> Any:
    """An application with two tools, a resource, a template and a prompt; transport: `http` or `sse`."""
    if IS_SDK_2:
        server = import_module("mcp.server.mcpserver").MCPServer("demo", instructions="Be kind.", log_level="CRITICAL")
    else:
        server = import_module("mcp.server.fastmcp").FastMCP("demo", instructions="Be kind.", log_level="CRITICAL")

    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    def echo(text: str) -> str:
        """Says it again."""
        return text

    def one() -> str:
        return "one"

    def memo(key: str) -> str:
        return key

    for function in (add, echo):
        server.tool()(function)
    server.resource("memo://one")(one)
    server.resource("memo://{key}")(memo)
    server.prompt()(echo)
    return server.sse_app() if transport == "sse" else server.streamable_http_app()


def plain_app(
    status: int = 200, headers: dict[str, str] | None = None, body: bytes = b"", endless: bool = False
) -> Any:
    """An application that answers everything in one way, and keeps the headers of what it was asked in `seen`."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        app.seen.append({k.decode(): v.decode() for k, v in scope["headers"]})  # type: ignore[attr-defined]
        sent = [(k.encode(), v.encode()) for k, v in (headers or {}).items()]
        await send({"type": "http.response.start", "status": status, "headers": sent})
        while endless:
            await send({"type": "http.response.body", "body": body, "more_body": True})
            await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": body})

    app.seen = []  # type: ignore[attr-defined]
    return app


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serves the application in a thread; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    assert ready.wait(30)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()
