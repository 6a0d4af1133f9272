"""OpenAI's API on the wire, and that of all who copied it: its paths, its errors, its credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from extgate.enforce.wire import chat_answer, chat_request, chat_stream, responses_answer, responses_request
from extgate.enforce.wire.events import frame
from extgate.enforce.wire.provider import Api, Options, Provider, Route, refused
from extgate.enforce.wire.responses_stream import Stream as ResponsesStream
from extgate.enforce.wire.spans import encode
from extgate.enforce.wire.turn import Turn

_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def error(status: int, message: str) -> bytes:
    """An error's body as OpenAI's clients read it."""
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return encode({"error": {"message": message, "type": kind, "param": None, "code": None}})


def chat_failure(message: str) -> bytes:
    """The event that ends a stream of chunks."""
    return frame("", error(500, message))


CHAT = Api(
    name="chat",
    request=chat_request.request,
    answer=chat_answer.answer,
    stream=chat_stream.Stream,
    failure=chat_failure,
)


def failure(message: str) -> bytes:
    """The event that ends a stream of a response."""
    said = {"code": "invalid_prompt", "message": message}
    answer = {
        "id": "resp_extgate", "object": "response", "created_at": 0, "status": "failed", "error": said, "model": "",
        "incomplete_details": None, "instructions": None, "metadata": {}, "output": [], "parallel_tool_calls": False,
        "temperature": None, "tool_choice": "auto", "tools": [], "top_p": None,
    }  # fmt: skip
    return frame("response.failed", encode({"type": "response.failed", "sequence_number": 0, "response": answer}))


def nothing(data: bytes, turn: Turn, options: Options) -> bytes:
    """The request, which brings nothing of its own."""
    return data


def told(data: bytes, turn: Turn) -> bytes:
    """An answer that holds no call to run."""
    return data


RESPONSES = Api(
    name="responses",
    request=responses_request.request,
    answer=responses_answer.answer,
    stream=ResponsesStream,
    failure=failure,
)
KEPT = Api(
    name="kept responses",
    request=nothing,
    answer=responses_answer.kept,
    stream=partial(ResponsesStream, is_kept=True),
    failure=failure,
)
ITEMS = Api(name="items", request=responses_request.request, answer=told, stream=ResponsesStream, failure=failure)
_ID = r"/(?!\.+(?:/|$))[A-Za-z0-9_.:-]+"
_STORED = "what was stored is not served here, because nobody judged what is in it"
_PATHS: tuple[tuple[str, str, Route], ...] = (
    ("POST", r"/v1/chat/completions", Route(act="gate", api=CHAT)),
    ("POST", r"/v1/responses(/compact)?", Route(act="gate", api=RESPONSES)),
    ("POST", r"/v1/responses/input_tokens", Route(act="gate", api=ITEMS)),
    ("GET", r"/v1/responses", refused("a socket is not served here; send a request with `POST`")),
    ("GET", rf"/v1/responses{_ID}", Route(act="gate", api=KEPT)),
    ("POST", rf"/v1/responses{_ID}/cancel", Route(act="gate", api=KEPT)),
    ("GET", rf"/v1/responses{_ID}/input_items", Route(act="pass")),
    ("DELETE", rf"/v1/responses{_ID}", Route(act="pass")),
    ("POST", rf"/v1/conversations({_ID}/items)?", Route(act="gate", api=ITEMS)),
    ("GET|DELETE", rf"/v1/conversations{_ID}(/items({_ID})?)?", Route(act="pass")),
    ("GET|HEAD", rf"/v1/models({_ID})*", Route(act="pass")),
    ("GET|HEAD", r"/?|/v1/?", Route(act="pass")),
    ("POST", r"/v1/(embeddings|moderations|audio/(speech|transcriptions|translations))", Route(act="pass")),
    (".*", r"/v1/chat/completions/.*", refused(_STORED)),
    (".*", r"/v1/(batches|assistants|threads)(/.*)?", refused("runs that nobody sees the answers of are not served")),
)


def route(method: str, path: str) -> Route:
    """What becomes of a path; one that is not in the table is refused."""
    for methods, pattern, found in _PATHS:
        if re.fullmatch(methods, method) and re.fullmatch(pattern, path):
            return found
    return refused(f"`{method} {path[:100]}` is not among the paths that are served")


def credential(key: str) -> Mapping[str, str]:
    """The headers for a key."""
    return {"authorization": f"Bearer {key}"}


PROVIDER = Provider(
    name="openai",
    url="https://api.openai.com",
    route=route,
    error=error,
    keys=("authorization", "api-key"),
    credential=credential,
)
