"""What one agent may see of a request: which tools stay in it, and which names its prompts must not list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from langchain_core.tools import BaseTool

from extgate.core.extension import Extension
from extgate.enforce.above import gates_above
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.langchain_identity import UNKNOWN, Identities, is_of_framework, name_of
from extgate.enforce.inproc.langchain_prompts import reduced
from extgate.enforce.inproc.langchain_subagents import SPAWNING, Spawns

_LISTS = 16
"""Most lists of tools whose visible part is remembered."""
_TEXTS = 256
_LATE = 10_000

Tools = list[Any]


@dataclass(slots=True)
class _Memory:
    """What was found under one state of the gates. stamp: the objects that make that state."""

    stamp: tuple[object, ...]
    kept: dict[tuple[int, ...], tuple[Sequence[Any], Tools]] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)
    hidden: frozenset[str] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    skills: object = None


class View:
    """One agent's. Lists of the same objects are judged once, until a policy or an inventory changes."""

    def __init__(self, gate: Gate, identities: Identities, spawns: Spawns) -> None:
        self._gate, self._identities, self._spawns = gate, identities, spawns
        self.offered: dict[str, Any] = {}
        """The tools of the last request as it came, hidden ones included, by name."""
        self.added: dict[str, Any] = {}
        """Visible tools that somebody added to a request afterwards, by name."""
        self._memory = _Memory(())

    def offer(self, tools: Sequence[Any]) -> Tools:
        """The visible tools of a request; all of them become those that a catalog can reach."""
        if tuple(map(id, tools)) not in self._fresh().kept or not self.offered:
            self.offered = {name_of(tool): tool for tool in tools}
        return self.keep(tools)

    def keep(self, tools: Sequence[Any]) -> Tools:
        """The tools that the model may see, in order."""
        memory, key = self._fresh(), tuple(map(id, tools))
        found = memory.kept.get(key)
        if found is not None and not any(isinstance(tool, Mapping) for tool in tools):
            return list(found[1])
        kept = self._visible(tools, memory)
        if len(memory.kept) >= _LISTS:
            memory.kept.clear()
        if kept:  # nothing is visible while the record cannot be written, which may pass
            memory.kept[key] = (tuple(tools), kept)
        return list(kept)

    def _visible(self, tools: Sequence[Any], memory: _Memory) -> Tools:
        rows = [self._identities.of(tool) for tool in tools]
        caps = gates_above()
        shown = {
            id(ext)
            for ext in self._gate.see(ext for owners in rows for ext in owners)
            if all(cap.is_visible(ext) for cap in caps)
        }
        kept: Tools = []
        for tool, owners in zip(tools, rows, strict=True):
            is_visible = all(id(ext) in shown for ext in owners)
            if is_visible and self._gate.decide(owners[0]).delivery == "request":
                kept.append(tool)
                if (name := name_of(tool)) not in self.offered and len(self.added) < _LATE:
                    self.added[name] = tool
            elif not is_visible and len(memory.late) < _LATE:
                memory.late.add(name_of(tool))
        memory.hidden, memory.texts = None, {}
        return kept

    def _fresh(self) -> _Memory:
        """What is remembered; nothing, when anything changed that an answer depends on."""
        stamp: tuple[object, ...] = ()
        for gate in (self._gate, *gates_above()):
            stamp += (gate.profile, gate.inventory)
        memory = self._memory
        if len(stamp) != len(memory.stamp) or any(a is not b for a, b in zip(stamp, memory.stamp, strict=True)):
            memory = self._memory = _Memory(stamp)
        return memory

    # ------------------------------------------------------------------------------------------ prompts

    def reduce(self, text: str) -> str:
        """One block of a prompt without listings of what is hidden."""
        memory = self._fresh()
        left = memory.texts.get(text)
        if left is None:
            if len(memory.texts) >= _TEXTS:
                memory.texts.clear()
            left = memory.texts[text] = reduced(text, self._hidden(memory))
        return left

    def _hidden(self, memory: _Memory) -> frozenset[str]:
        """Names of tools, skills and sub-agents that no listing may show."""
        if memory.hidden is None:
            names: dict[bool, set[str]] = {True: {""}, False: memory.late | self._spawns.closed}
            for ext in (*self._gate.inventory.of_kind("tool", "skill", "subagent"), *self._spawns.extensions()):
                names[self.is_visible(ext)] |= {ext.name, ext.leaf, ext.declared_name or ""}
            memory.hidden = frozenset(names[False] - names[True])
        return memory.hidden

    def see_skills(self, state: Any) -> None:
        """Takes in what deepagents' skills middleware has found: a skill nobody installed is judged like any other."""
        found = state.get("skills_metadata") if isinstance(state, Mapping) else None
        memory = self._fresh()
        if not isinstance(found, list) or memory.skills is found:
            return
        memory.skills = found
        for row in found:
            name, folder = str(row.get("name") or ""), PurePosixPath(str(row.get("path") or "")).parent
            if self._gate.owners(name, ("skill",)) or self._gate.owners(folder.name, ("skill",)):
                continue
            facts = {"folder": folder.parent.name}
            ext = Extension(kind="skill", name=folder.name or name, declared_name=name, source=UNKNOWN, facts=facts)
            if not self.is_visible(ext):
                memory.late.add(name)
        memory.hidden, memory.texts = None, {}

    def owners(self, name: str) -> tuple[Extension, ...]:
        """The installed tools of this name."""
        return self._gate.owners(name, ("tool", "mcp_tool"))

    def is_visible(self, ext: Extension) -> bool:
        """Whether this agent, and those above it, may know of an item."""
        return self._gate.is_visible(ext) and all(cap.is_visible(ext) for cap in gates_above())

    def describe(self, tool: Any) -> Any:
        """A visible tool; of one that spawns agents, a copy that lists the visible ones only."""
        if not (isinstance(tool, BaseTool) and tool.name in SPAWNING and is_of_framework(tool)):
            return tool
        text = self.reduce(tool.description)
        return tool if text == tool.description else tool.model_copy(update={"description": text})
