"""An Anthropic request without what the agent may not know of: every place where a tool, skill or agent can stand.

First everything that is offered is read, then the gate is asked once, then the hidden entries are taken out.
Source: the types of the official SDK, anthropic 2.14.0, and Claude Code 2.1.332's requests (2026-11-30).
"""

from __future__ import annotations

from functools import partial

from extgate.enforce.wire import anthropic_entries as entries
from extgate.enforce.wire import spans
from extgate.enforce.wire.anthropic_blocks import Blocks
from extgate.enforce.wire.anthropic_servers import Servers
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings import DESCRIBED, entries_of
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.spans import Fields, Span
from extgate.enforce.wire.turn import Turn

_KNOWN = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "metadata", "stop_sequences", "stream"}
    | {"temperature", "top_k", "top_p", "thinking", "service_tier", "container", "mcp_servers", "context_management"}
    | {"output_config", "output_format", "betas", "cache_control", "inference_geo", "speed", "fallbacks", "thread"}
    | {"billing_policy", "compaction", "diagnostics", "fallback_credit_token", "user_profile_id", "workspace_id"}
)
"""The top-level keys in which no tool stands, and those that are read here."""
_TOOL = frozenset(
    {"name", "type", "description", "input_schema", "cache_control", "defer_loading", "strict", "input_examples"}
    | {"allowed_callers", "eager_input_streaming", "max_uses", "allowed_domains", "blocked_domains", "user_location"}
    | {"display_height_px", "display_width_px", "display_number", "enable_zoom", "max_characters", "citations"}
    | {"max_content_tokens", "url_sources", "use_cache", "response_inclusion", "model", "caching", "max_tokens"}
    | {"configs"}
)


def request(data: bytes, turn: Turn, options: Options) -> bytes:
    """The body as it goes to the provider; the very same bytes when nothing is taken out. Raises UnclearError."""
    top = spans.fields(data, spans.checked(data), "the request")
    reading = Reading(data, turn, options)
    blocks = Blocks(reading)
    reading.check_keys(top, _KNOWN, "the request")
    servers = Servers(reading, top)
    tools = _tools(reading, top, servers)
    _container(reading, top)
    _context(reading, top)
    blocks.read(top)
    reading.judge()
    servers.narrow()
    if tools.rows and tools.is_empty:
        reading.drop_keys(top, ("tool_choice",))
        blocks.retell()
    else:
        _choice(reading, top)
    return reading.edits.applied()


def _tools(reading: Reading, top: Fields, servers: Servers) -> Group:
    rows = entries.listed(reading.data, top, "tools")
    group = reading.group(rows, partial(reading.drop_keys, top, ("tools",)))
    memory, setting = reading.turn.judge.memory, reading.options.unknown
    for at, row in enumerate(rows):
        raw = reading.data[row.start : row.end]
        known = memory.rows.get((setting, raw))
        if known is None:
            known = _tool(reading, servers, group, at, row)
            if known is None:
                continue
            if known[0].name not in DESCRIBED:
                memory.keep(setting, raw, known)
        group.add(at, known[0], names=known[1])
    return group


def _tool(
    reading: Reading, servers: Servers, group: Group, at: int, row: Span
) -> tuple[Entry, list[tuple[str, str]]] | None:
    """What one entry is; None for a server's toolset, which is narrowed here."""
    found = spans.fields(reading.data, row, f"tool {at}")
    if entries.type_of(reading.data, found) == "mcp_toolset":
        narrowed = servers.narrowed(row, found)
        if narrowed is None:
            group.hidden.add(at)
        elif narrowed != reading.data[slice(*row)]:
            reading.edits.put(row, narrowed)
        return None
    reading.check_keys(found, _TOOL, f"tool {at}")
    entry, names = entries.tool_entry(reading.data, found)
    if entry.name in DESCRIBED and "description" in found:
        _described(reading, found, DESCRIBED[entry.name])
    return entry, names


def _described(reading: Reading, found: Fields, kinds: tuple[str, ...]) -> None:
    """A tool that starts skills or agents may list them in its description."""
    text = spans.text_of(reading.data, found, "description") or ""
    if "- " in text or "<name>" in text:
        schema = entries.inner(reading.data, found, "input_schema")
        own = entries.inner(reading.data, schema, "properties")
        reading.add_text(found["description"].span, text, entries_of(text, kinds, own))


def _container(reading: Reading, top: Fields) -> None:
    """Skills that the provider loads into the container where code runs."""
    if "container" not in top or not spans.is_object(reading.data, top["container"].span):
        return
    found = spans.fields(reading.data, top["container"].span, "`container`")
    reading.check_keys(found, {"id", "skills"}, "`container`")
    rows = entries.listed(reading.data, found, "skills")
    group = reading.group(rows, partial(reading.drop_keys, found, ("skills",)))
    for at, row in enumerate(rows):
        group.add(at, entries.skill_entry(reading.data, spans.fields(reading.data, row, "a skill")))


def _context(reading: Reading, top: Fields) -> None:
    """Edits of the context name tools whose uses they keep or clear."""
    management = entries.inner(reading.data, top, "context_management")
    for row in entries.listed(reading.data, management, "edits"):
        found = spans.fields(reading.data, row, "an edit of the context")
        for key in ("exclude_tools", "clear_tool_inputs"):
            if key in found and spans.is_array(reading.data, found[key].span):
                names = entries.listed(reading.data, found, key)
                group = reading.group(names)
                for at, name in enumerate(names):
                    group.add(at, Entry(spans.text(reading.data, name, f"an entry of `{key}`")))


def _choice(reading: Reading, top: Fields) -> None:
    """A choice of a tool that is gone becomes a free one."""
    choice = entries.inner(reading.data, top, "tool_choice")
    name = spans.text_of(reading.data, choice, "name")
    if name is not None and name not in reading.turn.names() and "type" in choice:
        reading.edits.put(choice["type"].span, b'"auto"')
        reading.drop_keys(choice, ("name",))
