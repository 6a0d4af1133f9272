"""A host's own tools, made known to the gate: what nothing installed has the name of is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from extgate.core.extension import Extension, Inventory


def with_tools(inventory: Inventory, names: Iterable[str], *, source: str = "native") -> Inventory:
    """The inventory with tools of these names added. source: `native` for the runtime's own, else a plugin's name."""
    added = (Extension(kind="tool", name=name, source=source) for name in dict.fromkeys(names))
    return replace(inventory, extensions=(*inventory.extensions, *added))
