"""Responses requests and answers as the tests write them, and as the official client reads them."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.unit.enforce.wire import openai_world
from tests.unit.enforce.wire.world import Json, event


def body(**more: Any) -> bytes:
    return json.dumps({"model": "m", "input": "hi"} | more, ensure_ascii=False).encode()


def function(name: str, **more: Any) -> Json:
    return {"type": "function", "name": name, "description": f"what {name} does", "parameters": {}} | more


def space(name: str, *tools: Json) -> Json:
    return {"type": "namespace", "name": name, "description": f"all of {name}", "tools": list(tools)}


def call(name: str, /, namespace: str = "", **args: Any) -> Json:
    extra = {"namespace": namespace} if namespace else {}
    said = {"type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "name": name, **extra}
    return said | {"arguments": json.dumps(args), "status": "completed"}


def custom(name: str, given: str) -> Json:
    said = {"type": "custom_tool_call", "id": f"ctc_{name}", "call_id": f"call_{name}", "name": name}
    return said | {"input": given, "status": "completed"}


def shell(command: str) -> Json:
    action = {"type": "exec", "command": [command], "env": {}}
    return {"type": "local_shell_call", "id": "lsh_1", "call_id": "call_1", "action": action, "status": "completed"}


def message(text: str, mark: str = "msg_1") -> Json:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": mark, "type": "message", "status": "completed", "role": "assistant", "content": [part]}


def response(*output: Json, **more: Any) -> Json:
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 3,
    }  # fmt: skip
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": None, "model": "m",
        "incomplete_details": None, "instructions": None, "metadata": {}, "output": list(output),
        "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": usage,
    } | more  # fmt: skip


def streamed(whole: Json, piece: int = 7) -> bytes:
    """The same response as a stream, its texts and arguments in pieces of so many characters."""
    numbers, made = count(), []

    def add(kind: str, **fields: Any) -> None:
        made.append(event(kind, sequence_number=next(numbers), **fields))

    opened = {**whole, "status": "in_progress", "output": [], "usage": None}
    add("response.created", response=opened)
    add("response.in_progress", response=opened)
    for at, item in enumerate(whole["output"]):
        where = {"item_id": item.get("id"), "output_index": at}
        if item["type"] == "message":
            part = item["content"][0]
            add("response.output_item.added", output_index=at, item={**item, "content": [], "status": "in_progress"})
            add("response.content_part.added", **where, content_index=0, part={**part, "text": ""})
            for text in _cut(part["text"], piece):
                add("response.output_text.delta", **where, content_index=0, delta=text, logprobs=[])
            add("response.output_text.done", **where, content_index=0, text=part["text"], logprobs=[])
            add("response.content_part.done", **where, content_index=0, part=part)
        elif item["type"] in _PIECES:
            key, kind = _PIECES[item["type"]]
            add("response.output_item.added", output_index=at, item={**item, key: "", "status": "in_progress"})
            for text in _cut(item[key], piece):
                add(f"response.{kind}.delta", **where, delta=text)
            more = {"name": item["name"]} if key == "arguments" else {}
            add(f"response.{kind}.done", **where, **{key: item[key]}, **more)
        else:
            add("response.output_item.added", output_index=at, item={**item, "status": "in_progress"})
        add("response.output_item.done", output_index=at, item=item)
    add("response.completed", response=whole)
    return b"".join(made)


_PIECES = {
    "function_call": ("arguments", "function_call_arguments"),
    "custom_tool_call": ("input", "custom_tool_call_input"),
}


def _cut(text: str, piece: int) -> list[str]:
    return [text[i : i + piece] for i in range(0, len(text), piece)]


def told(output: list[Json]) -> list[tuple[str, str]]:
    """Each item as its type, and what it says or calls."""
    made = []
    for item in output:
        text = item["content"][0]["text"] if item["type"] == "message" else item.get("name", "")
        made.append((item["type"], text))
    return made


def by_sdk(stream: bytes) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What the official client makes of a stream: from its events one by one, and of the whole at its end."""
    openai_world.REPLY[0] = stream
    items: list[Json] = []
    with openai_world.SDK.responses.stream(model="m", input="x") as events:
        for one in events:
            if one.type == "response.output_item.done":
                items.append(json.loads(one.item.model_dump_json(exclude_none=True)))
        final = json.loads(events.get_final_response().model_dump_json(exclude_none=True))
    return told(items), told(final["output"])
