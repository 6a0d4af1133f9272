"""JSON-RPC messages as the gateway reads them: the outer keys, each value left as the bytes it came in.

A message is put together again from the keys that were read, so that what is forwarded is what was judged, a key that
stands twice included. Values are never touched: fields that nobody here knows survive, but a message with one that some
parsers take for a judged one is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw

from extgate.core.names import loose, show

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL = -32700, -32600, -32601, -32602, -32603
REFUSED = -32003
"""The gateway's own code for what the policy refuses, or a server cannot do now (JSON-RPC leaves -32000 to -32099)."""
HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32020, -32021, -32022
"""The 2026-07-28 protocol's codes."""

Value = Raw | bytes
Fields = dict[str, Value]
Id = int | float | str

_FIELDS: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_ID: msgspec.json.Decoder[int | float | str] = msgspec.json.Decoder(int | float | str)
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
encode = msgspec.json.encode
BAD = (msgspec.MsgspecError, RecursionError, UnicodeError)
"""What decoding raises for what is not JSON, or too deep."""


class EnvelopeError(Exception):
    """A message that is none. code: JSON-RPC's; id: the message's as it came, where it has one."""

    def __init__(self, code: int, message: str, id: bytes = b"null") -> None:
        super().__init__(message)
        self.code, self.message, self.id = code, message, id


@dataclass(slots=True)
class Envelope:
    """One message. method: empty for a response. id: as it came, empty for a notification; key: the id's value."""

    fields: Fields
    method: str
    id: bytes
    key: Id | None
    params: Fields

    @property
    def is_request(self) -> bool:
        return bool(self.method and self.id)


def fields_of(data: Value | memoryview) -> Fields:
    """The keys of an object with their values as they came; of a key that stands twice, the last.

    Raises one of `BAD`.
    """
    return _FIELDS.decode(data)  # type: ignore[return-value]


class Keys:
    """The keys of one place by which a message is judged."""

    def __init__(self, *keys: str) -> None:
        self.keys = frozenset(keys)
        self._folded = {key.casefold() for key in keys} | {loose(key) for key in keys if not key.startswith("_")}

    def otherwise(self, found: Iterable[str]) -> tuple[str, ...]:
        """The keys that lenient parsers take for one of these, and others do not."""
        known = self._folded
        return tuple(k for k in found if k not in self.keys and known & {k.upper().casefold(), loose(k)})


_MESSAGE = Keys("jsonrpc", "id", "method", "params", "result", "error")
_PARAMS = Keys(
    "name", "arguments", "uri", "ref", "cursor", "_meta", "taskId", "task", "level", "notifications",
    "protocolVersion", "capabilities", "clientInfo", "progressToken", "requestId",
)  # fmt: skip


def read(data: bytes | memoryview) -> Envelope:
    """One message; its values are views of a memoryview. Raises EnvelopeError, also for a batch: no protocol version
    since 2025-06-18 has them."""
    if isinstance(data, bytes) and (b"\n" in data or b"\r" in data):
        data = data.translate(ONE_LINE)  # outside of strings it is white space, and inside it is no JSON
    try:
        fields = fields_of(data)
    except BAD as error:
        if bytes(data[:64]).lstrip()[:1] == b"[":
            raise EnvelopeError(INVALID_REQUEST, "batches are refused; send one message at a time") from None
        raise EnvelopeError(PARSE_ERROR, f"no JSON object: {str(error)[:200]}") from None
    raw_id = bytes(fields["id"]) if "id" in fields else b""
    key = _id_of(raw_id)
    try:
        method = _TEXT.decode(fields["method"]) if "method" in fields else ""
        params = fields_of(fields["params"]) if bytes(fields.get("params", b"null")) != b"null" else {}
    except BAD:
        raise EnvelopeError(INVALID_REQUEST, "`method` is no text or `params` no object", raw_id or b"null") from None
    if not fields.keys() <= _MESSAGE.keys or not params.keys() <= _PARAMS.keys:
        for key in (*_MESSAGE.otherwise(fields), *_PARAMS.otherwise(params)):
            text = f"the key `{show(key)[:60]}` is a known one in other letters"
            raise EnvelopeError(INVALID_REQUEST, text, raw_id or b"null")
    if bytes(fields.get("jsonrpc", b"")) != b'"2.0"' or not (method or raw_id):
        raise EnvelopeError(INVALID_REQUEST, "no JSON-RPC 2.0 message", raw_id or b"null")
    return Envelope(fields, method, raw_id, key, params)


ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Line ends become blanks."""


def _id_of(raw: bytes) -> Id | None:
    if not raw:
        return None
    try:
        return _ID.decode(raw)
    except BAD:
        raise EnvelopeError(INVALID_REQUEST, "`id` is neither a text nor a number") from None


def text_of(value: Value | None) -> str | None:
    """A text, or None when it is none."""
    try:
        return _TEXT.decode(value) if value is not None else None
    except BAD:
        return None


def id_of(value: Value | None) -> Id | None:
    """An id or a progress token, or None when it is none."""
    try:
        return _ID.decode(value) if value is not None else None
    except BAD:
        return None


def value_of(value: Value | None) -> Any:
    """Any JSON, or None when it is none."""
    try:
        return msgspec.json.decode(value) if value is not None else None
    except BAD:
        return None


def object_of(value: Value | None) -> Fields:
    """The keys of an object; none when it is no object."""
    try:
        return fields_of(value) if value is not None else {}
    except BAD:
        return {}


_VALUES: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])


def values_of(value: Value | None) -> list[Raw] | None:
    """The values of an array, or None when it is none."""
    try:
        return _VALUES.decode(value if value is not None else b"null")
    except BAD:
        return None


def has_twins(data: bytes) -> bool:
    """Whether some object in it has a key twice, for some parsers, so that two could read it in two ways."""
    import json

    def check(pairs: list[tuple[str, object]]) -> None:
        if len({loose(key) for key, _ in pairs}) < len(pairs):
            raise KeyError

    try:
        json.loads(data, object_pairs_hook=check)
    except (KeyError, ValueError, RecursionError):
        return True
    return False


# ---------------------------------------------------------------------------------------------- writing


def write(fields: Mapping[str, Value]) -> bytes:
    """An object of these keys and values."""
    return b"{" + b",".join(_pairs(fields)) + b"}"


def _pairs(fields: Mapping[str, Value]) -> Iterator[bytes]:
    for key, value in fields.items():
        yield encode(key) + b":" + (value if isinstance(value, bytes) else bytes(value))


def request(id: bytes, method: str, params: Mapping[str, Value] | None) -> bytes:
    """A request, or with an empty id a notification. params: None leaves them out."""
    head = b'{"jsonrpc":"2.0",' + (b'"id":' + id + b"," if id else b"") + b'"method":' + encode(method)
    return head + (b"}" if params is None else b',"params":' + write(params) + b"}")


def result(id: bytes, value: bytes) -> bytes:
    """A response with this result."""
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + value + b"}"


def error(id: bytes, code: int, message: str, data: object = None) -> bytes:
    """A response that is an error. id: as it came, or `null`."""
    body = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return b'{"jsonrpc":"2.0","id":' + (id or b"null") + b',"error":' + encode(body) + b"}"


def refusal(id: bytes, message: str) -> bytes:
    """A tool's result that says why it did not run, for the model to read."""
    body = {"content": [{"type": "text", "text": message}], "isError": True}
    return result(id, encode(body))


def readdressed(message: Envelope, id: bytes) -> bytes:
    """The message with another id, all else as it came."""
    return write({**message.fields, "id": id})
