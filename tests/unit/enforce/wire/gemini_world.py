"""Gemini's requests and answers as the tests write them, and as the official client reads them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import httpx

from tests.unit.enforce.wire.world import Json

REPLY = [b""]


def _replies(request: object) -> Any:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=REPLY[0])


@cache
def sdk() -> Any:
    """The official client, which takes long to import."""
    from google import genai
    from google.genai import types

    http = httpx.Client(transport=httpx.MockTransport(_replies), trust_env=False)
    return genai.Client(api_key="x", http_options=types.HttpOptions(base_url="http://test", httpx_client=http))


def body(**more: Any) -> bytes:
    return json.dumps({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]} | more, ensure_ascii=False).encode()


def functions(*names: str) -> Json:
    return {"functionDeclarations": [{"name": n, "description": f"what {n} does", "parameters": {}} for n in names]}


def call(name: str, /, **args: Any) -> Json:
    return {"functionCall": {"id": f"c-{name}", "name": name, "args": args}}


def answer(*parts: Json, index: int | None = 0) -> Json:
    number = {} if index is None else {"index": index}
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP", **number}
    return {"candidates": [candidate], "usageMetadata": {"totalTokenCount": 3}, "modelVersion": "m"}


def streamed(*answers: Json) -> bytes:
    return b"".join(b"data: " + json.dumps(one, ensure_ascii=False).encode() + b"\r\n\r\n" for one in answers)


def told(answers: Any) -> list[Any]:
    """Each part as its text, or what it calls."""
    parts = [part for one in answers for c in one["candidates"] for part in c["content"]["parts"]]
    return [p["functionCall"]["name"] if "functionCall" in p else p.get("text") for p in parts]


def by_sdk(stream: bytes) -> list[Any]:
    """The same as the official client reads it from a stream."""
    REPLY[0] = stream
    made = []
    for one in sdk().models.generate_content_stream(model="m", contents="x"):
        for part in one.candidates[0].content.parts:
            made.append(part.function_call.name if part.function_call else part.text)
    return made
