"""Everything that a definition for a model's provider could be run as: providers read one and the same differently.

Forms seen 2026-11-30 in langchain-core 1.8, langchain-openai 1.7, langchain-anthropic 1.7, langchain-google-genai 4.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NESTED = ("tools", "function_declarations", "functionDeclarations")
_WRAPPED = ("function", "custom", "toolSpec")
_SERVERS = ("mcp_servers", "mcpServers")
_LABELS = ("server_label", "mcp_server_name")
_ADDRESSES = ("server_url", "connector_id", "url")
_HOSTED = ("mcp", "mcp_toolset")
_PLAIN = ("", "function", "custom", "object", "namespace")
"""Types that name no tool of the provider's own."""
_OPTIONS = frozenset(
    {"input_schema", "inputSchema", "parameters", "parametersJsonSchema", "parameters_json_schema", "properties"}
    | {"$defs", "definitions", "additionalProperties", "container", "cache_control", "user_location", "filters"}
    | {"format", "ranking_options", "default_config", "configs", "headers", "require_approval", "allowed_tools"}
    | {"annotations", "metadata", "input_image_mask", "citations", "environment", "response", "items"}
)
"""Keys whose value is an object and that name no tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a definition declares. alias: another name of it, that a deny may use.

    server: of an item of a server that the provider calls itself, the name that the definition gives it; address: where
    it says that this server is.
    """

    name: str
    alias: str = ""
    server: str | None = None
    address: str = ""


def parts_of(tool: Mapping[Any, Any]) -> tuple[Part, ...]:
    """All that a definition declares, its plain name first; never none. A part without a name may be anything."""
    return tuple(dict.fromkeys(_parts(tool))) or (Part(name=""),)


def _parts(tool: Mapping[Any, Any]) -> Iterator[Part]:
    kind = tool["type"] if isinstance(tool.get("type"), str) else ""
    is_hosted = kind in _HOSTED or any(tool.get(key) is not None for key in _LABELS)
    name = _text(tool["name"] if "name" in tool else tool.get("title"))
    is_version = bool(name) and _without_version(kind) == name
    if "name" in tool or name:
        yield Part(name=name, alias=kind if is_version else "")
    if kind not in (*_PLAIN, *_HOSTED) and not is_version:
        yield Part(name=kind, alias=_other(kind, _without_version(kind)))
    if is_hosted:
        yield from _items(tool, kind)
    for key in _WRAPPED:
        if tool.get(key) is not None:
            yield from _inner(tool[key])
    for key in _NESTED:
        rows = tool.get(key)
        for row in rows if isinstance(rows, list | tuple) else [] if rows is None else [rows]:
            yield from _inner(row)
    if any(tool.get(key) for key in _SERVERS):
        yield Part(name="", server="")
    read = {*_OPTIONS, *_NESTED, *_WRAPPED, *_SERVERS}
    for key, value in tool.items():  # {"google_search": {}}
        if key not in read and not isinstance(value, str | int | float | list | tuple | None):
            yield Part(name=str(key), alias=_other(str(key), _respelled(str(key))))


def _inner(part: object) -> tuple[Part, ...]:
    return parts_of(part) if isinstance(part, Mapping) else (Part(name=""),)


def _items(tool: Mapping[Any, Any], kind: str) -> Iterator[Part]:
    """The items of a server. Without a list of them the provider runs whatever the server has: a part of no name."""
    names: Any = tool.get("allowed_tools")
    if kind == "mcp_toolset":  # everything by default, and `allowed_tools` is no key of it
        default, configs = tool.get("default_config"), tool.get("configs")
        is_closed = isinstance(default, Mapping) and default.get("enabled") is False and isinstance(configs, Mapping)
        rows = configs.items() if is_closed and isinstance(configs, Mapping) else ()
        names = [key for key, row in rows if not isinstance(row, Mapping) or row.get("enabled", False) is not False]
    labels = [_text(tool[key]) for key in _LABELS if tool.get(key) is not None]
    address = next((_text(tool[key]) or "?" for key in _ADDRESSES if tool.get(key) is not None), "")
    for label in labels or [""]:
        for name in names if isinstance(names, list) and names else [""]:
            yield Part(name=_text(name), server=label, address=address)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _other(name: str, spelling: str) -> str:
    return spelling if spelling != name else ""


def _without_version(kind: str) -> str:
    """A type's name without the date at its end, if there is one: `bash` of `bash_20250124`."""
    parts = kind.split("_")
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    return "_".join(parts)


def _respelled(key: str) -> str:
    """`codeExecution` of `code_execution`, and the other way round: protocols of one provider know both."""
    if "_" in key:
        first, *rest = key.split("_")
        return first + "".join(part.capitalize() for part in rest)
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in key)
