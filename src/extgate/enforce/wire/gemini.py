"""Gemini's API on the wire: its paths, its errors, its credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping

from extgate.enforce.wire.events import frame
from extgate.enforce.wire.gemini_answer import Stream, answer
from extgate.enforce.wire.gemini_request import request
from extgate.enforce.wire.provider import Api, Provider, Route, refused
from extgate.enforce.wire.spans import encode
from extgate.enforce.wire.turn import Turn

_STATUS = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip


def error(status: int, message: str) -> bytes:
    """An error's body as Gemini's clients read it."""
    return encode({"error": {"code": status, "message": message, "status": _STATUS.get(status, "INTERNAL")}})


def failure(message: str) -> bytes:
    """The event that ends a stream."""
    return frame("", error(500, message))


def counted(data: bytes, turn: Turn) -> bytes:
    """The answer to a count, which holds no call."""
    return data


CONTENT = Api(name="generateContent", request=request, answer=answer, stream=Stream, failure=failure)
COUNT = Api(name="countTokens", request=request, answer=counted, stream=Stream, failure=failure)

_MODEL = r"/v1(?:beta|alpha)?/(?:models|tunedModels)/(?!\.+[:/]|\.+$)[A-Za-z0-9_.-]+"
_PATHS: tuple[tuple[str, str, Route], ...] = (
    ("POST", rf"{_MODEL}:(generateContent|streamGenerateContent)", Route(act="gate", api=CONTENT)),
    ("POST", rf"{_MODEL}:countTokens", Route(act="gate", api=COUNT)),
    ("POST", rf"{_MODEL}:(embedContent|batchEmbedContents)", Route(act="pass")),
    ("GET|HEAD", rf"/v1(?:beta|alpha)?/models|{_MODEL}|/?", Route(act="pass")),
    (
        ".*",
        rf"{_MODEL}:batch.*|/v1[a-z]*/batches.*",
        refused("batches are not served, because nobody sees the answers"),
    ),
    (".*", r"/v1[a-z]*/cachedContents.*", refused("what is stored at the provider could bring tools unseen")),
)


def route(method: str, path: str) -> Route:
    """What becomes of a path; one that is not in the table is refused."""
    for methods, pattern, found in _PATHS:
        if re.fullmatch(methods, method) and re.fullmatch(pattern, path):
            return found
    return refused(f"`{method} {path[:100]}` is not among the paths that are served")


def credential(key: str) -> Mapping[str, str]:
    """The headers for a key."""
    return {"x-goog-api-key": key}


PROVIDER = Provider(
    name="gemini",
    url="https://generativelanguage.googleapis.com",
    route=route,
    error=error,
    keys=("x-goog-api-key", "authorization"),
    credential=credential,
)
