"""Which wall closes which leak, from the data in `walls.toml`, for what one profile denies."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from extgate.applied.plan import Ground, Plan
from extgate.dialects.outline import SHELL


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One leak that the profile could have. by: the walls that stand against it; none: it is open. left: what is."""

    id: str
    text: str
    by: tuple[str, ...]
    left: str = ""
    is_denied: bool = True


def standings(ground: Ground, plan: Plan) -> list[Standing]:
    """Every leak that matters for what the profile denies. Denied and by nothing: it stays open."""
    return [_standing(row, ground, plan) for row in _rows() if _WHEN[row["when"]](ground)]


def _standing(row: Mapping[str, Any], ground: Ground, plan: Plan) -> Standing:
    runtime = ground.view.runtime
    walls = row.get("by", {}).get(runtime, [])
    return Standing(
        id=row["id"],
        text=row["text"],
        by=tuple(wall for wall in walls if wall in plan.walls),
        left=row.get("left", {}).get(runtime, ""),
        is_denied="by" in row,
    )


@cache
def _rows() -> tuple[Mapping[str, Any], ...]:
    data = tomllib.loads((files("extgate.applied") / "walls.toml").read_text(encoding="utf-8"))
    return tuple(data["leak"])


def _has_tools(ground: Ground) -> bool:
    return bool(ground.tools("deny")) or ground.outline.tools.unknown == "deny"


def _has_servers(ground: Ground) -> bool:
    mcp = ground.outline.mcp
    return mcp.unknown == "deny" or any(clause.effect == "deny" for clause in mcp.clauses) or _items(ground)


def _items(ground: Ground) -> bool:
    items = (ext for ext in ground.view.inventory.extensions if ext.server)
    return any(ground.decider.decide(ext).effect == "deny" for ext in items)


def _has_skills(ground: Ground) -> bool:
    return bool(ground.skills("deny")) or ground.outline.skills.unknown == "deny"


def _has_any(ground: Ground) -> bool:
    return _has_tools(ground) or _has_servers(ground) or _has_skills(ground)


_WHEN: Mapping[str, Callable[[Ground], bool]] = {
    "tools": _has_tools,
    "mcp": _has_servers,
    "servers": lambda ground: any(map(ground.is_denied, (*ground.direct, *ground.behind))),
    "skills": _has_skills,
    "any": _has_any,
    "shell": lambda ground: _has_any(ground) and bool(SHELL & {*ground.tools("allow"), *ground.tools("ask")}),
}
