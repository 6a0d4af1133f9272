"""The skills that one agent may have, with their texts: made when the agent is built, and all that it can read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from extgate.core.extension import Extension
from extgate.enforce import above
from extgate.enforce.gate import Gate
from extgate.errors import ExtgateError

ReadSkill = Callable[[Extension], str]
"""The whole text of a skill's file. Raises an ExtgateError when it is not the one that was judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedSkill:
    """One visible skill. text: empty when it could not be read, for the reason in `error`."""

    ext: Extension
    text: str
    error: str = ""

    @property
    def name(self) -> str:
        """What its file calls it, else its folder's name."""
        return self.ext.declared_name or self.ext.leaf

    @property
    def category(self) -> str:
        """Its parent folder; `default` directly below the root. Source: msAgent at 9eb360f."""
        return str(self.ext.facts.get("folder") or "default")

    @property
    def display_name(self) -> str:
        """`name`, or `category/name` outside of the default category."""
        return self.name if self.category == "default" else f"{self.category}/{self.name}"

    @property
    def names(self) -> frozenset[str]:
        """All that it answers to."""
        return frozenset({self.name, self.ext.leaf, self.ext.name, self.display_name})


class SkillCache:
    """Reads the visible skills once, and again when the gate's policy or inventory changed."""

    def __init__(self, gate: Gate, read: ReadSkill) -> None:
        self._gate, self._read = gate, read
        self._made: tuple[object, object, tuple[CachedSkill, ...]] = (None, None, ())
        self.skills()

    def skills(self) -> tuple[CachedSkill, ...]:
        """The skills that are visible now to the agent and to those above it, in order."""
        profile, inventory, skills = self._made
        if profile is not self._gate.profile or inventory is not self._gate.inventory:
            profile, inventory = self._gate.profile, self._gate.inventory
            skills = tuple(self._cached(ext) for ext in inventory.of_kind("skill") if self._gate.is_visible(ext))
            self._made = (profile, inventory, skills)
        shown = set(map(id, above.visible(self._gate, (skill.ext for skill in skills))))
        return tuple(skill for skill in skills if id(skill.ext) in shown)

    def hidden(self, name: str, category: str | None) -> tuple[Extension, ...]:
        """Installed skills that answer to the name and are not visible."""
        found = [CachedSkill(ext=ext, text="") for ext in self._gate.inventory.of_kind("skill")]
        return tuple(s.ext for s in found if name in s.names and category in (None, s.category) and not self._sees(s))

    def _sees(self, skill: CachedSkill) -> bool:
        return above.is_visible(self._gate, skill.ext)

    def _cached(self, ext: Extension) -> CachedSkill:
        try:
            return CachedSkill(ext=ext, text=self._read(ext))
        except ExtgateError as error:
            return CachedSkill(ext=ext, text="", error=str(error))
