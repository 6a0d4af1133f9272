"""MCP servers that Anthropic calls by itself (`mcp_servers` and `mcp_toolset`), reduced to what is allowed unasked.

Nobody is asked before such a call, so an item that needs an approval is left out. What a server lists is not known to
the request: where it is open to everything, it is closed to the items that are installed and allowed.
"""

from __future__ import annotations

from typing import Any

from extgate.enforce.wire import anthropic_entries as entries
from extgate.enforce.wire import spans
from extgate.enforce.wire.judge import Judge
from extgate.enforce.wire.reading import Reading
from extgate.enforce.wire.spans import Field, Fields, Span, UnclearError

_SERVER = frozenset({"name", "type", "url", "authorization_token", "tool_configuration"})
_TOOLSET = frozenset({"type", "mcp_server_name", "default_config", "configs", "tools", "cache_control"})


class Servers:
    """Those of one request. `narrow` comes after the gate was asked about everything else."""

    def __init__(self, reading: Reading, top: Fields) -> None:
        self._reading, self._top = reading, top
        self._judge: Judge = reading.turn.judge
        self._rows = entries.listed(reading.data, top, "mcp_servers")
        self._servers = [spans.fields(reading.data, row, "an entry of `mcp_servers`") for row in self._rows]
        self._addresses: dict[str, str] = {}
        for found in self._servers:
            reading.check_keys(found, _SERVER, "an entry of `mcp_servers`")
            name = spans.text_of(reading.data, found, "name")
            if not name or name in self._addresses:
                raise UnclearError("an entry of `mcp_servers` has no name of its own")
            self._addresses[name] = spans.text_of(reading.data, found, "url") or ""
        self._used: set[str] = set()
        self._kept: set[str] = set()

    def narrowed(self, row: Span, found: Fields) -> bytes | None:
        """A toolset's entry with the allowed items only; None without any; the same bytes when it is all allowed."""
        data = self._reading.data
        self._reading.check_keys(found, _TOOLSET, "an `mcp_toolset`")
        server = spans.text_of(data, found, "mcp_server_name")
        if not server:
            raise UnclearError("an `mcp_toolset` has no `mcp_server_name`")
        self._used.add(server)
        if self._judge.allows_everything:
            self._kept.add(server)
            return data[row.start : row.end]
        made = self._toolset(data, found, server)
        if made:
            self._kept.add(server)
            return spans.encode(spans.value(data, row) | made)
        return None

    def _toolset(self, data: bytes, found: Fields, server: str) -> dict[str, Any]:
        is_open = entries.enabled(data, entries.inner(data, found, "default_config"))
        configs = spans.value(data, found["configs"].span) if "configs" in found else None
        configs = configs if isinstance(configs, dict) else {}
        if not all(isinstance(config, dict) for config in configs.values()):
            raise UnclearError("`configs` of an `mcp_toolset` holds something else than objects")
        names = [*self._installed(server), *(name for name in configs if not is_open)]
        wanted = [name for name in dict.fromkeys(names) if configs.get(name, {}).get("enabled", is_open) is not False]
        allowed = self._allowed(server, wanted)
        default = spans.value(data, found["default_config"].span) if "default_config" in found else None
        made = {name: {**configs.get(name, {}), "enabled": True} for name in allowed}
        return {"default_config": {**(default or {}), "enabled": False}, "configs": made} if made else {}

    def narrow(self) -> None:
        """Takes out the servers that nothing is left of, and narrows those that no toolset speaks of."""
        dropped = {at for at, found in enumerate(self._servers) if not self._stays(found)}
        if dropped and len(dropped) == len(self._rows):
            self._reading.drop_keys(self._top, ("mcp_servers",))
        else:
            self._reading.edits.drop(self._rows, dropped)

    def _stays(self, found: Fields) -> bool:
        data = self._reading.data
        name = spans.text_of(data, found, "name") or ""
        if self._judge.allows_everything or name in self._used:
            return self._judge.allows_everything or name in self._kept
        config = entries.inner(data, found, "tool_configuration")
        if not entries.enabled(data, config):
            return True
        said = entries.texts(data, config, "allowed_tools")
        allowed = self._allowed(name, self._installed(name) if said is None else said)
        if allowed and allowed != said:
            self._close(found, config, allowed)
        return bool(allowed)

    def _close(self, found: Fields, config: Fields, allowed: list[str]) -> None:
        data, edits = self._reading.data, self._reading.edits
        if "allowed_tools" in config:
            edits.put(config["allowed_tools"].span, spans.encode(allowed))
        elif "tool_configuration" in found:
            kept = spans.value(data, found["tool_configuration"].span) or {}
            edits.put(found["tool_configuration"].span, spans.encode({**kept, "allowed_tools": allowed}))
        else:
            last: Field = list(found.values())[-1]
            new = b',"tool_configuration":' + spans.encode({"allowed_tools": allowed})
            edits.put(Span(last.end, last.end), new)

    def _installed(self, server: str) -> list[str]:
        items = self._judge.gate.inventory.of_kind("mcp_tool")
        return [ext.name for ext in items if ext.server == server]

    def _allowed(self, server: str, names: list[str]) -> list[str]:
        asked = entries.items_of(names, server, self._addresses.get(server, ""))
        return [entry.name for entry, seen in zip(asked, self._judge.see(asked), strict=True) if seen]
