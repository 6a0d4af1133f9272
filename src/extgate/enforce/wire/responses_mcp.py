"""MCP servers that the provider calls by itself (`mcp` tools), reduced to what is allowed unasked.

Nobody is asked before such a call, so an item that needs an approval is left out. What a server lists is not known to
the request: where it is open to everything, it is closed to the items that are installed and allowed.
"""

from __future__ import annotations

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.judge import Entry, Judge
from extgate.enforce.wire.reading import Group, Reading
from extgate.enforce.wire.spans import Fields, Span, UnclearError

_SERVER = frozenset(
    {"type", "server_label", "server_url", "connector_id", "tunnel_id", "allowed_tools", "require_approval"}
    | {"authorization", "headers", "server_description", "defer_loading", "allowed_callers", "cache_control"}
)
_FILTER = frozenset({"read_only", "tool_names"})
_ADDRESSES = ("server_url", "connector_id", "tunnel_id")


def space(label: str) -> str:
    """The namespace in which a server's items are offered, for the approvals that the provider asks for."""
    return f"mcp:{label}"


class Servers:
    """Those of one request."""

    def __init__(self, reading: Reading) -> None:
        self._reading, self._data = reading, reading.data
        self._judge: Judge = reading.turn.judge
        self._addresses: dict[str, str] = {}
        self.kept: set[str] = set()

    def add(self, found: Fields, at: int, group: Group) -> None:
        """Narrows one server's entry, or takes it out."""
        self._reading.check_keys(found, _SERVER, f"tool {at}")
        label = parts.word(self._data, found, "server_label")
        if not label or label in self._addresses:
            raise UnclearError("an `mcp` tool has no `server_label` of its own")
        self._addresses[label] = self._address(found)
        if self._judge.allows_everything:
            self.kept.add(label)
            return
        said, is_filter = self._said(found)
        allowed = self._allowed(label, said)
        if allowed is None:
            group.hidden.add(at)
            return
        self.kept.add(label)
        for name in allowed:
            self._reading.turn.offer(self._entry(label, name), name, space(label))
        if said != allowed:
            self._close(found, allowed, is_filter=is_filter)

    def entry(self, label: str, name: str) -> Entry:
        """An item of a server, by its label."""
        return self._entry(label, name)

    def _entry(self, label: str, name: str) -> Entry:
        return Entry(name, ("mcp_tool",), server=label, address=self._addresses.get(label, ""))

    def _address(self, found: Fields) -> str:
        said = [parts.word(self._data, found, key) for key in _ADDRESSES if parts.has(self._data, found, key)]
        if len(said) > 1:
            raise UnclearError("an `mcp` tool says in two ways where its server is")
        return said[0] if said else ""

    def _said(self, found: Fields) -> tuple[list[str] | None, bool]:
        """The names that the entry itself is limited to, if any; whether they stand in a filter."""
        if not parts.has(self._data, found, "allowed_tools"):
            return None, False
        if spans.is_array(self._data, found["allowed_tools"].span):
            return parts.texts(self._data, found, "allowed_tools"), False
        limits = parts.inner(self._data, found, "allowed_tools")
        self._reading.check_keys(limits, _FILTER, "`allowed_tools`")
        return parts.texts(self._data, limits, "tool_names"), True

    def _allowed(self, label: str, said: list[str] | None) -> list[str] | None:
        items = self._judge.gate.inventory.of_kind("mcp_tool")
        wanted = [ext.name for ext in items if ext.server == label] if said is None else list(dict.fromkeys(said))
        asked = [self._entry(label, name) for name in wanted]
        seen = self._judge.see(asked)
        return [e.name for e, is_seen in zip(asked, seen, strict=True) if is_seen and self._is_unasked(e)] or None

    def _is_unasked(self, entry: Entry) -> bool:
        decisions = [self._judge.gate.decide(ext) for ext in self._judge.owners(entry)]
        return all(decision.callable and decision.approval == "auto" for decision in decisions)

    def _close(self, found: Fields, allowed: list[str], *, is_filter: bool) -> None:
        edits = self._reading.edits
        if is_filter:
            limits = spans.value(self._data, found["allowed_tools"].span)
            edits.put(found["allowed_tools"].span, spans.encode({**limits, "tool_names": allowed}))
        elif "allowed_tools" in found:
            edits.put(found["allowed_tools"].span, spans.encode(allowed))
        else:
            last = list(found.values())[-1].end
            edits.put(Span(last, last), b',"allowed_tools":' + spans.encode(allowed))
