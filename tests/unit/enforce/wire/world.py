"""A judge over a profile written as text, and Anthropic's messages as the tests write them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.profile import read
from extgate.discover.builtins import builtin_tools
from extgate.enforce.gate import Gate
from extgate.enforce.sinks import Memory as Events
from extgate.enforce.wire.clients import CLIENTS, Client
from extgate.enforce.wire.judge import Entry, Judge, Memory
from extgate.enforce.wire.turn import Turn

Json = dict[str, Any]

CLAUDE = replace(CLIENTS["claude-code"], builtins={tool.name: tool for tool in builtin_tools("claude-code")})
GENERIC = CLIENTS["generic"]


@cache
def profile(text: str) -> Profile:
    return Profile(id="a", layers=(read([Document(path="a.yaml", text=f"id: a\n{text}\n")]),))


def inventory(*items: Extension, servers: Iterable[Server] = ()) -> Inventory:
    return Inventory(extensions=items, servers=tuple(servers))


def gate(text: str = "", stock: Inventory | None = None, events: Events | None = None) -> Gate:
    return Gate(profile(text), stock or Inventory(), door="wire", sink=events or Events())


@cache
def _shared(text: str) -> tuple[Gate, Memory]:
    return gate(text), Memory()


def turn(text: str = "", stock: Inventory | None = None, client: Client = CLAUDE, **more: Any) -> Turn:
    """A turn of its own; over the same rules without a stock, the gate is the same one."""
    one, memory = _shared(text) if stock is None else (gate(text, stock), Memory())
    return Turn(Judge(one, client, memory=memory), **more)


def offering(text: str, *names: str, stock: Inventory | None = None, client: Client = CLAUDE, **more: Any) -> Turn:
    """A turn in which these tools were offered, whether they may be seen or not."""
    made = turn(text, stock, client, **more)
    for name in names:
        made.offer(Entry(name), name)
    return made


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "description": f"what {name} does", "input_schema": {"type": "object"}} | more


def body(**more: Any) -> bytes:
    base = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps(base | more, ensure_ascii=False).encode()


def call(name: str, /, **args: Any) -> Json:
    return {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": args}


def said(text: str) -> Json:
    return {"type": "text", "text": text}


def message(*content: Json, stop: str = "tool_use") -> Json:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": list(content),
        "stop_reason": stop, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    }  # fmt: skip


def event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def streamed(whole: Mapping[str, Any], piece: int = 7) -> bytes:
    """The same message as a stream, its texts and arguments in pieces of so many characters."""
    made = [event("message_start", message=dict(whole) | {"content": [], "stop_reason": None})]
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        text = block["text"] if is_text else json.dumps(block["input"])
        empty = block | ({"text": ""} if is_text else {"input": {}})
        made.append(event("content_block_start", index=index, content_block=empty))
        for at in range(0, len(text), piece):
            part = text[at : at + piece]
            kinds = ("text_delta", "text") if is_text else ("input_json_delta", "partial_json")
            made.append(event("content_block_delta", index=index, delta={"type": kinds[0], kinds[1]: part}))
        made.append(event("ping"))
        made.append(event("content_block_stop", index=index))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    made.append(event("message_delta", delta=end, usage={"output_tokens": 2}))
    made.append(event("message_stop"))
    return b"".join(made)
