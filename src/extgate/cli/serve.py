"""`extgate serve`: the gateway of a workspace's agents over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from extgate.core.names import show
from extgate.errors import ExtgateError

if TYPE_CHECKING:
    from extgate.gateway.running import Gateway
    from extgate.workspace import Workspace

LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", default=8470, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option("--trust", is_flag=True, help="Start the servers that project files ask for, for this run.")
def command(root: str | None, host: str, port: int, trust: bool) -> None:
    """Serve every agent's gated MCP endpoint, http://HOST:PORT/agents/AGENT/mcp.

    Other addresses than loopback need `gateway: {tokens: FILE}` or `oauth` in extgate.yaml. Ends on SIGTERM and Ctrl-C,
    after the calls in flight. Exit: 1 when it cannot start.
    """
    need()
    try:
        run(_serve(Path(root or click.get_current_context().obj or "."), host, port, trust))
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)


def need() -> None:
    """Ends the command with the way out when the gateway's libraries are not installed."""
    for name in ("msgspec", "httptools"):
        try:
            importlib.import_module(name)
        except ImportError:
            click.echo(f"extgate: the package `{name}` is not installed; install extgate[gateway]", err=True)
            sys.exit(1)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs it on uvloop where that is installed, else on asyncio's own loop."""
    try:
        loop_factory = importlib.import_module("uvloop").new_event_loop
    except ImportError:
        loop_factory = None
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(work)


def keep_views(gateway: Gateway, say: Callable[[str], None]) -> None:
    """Lets the skill folders of runtimes under `apply` follow each refresh, so that none waits for its next hook call.

    On the hub's loop; the disk is left to a thread.
    """
    from extgate.applied.work import follow_all

    loop, before = asyncio.get_running_loop(), gateway.on_refreshed

    def follow(workspace: Workspace) -> None:
        try:
            follow_all(workspace)
        except (ExtgateError, OSError) as error:
            say(f"skills of a runtime stay as they were: {error}")

    def refreshed() -> None:
        before()
        loop.run_in_executor(None, follow, gateway.host.workspace)

    gateway.on_refreshed = refreshed


async def _serve(root: Path, host: str, port: int, trust: bool) -> None:
    from extgate.gateway.address import open_front, why_not_here
    from extgate.gateway.replicas import open_replicas
    from extgate.gateway.running import open_gateway
    from extgate.gateway.settings import read_gateway
    from extgate.workspace import Workspace

    settings = read_gateway(Workspace.open(root).homes)
    if host not in LOOPBACK and settings.callers.is_open:
        raise why_not_here(host)
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)

    def say(line: str) -> None:
        print(f"extgate: {show(line)}", file=sys.stderr)

    async with open_front(settings, host, port, say) as front, AsyncExitStack() as stack:
        say(f"listening on http://{host}:{front.port}")
        async with open_gateway(root, trust=trust, say=say) as gateway:
            front.serve(gateway)
            others = None  # they are left last: what calls in flight count for is given back before
            if settings.shared is not None:
                others = await stack.enter_async_context(open_replicas(settings.shared, gateway, front))
            keep_views(gateway, say)
            for agent in sorted(gateway.hub.doors):
                say(f"ready: http://{host}:{front.port}/agents/{agent}/mcp")
            await over.wait()
            front.drain()
            await asyncio.gather(front.drain_wire(), *([others.drain()] if others is not None else []))
