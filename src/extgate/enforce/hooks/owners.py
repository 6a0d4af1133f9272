"""Which installed items a runtime's call could be: names are computed forward from the items, never taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from extgate.core.extension import Extension, Inventory
from extgate.core.names import MAX_WIRE, cleaned, starts_of, wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.hooks.call import Call

_WHOLE = MAX_WIRE - 1
"""A name that is as long may have been cut; Gemini CLI cuts one earlier than the others."""
_DIGESTED = re.compile(r"_[0-9a-f]{16}$")


class Owners:
    """Looks calls up. gateway: the registered name of extgate's own server, if any; names: what it calls an item.

    is_held: whether the gate holds calls of the gateway to what the runtime's own files deny of servers.
    """

    def __init__(
        self, gateway: str = "", names: Mapping[Extension, str] | None = None, *, is_held: bool = False
    ) -> None:
        self.gateway, self._names, self.is_held = gateway, dict(names or {}), is_held
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

    def may_be_denied(self, gate: Gate, call: Call) -> bool:
        """Whether the runtime's own files could deny a tool of the gateway's of which nothing is known yet."""
        if not self.is_held:
            return False
        found = self._behind(gate.inventory, call)
        return not found or any(gate.decide(ext).effect == "deny" for ext in found)

    def _behind(self, inventory: Inventory, call: Call) -> tuple[Extension, ...]:
        """What a tool of the gateway's of which nothing is known could be: to hold denies against, for no allow.

        None where that cannot be told: the name was cut, or ends as one does of which characters were replaced.
        """
        servers = tuple(server.name for server in inventory.servers if server.name != self.gateway)
        rests = dict.fromkeys(rest for _, rest in starts_of(call.tool, (self.gateway,)))
        if len(call.tool) >= _WHOLE or any(_DIGESTED.search(rest) for rest in rests):
            return ()
        found = dict.fromkeys(item for rest in rests for item in starts_of(rest, servers))
        return tuple(Extension(kind="mcp_tool", server=server, name=item) for server, item in found)

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
