"""A Chat Completions request without what the agent may not know of.

Source: the types of the official SDK, openai 3.57.0, and the requests of opencode 1.18.33 and hermes-agent 0.19.0
(2026-11-30).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings_schema import describe
from extgate.enforce.wire.listings_tagged import read_text
from extgate.enforce.wire.openai_entries import HOSTED, hosted_entry
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.spans import Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_KNOWN = frozenset(
    {"messages", "model", "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"}
    | {"max_completion_tokens", "max_tokens", "metadata", "modalities", "moderation", "n", "parallel_tool_calls"}
    | {"prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"}
    | {"reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream"}
    | {"stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity"}
    | {"web_search_options"}
)
"""The top-level keys in which no tool stands, and those that are read here."""
_FUNCTION = frozenset({"name", "description", "parameters", "strict", "cache_control"})
_CUSTOM = frozenset({"name", "description", "format", "cache_control"})
_MESSAGE = frozenset(
    {"role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio", "annotations"}
    | {"reasoning_content", "reasoning", "reasoning_details", "prefix", "partial", "cache_control"}
)
_PART = frozenset({"type", "text", "image_url", "input_audio", "file", "refusal", "cache_control", "video_url"})


def request(data: bytes, turn: Turn, options: Options) -> bytes:
    """The body as it goes to the provider; the very same bytes when nothing is taken out. Raises UnclearError."""
    top = spans.fields(data, spans.checked(data), "the request")
    reading = Reading(data, turn, options)
    reading.check_keys(top, _KNOWN, "the request")
    tools, functions = _tools(reading, top), _functions(reading, top)
    _searches(reading, top)
    _messages(reading, top)
    reading.judge()
    if not tools.is_empty:
        _choice(reading, top)
    if not functions.is_empty:
        _old_choice(reading, top)
    return reading.edits.applied()


# ---------------------------------------------------------------------------------------------- what is offered


def _tools(reading: Reading, top: Fields) -> Group:
    rows = parts.listed(reading.data, top, "tools")
    gone = ("tools", "tool_choice", "parallel_tool_calls")
    group = reading.group(rows, partial(reading.drop_keys, top, gone))
    for at, row in enumerate(rows):
        _tool(reading, group, at, row)
    return group


def _tool(reading: Reading, group: Group, at: int, row: Span) -> None:
    data, where = reading.data, f"tool {at}"
    found = spans.fields(data, row, where)
    kind = parts.word(data, found, "type") or ("function" if "function" in found else "")
    if kind not in ("function", "custom"):
        entry = hosted_entry(kind, reading.options, where)
        reading.check_keys(found, HOSTED, where)
        group.add(at, entry, names=[("", entry.name)])
        return
    reading.check_keys(found, {"type", kind, "cache_control"}, where)
    inner = parts.inner(data, found, kind)
    name = parts.word(data, inner, "name")
    twice = {"function", "custom"} <= found.keys() or parts.word(data, found, "name") not in ("", name)
    if not name or twice:
        raise UnclearError(f"{where} has no name, or two")
    reading.check_keys(inner, _FUNCTION if kind == "function" else _CUSTOM, where)
    group.add(at, Entry(name), names=[("", name)])
    describe(reading, inner, name)


def _functions(reading: Reading, top: Fields) -> Group:
    """The older form of tools."""
    rows = parts.listed(reading.data, top, "functions")
    group = reading.group(rows, partial(reading.drop_keys, top, ("functions", "function_call")))
    for at, row in enumerate(rows):
        found = spans.fields(reading.data, row, f"function {at}")
        reading.check_keys(found, _FUNCTION, f"function {at}")
        name = parts.word(reading.data, found, "name")
        if not name:
            raise UnclearError(f"function {at} has no name")
        group.add(at, Entry(name), names=[("", name)])
        describe(reading, found, name)
    return group


def _searches(reading: Reading, top: Fields) -> None:
    """Keys that make the provider search the web: `web_search_options`, and those that other providers have."""
    group = reading.group(list(top.values()))
    for at, key in enumerate(top):
        if "search" in key.lower() and parts.has(reading.data, top, key):
            group.add(at, hosted_entry("web_search", reading.options, f"`{key[:60]}`"))


# ---------------------------------------------------------------------------------------------- messages


def _messages(reading: Reading, top: Fields) -> None:
    for at, row in enumerate(parts.listed(reading.data, top, "messages")):
        reading.unless_quiet("chat", row, partial(_message, reading, row, f"message {at}"))


def _message(reading: Reading, row: Span, where: str) -> bool:
    found = spans.fields(reading.data, row, where)
    reading.check_keys(found, _MESSAGE, where)
    if parts.has(reading.data, found, "content"):
        span = found["content"].span
        if spans.is_text(reading.data, span):
            read_text(reading, span)
        else:
            _content(reading, span)
    return False


def _content(reading: Reading, span: Span) -> None:
    for row in spans.rows(reading.data, span, "a content"):
        if spans.is_text(reading.data, row):
            read_text(reading, row)
            continue
        found = spans.fields(reading.data, row, "a part of a content")
        reading.check_keys(found, _PART, "a part of a content")
        if parts.has(reading.data, found, "text"):
            read_text(reading, found["text"].span)


# ---------------------------------------------------------------------------------------------- choices


def _choice(reading: Reading, top: Fields) -> None:
    """A choice of a tool that is gone becomes a free one, and one among tools that are gone becomes none."""
    data = reading.data
    if not parts.has(data, top, "tool_choice") or not spans.is_object(data, top["tool_choice"].span):
        return
    span = top["tool_choice"].span
    choice = spans.fields(data, span, "`tool_choice`")
    kind = parts.word(data, choice, "type")
    reading.check_keys(choice, {"type", "function", "custom", "allowed_tools"}, "`tool_choice`")
    if kind == "allowed_tools":
        allowed = parts.inner(data, choice, "allowed_tools")
        rows = parts.listed(data, allowed, "tools")
        narrow(reading, rows, [_named(data, row) for row in rows], partial(reading.edits.put, span, b'"none"'))
    elif _named(data, span) not in reading.turn.names():
        reading.edits.put(span, b'"auto"')


def narrow(reading: Reading, rows: list[Span], names: list[str], none: Callable[[], None]) -> None:
    """Takes the names that were not let through out of a list of those that may be chosen."""
    gone = [at for at, name in enumerate(names) if name not in reading.turn.names()]
    if len(gone) == len(rows):
        none()
    else:
        reading.edits.drop(rows, gone)


def _named(data: bytes, row: Span) -> str:
    found = spans.fields(data, row, "a choice of tools")
    kind = parts.word(data, found, "type") or "function"
    return parts.word(data, parts.inner(data, found, kind), "name") if kind in ("function", "custom") else kind


def _old_choice(reading: Reading, top: Fields) -> None:
    data = reading.data
    if parts.has(data, top, "function_call") and spans.is_object(data, top["function_call"].span):
        choice = spans.fields(data, top["function_call"].span, "`function_call`")
        if parts.word(data, choice, "name") not in reading.turn.names():
            reading.edits.put(top["function_call"].span, b'"auto"')
