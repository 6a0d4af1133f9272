"""Plain client loops on the OpenAI and Anthropic APIs: pure functions over the dicts of a request and an answer.

    request = visible(gate, {"model": ..., "messages": messages, "tools": tools})
    verdict = judge(gate, request, answer)      # answer: the response as a dict, `response.model_dump()`
    ... run verdict.calls, append verdict.results

See: `visible` leaves in a request what the model may learn of, by each tool's wire name; a tool that nothing installed
has the name of is left out. Use: `judge` asks for every call of the answer; one of something not offered is refused,
and each refusal is a result that the model reads. Chat completions, responses and messages are told apart by their
shape. What the host makes impossible: a question before each use of what the provider runs (web search, code
interpreter, hosted MCP), which is judged when it is offered. A sub-agent's loop takes `gate.child(...)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from extgate.enforce.gate import Answer, Gate
from extgate.enforce.inproc.hosted_servers import is_hosted, narrowed_servers, narrowed_tool

Json = Mapping[str, Any]
Api = Literal["chat", "responses", "messages"]

CALLABLE = ("tool", "mcp_tool", "subagent")
"""The kinds that a tool of a request could be."""
_NOT_JSON = "was called with arguments that are not a JSON object"
_OF_TOOLS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an answer. args: None when they are not a JSON object, which is refused. type: the API's own."""

    api: Api
    id: str
    name: str
    args: dict[str, Any] | None
    type: str = ""

    def result(self, text: str, *, is_error: bool = False) -> dict[str, Any]:
        """The result as its API wants it: a message (chat), an input item (responses), a block of a user's message
        (messages)."""
        if self.api == "chat":
            return {"role": "tool", "tool_call_id": self.id, "content": text}
        if self.api == "responses":
            return {"type": f"{self.type}_output", "call_id": self.id, "output": text}
        block = {"type": "tool_result", "tool_use_id": self.id, "content": text}
        return block | ({"is_error": True} if is_error else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """calls: those that may run, in order. results: of the refused ones, for the model to read."""

    calls: tuple[Call, ...]
    results: tuple[dict[str, Any], ...]


def visible(gate: Gate, request: Json) -> dict[str, Any]:
    """A copy of the request with the tools that the model may learn of; without any, the keys about tools go."""
    tools = request.get("tools") or ()
    seen = set(gate.see_named([_name(tool) for tool in tools if not is_hosted(tool)], CALLABLE))
    rows = [narrowed_tool(gate, t) if is_hosted(t) else t if _name(t) in seen else None for t in tools]
    made = dict(request) | {"tools": [row for row in rows if row is not None]}
    if "mcp_servers" in request:
        made["mcp_servers"] = narrowed_servers(gate, request["mcp_servers"], made["tools"])
    if not _may_choose(made.get("tool_choice"), set(map(_name, made["tools"]))):
        del made["tool_choice"]
    return made if made["tools"] else {key: value for key, value in made.items() if key not in _OF_TOOLS}


def judge(gate: Gate, request: Json, answer: Json) -> Verdict:
    """What of an answer may run. request: as it was sent; the whole answer stays in the history."""
    asked = [(call, _refused(gate, call, request)) for call in calls(answer)]
    return _verdict([(c, gate.use_named(c.name, c.args, kinds=CALLABLE) if no is None else no) for c, no in asked])


async def ajudge(gate: Gate, request: Json, answer: Json) -> Verdict:
    """`judge` for an approver that may have to be awaited."""
    asked = [(call, _refused(gate, call, request)) for call in calls(answer)]
    return _verdict(
        [(c, await gate.ause_named(c.name, c.args, kinds=CALLABLE) if no is None else no) for c, no in asked]
    )


def calls(answer: Json) -> tuple[Call, ...]:
    """Every call that the host would have to run, of every choice of the answer."""
    return (*_of_chat(answer), *_of_responses(answer), *_of_messages(answer))


def _refused(gate: Gate, call: Call, request: Json) -> Answer | None:
    """The refusal of a call that no policy has to be asked about."""
    if call.name not in set(map(_name, request.get("tools") or ())):
        return gate.refuse(call.name, CALLABLE)
    return gate.refuse(call.name, CALLABLE, why=_NOT_JSON) if call.args is None else None


def _verdict(answers: Sequence[tuple[Call, Answer]]) -> Verdict:
    refused = [call.result(answer.message, is_error=True) for call, answer in answers if not answer]
    return Verdict(calls=tuple(call for call, answer in answers if answer), results=tuple(refused))


def _name(tool: Json) -> str:
    """The name that a call would have; of a tool of the provider's without one, its type."""
    inner = tool.get("function") or tool.get("custom") or tool
    return str(inner.get("name") or tool.get("type") or "")


def _may_choose(choice: object, names: set[str]) -> bool:
    if not isinstance(choice, Mapping):
        return True
    tools = choice.get("tools") or [choice]
    return choice.get("type") in ("auto", "any", "none") or all(_name(tool) in names for tool in tools)


def _of_chat(answer: Json) -> Iterator[Call]:
    for choice in answer.get("choices") or ():
        for row in choice["message"].get("tool_calls") or ():
            if row.get("type") == "custom":
                yield Call(api="chat", id=row["id"], name=row["custom"]["name"], args={"input": row["custom"]["input"]})
            else:
                yield Call(api="chat", id=row["id"], name=row["function"]["name"],
                           args=_json(row["function"].get("arguments")))  # fmt: skip


def _of_responses(answer: Json) -> Iterator[Call]:
    for row in answer.get("output") or ():
        kind = str(row.get("type"))
        if kind.endswith("_call") and row.get("call_id"):
            args = {"input": row["input"]} if "input" in row else _json(row.get("arguments", row.get("action")))
            yield Call(api="responses", id=row["call_id"], name=str(row.get("name") or kind.removesuffix("_call")),
                       args=args, type=kind)  # fmt: skip


def _of_messages(answer: Json) -> Iterator[Call]:
    for row in answer.get("content") or ():
        if row.get("type") == "tool_use":
            yield Call(api="messages", id=row["id"], name=row["name"], args=_json(row.get("input")))


def _json(value: object) -> dict[str, Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, Mapping) else None
