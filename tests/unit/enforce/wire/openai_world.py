"""OpenAI's requests and answers as the tests write them, and as the official client reads them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import httpx
import openai

from extgate.enforce.wire.provider import Api
from extgate.enforce.wire.turn import Turn
from tests.unit.enforce.wire.world import Json

REPLY = [b""]


def _replies(request: object) -> Any:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=REPLY[0])


SDK = openai.OpenAI(
    api_key="x", max_retries=0, http_client=httpx.Client(transport=httpx.MockTransport(_replies), trust_env=False)
)


def filtered(api: Api, data: bytes, turn: Turn, cuts: Iterable[int] = ()) -> bytes:
    """What comes out of the stream when the bytes come in pieces that end at these places."""
    stream = api.stream(turn)
    places = [0, *sorted(cuts), len(data)]
    made = [stream.feed(data[a:b]) for a, b in pairwise(places)]
    return b"".join([*made, stream.close()])


# ---------------------------------------------------------------------------------------------- chat completions


def function(name: str, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "description": f"what {name} does", "parameters": {}} | more}


def chat(**more: Any) -> bytes:
    base = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    return json.dumps(base | more, ensure_ascii=False).encode()


def call(name: str, /, **args: Any) -> Json:
    return {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


def custom(name: str, given: str) -> Json:
    return {"id": f"call_{name}", "type": "custom", "custom": {"name": name, "input": given}}


def chosen(*calls: Json, content: str | None = None, end: str = "tool_calls", index: int = 0, **more: Any) -> Json:
    message = {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}
    return {"index": index, "message": message, "finish_reason": end, "logprobs": None}


def completion(*choices: Json) -> Json:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": list(choices),
        "usage": usage,
    }  # fmt: skip


def data(content: object) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return b"data: " + text.encode() + b"\n\n"


def chunk(*choices: Json, **more: Any) -> bytes:
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return data({**base, "choices": list(choices), **more})


def delta(index: int = 0, end: str | None = None, **fields: Any) -> Json:
    return {"index": index, "delta": fields, "finish_reason": end}


def streamed(whole: Json, piece: int = 5) -> bytes:
    """The same completion as a stream, its texts and arguments in pieces of so many characters."""
    made = []
    for choice in whole["choices"]:
        at, message = choice["index"], choice["message"]
        made.append(chunk(delta(at, role="assistant", content="" if message["content"] is not None else None)))
        text = message["content"] or ""
        made += [chunk(delta(at, content=text[i : i + piece])) for i in range(0, len(text), piece)]
        for number, one in enumerate(message.get("tool_calls", ())):
            made += _call_chunks(at, number, one, piece)
        if "function_call" in message:
            given = message["function_call"]["arguments"]
            made.append(chunk(delta(at, function_call={"name": message["function_call"]["name"], "arguments": ""})))
            made += [chunk(delta(at, function_call={"arguments": part})) for part in _cut(given, piece)]
        made.append(chunk(delta(at, end=choice["finish_reason"])))
    return b"".join([*made, b": a comment\n\n", chunk(usage=whole["usage"]), data("[DONE]")])


def _call_chunks(at: int, number: int, one: Json, piece: int) -> list[bytes]:
    kind, key = ("function", "arguments") if "function" in one else ("custom", "input")
    head = {"index": number, **one, kind: {"name": one[kind]["name"], key: ""}}
    rows = [{"index": number, kind: {key: part}} for part in _cut(one[kind][key], piece)]
    return [chunk(delta(at, tool_calls=[row])) for row in (head, *rows)]


def _cut(text: str, piece: int) -> list[str]:
    return [text[i : i + piece] for i in range(0, len(text), piece)]


def by_sdk(stream: bytes) -> list[tuple[str | None, list[tuple[str, str]], str | None]]:
    """What the official client makes of a stream: by choice its text, its calls and how it ended."""
    REPLY[0] = stream
    tools: Any = [function("x")]
    messages: Any = [{"role": "user", "content": "x"}]
    with SDK.chat.completions.stream(model="m", messages=messages, tools=tools) as events:
        final = events.get_final_completion()
    return [
        (c.message.content, [(t.function.name, t.function.arguments) for t in c.message.tool_calls or ()],
         c.finish_reason)
        for c in final.choices
    ]  # fmt: skip


def told(whole: Json) -> list[tuple[str | None, list[tuple[str, str]], str | None]]:
    """The same of a whole completion."""
    rows = []
    for choice in whole["choices"]:
        calls = [(c["function"]["name"], c["function"]["arguments"]) for c in choice["message"].get("tool_calls") or ()]
        rows.append((choice["message"].get("content"), calls, choice["finish_reason"]))
    return rows


def every_split(length: int, step: int = 1) -> Sequence[tuple[int, ...]]:
    """Each single place, and all of them at once."""
    return [*((at,) for at in range(1, length, step)), tuple(range(1, length))]
