"""JSON read by its places in the bytes, so that what is taken out leaves everything else as it came.

Only what is looked at is taken apart. What two parsers could read in two ways is refused where it is looked at: a key
that stands twice, keys that differ in letter case alone, text that is not UTF-8, half a surrogate pair, a byte-order
mark, too deep a nesting.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

_FIELDS: msgspec.json.Decoder[dict[str, Raw]] = msgspec.json.Decoder(dict[str, Raw])
_ROWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
_TEXT: msgspec.json.Decoder[str] = msgspec.json.Decoder(str)
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeError)
_WS = rb"[ \t\r\n]*"
_KEY = _WS + rb'("[^"\\]*(?:\\.[^"\\]*)*")' + _WS + b":" + _WS
_FIRST = re.compile(_WS + rb"\{" + _KEY, re.DOTALL)
_FURTHER = re.compile(_WS + b"(?:," + _KEY + rb"|\})", re.DOTALL)
_OPEN = re.compile(rb"[ \t\r\n]*[{\[][ \t\r\n]*")
_NEXT = re.compile(rb"[ \t\r\n]*([,}\]])[ \t\r\n]*")
encode = msgspec.json.encode


class UnclearError(ValueError):
    """Bytes that cannot be read, or that another parser could read otherwise; its text says what and where."""


class Span(NamedTuple):
    """A piece of the bytes."""

    start: int
    end: int


class Field(NamedTuple):
    """One key with its value. at: where the key begins."""

    at: int
    start: int
    end: int

    @property
    def span(self) -> Span:
        return Span(self.start, self.end)


Fields = dict[str, Field]


def checked(data: bytes) -> Span:
    """All of a body, once its text is sound. Raises UnclearError."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnclearError(f"byte {error.start} is not UTF-8") from None
    if data.startswith(b"\xef\xbb\xbf"):
        raise UnclearError("it begins with a byte-order mark")
    return Span(0, len(data))


def fields(data: bytes, span: Span | Field, where: str = "the body") -> Fields:
    """The keys of an object, in order, each with the places of its key and value. Raises UnclearError."""
    start = span.start
    try:
        found = _FIELDS.decode(memoryview(data)[start : span.end])
    except _BAD as error:
        raise UnclearError(f"{where} is no JSON object that can be read ({str(error)[:120]})") from None
    made: Fields = {}
    # The values are known with their lengths; what stands between two of them has to be a comma and one key.
    place = _FIRST.match(data, start)
    for key, raw in found.items():
        if place is None or not data.startswith(raw, begin := place.end()):
            raise UnclearError(f"{where} has a key twice")
        end = begin + len(raw)
        made[key] = Field(place.start(1), begin, end)
        place = _FURTHER.match(data, end)
    if found and (place is None or place[1] is not None):
        raise UnclearError(f"{where} has a key twice")
    letters = "".join(made)
    is_plain = letters.isascii() and letters == letters.lower()
    if not is_plain and len({key.upper().casefold() for key in made}) < len(made):
        raise UnclearError(f"{where} has keys that differ in letter case alone")
    return made


def rows(data: bytes, span: Span | Field, where: str = "a list") -> list[Span]:
    """The values of an array, in order. Raises UnclearError."""
    start = span.start
    try:
        found = _ROWS.decode(memoryview(data)[start : span.end])
    except _BAD as error:
        raise UnclearError(f"{where} is no JSON array that can be read ({str(error)[:120]})") from None
    made: list[Span] = []
    opening = _OPEN.match(data, start)
    at = opening.end() if opening else start
    for raw in found:
        stop = at + len(raw)
        made.append(Span(at, stop))
        after = _NEXT.match(data, stop)
        at = after.end() if after else stop
    return made


def value(data: bytes, span: Span | Field, where: str = "a value") -> Any:
    """What stands there. Raises UnclearError, for half a surrogate pair too."""
    try:
        return msgspec.json.decode(memoryview(data)[span.start : span.end])
    except _BAD as error:
        raise UnclearError(f"{where} cannot be read ({str(error)[:120]})") from None


