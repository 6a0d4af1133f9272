"""Which extensions a tool of LangChain is: known from where it was registered, never parsed from its name.

A registered object is exactly what it was registered as; a tool made by the framework's own code is the runtime's; any
other is looked up by name, and all owners count. One that nobody owns is of unknown origin and must pass every block
that it could belong to (law 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from extgate.core.extension import Extension
from extgate.core.names import is_runtime_source, wire_names
from extgate.enforce.gate import Gate

RUNTIME = "deepagents"
"""The source of what LangChain and deepagents bring by themselves; dialect B's module for both."""
STRUCTURED = "response_format"
"""The source of a schema that asks for structured output; nothing runs when it is called."""
UNKNOWN = "unknown"
_FRAMEWORKS = ("deepagents", "langchain")
_KEPT = 50_000
"""Most tools whose extensions are remembered."""

Tool = BaseTool | Mapping[str, Any] | object
Owners = tuple[Extension, ...]


class Registry:
    """Tool objects by what they are; those who make or load a tool say so here."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[BaseTool, Extension]] = {}

    def add(self, tool: BaseTool, ext: Extension) -> BaseTool:
        """Notes what a tool is, and returns it."""
        self._known[id(tool)] = (tool, ext)
        return tool

    def native(self, tools: Iterable[BaseTool], source: str) -> tuple[BaseTool, ...]:
        """Notes that the host itself offers these. source: whose they are, a plugin's name or the application's."""
        return tuple(
            self.add(tool, Extension(kind="tool", name=tool.name, source=source, description=tool.description))
            for tool in tools
        )

    def of(self, tool: object) -> Extension | None:
        """What exactly this object was registered as."""
        known = self._known.get(id(tool))
        return known[1] if known and known[0] is tool and known[0].name == name_of(tool) else None


class Identities:
    """What each tool is, for one gate. Answers are remembered until the inventory changes."""

    def __init__(self, gate: Gate, registry: Registry) -> None:
        self._gate, self._registry = gate, registry
        self._inventory = gate.inventory
        self._kept: dict[int, tuple[object, Owners]] = {}

    def of(self, tool: Tool) -> Owners:
        """Every extension that the tool could be, never none; it passes when all of them do."""
        if self._inventory is not self._gate.inventory or len(self._kept) >= _KEPT:
            self._inventory, self._kept = self._gate.inventory, {}
        kept = self._kept.get(id(tool))
        if kept is None or kept[0] is not tool or isinstance(tool, Mapping):
            kept = self._kept[id(tool)] = (tool, self._find(tool))
        return kept[1]

    def _find(self, tool: Tool) -> Owners:
        if isinstance(tool, Mapping):
            return tuple(ext for part in _parts(tool) for ext in self._declared(*part))
        registered, name = self._registry.of(tool), name_of(tool)
        if registered is not None:
            return (registered,)
        installed = self._gate.owners(name, ("tool", "mcp_tool"))
        own = tuple(ext for ext in installed if ext.kind == "tool" and is_runtime_source(ext))
        if is_of_framework(tool):
            return own or (Extension(kind="tool", name=name, source=RUNTIME),)
        if isinstance(tool, StructuredTool) and tool.func is None and tool.coroutine is None:
            return installed or (Extension(kind="tool", name=name, source=STRUCTURED),)
        if any(ext.source == RUNTIME for ext in own):  # it has the runtime's name, and is not the runtime's
            return (*installed, *self.unknown(name))
        return installed or self.unknown(name)

    def _declared(self, name: str, kind: str, server: str | None) -> Owners:
        """What a tool is that a provider runs, from what its definition says. kind: the provider's type."""
        if server is not None:
            return (Extension(kind="mcp_tool", name=name, server=server),)
        return self._gate.owners(name, ("tool", "mcp_tool")) or self.unknown(name, kind)

    def unknown(self, name: str, alias: str = "") -> Owners:
        """All that a tool of unknown origin could be: native, or an item of each server that its name points to."""
        facts = {"aliases": (alias,)} if alias else {}
        found = [
            Extension(kind="tool", name=name, source=UNKNOWN, facts=facts),
            Extension(kind="mcp_tool", name=name, server=UNKNOWN),
        ]
        for server in self._gate.inventory.servers:
            starts = {start for start in wire_names(server.name, "") if name.startswith(start) and start != name}
            found += [Extension(kind="mcp_tool", name=name[len(start) :], server=server.name) for start in starts]
        return tuple(found)


def name_of(tool: object) -> str:
    """A tool's name, or that of the first thing it declares; empty when it has none."""
    if isinstance(tool, Mapping):
        return next(_parts(tool))[0]
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else ""


def is_of_framework(tool: object) -> bool:
    """Whether the code that runs was written in LangChain or deepagents; what a decorator copies does not count."""
    code = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    module = getattr(code, "__globals__", {}).get("__name__") if code else type(tool).__module__
    return isinstance(module, str) and module.partition(".")[0] in _FRAMEWORKS


def _parts(tool: Mapping[str, Any]) -> Iterator[tuple[str, str, str | None]]:
    """(name, provider's type, server) of everything that a definition for a provider declares; never none."""
    kind = tool.get("type") if isinstance(tool.get("type"), str) else ""
    function = tool.get("function")
    nested = tool.get("tools") or tool.get("function_declarations") or tool.get("functionDeclarations")
    server = tool.get("server_label") or tool.get("mcp_server_name")
    if server or kind in ("mcp", "mcp_toolset"):
        names = tool.get("allowed_tools")
        # Without a list of names the provider would run whatever the server has: nothing of no name passes.
        for name in names if isinstance(names, list) and names else [""]:
            yield str(name), "", str(server or "")
    elif isinstance(nested, list) and nested:
        for part in nested:
            yield from _parts(part if isinstance(part, Mapping) else {})
    elif isinstance(function, Mapping):
        yield str(function.get("name") or ""), "", None
    else:
        only = next((key for key, value in tool.items() if isinstance(value, Mapping)), "")  # {"google_search": {}}
        only = only if len(tool) == 1 else ""
        plain = kind in ("", "function", "custom")
        yield str(tool.get("name") or ("" if plain else kind) or only), "" if plain else str(kind), None
