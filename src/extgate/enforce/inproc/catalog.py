"""The catalog: tools that list, show and run others, and skills likewise; each judged by its target.

Arguments and answers as msAgent's at 9eb360f has them (seen 2026-11-30). What it does besides is left out: it falls
back to previews and to skills on disk when nothing passes, and another agent's set replaces the first's. Here an empty
catalog is empty, and belongs to one agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from extgate.core.extension import Extension
from extgate.enforce import above
from extgate.enforce.bounded_regex import BadPatternError, Regex
from extgate.enforce.gate import Gate
from extgate.enforce.inproc.skill_cache import CachedSkill, SkillCache

RUN_TOOL = "run_tool"


class CatalogError(Exception):
    """An answer of the catalog that is an error, for the model to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One tool that the catalog could show. parameters: its JSON schema; owners: all that it could be."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    owners: tuple[Extension, ...]


class Catalog:
    """One agent's. tools: all that its runtime offers now, hidden ones included, by name."""

    def __init__(self, gate: Gate, tools: Callable[[], Mapping[str, Offered]], skills: SkillCache) -> None:
        self._gate, self._tools, self._skills = gate, tools, skills

    # ------------------------------------------------------------------------------------------ tools

    def fetch_tools(self, pattern: str = ".*") -> str:
        """Names of the visible tools whose name or description the pattern is found in, one a line."""
        regex = _regex(pattern)
        return "\n".join(t.name for t in self._visible() if regex.search(f"{t.name}\n{t.description}"))

    def get_tool(self, tool_name: str) -> str:
        """One visible tool's definition, as JSON."""
        tool = self._tools().get(tool_name)
        if tool is None or len(above.see(self._gate, tool.owners, action="show")) < len(tool.owners):
            return self.missing(f"Tool '{tool_name}' not found")
        shown = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return json.dumps(shown, ensure_ascii=False)

    def missing(self, error: str) -> str:
        """The answer about a tool that the agent does not have, with those that it has."""
        return json.dumps({"error": error, "available_tools": [t.name for t in self._visible()]}, ensure_ascii=False)

    def _visible(self) -> Iterable[Offered]:
        tools = sorted(self._tools().values(), key=lambda tool: tool.name)
        return [tool for tool in tools if len(above.visible(self._gate, tool.owners)) == len(tool.owners)]

    # ------------------------------------------------------------------------------------------ skills

    def fetch_skills(self, pattern: str = ".*") -> str:
        """The visible skills whose name or description the pattern is found in, as JSON."""
        regex = _regex(pattern)
        rows = [
            {"display_name": s.display_name, "category": s.category, "name": s.name, "description": s.ext.description}
            for s in self._skills.skills()
            if regex.search(f"{s.display_name}\n{s.ext.description}")
        ]
        return json.dumps(rows, ensure_ascii=False)

    def get_skill(self, name: str, category: str | None = None) -> str:
        """A skill's whole text. Raises CatalogError, with the reason for a hidden one."""
        found = self._found(name, category)
        if not isinstance(found, CachedSkill):
            raise CatalogError(above.use(self._gate, found, action="expand").message or f"Skill '{name}' not found")
        return self._expanded(found, above.use(self._gate, found.ext, action="expand").message)

    async def aget_skill(self, name: str, category: str | None = None) -> str:
        """`get_skill` for an approver that may have to be awaited."""
        found = self._found(name, category)
        if not isinstance(found, CachedSkill):
            raise CatalogError(above.use(self._gate, found, action="expand").message or f"Skill '{name}' not found")
        return self._expanded(found, (await above.ause(self._gate, found.ext, action="expand")).message)

    def _expanded(self, skill: CachedSkill, refusal: str) -> str:
        if refusal or skill.error:
            raise CatalogError(refusal or f"Skill '{skill.name}' cannot be read: {skill.error}")
        return skill.text

    def _found(self, name: str, category: str | None) -> CachedSkill | Extension:
        """The one visible skill that is meant, else a hidden one. Raises CatalogError for none, and for several."""
        named = [skill for skill in self._skills.skills() if name in skill.names]
        found = [skill for skill in named if category in (None, skill.category)]
        if len(found) > 1:
            categories = ", ".join(sorted(skill.category for skill in found))
            raise CatalogError(f"Multiple skills named '{name}'. Specify category: {categories}")
        if found:
            return found[0]
        hidden = self._skills.hidden(name, category)
        if hidden:
            return hidden[0]
        where = f" in category '{category}'" if named and category is not None else ""
        raise CatalogError(f"Skill '{name}' not found{where}")


def _regex(pattern: str) -> Regex:
    try:
        return Regex(pattern)
    except BadPatternError as error:
        raise CatalogError(f"Invalid regex pattern: {error}") from None