def text(data: bytes, span: Span | Field, where: str = "a text") -> str:
    """The text there. Raises UnclearError when it is none."""
    if data[span.start] != 0x22:
        raise UnclearError(f"`{where}` is no text")
    try:
        return _TEXT.decode(memoryview(data)[span.start : span.end])
    except _BAD as error:
        raise UnclearError(f"`{where}` cannot be read ({str(error)[:120]})") from None


def text_of(data: bytes, found: Fields, key: str, where: str = "") -> str | None:
    """The text of a key; None without the key. Raises UnclearError when it is something else."""
    field = found.get(key)
    return None if field is None else text(data, field, where or key)


def is_text(data: bytes, span: Span | Field) -> bool:
    """Whether a text stands there."""
    return data[span.start] == 0x22


def is_object(data: bytes, span: Span | Field) -> bool:
    """Whether an object stands there."""
    return data[span.start] == 0x7B


def is_array(data: bytes, span: Span | Field) -> bool:
    """Whether an array stands there."""
    return data[span.start] == 0x5B


def is_null(data: bytes, span: Span | Field) -> bool:
    """Whether `null` stands there."""
    return data[span.start] == 0x6E


class Edits:
    """What is to become other in a body. Without an edit the body stays the very same bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._edits: list[tuple[int, int, bytes]] = []
        self._drops: dict[int, tuple[Sequence[Span | Field], set[int]]] = {}

    def put(self, span: Span, new: bytes) -> None:
        """Puts other bytes in the place of these."""
        self._edits.append((span.start, span.end, new))

    def drop(self, entries: Sequence[Span | Field], dropped: Iterable[int]) -> None:
        """Takes entries of one array or object out, each with a comma. entries: all of them, in order, each time."""
        if wanted := set(dropped):
            self._drops.setdefault(_begin(entries[0]), (entries, set()))[1].update(wanted)

    def applied(self) -> bytes:
        """The body with all edits; of two that overlap, the one that begins first or is larger."""
        edits = [*self._edits, *(cut for drop in self._drops.values() for cut in _cuts(*drop))]
        if not edits:
            return self.data
        parts, at = [], 0
        for start, end, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
            if start >= at:
                parts += [self.data[at:start], new]
                at = end
        return b"".join((*parts, self.data[at:]))


def _cuts(entries: Sequence[Span | Field], dropped: set[int]) -> Iterator[tuple[int, int, bytes]]:
    kept = [at for at in range(len(entries)) if at not in dropped]
    if not kept:
        yield (_begin(entries[0]), entries[-1].end, b"")
        return
    for at in sorted(dropped):
        if at > kept[-1]:  # the tail goes with the comma before it
            yield (entries[kept[-1]].end, entries[-1].end, b"")
            return
        yield (_begin(entries[at]), _begin(entries[at + 1]), b"")


def _begin(entry: Span | Field) -> int:
    return entry.at if isinstance(entry, Field) else entry.start


_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")


def cut_text(data: bytes, span: Span, cuts: Sequence[tuple[int, int, str]]) -> bytes:
    """A JSON text with pieces of what it says replaced, all else spelled as it came.

    cuts: (start, end, new) in characters of the text as decoded, in order and apart.
    """
    raw = data[span.start + 1 : span.end - 1].decode("utf-8")
    ends = _raw_places(raw, [place for start, end, _ in cuts for place in (start, end)])
    parts, at = [], 0
    for (_, _, new), (start, end) in zip(cuts, zip(ends[::2], ends[1::2], strict=True), strict=True):
        parts += [raw[at:start], encode(new)[1:-1].decode()]
        at = end
    return b'"' + "".join((*parts, raw[at:])).encode() + b'"'


def _raw_places(raw: str, places: Sequence[int]) -> list[int]:
    """Where in a spelled text the places of what it says are; places must not fall."""
    found: list[int] = []
    said = spelled = 0  # a place known on both sides, behind the last escape
    wanted = iter(places)
    place = next(wanted, None)
    for escape in _ESCAPE.finditer(raw):
        while place is not None and place - said <= escape.start() - spelled:
            found.append(spelled + place - said)
            place = next(wanted, None)
        if place is None:
            break
        said += escape.start() - spelled + 1
        spelled = escape.end()
    while place is not None:
        found.append(spelled + place - said)
        place = next(wanted, None)
    return found
