"""A Gemini request without what the agent may not know of.

Source: the types of the official SDK, google-genai 3.6.1, and Gemini CLI 0.61.0's requests (2026-11-30).
"""

from __future__ import annotations

from functools import partial

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.gemini_keys import keys, some
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings_schema import describe
from extgate.enforce.wire.listings_tagged import read_text
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.spans import Fields, Span, UnclearError
from extgate.enforce.wire.turn import Turn

_KNOWN = frozenset(
    {"contents", "system_instruction", "tools", "tool_config", "generation_config", "safety_settings", "labels"}
    | {"cached_content", "model", "generate_content_request", "service_tier", "store", "model_armor_config"}
)
_HOSTED = frozenset(
    {"google_search", "google_search_retrieval", "enterprise_web_search", "url_context", "code_execution"}
    | {"file_search", "computer_use", "google_maps", "retrieval", "parallel_ai_search", "exa_ai_search"}
)
"""The provider's own tools, each a key of an entry of `tools`."""
_FAMILY = {"google_search_retrieval": "google_search", "enterprise_web_search": "google_search"}
_COMPUTER = (
    "open_web_browser", "wait_5_seconds", "go_back", "go_forward", "search", "navigate", "click_at", "hover_at",
    "type_text_at", "key_combination", "scroll_document", "scroll_at", "drag_and_drop",
)  # fmt: skip
"""What calls are named that come of `computer_use`."""
_FUNCTION = frozenset(
    {"name", "description", "parameters", "parameters_json_schema", "response", "response_json_schema", "behavior"}
)
_CONTENT = frozenset({"parts", "role"})
_PART = frozenset(
    {"text", "thought", "thought_signature", "inline_data", "file_data", "function_call", "function_response"}
    | {"executable_code", "code_execution_result", "video_metadata", "media_resolution", "tool_call", "tool_response"}
    | {"part_metadata", "audio_transcription", "media_processing", "speech_metadata", "document_metadata"}
    | {"spreadsheet_metadata", "audio_metadata"}
)


def request(data: bytes, turn: Turn, options: Options) -> bytes:
    """The body as it goes to the provider; the very same bytes when nothing is taken out. Raises UnclearError."""
    span = spans.checked(data)
    reading = Reading(data, turn, options)
    top = _top(reading, span, "the request")
    inner: Fields = {}
    if parts.has(data, top, "generate_content_request"):  # of a count
        inner = _top(reading, top["generate_content_request"].span, "`generateContentRequest`")
    groups = [(found, _read(reading, found)) for found in (top, inner)]
    reading.judge()
    for found, group in groups:
        if not group.is_empty:
            _choice(reading, found)
    return reading.edits.applied()


def _top(reading: Reading, span: Span, where: str) -> Fields:
    found = keys(reading.data, span, _KNOWN, where)
    reading.check_keys(found, _KNOWN, where)
    if parts.has(reading.data, found, "cached_content") and reading.options.unknown == "refuse":
        raise UnclearError("`cachedContent` names what is stored at the provider, and may bring tools")
    return found


def _read(reading: Reading, found: Fields) -> Group:
    for key in ("contents", "system_instruction"):
        for row in some(reading.data, found, key):
            reading.unless_quiet("gemini", row, partial(_content, reading, row))
    return _tools(reading, found)


# ---------------------------------------------------------------------------------------------- what is offered


def _tools(reading: Reading, found: Fields) -> Group:
    rows = some(reading.data, found, "tools")
    tools: list[Group] = []
    for at, row in enumerate(rows):
        _tool(reading, row, partial(_hide, tools, at))
    group = reading.group(rows, partial(reading.drop_keys, found, ("tools", "tool_config")))
    tools.append(group)  # behind those inside it, which may take its rows out
    return group


def _hide(groups: list[Group], row: int) -> None:
    groups[0].hidden.add(row)


def _tool(reading: Reading, row: Span, empty: partial[None]) -> None:
    data, known = reading.data, _HOSTED | {"function_declarations", "mcp_servers"}
    found = keys(data, row, known, "a tool")
    fields, tool = list(found.values()), list[Group]()
    if "function_declarations" in found:
        _functions(reading, some(data, found, "function_declarations"),
                   partial(_hide, tool, list(found).index("function_declarations")))  # fmt: skip
    group = reading.group(fields, empty)
    tool.append(group)
    for at, key in enumerate(found):
        if key in _HOSTED:
            name = _FAMILY.get(key, key)
            called = _COMPUTER if key == "computer_use" else ()
            entry = Entry(name, alias=key if name != key else _camel(key))
            group.add(at, entry, names=[("", one) for one in called])
        elif key == "mcp_servers" and not reading.turn.judge.allows_everything:
            group.hidden.add(at)  # what they offer is not known here, and cannot be limited
        elif key not in known and reading.options.unknown == "refuse":
            raise UnclearError(f"a tool has the key `{key[:60]}`, which is not known and could hold tools")
        elif key not in known:
            group.add(at, Entry(key))


def _camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _functions(reading: Reading, rows: list[Span], empty: partial[None]) -> None:
    group = reading.group(rows, empty)
    for at, row in enumerate(rows):
        found = keys(reading.data, row, _FUNCTION, f"function {at}")
        reading.check_keys(found, _FUNCTION, f"function {at}")
        name = parts.word(reading.data, found, "name")
        if not name:
            raise UnclearError(f"function {at} has no name")
        group.add(at, Entry(name), names=[("", name)])
        describe(reading, found, name)


# ---------------------------------------------------------------------------------------------- contents


def _content(reading: Reading, span: Span) -> bool:
    if spans.is_text(reading.data, span):
        read_text(reading, span)
        return False
    found = keys(reading.data, span, _CONTENT | {"text"}, "a content")
    reading.check_keys(found, _CONTENT | {"text"}, "a content")
    for row in some(reading.data, found, "parts"):
        if spans.is_text(reading.data, row):
            read_text(reading, row)
            continue
        part = keys(reading.data, row, _PART, "a part")
        reading.check_keys(part, _PART, "a part")
        if parts.has(reading.data, part, "text"):
            read_text(reading, part["text"].span)
    return False


# ---------------------------------------------------------------------------------------------- choices


def _choice(reading: Reading, found: Fields) -> None:
    """A choice among functions keeps those that are left; without any it allows none."""
    data = reading.data
    if not parts.has(data, found, "tool_config"):
        return
    known = {"function_calling_config", "retrieval_config", "include_server_side_tool_invocations"}
    config = keys(data, found["tool_config"].span, known, "`toolConfig`")
    reading.check_keys(config, known, "`toolConfig`")
    if not parts.has(data, config, "function_calling_config"):
        return
    span = config["function_calling_config"].span
    calling = keys(data, span, {"mode", "allowed_function_names"}, "`functionCallingConfig`")
    rows = some(data, calling, "allowed_function_names")
    names = reading.turn.names()
    gone = [at for at, row in enumerate(rows) if spans.text(data, row, "an allowed function") not in names]
    if gone and len(gone) == len(rows):
        reading.edits.put(span, b'{"mode":"NONE"}')
    else:
        reading.edits.drop(rows, gone)
