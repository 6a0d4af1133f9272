"""Client loops on the three APIs, as a host would write them; the model is a function from a request to an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from extgate.core.extension import Extension
from extgate.core.names import wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.loops import CALLABLE, Api, judge, visible
from tests.doors.driver import Called, Hits

Json = dict[str, Any]


def tool(api: Api, name: str) -> Json:
    schema = {"type": "object", "properties": {}}
    if api == "chat":
        return {"type": "function", "function": {"name": name, "parameters": schema}}
    if api == "responses":
        return {"type": "function", "name": name, "parameters": schema}
    return {"name": name, "input_schema": schema}


def answer(api: Api, name: str, args: Mapping[str, Any]) -> Json:
    """A model's answer with one call."""
    text = json.dumps(args)
    if api == "chat":
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": text}}
        return {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    if api == "responses":
        return {"output": [{"type": "function_call", "call_id": "c", "name": name, "arguments": text}]}
    return {"content": [{"type": "tool_use", "id": "c", "name": name, "input": args}], "stop_reason": "tool_use"}


def offered(request: Json) -> list[str]:
    return [(row.get("function") or row)["name"] for row in request.get("tools", ())]


def read(result: Json) -> str:
    """What the model reads of a result, of any API."""
    assert "c" in (result.get("tool_call_id"), result.get("call_id"), result.get("tool_use_id"))
    return str(result.get("content") or result.get("output"))


class Host:
    """A loop with everything in the stock that can be called."""

    hits: Hits
    kinds = frozenset(CALLABLE)

    def __init__(self, api: Api) -> None:
        self.api = api

    def name(self, ext: Extension) -> str:
        return ext.name if ext.server is None else wire_names(ext.server, ext.name)[0]

    def means(self, gate: Gate, ext: Extension) -> tuple[Extension, ...]:
        return gate.owners(self.name(ext), CALLABLE)

    def list_visible(self, gate: Gate) -> set[str]:
        ids = {self.name(ext): ext.id for ext in gate.inventory.of_kind(*CALLABLE)}
        return {ids[name] for name in offered(self._request(gate))}

    def call(self, gate: Gate, ext: Extension, args: Mapping[str, Any], between: Callable[[], object]) -> Called:
        self.hits = hits = Hits()
        items = {self.name(e): e for e in gate.inventory.of_kind(*CALLABLE)}
        request = self._request(gate)
        between()
        verdict = judge(gate, request, answer(self.api, self.name(ext), args))
        results = [*verdict.results, *(call.result(hits.of(items[call.name])()) for call in verdict.calls)]
        ran = bool(hits.by_id[ext.id])
        return Called(ran=ran, message="" if ran else read(results[0]))

    def _request(self, gate: Gate) -> Json:
        names = [self.name(ext) for ext in gate.inventory.of_kind(*CALLABLE)]
        return visible(gate, {"model": "m", "tools": [tool(self.api, name) for name in names], "tool_choice": "auto"})


def chat() -> Host:
    return Host("chat")


def responses() -> Host:
    return Host("responses")


def messages() -> Host:
    return Host("messages")
