"""A program on Pydantic AI, with its own deny or behind the gate's in-process door."""

from __future__ import annotations

import asyncio
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from extgate import Workspace
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.own_tools import with_tools
from extgate.enforce.inproc.pydantic_ai import GateCapability
from tests.e2e.clients.programs.jobs import Job, read_file, serve, shell_of


async def play(job: Job) -> None:
    """pieces: `tools` (the agent's own, by name), `blocked` (names that a filter drops), `child` (has a sub-agent)."""
    model = OpenAIChatModel("fake-model", provider=OpenAIProvider(base_url=f"{job['url']}/v1", api_key="none"))
    pieces = job["pieces"]
    every: dict[str, Any] = {"run_command": shell_of(job), "read_file": read_file}
    own = [every[name] for name in pieces.get("tools", list(every))]
    gate = await asyncio.to_thread(_gate, job, list(every)) if job["is_gated"] else None
    sends = bool(pieces.get("instructions"))

    if pieces.get("child"):
        child_gate = [GateCapability(gate.child(agent="worker"))] if gate else []
        child = Agent(model, tools=list(every.values()), toolsets=_toolsets(job, (), sends), capabilities=child_gate)

        async def worker(task: str) -> str:
            """Works."""
            return str((await child.run(task)).output)

        own.append(worker)
    capabilities = [GateCapability(gate)] if gate else []
    toolsets = _toolsets(job, tuple(pieces.get("blocked", ())), sends)
    agent = Agent(model, tools=own, toolsets=toolsets, capabilities=capabilities, retries=5)
    await agent.run("Begin.")


def _toolsets(job: Job, blocked: tuple[str, ...], sends: bool) -> list[Any]:
    found: list[Any] = []
    for name, entry in job["servers"].items():
        transport = StdioTransport(entry["command"], entry["args"], keep_alive=False)
        toolset: Any = MCPToolset(transport, id=name, include_instructions=sends)
        found.append(toolset.filtered(lambda ctx, tool: tool.name not in blocked) if blocked else toolset)
    return found


def _gate(job: Job, own: list[str]) -> Gate:
    workspace = Workspace.open(job["workspace"])
    inventory = with_tools(workspace.inventory(trust=True), [*own, "worker"])
    return Gate(workspace.agent("probe").profile, inventory, door="pydantic-ai", agent="probe")


if __name__ == "__main__":
    serve(play)
