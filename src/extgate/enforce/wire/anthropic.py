"""Anthropic's API on the wire: its paths, its errors, its credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

from extgate.enforce.wire.anthropic_answer import Stream, answer
from extgate.enforce.wire.anthropic_request import request
from extgate.enforce.wire.events import frame
from extgate.enforce.wire.provider import Api, Provider, Route, refused
from extgate.enforce.wire.spans import encode
from extgate.enforce.wire.turn import Turn

_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip


def error(status: int, message: str) -> bytes:
    """An error's body as Anthropic's clients read it."""
    said = {"type": _TYPES.get(status, "api_error"), "message": message}
    return encode({"type": "error", "error": said})


def failure(message: str) -> bytes:
    """The event that ends a stream."""
    return frame("error", error(500, message))


def counted(data: bytes, turn: Turn) -> bytes:
    """The answer to a count, which holds no call."""
    return data


MESSAGES = Api(name="messages", request=request, answer=answer, stream=Stream, failure=failure)
COUNT = Api(name="count_tokens", request=request, answer=counted, stream=Stream, failure=failure)

_PATHS: tuple[tuple[str, str, Route], ...] = (
    ("POST", r"/v1/messages", Route(act="gate", api=MESSAGES)),
    ("POST", r"/v1/messages/count_tokens", Route(act="gate", api=COUNT)),
    ("GET|HEAD", r"/v1/models(/(?!\.+$)[A-Za-z0-9._:-]+)?", Route(act="pass")),
    ("GET|HEAD", r"/?", Route(act="pass")),
    (".*", r"/v1/messages/batches(/.*)?", refused("batches are not served: nobody would see the answers", 403)),
)


def route(method: str, path: str) -> Route:
    """What becomes of a path; one that is not in the table is refused."""
    for methods, pattern, found in _PATHS:
        if re.fullmatch(methods, method) and re.fullmatch(pattern, path):
            return found
    return refused(f"`{method} {path[:100]}` is not among the paths that are served")


def credential(key: str) -> Mapping[str, str]:
    """The headers for a key: a token of a subscription goes as such."""
    return {"authorization": f"Bearer {key}"} if key.startswith("sk-ant-oat") else {"x-api-key": key}


PROVIDER = Provider(
    name="anthropic",
    url="https://api.anthropic.com",
    route=route,
    error=error,
    keys=("x-api-key", "authorization"),
    credential=credential,
)
