"""Calls that LangChain reads as structured output: they reach no tool and no tool wrapper, only the response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain.agents.structured_output import AutoStrategy, ToolStrategy
from langchain_core.messages import AIMessage, ToolMessage

from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_ask import Ask
from extgate.enforce.inproc.langchain_identity import STRUCTURED


def structured_calls(gate: Gate, request: ModelRequest[Any], response: Any) -> list[tuple[Any, Ask]]:
    """The calls in a response that were taken for structured output, each with what the gate has to be asked."""
    wanted = request.response_format
    if not isinstance(wanted, ToolStrategy | AutoStrategy) or not isinstance(response, ModelResponse):
        return []
    names = {spec.name for spec in ToolStrategy(schema=wanted.schema).schema_specs}
    calls = [
        call for m in response.result if isinstance(m, AIMessage) for call in m.tool_calls if call["name"] in names
    ]
    found = []
    for call in calls:
        owners = gate.owners(call["name"], ("tool", "mcp_tool")) or (Ask.native(call["name"], STRUCTURED),)
        found += [(call, Ask(ext=ext, args=call["args"])) for ext in owners]
    return found


def without(response: Any, refused: Mapping[str | None, ToolMessage]) -> Any:
    """The response in which refused calls, by their id, were answered with a refusal and gave nothing."""
    if not refused:
        return response
    result = [refused.get(getattr(message, "tool_call_id", None), message) for message in response.result]
    return ModelResponse(result=result, structured_response=None)
