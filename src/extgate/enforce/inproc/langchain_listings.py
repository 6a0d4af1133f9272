"""Which names the listings in an agent's prompts must not show, and the prompts without them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from pathlib import PurePosixPath
from typing import Any

from langchain_core.tools import BaseTool

from extgate.core.extension import Extension
from extgate.enforce.inproc.langchain_identity import UNKNOWN, is_of_framework, marks_of
from extgate.enforce.inproc.langchain_prompts import reduced
from extgate.enforce.inproc.langchain_subagents import SPAWNING, Spawns
from extgate.enforce.inproc.langchain_view import Memory, View

_TEXTS = 256
"""Most texts that are remembered with what is left of them."""


class Listings:
    """One agent's."""

    def __init__(self, view: View, spawns: Spawns) -> None:
        self._view, self._spawns = view, spawns
        self._described: tuple[object, Sequence[Any], list[str], list[Any]] = (None, (), [], [])

    def reduce(self, text: str) -> str:
        """One block of a prompt without listings of what is hidden."""
        memory = self._view.memory()
        left = memory.texts.get(text)
        if left is None:
            if len(memory.texts) >= _TEXTS:
                memory.texts.clear()
            left = memory.texts[text] = reduced(text, self._hidden(memory))
        return left

    def described(self, tools: Sequence[Any]) -> list[Any]:
        """Visible tools, in order; of one that spawns agents, a copy that lists the visible ones only."""
        memory = self._view.memory()
        now = marks_of(tools)
        stamp, known, marks, found = self._described
        is_known = stamp is memory.texts and marks == now and all(map(is_, known, tools))
        if not is_known:
            found = [self._describe(tool) for tool in tools]
            self._described = (memory.texts, tuple(tools), now, found)
        return list(found)

    def _describe(self, tool: Any) -> Any:
        if getattr(tool, "name", None) not in SPAWNING or not isinstance(tool, BaseTool) or not is_of_framework(tool):
            return tool
        text = self.reduce(tool.description)
        return tool if text == tool.description else tool.model_copy(update={"description": text})

    def see_skills(self, state: Any) -> None:
        """Takes in what deepagents' skills middleware has found: a skill nobody installed is judged like any other."""
        found = state.get("skills_metadata") if isinstance(state, dict) else None
        if not isinstance(found, list) or (memory := self._view.memory()).skills is found:
            return
        memory.skills = found
        owners = self._view.gate.owners
        for row in found:
            name, folder = str(row.get("name") or ""), PurePosixPath(str(row.get("path") or "")).parent
            if owners(name, ("skill",)) or owners(folder.name, ("skill",)):
                continue
            facts = {"folder": folder.parent.name}
            ext = Extension(kind="skill", name=folder.name or name, declared_name=name, source=UNKNOWN, facts=facts)
            if not self._view.is_visible(ext):
                memory.hide(name)

    def _hidden(self, memory: Memory) -> frozenset[str]:
        """Names of tools, skills and sub-agents that no listing may show."""
        if memory.hidden is None:
            names: dict[bool, set[str]] = {True: {""}, False: memory.late | self._spawns.closed}
            installed = self._view.gate.inventory.of_kind("tool", "skill", "subagent")
            for ext in (*installed, *self._spawns.extensions()):
                names[self._view.is_visible(ext)] |= {ext.name, ext.leaf, ext.declared_name or ""}
            memory.hidden = frozenset(names[False] - names[True])
        return memory.hidden
