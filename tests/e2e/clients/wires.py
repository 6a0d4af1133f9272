"""The four wires that models are called over: what a request holds, and an answer in its form, whole or as events.

anthropic: messages; chat: OpenAI chat completions; responses: OpenAI responses; gemini: generateContent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

Json = dict[str, Any]
_NUMBERS = count(1)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the model makes. namespace: only in responses. is_custom: a tool of free text, there too."""

    name: str
    arguments: Json = field(default_factory=dict)
    namespace: str = ""
    is_custom: bool = False


Turn = str | Sequence[Call]
Step = Turn | Callable[[Json], Turn]
"""A turn, or what makes one of the request, for calls that need what a tool answered."""


def wire(path: str) -> str:
    """The wire that a POST to this path speaks; the empty text for none."""
    bare = path.partition("?")[0]
    for ending, name in (("/messages", "anthropic"), ("/chat/completions", "chat"), ("/responses", "responses")):
        if bare.endswith(ending):
            return name
    return "gemini" if bare.endswith(("generateContent", "GenerateContent")) else ""


def is_streamed(name: str, path: str, body: Json) -> bool:
    return "streamGenerateContent" in path if name == "gemini" else bool(body.get("stream"))


def text(content: object) -> str:
    """All text of a content value, whichever wire it is of."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(text, content)))
    if isinstance(content, dict):
        inner = content.get("parts") or content.get("text") or content.get("content") or content.get("output")
        return text(inner)
    return content if isinstance(content, str) else ""


def messages(name: str, body: Json) -> list[tuple[str, str]]:
    """Role and text of each message; `model` for everything that an answer brought."""
    if name == "responses":
        given = body.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
        return [(_role_of_item(item), text(item)) for item in items]
    rows = body.get("contents" if name == "gemini" else "messages") or []
    return [({"assistant": "model"}.get(r.get("role"), r.get("role", "user")), text(r)) for r in rows]


def _role_of_item(item: Json) -> str:
    kind = item.get("type", "message")
    if kind.endswith("_output"):
        return "tool"
    if kind == "message":
        return {"assistant": "model"}.get(str(item.get("role")), str(item.get("role", "user")))
    return "model"


def turns_played(name: str, body: Json) -> int:
    """How many answers of the model the request holds already."""
    roles = [role for role, _ in messages(name, body) if role not in ("system", "developer")]
    return sum(role == "model" and before != "model" for before, role in zip(["", *roles], roles, strict=False))


def opening(name: str, body: Json) -> str:
    """What the user and the system said before the first answer."""
    said = []
    for role, words in messages(name, body):
        if role == "model":
            break
        said.append(words)
    system = body.get("system") or body.get("systemInstruction") or body.get("instructions")
    return "\n".join([*said, text(system)])


def offered(name: str, body: Json) -> list[str]:
    """Names of the offered tools; those of a namespace with it before them, as `mcp__alpha.read_thing`."""
    found: list[str] = []
    for tool in body.get("tools") or []:
        if name == "gemini":
            found += [one["name"] for one in tool.get("functionDeclarations") or []]
        elif tool.get("type") == "namespace":
            found += [f"{tool['name']}.{inner['name']}" for inner in tool.get("tools") or []]
        else:
            found.append((tool.get("function") or tool).get("name") or tool.get("type", "?"))
    return found


def _calls(turn: Turn) -> Sequence[Call]:
    return () if isinstance(turn, str) else turn


def _said(turn: Turn) -> str:
    return turn if isinstance(turn, str) else ""


def _event(data: Json, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def _identity(prefix: str) -> str:
    return f"{prefix}_{next(_NUMBERS):024d}"


def _anthropic(turn: Turn, model: str) -> tuple[Json, Iterator[str]]:
    blocks: list[Json] = [{"type": "text", "text": turn}] if isinstance(turn, str) else []
    for one in _calls(turn):
        blocks.append({"type": "tool_use", "id": _identity("toolu"), "name": one.name, "input": one.arguments})
    stop = "end_turn" if isinstance(turn, str) else "tool_use"
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    head = {"id": _identity("msg"), "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    whole = {**head, "content": blocks, "stop_reason": stop, "usage": usage}
    return whole, _anthropic_events(whole, blocks)


def _anthropic_events(whole: Json, blocks: list[Json]) -> Iterator[str]:
    yield _event({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}, "message_start")
    for at, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        for kind, rest in (("start", {"content_block": empty}), ("delta", {"delta": delta}), ("stop", {})):
            name = f"content_block_{kind}"
            yield _event({"type": name, "index": at, **rest}, name)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _chat(turn: Turn, model: str) -> tuple[Json, Iterator[str]]:
    calls = [
        {
            "id": _identity("call"),
            "type": "function",
            "function": {"name": c.name, "arguments": json.dumps(c.arguments)},
        }
        for c in _calls(turn)
    ]
    base = {"id": _identity("chatcmpl"), "created": 0, "model": model}
    message = {"role": "assistant", "content": _said(turn) or None, **({"tool_calls": calls} if calls else {})}
    finish = "tool_calls" if calls else "stop"
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
    return whole, _chat_events(base | {"object": "chat.completion.chunk"}, _said(turn), calls, finish, usage)


def _chat_events(base: Json, said: str, calls: list[Json], finish: str, usage: Json) -> Iterator[str]:
    deltas: list[Json] = [{"role": "assistant", "content": said}]
    for at, one in enumerate(calls):
        whole = one["function"]
        deltas.append({"tool_calls": [{"index": at, **one, "function": {**whole, "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": at, "function": {"arguments": whole["arguments"]}}]})
    for delta in deltas:
        yield _event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    yield _event({**base, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def _responses(turn: Turn, model: str) -> tuple[Json, Iterator[str]]:
    items: list[Json] = []
    if isinstance(turn, str):
        part = {"type": "output_text", "text": turn, "annotations": [], "logprobs": []}
        items.append({"id": _identity("msg"), "type": "message", "role": "assistant", "content": [part]})
    for one in _calls(turn):
        kind, key = ("custom_tool_call", "input") if one.is_custom else ("function_call", "arguments")
        given = one.arguments["input"] if one.is_custom else json.dumps(one.arguments)
        extra = {"namespace": one.namespace} if one.namespace else {}
        items.append(
            {"id": _identity("fc"), "type": kind, "call_id": _identity("call"), "name": one.name, key: given, **extra}
        )
    items = [{**item, "status": "completed"} for item in items]
    usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5, "total_tokens": 15}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": _identity("resp"), "object": "response", "created_at": 0, "model": model, "error": None}
    head |= {"incomplete_details": None, "instructions": None, "metadata": {}, "tools": [], "tool_choice": "auto"}
    head |= {"parallel_tool_calls": True, "temperature": 1.0, "top_p": 1.0}
    whole = {**head, "status": "completed", "output": items, "usage": usage}
    return whole, _responses_events(whole, items)


def _responses_events(whole: Json, items: list[Json]) -> Iterator[str]:
    numbers = count()

    def event(kind: str, **rest: Any) -> str:
        return _event({"type": kind, "sequence_number": next(numbers), **rest}, kind)

    yield event("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for at, item in enumerate(items):
        where = {"item_id": item["id"], "output_index": at}
        if item["type"] == "message":
            part = item["content"][0]
            yield event("response.output_item.added", output_index=at, item={**item, "content": []})
            yield event("response.content_part.added", **where, content_index=0, part={**part, "text": ""})
            yield event("response.output_text.delta", **where, content_index=0, delta=part["text"], logprobs=[])
            yield event("response.output_text.done", **where, content_index=0, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **where, content_index=0, part=part)
        else:
            key = "input" if item["type"] == "custom_tool_call" else "arguments"
            stem = "custom_tool_call_input" if key == "input" else "function_call_arguments"
            yield event("response.output_item.added", output_index=at, item={**item, key: ""})
            yield event(f"response.{stem}.delta", **where, delta=item[key])
            yield event(f"response.{stem}.done", **where, name=item["name"], **{key: item[key]})
        yield event("response.output_item.done", output_index=at, item=item)
    yield event("response.completed", response=whole)


def _gemini(turn: Turn, model: str) -> tuple[Json, Iterator[str]]:
    parts: list[Json] = [{"text": turn}] if isinstance(turn, str) else []
    parts += [{"functionCall": {"name": c.name, "args": c.arguments}} for c in _calls(turn)]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model, "responseId": _identity("g")}
    return whole, iter([_event(whole)])


ANSWERS: dict[str, Callable[[Turn, str], tuple[Json, Iterator[str]]]] = {
    "anthropic": _anthropic,
    "chat": _chat,
    "responses": _responses,
    "gemini": _gemini,
}


def whatever_is_offered(name: str, part: str, patience_s: float = 0.0) -> Step:
    """A turn that calls each offered tool whose name holds this part; the part itself where there is none.

    A name that extgate has to make unique ends in a digest, which nobody knows before. patience_s: how long to wait
    first where there is none, so that the next request may have it.
    """

    def turn(body: Json) -> Turn:
        found = [one for one in offered(name, body) if part in one]
        time.sleep(0.0 if found else patience_s)
        calls = []
        for one in found or [part]:
            space, _, tool = one.rpartition(".") if name == "responses" else ("", "", one)
            calls.append(Call(tool, {"q": "1"}, namespace=space))
        return calls

    return turn
