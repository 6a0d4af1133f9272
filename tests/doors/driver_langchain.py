"""LangChain agents with a chat model in this process; and the catalog, which lists and reads skills."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool

from extgate.core.extension import Extension
from extgate.core.names import unique_wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.catalog import Catalog, CatalogError
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.inproc.langchain_mcp import McpAnswer, Toolbox
from extgate.enforce.inproc.skill_cache import SkillCache
from tests.doors.driver import Called, Hits
from tests.unit.enforce.inproc.hosts import Scripted

SCHEMA = {"type": "object", "title": "t", "description": "t", "properties": {}, "additionalProperties": True}


class Agents:
    """One agent with the stock's native tools, registered, and its servers' tools."""

    hits: Hits
    kinds = frozenset({"tool", "mcp_tool"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        model, ids = Scripted(), {name: ext.id for ext, name in self._names(gate).items()}
        self._run(gate, model, Hits())
        return {ids[name] for offer in model.offers[:1] for name in offer.names}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        turn = [{"name": self._names(gate)[ext], "args": dict(args)}]
        model = Scripted(turns=[turn], before=lambda offer: between() if len(model.offers) == 1 else None)
        self.hits = hits = Hits()
        messages = self._run(gate, model, hits)
        ran = bool(hits.by_id[ext.id])
        said = next((m.text for m in messages if isinstance(m, ToolMessage)), messages[-1].text)
        return Called(ran=ran, message="" if ran else said)

    def _names(self, gate: Gate) -> dict[Extension, str]:
        native = gate.inventory.of_kind("tool")
        served = unique_wire_names(gate.inventory.of_kind("mcp_tool"), {ext.name for ext in native})
        return {ext: ext.name for ext in native} | served

    def _run(self, gate: Gate, model: Scripted, hits: Hits) -> list[Any]:
        registry = Registry()
        tools = [registry.add(_native(ext, hits), ext) for ext in gate.inventory.of_kind("tool")]

        async def call(ext: Extension, arguments: dict[str, Any]) -> McpAnswer:
            return McpAnswer(content=({"type": "text", "text": hits.of(ext)()},))

        toolbox, wall = Toolbox(gate, (), call, registry), GateMiddleware(gate, registry=registry)
        agent = create_agent(model, tools, middleware=[toolbox, wall])
        state = asyncio.run(agent.ainvoke({"messages": [("user", "go")]}))
        messages: list[Any] = state["messages"]
        return messages


def _native(ext: Extension, hits: Hits) -> BaseTool:
    async def run(**arguments: Any) -> str:
        return hits.of(ext)()

    return StructuredTool(name=ext.name, description="", args_schema=SCHEMA, coroutine=run)


class Skills:
    """The catalog by itself: `fetch_skills` lists, `get_skill` expands. Reading the cache is not what counts."""

    hits: Hits
    kinds = frozenset({"skill"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        rows = json.loads(self._catalog(gate).fetch_skills())
        ids = {ext.leaf: ext.id for ext in gate.inventory.of_kind("skill")}
        return {ids[row["name"]] for row in rows}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = Hits()
        catalog = self._catalog(gate)
        catalog.fetch_skills()
        between()
        try:
            text = asyncio.run(catalog.aget_skill(ext.name))
        except CatalogError as error:
            return Called(ran=False, message=str(error))
        if text == f"body of {ext.id}":
            self.hits.of(ext)()
        return Called(ran=bool(self.hits.by_id[ext.id]))

    def _catalog(self, gate: Gate) -> Catalog:
        return Catalog(gate, dict, SkillCache(gate, lambda ext: f"body of {ext.id}"))


def agents() -> Agents:
    return Agents()


def skills() -> Skills:
    return Skills()
