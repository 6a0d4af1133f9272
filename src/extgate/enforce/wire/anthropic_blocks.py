"""The messages of an Anthropic request: what their blocks offer, load or list, and history that must stay valid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from extgate.enforce.wire import anthropic_entries as entries
from extgate.enforce.wire import spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings_tagged import read_text
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.spans import Fields, Span, UnclearError

_ANY = frozenset({"type", "cache_control", "id"})
_CALL = _ANY | {"name", "input", "caller", "toolset_name"}
_RESULT = _ANY | {"tool_use_id", "content", "is_error", "caller"}
_MEDIA = _ANY | {"source", "title", "context", "citations", "content"}
_KNOWN: dict[str, frozenset[str]] = {
    "text": _ANY | {"text", "citations"}, "image": _MEDIA, "document": _MEDIA, "search_result": _MEDIA,
    "thinking": _ANY | {"thinking", "signature"}, "redacted_thinking": _ANY | {"data"},
    "tool_use": _CALL, "server_tool_use": _CALL, "mcp_tool_use": _CALL | {"server_name"},
    "tool_addition": _ANY | {"tool"}, "tool_removal": _ANY | {"tool"},
    "mcp_tool_listing": _ANY | {"mcp_server_name", "tools"}, "container_upload": _ANY | {"file_id"},
    "compaction": _ANY | {"content", "encrypted_content", "signature", "tool_changes"},
    "tool_reference": _ANY | {"tool_name"},
}  # fmt: skip
"""The keys of a block by its type. In other keys, and in types that are not here, a tool could hide where a word says
so."""
_KNOWN |= {
    f"{tool}tool_result": _RESULT
    for tool in ("", "web_search_", "web_fetch_", "code_execution_", "bash_code_execution_", "mcp_", "advisor_")
}
_KNOWN |= {"text_editor_code_execution_tool_result": _RESULT, "tool_search_tool_result": _RESULT}
_NEW_RESULT = _RESULT - {"content"}
_MESSAGE = frozenset({"role", "content", "clear_at", "output_config", "id", "type"})


class Blocks:
    """Reads all messages into a reading's groups."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._data = reading, reading.data
        self.uses: list[tuple[Span, Fields]] = []
        """Calls and results of the client's tools, as they stand."""

    def read(self, top: Fields) -> None:
        """Every message, and the system prompt. Raises UnclearError."""
        if "system" in top:
            self._content(top["system"].span)
        rows = entries.listed(self._data, top, "messages")
        for at, row in enumerate(rows):
            self._reading.unless_quiet("anthropic", row, partial(self._message, rows, at))

    def _message(self, rows: Sequence[Span], at: int) -> bool:
        """Reads one message; whether it holds history that may have to be told otherwise."""
        known = len(self.uses)
        found = spans.fields(self._data, rows[at], f"message {at}")
        self._reading.check_keys(found, _MESSAGE, f"message {at}")
        spans.text_of(self._data, found, "role")
        if "content" in found and not spans.is_null(self._data, found["content"].span):
            self._content(found["content"].span, empty=partial(self._reading.edits.drop, rows, [at]))
        return len(self.uses) > known

    def _content(self, span: Span, empty: Callable[[], None] | None = None) -> None:
        if spans.is_text(self._data, span):
            self._text(span)
            return
        rows = spans.rows(self._data, span, "a content")
        group = self._reading.group(rows, empty)
        for at, row in enumerate(rows):
            found = spans.fields(self._data, row, "a block")
            kind = spans.text_of(self._data, found, "type") or ""
            self._reading.check_keys(found, _known(kind), f"a block `{kind[:60]}`")
            self._block(kind, found, row, group, at)

    def _block(self, kind: str, found: Fields, row: Span, group: Group, at: int) -> None:
        if kind == "text":
            if "text" in found:
                self._text(found["text"].span)
        elif kind in ("tool_use", "tool_result"):
            self.uses.append((row, found))
            if kind == "tool_result":
                self._result(found)
        elif kind == "tool_search_tool_result":
            content = entries.inner(self._data, found, "content")
            self._references(entries.listed(self._data, content, "tool_references"))
        elif kind in ("tool_addition", "tool_removal"):
            self._change(found, group, at, is_new=kind == "tool_addition")
        elif kind == "compaction":
            self._changes(entries.listed(self._data, found, "tool_changes"))

    # ------------------------------------------------------------------------------------------ tools in messages

    def _result(self, found: Fields) -> None:
        """A result may load deferred tools; when none of them may be loaded it says so instead. Claude Code puts its
        listings into results as well."""
        content = found.get("content")
        if content is None or spans.is_null(self._data, content.span):
            return
        if spans.is_text(self._data, content.span):
            self._text(content.span)
            return
        rows = spans.rows(self._data, content.span, "a tool's result")
        said = spans.encode([{"type": "text", "text": "The tools that were found are disabled for this agent."}])
        self._references(rows, instead=partial(self._reading.edits.put, content.span, said))

    def _references(self, rows: Sequence[Span], instead: Callable[[], None] | None = None) -> None:
        group: Group | None = None
        for at, row in enumerate(rows):
            found = spans.fields(self._data, row, "a block of a result")
            kind = spans.text_of(self._data, found, "type") or ""
            self._reading.check_keys(found, _known(kind), "a block of a result")
            if kind == "text" and "text" in found:
                self._text(found["text"].span)
            if kind != "tool_reference":
                continue
            name = spans.text_of(self._data, found, "tool_name")
            if name is None:
                raise UnclearError("a `tool_reference` has no `tool_name`")
            group = group or self._reading.group(rows, instead)
            group.add(at, Entry(name))

    def _changes(self, rows: Sequence[Span]) -> None:
        group = self._reading.group(rows)
        for at, row in enumerate(rows):
            found = spans.fields(self._data, row, "a tool change")
            self._change(found, group, at, is_new=spans.text_of(self._data, found, "type") == "tool_addition")

    def _change(self, found: Fields, group: Group, at: int, *, is_new: bool) -> None:
        """What a change of the tools in the middle of a conversation is about."""
        tool = entries.inner(self._data, found, "tool")
        kind = spans.text_of(self._data, tool, "type")
        name, server = (spans.text_of(self._data, tool, key) for key in ("name", "server_name"))
        if kind == "tool_definition":
            entry, names = self._defined(entries.inner(self._data, tool, "definition"))
            group.add(at, entry, names=names if is_new else ())
        elif kind == "tool_reference" and name:
            group.add(at, Entry(name))
        elif kind == "mcp_tool_reference" and name and server:
            group.add(at, *entries.items_of([name], server, ""))
        elif not (kind == "mcp_toolset_reference" and server):  # that one stands in `tools`, where it is narrowed
            raise UnclearError(f"a change of tools is of a type that is not known: `{str(kind)[:60]}`")

    def _defined(self, definition: Fields) -> tuple[Entry, list[tuple[str, str]]]:
        if entries.type_of(self._data, definition) == "mcp_toolset":
            raise UnclearError("an `mcp_toolset` is defined in a message, where it cannot be narrowed")
        return entries.tool_entry(self._data, definition)

    # ------------------------------------------------------------------------------------------ history

    def retell(self) -> None:
        """Turns calls and results into text: without any tool the provider takes none."""
        for row, found in self.uses:
            name = spans.text_of(self._data, found, "name")
            if name is not None:
                self._reading.edits.put(row, _told(f"(`{name}` was called.)"))
            else:
                self._reading.edits.put(row, self._result_as_text(found))

    def _result_as_text(self, found: Fields) -> bytes:
        """A result's own blocks in its place; references to tools are gone with the tools."""
        content = found.get("content")
        if content is None or spans.is_null(self._data, content.span):
            return _told("(It returned nothing.)")
        if spans.is_text(self._data, content.span):
            said = self._data[slice(*content.span)]
            return b'{"type":"text","text":' + said + b"}" if said != b'""' else _told("(It returned nothing.)")
        kept = []
        for row in spans.rows(self._data, content.span, "a tool's result"):
            kind = spans.text_of(self._data, spans.fields(self._data, row, "a block of a result"), "type")
            kept += [self._data[slice(*row)]] if kind != "tool_reference" else []
        return b",".join(kept) or _told("(It returned nothing.)")

    # ------------------------------------------------------------------------------------------ texts

    def _text(self, span: Span) -> None:
        read_text(self._reading, span)


def _known(kind: str) -> frozenset[str]:
    return _KNOWN.get(kind) or (_NEW_RESULT if kind.endswith("_tool_result") else _ANY)


def _told(text: str) -> bytes:
    return spans.encode({"type": "text", "text": text})
