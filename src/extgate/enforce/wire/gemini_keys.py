"""Keys of Gemini's JSON: each may be spelled `likeThis` or `like_this`, and one value may stand for a list of one.

Source: protobuf's JSON mapping, and examples of Google's API pages (2026-11-30).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from extgate.core.names import loose, show
from extgate.enforce.wire import spans
from extgate.enforce.wire.spans import Fields, Span, UnclearError

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def snake(key: str) -> str:
    """`likeThis` as `like_this`."""
    return _short(key) if len(key) <= _SHORT else _HUMP.sub(_low, key)


@lru_cache(maxsize=1024)
def _short(key: str) -> str:
    return _HUMP.sub(_low, key)


def _low(hump: re.Match[str]) -> str:
    return "_" + hump[1].lower()


_SHORT = 64


def keys(data: bytes, span: Span, known: Collection[str], where: str) -> Fields:
    """An object's keys; the known ones `like_this`, however they are spelled, others as they came.

    Raises UnclearError for a known key in two spellings, or in one that only a lenient parser takes for it.
    """
    made: Fields = {}
    for key, place in spans.fields(data, span, where).items():
        name = snake(key)
        if name not in known:
            if loose(key) in map(loose, known):
                raise UnclearError(f"{where} has the key `{show(key)[:60]}`, a known one in another spelling")
            name = key
        if name in made:
            raise UnclearError(f"{where} has `{show(name)[:60]}` in two spellings")
        made[name] = place
    return made


def some(data: bytes, found: Fields, key: str) -> list[Span]:
    """The rows of a list below a key, or the one value that stands for such a list; none without the key."""
    if key not in found or spans.is_null(data, found[key].span):
        return []
    span = found[key].span
    return spans.rows(data, span, f"`{key}`") if spans.is_array(data, span) else [span]
