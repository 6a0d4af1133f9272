"""`extgate mcp`: the gateway for one agent over stdin and stdout, for a client's MCP configuration."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from extgate.cli.options import complete_agents
from extgate.core.names import show
from extgate.errors import ExtgateError

if TYPE_CHECKING:
    from extgate.gateway.running import Gateway


@click.command("mcp")
@click.argument("agent", shell_complete=complete_agents)
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--trust", is_flag=True, help="Start the servers that project files ask for, for this run.")
def command(agent: str, root: str | None, trust: bool) -> None:
    """Serve AGENT's gated tools, resources and prompts over stdin and stdout.

    The servers start when the client says hello, and get what it declares. Exit: 0 when the client hangs up.
    """
    from extgate.cli.serve import need, run

    need()
    try:
        run(_serve(Path(root or click.get_current_context().obj or "."), agent, trust))
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)


async def _serve(root: Path, agent: str, trust: bool) -> None:
    from extgate.enforce.mcp.front_stdio import open_stdio_front
    from extgate.gateway.running import open_gateway
    from extgate.workspace import Workspace

    Workspace.open(root).agent(agent)  # an unknown one is told before anything starts

    def say(line: str) -> None:
        print(f"extgate: {show(line)}", file=sys.stderr)

    async with (
        AsyncExitStack() as stack,
        open_gateway(root, agents=frozenset({agent}), trust=trust, is_exclusive=True, say=say) as gateway,
    ):
        why_not = await _join(gateway, agent, stack)
        front = await open_stdio_front(gateway.hub, agent, why_not)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, front.closed.set)
        await front.closed.wait()


async def _join(gateway: Gateway, agent: str, stack: AsyncExitStack) -> Callable[[], str]:
    """Joins the replicas that the settings name, where they do. Returns what says why the agent is not served now."""
    shared = gateway.settings.shared
    if shared is None:
        return lambda: ""
    from extgate.gateway.replicas import open_replicas

    replicas = await stack.enter_async_context(open_replicas(shared, gateway))
    with suppress(TimeoutError):  # who says hello before that is told why not
        async with asyncio.timeout(shared.stale_s):
            await replicas.has_joined.wait()
    return lambda: replicas.why_not(agent)
