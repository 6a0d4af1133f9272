"""The OpenAI Agents SDK with a model in this process that plays a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

from agents import Agent, FunctionTool, Handoff, Model, ModelResponse, Runner, Tool, Usage, set_tracing_disabled
from agents.mcp import MCPServer
from mcp.types import CallToolResult, ListToolsResult
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from extgate.core.extension import Extension
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.openai_agents import CALLABLE, guard, run_config
from tests.doors.driver import Called, Hits

SCHEMA = {"type": "object", "properties": {}, "additionalProperties": True}


class ScriptedModel(Model):
    """Calls one tool on its first turn, if it has its name, then says `done`; keeps what it was offered and told."""

    def __init__(
        self, name: str | None = None, args: Mapping[str, Any] | None = None, between: Callable[[], object] = int
    ) -> None:
        self.name, self.args, self.between = name, args or {}, between
        self.offered: list[str] = []
        self.results: list[str] = []
        self.turns = 0

    async def get_response(self, **request: Any) -> ModelResponse:
        self.turns += 1
        outputs = [i for i in request["input"] if isinstance(i, dict) and i.get("type") == "function_call_output"]
        self.results = [_text(item["output"]) for item in outputs]
        if self.turns == 1:
            self.offered = [t.name for t in request["tools"]] + [h.tool_name for h in request["handoffs"]]
            self.between()
            if self.name is not None:
                return _answer(
                    ResponseFunctionToolCall(
                        type="function_call", id="f", call_id="c", name=self.name, arguments=json.dumps(self.args)
                    )
                )
        text = ResponseOutputText(type="output_text", text="done", annotations=[])
        return _answer(
            ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
        )

    def stream_response(self, *rest: Any, **more: Any) -> Any:
        raise NotImplementedError


def _answer(item: Any) -> ModelResponse:
    return ModelResponse(output=[item], usage=Usage(), response_id=None)


def _text(output: Any) -> str:
    return output if isinstance(output, str) else "".join(part.get("text", "") for part in output)


class Server(MCPServer):
    """An MCP server of the SDK without a process behind it."""

    def __init__(self, name: str, tools: list[Extension], hits: Hits) -> None:
        super().__init__()
        self._name, self.hits = name, hits
        self.tools = {ext.name: ext for ext in tools}

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    @property
    def name(self) -> str:
        return self._name

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
        rows = [{"name": name, "inputSchema": SCHEMA} for name in self.tools]
        return ListToolsResult.model_validate({"tools": rows}).tools

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> CallToolResult:
        text = self.hits.of(self.tools[tool_name])()
        return CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...


class Host:
    """One agent with some of the stock; `ext` of a handoff counts when its agent takes a turn."""

    hits: Hits
    kinds = frozenset({"tool", "mcp_tool", "subagent"})

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return gate.owners(ext.name, CALLABLE) if ext.kind == "tool" else (ext,)

    def list_visible(self, gate: Gate) -> set[str]:
        seen: set[str] = set()
        for group in _groups(gate):
            model, names = ScriptedModel(), {self._name(ext): ext.id for ext in group}
            self._run(gate, group, model, Hits())
            seen |= {names[name] for name in model.offered}
        return seen

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        (group,) = [group for group in _groups(gate) if ext in group]
        self.hits = hits = Hits()
        model = ScriptedModel(self._name(ext), args, between)
        self._run(gate, group, model, hits)
        ran = bool(hits.by_id[ext.id])
        return Called(ran=ran, message="" if ran else model.results[0])

    def _name(self, ext: Extension) -> str:
        return Handoff.default_tool_name(Agent(name=ext.name)) if ext.kind == "subagent" else ext.name

    def _run(self, gate: Gate, group: list[Extension], model: Model, hits: Hits) -> None:
        set_tracing_disabled(True)
        tools: list[Tool] = [_function(ext, hits) for ext in group if ext.kind == "tool"]
        by_server: dict[str, list[Extension]] = {}
        for ext in group:
            if ext.kind == "mcp_tool":
                by_server.setdefault(ext.server or "", []).append(ext)
        agent = Agent(
            name="agent", model=model, tools=tools, mcp_servers=[Server(n, t, hits) for n, t in by_server.items()],
            handoffs=[Agent(name=ext.name, model=_Taken(hits, ext)) for ext in group if ext.kind == "subagent"],
        )  # fmt: skip
        asyncio.run(Runner.run(guard(agent, gate), "go", run_config=run_config(gate)))


class _Taken(ScriptedModel):
    """The model of an agent that was handed the turn."""

    def __init__(self, hits: Hits, ext: Extension) -> None:
        super().__init__()
        self.hit = hits.of(ext)

    async def get_response(self, **request: Any) -> ModelResponse:
        self.hit()
        return await super().get_response(**request)


def _function(ext: Extension, hits: Hits) -> FunctionTool:
    async def invoke(context: Any, text: str) -> str:
        return hits.of(ext)()

    return FunctionTool(
        name=ext.name, description="", params_json_schema=SCHEMA, on_invoke_tool=invoke, strict_json_schema=False
    )


def _groups(gate: Gate) -> list[list[Extension]]:
    """Native tools and handoffs in one host, each server in its own: bare names may meet."""
    stock = gate.inventory
    servers = sorted({e.server for e in stock.of_kind("mcp_tool") if e.server is not None})
    return [
        [*stock.of_kind("tool", "subagent")],
        *([e for e in stock.of_kind("mcp_tool") if e.server == s] for s in servers),
    ]


def driver() -> Host:
    return Host()
