"""Which extensions a tool of LangChain is: known from where it was registered, never parsed from its name.

A registered object is exactly what it was registered as; a tool made by the framework's own code is the runtime's; any
other is looked up by name, and all owners count. One that nobody owns is of unknown origin and must pass every block
that it could belong to (law 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from extgate.core.extension import Extension
from extgate.core.names import is_runtime_source, wire_names
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_definitions import Part, parts_of

RUNTIME = "deepagents"
"""The source of what LangChain and deepagents bring by themselves; dialect B's module for both."""
STRUCTURED = "response_format"
"""The source of a schema that asks for structured output; nothing runs when it is called."""
UNKNOWN = "unknown"
_FRAMEWORKS = ("deepagents", "langchain")
_NAME, _EXTRAS = attrgetter("name"), attrgetter("extras")
_KEPT = 50_000
"""Most tools whose extensions are remembered."""

Tool = BaseTool | Mapping[str, Any] | object
Owners = tuple[Extension, ...]


class Registry:
    """Tool objects by what they are; who makes or loads a tool says so here. A copy with the same code is the same."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[BaseTool, str, Extension]] = {}
        self._by_code: dict[object, Extension | None] = {}

    def add(self, tool: BaseTool, ext: Extension) -> BaseTool:
        """Notes what a tool is, and returns it."""
        self._known[id(tool)] = (tool, mark_of(tool), ext)
        if code := code_of(tool):
            self._by_code[code] = ext if self._by_code.get(code, ext) == ext else None
        return tool

    def native(self, tools: Iterable[BaseTool], source: str) -> tuple[BaseTool, ...]:
        """Notes that the host itself offers these. source: whose they are, a plugin's name or the application's."""
        return tuple(
            self.add(tool, Extension(kind="tool", name=tool.name, source=source, description=tool.description))
            for tool in tools
        )

    def of(self, tool: object) -> Extension | None:
        """What exactly this object was registered as, or the one that it is a copy of; None once it was renamed."""
        known = self._known.get(id(tool))
        if known and known[0] is tool and known[1] == mark_of(tool):
            return known[2]
        code = code_of(tool)
        return self._by_code.get(code) if code else None


class Identities:
    """What each tool is, for one gate. Answers are remembered until the inventory changes."""

    def __init__(self, gate: Gate, registry: Registry) -> None:
        self._gate, self._registry = gate, registry
        self._inventory = gate.inventory
        self._kept: dict[int, tuple[object, str, Owners]] = {}
        self._defined: dict[Part, Owners] = {}

    def of(self, tool: Tool) -> Owners:
        """Every extension that the tool could be, never none; it passes when all of them do."""
        if self._inventory is not self._gate.inventory or len(self._kept) >= _KEPT:
            self._inventory, self._kept, self._defined = self._gate.inventory, {}, {}
        if isinstance(tool, Mapping):
            return self._defines(tool)
        kept, mark = self._kept.get(id(tool)), mark_of(tool)
        if kept is None or kept[0] is not tool or kept[1] != mark:
            found = [ext for name in _names(tool) for ext in self._find(tool, name)]
            found += self._defines(definition) if (definition := _brought(tool)) else ()
            kept = self._kept[id(tool)] = (tool, mark, tuple(found))
        return kept[2]

    def _find(self, tool: Tool, name: str) -> Owners:
        registered = self._registry.of(tool)
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

    def _defines(self, definition: Mapping[Any, Any]) -> Owners:
        """What a definition for a provider could be run as, all of it."""
        return tuple(ext for part in parts_of(definition) for ext in self._declared(part))

    def _declared(self, part: Part) -> Owners:
        found = self._defined.get(part)
        if found is None:
            found = self._named(part) if part.server is None else self._hosted(part, part.server)
            if len(self._defined) < _KEPT:
                self._defined[part] = found
        return found

    def _named(self, part: Part) -> Owners:
        """The installed tools of this name, known by the definition's alias too."""
        installed, alias = self._gate.owners(part.name, ("tool", "mcp_tool")), part.alias
        if not alias:
            return installed or self.unknown(part.name)
        also = tuple(replace(e, facts={**e.facts, "aliases": (*e.facts.get("aliases", ()), alias)}) for e in installed)
        return also or self.unknown(part.name, alias)

    def _hosted(self, part: Part, label: str) -> Owners:
        """An item of a server that the provider calls: the configured server's only at that one's own address."""
        server, item = self._gate.inventory.server(label), Extension(kind="mcp_tool", name=part.name, server=label)
        is_there = server is not None and part.address != "" and server.facts.get("url") == part.address
        return (item,) if is_there else (item, *self.unknown(part.name))

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
        return parts_of(tool)[0].name
    name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
    return name if isinstance(name, str) else ""


def mark_of(tool: object) -> str:
    """What an answer about an object depends on and somebody may change in it: its name, and a definition it brings."""
    definition = _brought(tool)
    return f"{name_of(tool)}\0{definition!r}" if definition else name_of(tool) if not isinstance(tool, Mapping) else ""


def marks_of(tools: Sequence[object]) -> list[str]:
    """`mark_of` of each; quick for tools that bring no definition, which is most."""
    try:
        if not any(map(_EXTRAS, tools)):
            return list(map(_NAME, tools))
    except AttributeError:  # a definition, a function, a schema's class, a tool of langchain-core 1.2
        pass
    return list(map(mark_of, tools))


def _brought(tool: object) -> Mapping[Any, Any] | None:
    """A provider's definition that is sent instead of the tool. Source: langchain-anthropic 1.7 (2026-11-30)."""
    extras = getattr(tool, "extras", None)
    if not extras:
        return None
    definition = extras.get("provider_tool_definition") if isinstance(extras, Mapping) else None
    return None if definition is None else definition if isinstance(definition, Mapping) else {}


def _names(tool: object) -> tuple[str, ...]:
    """The name of an object, and the title that a schema's class goes out under. Source: langchain-core 1.8."""
    config = getattr(tool, "model_config", None) if isinstance(tool, type) else None
    title = config.get("title") if isinstance(config, Mapping) else None
    own = getattr(tool, "__name__", "") if isinstance(tool, type) else ""
    return tuple(dict.fromkeys((name_of(tool), *filter(None, (own, title)))))


def code_of(tool: object) -> tuple[str, object, object] | None:
    """The name and the functions of a tool, which its copies share; None when it has no function."""
    if not isinstance(tool, StructuredTool) or (tool.func is None and tool.coroutine is None):
        return None
    return (mark_of(tool), tool.func, tool.coroutine)


def is_of_framework(tool: object) -> bool:
    """Whether the code that runs was written in LangChain or deepagents; what a decorator copies does not count."""
    code = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    module = getattr(code, "__globals__", {}).get("__name__") if code else type(tool).__module__
    return isinstance(module, str) and module.partition(".")[0] in _FRAMEWORKS
