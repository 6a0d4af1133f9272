"""The OpenAI Agents SDK: an agent whose tools, MCP servers, handoffs and agents-as-tools ask the gate.

    agent = guard(Agent(name="ops", tools=[...], mcp_servers=[...], handoffs=[...]), gate)
    await Runner.run(agent, "hello", run_config=run_config(gate))

See: before each model call the agent offers only what is visible, late tools included. Use: function tools, MCP tools,
shells, patches, custom tools and handoffs ask again before they run; a call of what was not offered is answered with
the reason where `run_config` is used (without it the SDK ends the run). What the host makes impossible: a question
before each use of a hosted tool (web search, code interpreter, hosted MCP), which the provider runs, and of a
computer; these are judged when they are offered. Guardrails of an agent stay as they are: they judge texts, not tools.
An MCP server's `name` is the configured one. Supported: openai-agents 0.18.1 up to 0.x.
"""

from __future__ import annotations

import copy
import inspect
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from agents import Agent, Handoff, RunConfig, Tool, handoff
from agents.mcp import MCPServer
from agents.run_context import RunContextWrapper

from extgate.core.extension import Extension
from extgate.enforce.gate import Answer, Gate, unavailable_because
from extgate.enforce.inproc.openai_agents_mcp import GatedServer
from extgate.enforce.inproc.openai_agents_tools import CALLABLE, already_asking, offered

_TURNS: weakref.WeakKeyDictionary[RunContextWrapper[Any], GatedAgent] = weakref.WeakKeyDictionary()
"""The agent that took the last turn of each run."""


def guard(agent: Agent[Any], gate: Gate) -> GatedAgent:
    """The same agent behind the gate; the original is left as it is, and open."""
    values = {f.name: getattr(agent, f.name) for f in fields(agent) if f.init}
    return GatedAgent(**values | {"gate": gate})


def run_config(gate: Gate, config: RunConfig | None = None) -> RunConfig:
    """A run's configuration in which a call of what was not offered is answered with the reason, and recorded."""
    before = config.tool_error_formatter if config else None

    def say(error: Any) -> Any:
        if error.kind != "tool_not_found":
            return before(error) if before else None
        agent = _TURNS.get(error.run_context)
        return (agent.refuse(error.tool_name) if agent else gate.refuse_unknown(error.tool_name)).message

    return replace(config or RunConfig(), tool_not_found_behavior="return_error_to_model", tool_error_formatter=say)


@dataclass
class GatedAgent(Agent[Any]):
    """An agent that offers what its gate shows, and whose tools ask it. Without a gate it offers nothing.

    `handoffs` and `mcp_servers` are read as fresh lists of gated ones: assign a list to change them.
    """

    gate: Gate | None = None

    @property  # type: ignore[misc]
    def handoffs(self) -> list[Any]:
        raw = self.__dict__.get("_handoffs", [])
        return [GatedHandoff.of(item, self.gate) for item in raw] if self.gate else []

    @handoffs.setter
    def handoffs(self, items: Iterable[Any]) -> None:
        self.__dict__["_handoffs"] = [item.inner if isinstance(item, GatedHandoff) else item for item in items]

    @property  # type: ignore[misc]
    def mcp_servers(self) -> list[MCPServer]:
        raw = self.__dict__.get("_servers", [])
        return [GatedServer(server, self.gate) for server in raw] if self.gate else []

    @mcp_servers.setter
    def mcp_servers(self, items: Iterable[MCPServer]) -> None:
        self.__dict__["_servers"] = [item.inner if isinstance(item, GatedServer) else item for item in items]

    async def get_mcp_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """The MCP tools, whose servers ask by themselves."""
        return [already_asking(tool) for tool in await super().get_mcp_tools(run_context)]

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """What this turn's request may hold; the SDK asks before each model call."""
        if self.gate is None:
            return []
        _TURNS[run_context] = self
        return offered(await super().get_all_tools(run_context), self.gate)

    def refuse(self, name: str) -> Answer:
        """The recorded refusal of a call of something that this agent did not offer."""
        assert self.gate is not None
        spawned = next((h.agent_name for h in self.handoffs if h.tool_name == name), None)
        return self.gate.refuse(spawned or name, ("subagent",) if spawned else CALLABLE)


class GatedHandoff(Handoff[Any, Any]):
    """A handoff that is offered while its agent is visible, and asks before it hands over.

    The agent handed to comes behind a gate under this one (`Gate.child`), unless it is behind such a one already. A
    refused handoff leaves the turn with the agent that has it, and the reason as its result.
    """

    inner: Any
    gate: Gate
    target: Extension

    @classmethod
    def of(cls, item: Any, gate: Gate) -> GatedHandoff:
        """item: an agent or a handoff, as in the list of an agent's handoffs."""
        original = handoff(item) if isinstance(item, Agent) else item
        made = object.__new__(cls)
        made.__dict__.update(vars(original) | {"inner": item, "gate": gate})
        installed = gate.owners(original.agent_name, ("subagent",))
        made.target = next(iter(installed), Extension(kind="subagent", name=original.agent_name, source="native"))
        made.is_enabled, made.on_invoke_handoff = made._is_offered, made._hand_over
        made.__dict__["_original"] = original
        return made

    async def _is_offered(self, context: RunContextWrapper[Any], agent: Any) -> bool:
        enabled = self.__dict__["_original"].is_enabled
        said = enabled if isinstance(enabled, bool) else enabled(context, agent)
        return bool(await said if inspect.isawaitable(said) else said) and bool(self.gate.see([self.target]))

    async def _hand_over(self, context: RunContextWrapper[Any], text: str) -> Agent[Any]:
        answer, reason = await self.gate.ause(self.target, action="spawn"), ""
        if answer:
            agent, own = _under(await self.__dict__["_original"].on_invoke_handoff(context, text), self.gate)
            if own.availability.is_available:
                return agent
            reason = f"'{agent.name}' is unavailable: {unavailable_because(own.availability)}."
        stays = copy.copy(_TURNS[context])
        stays.__dict__["_refused"] = reason or answer.message
        return stays

    def get_transfer_message(self, agent: Any) -> str:
        """What the model reads: who has the turn, or why the handoff was refused."""
        return str(vars(agent).get("_refused") or super().get_transfer_message(agent))


def _under(agent: Agent[Any], gate: Gate) -> tuple[GatedAgent, Gate]:
    """The agent behind a gate that is under this one, or above it when a turn goes back to where it came from."""
    own = agent.gate if isinstance(agent, GatedAgent) else None
    if isinstance(agent, GatedAgent) and own and (own.is_under(gate) or gate.is_under(own)):
        return agent, own
    made = gate.child(own.profile if own else None, agent=agent.name)
    return guard(agent, made), made
