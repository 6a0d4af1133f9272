"""A Responses request without what the agent may not know of: every place where a tool or a listing can stand.

Source: the types of the official SDK, openai 3.57.0, and Codex 0.171.0's requests (2026-11-30).
"""

from __future__ import annotations

from functools import partial

from extgate.enforce.wire import parts, responses_stopped, spans
from extgate.enforce.wire.listings_tagged import read_text
from extgate.enforce.wire.openai_entries import hosted_entry
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.responses_mcp import Servers
from extgate.enforce.wire.responses_tools import Tools
from extgate.enforce.wire.spans import Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_KNOWN = frozenset(
    {"access_programs", "background", "background_options", "context_management", "conversation", "image", "include"}
    | {"input", "instructions", "items", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation"}
    | {"parallel_tool_calls", "personality", "previous_response_id", "prompt", "prompt_cache_key"}
    | {"prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store"}
    | {"stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"}
    | {"truncation", "user", "client_metadata"}
)
"""The top-level keys in which no tool stands, and those that are read here."""
_ITEM = frozenset(
    {"type", "id", "call_id", "role", "content", "status", "name", "namespace", "arguments", "input", "output"}
    | {"action", "actions", "operation", "caller", "summary", "encrypted_content", "queries", "results", "result"}
    | {"code", "outputs", "container_id", "server_label", "error", "approval_request_id", "approve", "reason"}
    | {"execution", "environment", "fingerprint", "phase", "acknowledged_safety_checks", "pending_safety_checks"}
    | {"max_output_length", "text", "reasoning", "created_by", "async", "refusal", "logprobs", "annotations"}
)
"""Keys of items in which no tool stands, or that are read here; a call's arguments may hold anything."""
_TOOLS_IN = frozenset({"additional_tools", "tool_search_output", "mcp_list_tools"})
_CHOICE = frozenset({"type", "name", "namespace", "server_label", "mode", "tools"})


def request(data: bytes, turn: Turn, options: Options) -> bytes:
    """The body as it goes to the provider; the very same bytes when nothing is taken out. Raises UnclearError."""
    top = spans.fields(data, spans.checked(data), "the request")
    reading = Reading(data, turn, options)
    reading.check_keys(top, _KNOWN, "the request")
    if parts.has(data, top, "prompt") and options.unknown == "refuse":
        raise UnclearError("`prompt` names a template that is stored at the provider, and may bring tools")
    servers = Servers(reading)
    tools = Tools(reading, servers)
    gone = ("tools", "tool_choice", "parallel_tool_calls")
    group = tools.read(parts.listed(data, top, "tools"), partial(reading.drop_keys, top, gone))
    for key in ("input", "items", "instructions"):
        if parts.has(data, top, key):
            _items(reading, top[key].span, tools, servers)
    reading.judge()
    if not group.is_empty:
        _choice(reading, top, servers)
    return responses_stopped.answered(reading.edits.applied(), turn)


# ---------------------------------------------------------------------------------------------- items


def _items(reading: Reading, span: Span, tools: Tools, servers: Servers) -> None:
    if spans.is_text(reading.data, span):
        read_text(reading, span)
        return
    rows = spans.rows(reading.data, span, "the items")
    for at, row in enumerate(rows):
        if spans.is_text(reading.data, row):
            read_text(reading, row)
        else:
            drop = partial(reading.edits.drop, rows, [at])
            reading.unless_quiet("responses", row, partial(_item, reading, row, drop, tools, servers))


def _item(reading: Reading, row: Span, drop: partial[None], tools: Tools, servers: Servers) -> bool:
    """Reads one item; whether it is one that brings tools."""
    data = reading.data
    found = spans.fields(data, row, "an item")
    kind = parts.word(data, found, "type")
    more = {"tools"} if kind in _TOOLS_IN else set()
    reading.check_keys(found, _ITEM | more, f"an item `{kind[:60]}`")
    if kind == "additional_tools":
        tools.read(parts.listed(data, found, "tools"), drop)
    elif kind == "tool_search_output":
        tools.read(parts.listed(data, found, "tools"), None)
    elif kind == "mcp_list_tools":
        _list(reading, found, servers)
    if parts.has(data, found, "content"):
        _content(reading, found["content"].span)
    return kind in _TOOLS_IN


def _list(reading: Reading, found: Fields, servers: Servers) -> None:
    """What a server that the provider calls has listed."""
    label = parts.word(reading.data, found, "server_label")
    rows = parts.listed(reading.data, found, "tools")
    group: Group = reading.group(rows)
    for at, row in enumerate(rows):
        name = parts.word(reading.data, spans.fields(reading.data, row, "a listed tool"), "name")
        if not name:
            raise UnclearError("a listed tool has no name")
        group.add(at, servers.entry(label, name))


def _content(reading: Reading, span: Span) -> None:
    if spans.is_text(reading.data, span):
        read_text(reading, span)
        return
    for row in spans.rows(reading.data, span, "a content"):
        found = spans.fields(reading.data, row, "a part of a content")
        if parts.has(reading.data, found, "text") and spans.is_text(reading.data, found["text"].span):
            read_text(reading, found["text"].span)
        reading.check_keys(found, _PART, "a part of a content")


_PART = frozenset(
    {"type", "text", "image_url", "file_id", "file_data", "file_url", "filename", "detail", "input_audio", "refusal"}
    | {"annotations", "logprobs", "cache_control", "prompt_cache_breakpoint"}
)


# ---------------------------------------------------------------------------------------------- choices


def _choice(reading: Reading, top: Fields, servers: Servers) -> None:
    """A choice of a tool that is gone becomes a free one, and one among tools that are gone becomes none."""
    data = reading.data
    if not parts.has(data, top, "tool_choice") or not spans.is_object(data, top["tool_choice"].span):
        return
    span = top["tool_choice"].span
    choice = spans.fields(data, span, "`tool_choice`")
    reading.check_keys(choice, _CHOICE, "`tool_choice`")
    if parts.word(data, choice, "type") == "allowed_tools":
        rows = parts.listed(data, choice, "tools")
        there = [at for at, row in enumerate(rows) if _is_there(reading, row, servers)]
        if there:
            reading.edits.drop(rows, set(range(len(rows))) - set(there))
        else:
            reading.edits.put(span, b'"none"')
    elif not _is_there(reading, span, servers):
        reading.edits.put(span, b'"auto"')


def _is_there(reading: Reading, row: Span, servers: Servers) -> bool:
    """Whether what a choice names was let through."""
    data, turn = reading.data, reading.turn
    found = spans.fields(data, row, "a choice of tools")
    kind, name = parts.word(data, found, "type"), parts.word(data, found, "name")
    namespace = parts.word(data, found, "namespace")
    if kind == "mcp":
        return parts.word(data, found, "server_label") in servers.kept
    if kind in ("function", "custom", ""):
        return turn.offered(name, namespace) is not None
    return turn.offered(hosted_entry(kind, reading.options, "`tool_choice`").name) is not None
