"""A workspace's agents, run on deepagents: what the files say, live servers and the factory, put together.

async with await open_agent(Workspace.open("."), "research", "openai:gpt-5", trust=True) as agent:
    await agent.graph.ainvoke({"messages": [("user", "hello")]})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extgate.core.extension import Extension, Inventory
from extgate.discover.everything import Wanted, assembled, wanted_servers
from extgate.discover.mcp_live import Held, LiveServers
from extgate.discover.mcp_watch import ServerError
from extgate.discover.skills import read_skill
from extgate.enforce.gate import Approver, Gate
from extgate.enforce.sinks import discard
from extgate.policy_places import closed_places
from extgate.workspace import Agent, Workspace

if TYPE_CHECKING:
    from extgate.enforce.inproc.factory import AgentFactory, Child, RunningAgent

RUNTIMES = ("deepagents", "msagent")
"""Whose built-in tools an agent of this host has: deepagents', and the catalog's five."""

DOOR = "langchain"


def agent_factory(
    workspace: Workspace,
    servers: LiveServers,
    *,
    sink: Callable[[Any], None] = discard,
    approver: Approver | None = None,
    also: Iterable[Path] = (),
) -> AgentFactory:
    """The factory for agents of this workspace. servers: held open by the caller, for as long as agents run.

    also: profiles that were given by their path, closed to file tools as the others are.
    """
    from extgate.enforce.inproc.factory import AgentFactory  # deepagents takes seconds to import
    from extgate.enforce.inproc.langchain_mcp import McpAnswer

    async def call(ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
        try:
            answer = await asyncio.wrap_future(servers.call(ext.server or "", ext.name, arguments))
        except ServerError as error:
            raise ConnectionError(str(error)) from None
        return McpAnswer(
            content=tuple(answer.get("content", ())),
            structured=answer.get("structuredContent"),
            is_error=bool(answer.get("isError")),
        )

    return AgentFactory(
        call=call,
        read_skill=read_skill,
        closed=closed_places(workspace.homes, also=also),
        sink=sink,
        approver=approver,
        mode=_mode(workspace),
    )


def _mode(workspace: Workspace) -> Any:
    return workspace.homes.inherit or "ceiling"


def prompt_of(agent: Agent) -> str:
    """What the agent's own file says to its model; empty when it says nothing."""
    facts = agent.policy.facts if agent.policy else {}
    said = [facts.get(key) for key in ("system_prompt", "prompt", "instructions")]
    return next((text for text in said if isinstance(text, str)), "")


def children_of(workspace: Workspace, agent: Agent) -> Mapping[str, Child]:
    """The sub-agents that an agent may ask for: those its file lists, else every other agent of the workspace.

    One whose file cannot be read is not among them. The gate decides on each.
    """
    from extgate.enforce.inproc.factory import Child

    listed = agent.policy.facts.get("subagents") if agent.policy else None
    names = {str(name) for name in listed} if isinstance(listed, list | tuple) else None
    found = {}
    for other in workspace.agents:
        if other.policy is None or other.id == agent.id or (names is not None and other.id not in names):
            continue
        description = other.policy.facts.get("description")
        found[other.id] = Child(
            profile=other.profile,
            description=description if isinstance(description, str) else "",
            prompt=prompt_of(other),
        )
    return found


def installed(workspace: Workspace, wanted: Wanted, held: Iterable[Held]) -> Inventory:
    """What agents of this host can have: deepagents' tools, the workspace's skills and plugins, and live servers."""
    held = tuple(held)
    answers = (
        tuple(one.server for one in held),
        tuple(ext for one in held for ext in one.extensions),
        tuple(finding for one in held for finding in one.findings),
    )
    return assembled(replace(workspace.sources(), runtimes=RUNTIMES), wanted, answers)


async def open_agent(
    workspace: Workspace,
    agent_id: str,
    model: Any,
    *,
    trust: bool = False,
    sink: Callable[[Any], None] = discard,
    approver: Approver | None = None,
    **options: Any,
) -> RunningAgent:
    """One agent with its servers started; they end when its context is left. Its own answer says if it is unavailable.

    trust: starts every server that files ask for. options: `backend`, `checkpointer` and `middleware`, as
    `AgentFactory.create_behind` takes them. Raises WorkspaceError for an agent that is not there.
    """
    agent = workspace.agent(agent_id)
    wanted = wanted_servers(workspace.sources())
    gates: list[Gate] = []

    def follow(held: Held) -> None:
        for gate in gates:
            gate.swap(inventory=installed(workspace, wanted, servers.held))

    servers = LiveServers(
        trusted=lambda spec: trust or wanted.store.is_trusted(spec),
        on_change=follow,
        timeout_s=workspace.homes.timeout_s,
    )
    await asyncio.to_thread(servers.__enter__)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, servers.__exit__)
        await asyncio.wrap_future(servers.want(wanted.specs))
        inventory = installed(workspace, wanted, servers.held)
        gates.append(Gate(agent.profile, inventory, door=DOOR, agent=agent.id, sink=sink, approver=approver))
        running = _run(workspace, agent, gates[0], servers, model, options)
        return replace(running, close=stack.pop_all().aclose)


def _run(
    workspace: Workspace, agent: Agent, gate: Gate, servers: LiveServers, model: Any, options: Mapping[str, Any]
) -> RunningAgent:
    root = workspace.homes.root.absolute()
    also = [root / agent.file] if agent.file else []
    factory = agent_factory(workspace, servers, sink=gate.sink, approver=gate.approver, also=also)
    subagents, prompt = children_of(workspace, agent), prompt_of(agent)
    return factory.create_behind(gate, model=model, root=root, prompt=prompt, subagents=subagents, **options)
