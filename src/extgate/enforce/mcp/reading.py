"""A server's lists, every page of them, each item as the bytes it came in, a malformed one under no name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from extgate.enforce.mcp import envelope as json
from extgate.enforce.mcp.catalog import IDENTITY, Rows
from extgate.enforce.mcp.envelope import METHOD_NOT_FOUND, Value
from extgate.enforce.mcp.options import Limits

METHODS = {
    "tools": ("tools/list", "tools"),
    "prompts": ("prompts/list", "prompts"),
    "resources": ("resources/list", "resources"),
    "resourceTemplates": ("resources/templates/list", "resources"),
}
"""The request and the capability it needs, by list."""

Rpc = Callable[[str, json.Fields | None], Awaitable[json.Fields]]


class UpstreamError(Exception):
    """Why a server cannot be used, in one line. code: its own error's, or 0."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


async def read_lists(rpc: Rpc, capabilities: Mapping[str, Value], limits: Limits) -> Rows:
    """Every list that the server announces. One other than its tools that it refuses is left empty.

    Raises UpstreamError rather than return a part of a list.
    """
    found: dict[str, dict[str, json.Fields]] = {}
    for what, (method, capability) in METHODS.items():
        if capability not in capabilities:
            continue
        try:
            found[what] = await _all_pages(rpc, what, method, limits)
        except UpstreamError as error:
            if error.code == 0 or (what == "tools" and error.code != METHOD_NOT_FOUND):
                raise
    return found


async def _all_pages(rpc: Rpc, what: str, method: str, limits: Limits) -> dict[str, json.Fields]:
    rows: dict[str, json.Fields] = {}
    seen: set[str] = set()
    params: json.Fields | None = None
    for _ in range(limits.pages):
        result = await rpc(method, params)
        for item in _items(result.get(what), method):
            name = json.text_of(item.get(IDENTITY[what]))
            rows.setdefault(name or "", item)  # what has no name is nothing, and is told of where the rest is made
        cursor = json.text_of(result.get("nextCursor"))
        if len(rows) > limits.items:
            raise UpstreamError(f"`{method}` lists more than {limits.items} items")
        if not cursor:
            return rows
        if cursor in seen:
            raise UpstreamError(f"`{method}` goes in a circle: a cursor came twice")
        seen.add(cursor)
        params = {"cursor": json.encode(cursor)}
    raise UpstreamError(f"`{method}` has more than {limits.pages} pages")


def _items(value: Value | None, method: str) -> list[json.Fields]:
    found = json.values_of(value)
    if found is None:
        raise UpstreamError(f"the answer to `{method}` is no list")
    return [json.object_of(item) for item in found]
