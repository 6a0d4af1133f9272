"""Which installed items a runtime's call could be: names are computed forward from the items, never taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from extgate.core.extension import Extension, Inventory
from extgate.core.names import cleaned, wire_names
from extgate.enforce.hooks.call import Call


class Owners:
    """Looks calls up. gateway: the registered name of extgate's own server, if any; names: what it calls an item."""

    def __init__(self, gateway: str = "", names: Mapping[Extension, str] | None = None) -> None:
        self.gateway, self._names = gateway, dict(names or {})
        self._known: tuple[Inventory | None, dict[str, tuple[Extension, ...]]] = (None, {})

    def of(self, inventory: Inventory, call: Call) -> tuple[Extension, ...]:
        """Every installed item that the call could be, by the name that the runtime gives it."""
        known = self._by_name(inventory).get(call.tool, ())
        if not call.server:
            return known
        if call.server == self.gateway:
            return tuple(ext for ext in known if ext in self._names)
        found = (ext for ext in inventory.of_kind("mcp_tool") if ext.server == call.server)
        return tuple(e for e in found if e.name == call.item or call.tool in wire_names(call.server, e.name))

    def is_relayed(self, inventory: Inventory, call: Call) -> bool:
        """Whether the gateway is called, which judges by itself. Without a server's name, no other must be meant."""
        if not self.gateway or call.server:
            return bool(self.gateway) and call.server == self.gateway
        served = (ext.server or "" for ext in inventory.of_kind("mcp_tool"))
        heads = {*served, *(server.name for server in inventory.servers)} - {self.gateway}
        alike = (head for head in heads if cleaned(head).startswith(cleaned(self.gateway)))
        return _is_below(call.tool, self.gateway) and not any(_is_below(call.tool, head) for head in alike)

    def _by_name(self, inventory: Inventory) -> dict[str, tuple[Extension, ...]]:
        if self._known[0] is not inventory:
            found: dict[str, dict[Extension, None]] = {}
            for ext, name in self._wires(inventory):
                found.setdefault(name, {})[ext] = None
            self._known = (inventory, {name: tuple(items) for name, items in found.items()})
        return self._known[1]

    def _wires(self, inventory: Inventory) -> Iterator[tuple[Extension, str]]:
        """Each callable item with each name that it could be called by."""
        for ext in inventory.of_kind("tool"):
            for name in (ext.name, *map(str, ext.facts.get("names", ()))):
                yield ext, name
        for ext in inventory.of_kind("mcp_tool"):
            for name in wire_names(ext.server or "", ext.name):
                yield ext, name
            if self.gateway and ext in self._names:
                for name in wire_names(self.gateway, self._names[ext]):
                    yield ext, name


def _is_below(tool: str, server: str) -> bool:
    """Whether the name could be one that a runtime gives to a tool of the server."""
    return any(tool.startswith(name[:-1]) and tool != name[:-1] for name in wire_names(server, "x"))
