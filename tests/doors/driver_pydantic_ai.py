"""Pydantic AI with a model that is a function in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.pydantic_ai import CALLABLE, GateCapability, ServerTools
from tests.doors.driver import Called, Hits


class ScriptedModel:
    """Calls one tool on its first turn, if it has its name, then says `done`; keeps what it was offered and told."""

    def __init__(self, name: str | None = None, args: Any = None, between: Callable[[], object] = int) -> None:
        self.name, self.args, self.between = name, dict(args or {}), between
        self.offered: list[str] = []
        self.results: list[str] = []

    def respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            self.results = [str(part.content) for part in messages[-1].parts if hasattr(part, "content")]
            return ModelResponse(parts=[TextPart("done")])
        self.offered = [tool.name for tool in info.function_tools]
        self.between()
        if self.name is None:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(self.name, self.args, tool_call_id="c")])


class ServerToolset(ExternalToolset[Any]):
    """Stands for an MCP toolset: definitions without functions, run by name."""

    def __init__(self, tools: list[Extension], hits: Hits) -> None:
        super().__init__([ToolDefinition(name=ext.name) for ext in tools])
        self.hits, self.by_name = hits, {ext.name: ext for ext in tools}

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        anything = SchemaValidator(core_schema.dict_schema())
        return {
            name: ToolsetTool(toolset=self, tool_def=ToolDefinition(name=name), max_retries=1, args_validator=anything)
            for name in self.by_name
        }

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> str:
        return self.hits.of(self.by_name[name])()


class Host:
    """One agent with some of the stock."""

    hits: Hits
    kinds = frozenset({"tool", "mcp_tool"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return gate.owners(ext.name, CALLABLE) if ext.kind == "tool" else (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        seen: set[str] = set()
        for group in _groups(gate):
            model = ScriptedModel()
            self._run(gate, group, model, Hits())
            seen |= {ext.id for ext in group if ext.name in model.offered}
        return seen

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        (group,) = [group for group in _groups(gate) if ext in group]
        self.hits = hits = Hits()
        model = ScriptedModel(ext.name, args, between)
        self._run(gate, group, model, hits)
        ran = bool(hits.by_id[ext.id])
        return Called(ran=ran, message="" if ran else model.results[0])

    def _run(self, gate: Gate, group: list[Extension], model: ScriptedModel, hits: Hits) -> None:
        tools = FunctionToolset[Any]([_function(ext, hits) for ext in group if ext.kind == "tool"])
        by_server: dict[str, list[Extension]] = {}
        for ext in group:
            if ext.kind == "mcp_tool":
                by_server.setdefault(ext.server or "", []).append(ext)
        servers = [ServerTools(ServerToolset(items, hits), gate, name) for name, items in by_server.items()]
        agent = Agent(FunctionModel(model.respond), toolsets=[tools, *servers], capabilities=[GateCapability(gate)])
        asyncio.run(agent.run("go"))


def _function(ext: Extension, hits: Hits) -> Tool[Any]:
    async def run(**args: Any) -> str:
        return hits.of(ext)()

    return Tool.from_schema(run, name=ext.name, description="", json_schema={"type": "object"})


def _groups(gate: Gate) -> list[list[Extension]]:
    """Native tools in one host, each server in its own: bare names may meet."""
    stock = gate.inventory
    servers = sorted({e.server for e in stock.of_kind("mcp_tool") if e.server is not None})
    return [[*stock.of_kind("tool")], *([e for e in stock.of_kind("mcp_tool") if e.server == s] for s in servers)]


def driver() -> Host:
    return Host()
