"""Which names the listings in an agent's prompts must not show, and the prompts without them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from langchain_core.tools import BaseTool

from extgate.core.extension import Extension
from extgate.enforce.inproc.langchain_identity import UNKNOWN, is_of_framework, name_of
from extgate.enforce.inproc.langchain_prompts import reduced
from extgate.enforce.inproc.langchain_subagents import SPAWNING, Spawns
from extgate.enforce.inproc.langchain_view import Memory, View

_TEXTS = 256
"""Most texts that are remembered with what is left of them."""


class Listings:
    """One agent's."""

    def __init__(self, view: View, spawns: Spawns) -> None:
        self._view, self._spawns = view, spawns
        self._copies: dict[str, tuple[Any, object, Any]] = {}
        self._by_name: dict[tuple[str, bool], list[Extension]] = {}
        self._long: list[str] = []
        """Descriptions of hidden items that are more than a line, longest first."""
        view.describe = self.describe

    def reduce(self, text: str) -> str:
        """One block of a prompt without listings of what is hidden."""
        memory = self._view.memory()
        left = memory.texts.get(text)
        if left is None:
            if len(memory.texts) >= _TEXTS:
                memory.texts.clear()
            hidden = self._hidden(memory)
            left = text
            for description in self._long:
                left = left.replace(description, "")
            left = memory.texts[text] = reduced(left, hidden, self._is_meant)
        return left

    def described(self, tools: Sequence[Any], marks: Sequence[str]) -> list[Any]:
        """Visible tools, in order; of one that spawns agents, a copy that lists the visible ones only."""
        described = list(tools)
        for at in [at for at, mark in enumerate(marks) if mark in SPAWNING]:
            described[at] = self._describe(described[at])
        return described

    def describe(self, tool: Any) -> Any:
        """The tool; of one that spawns agents, a copy that lists the visible ones only."""
        return self._describe(tool) if name_of(tool) in SPAWNING else tool

    def _describe(self, tool: Any) -> Any:
        texts = self._view.memory().texts
        first, state, made = self._copies.get(tool.name, (None, None, None))
        if first is not tool or state is not texts:
            made = self._copy(tool) if isinstance(tool, BaseTool) and is_of_framework(tool) else tool
            self._copies[tool.name] = (tool, self._view.memory().texts, made)
        return made

    def _copy(self, tool: BaseTool) -> BaseTool:
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
        """Names of tools, skills and sub-agents that no listing may show, or not where it means the hidden one."""
        if memory.hidden is None:
            by_name: dict[tuple[str, bool], list[Extension]] = {}
            texts: dict[bool, set[str]] = {True: set(), False: set()}
            installed = self._view.gate.inventory.of_kind("tool", "skill", "subagent")
            for ext in (*installed, *self._spawns.extensions()):
                is_visible = self._view.is_visible(ext)
                texts[is_visible].add(ext.description.strip())
                for name in {ext.name, ext.leaf, ext.declared_name or ext.name}:
                    by_name.setdefault((name, is_visible), []).append(ext)
            self._by_name = by_name
            self._long = sorted((text for text in texts[False] - texts[True] if "\n" in text), key=len, reverse=True)
            hidden = {name for name, is_visible in by_name if not is_visible}
            late = {name for name in memory.late | self._spawns.closed if (name, True) not in by_name}
            memory.hidden = frozenset((hidden | late) - {""})
        return memory.hidden

    def _is_meant(self, name: str, entry: str) -> bool:
        """Whether an entry is about the hidden one of those with the name; in doubt it is.

        The path of a skill's file tells them apart, else the description.
        """
        visible, hidden = self._by_name.get((name, True)), self._by_name.get((name, False), [])
        if not visible:
            return True
        if paths := [ext for ext in (*visible, *hidden) if ext.kind == "skill" and f"/{ext.name}/SKILL.md" in entry]:
            longest = max(paths, key=lambda ext: len(ext.name))
            return longest in hidden
        text = " ".join(entry.split())
        said = [{" ".join(ext.description.split()) for ext in found} - {""} for found in (visible, hidden)]
        return any(part in text for part in said[1]) or not any(part in text for part in said[0])
