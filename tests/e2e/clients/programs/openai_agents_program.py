"""A program on the OpenAI Agents SDK, with its own deny or behind the gate's in-process door."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.mcp import MCPServerStdio, create_static_tool_filter
from openai import AsyncOpenAI

from extgate import Workspace
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.openai_agents import guard, run_config
from extgate.enforce.inproc.own_tools import with_tools
from tests.e2e.clients.programs.jobs import Job, read_file, serve, shell_of


async def play(job: Job) -> None:
    """pieces: `tools` (the agent's own, by name), `blocked` (by server; static filter), `child` (has a sub-agent)."""
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{job['url']}/v1", api_key="none", max_retries=0)
    model = OpenAIChatCompletionsModel("fake-model", client)
    pieces = job["pieces"]
    every = {"run_command": function_tool(shell_of(job)), "read_file": function_tool(read_file)}
    tools: list[Any] = [every[name] for name in pieces.get("tools", list(every))]
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(_server(n, e, pieces)) for n, e in job["servers"].items()]
        gate = await asyncio.to_thread(_gate, job, every) if job["is_gated"] else None
        if pieces.get("child"):
            open_servers = [await stack.enter_async_context(_server(n, e, {})) for n, e in job["servers"].items()]
            child: Any = Agent(name="worker", model=model, tools=list(every.values()), mcp_servers=open_servers)
            if gate:
                child = guard(child, gate.child(agent="worker"))
            tools.append(child.as_tool(tool_name="worker", tool_description="Works."))
        agent: Any = Agent(name="probe", model=model, tools=tools, mcp_servers=servers)
        if gate:
            await Runner.run(guard(agent, gate), "Begin.", run_config=run_config(gate))
        else:
            await Runner.run(agent, "Begin.")


def _server(name: str, entry: dict[str, Any], pieces: dict[str, Any]) -> MCPServerStdio:
    blocked = pieces.get("blocked")
    chosen = create_static_tool_filter(blocked_tool_names=blocked) if blocked else None
    return MCPServerStdio({"command": entry["command"], "args": entry["args"]}, name=name, tool_filter=chosen)


def _gate(job: Job, own: dict[str, Any]) -> Gate:
    workspace = Workspace.open(job["workspace"])
    inventory = with_tools(workspace.inventory(trust=True), [*own, "worker"])
    return Gate(workspace.agent("probe").profile, inventory, door="openai-agents", agent="probe")


if __name__ == "__main__":
    serve(play)
