"""EG025, EG026, EG032: what misleads in the patterns dialect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from extgate.analysis.lint.context import Context, Spot
from extgate.core.explain import CATALOG_TOOLS
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.core.patterns import matches

CODES = ("EG025", "EG026", "EG032")


def check(context: Context) -> Iterator[Finding]:
    """Blocks that admit nothing, a catalog without its tools, skills met by their declared name."""
    if context.policy.dialect != "patterns":
        return
    for spot in context.spots:
        if spot.list == "skills.patterns" and not spot.is_deny:
            yield from _declared(context, spot)
    for rule in context.policy.rules:
        if rule.unless and not rule.entries and rule.text.endswith(".patterns") and "subagent" not in rule.kinds:
            severity: Literal["warning", "info"] = "warning" if rule.line else "info"
            message = f"{rule.text}: no positive pattern, so nothing is available"
            yield context.warn("EG025", message, at=rule, fix="add one", severity=severity)
    catalog = context.policy.facts.get("catalog", ())
    needed = {"tool": ("fetch_tools", "get_tool", "run_tool"), "skill": ("fetch_skills", "get_skill")}
    visible = {d.extension.name for d in context.visible if d.extension.name in CATALOG_TOOLS}
    for kind in needed:
        lacking = [name for name in needed[kind] if name not in visible]
        if kind in catalog and lacking:
            names = ", ".join(f"`{name}`" for name in lacking)
            message = f"use_catalog: {names} has no positive pattern, so the catalog is out of reach"
            yield context.warn("EG026", message, fix=f"add `impl:deepagents:{lacking[0]}`")


def _declared(context: Context, spot: Spot) -> Iterator[Finding]:
    for ext in context.hits(spot):
        if not matches(ext.leaf, spot.entry.tests[-1].pattern):
            message = f"{spot.list}: `{show(spot.entry.text)}` matches `{show(ext.name)}` by its declared name only"
            yield context.warn("EG032", message, at=spot.entry, fix=f"write the folder's name, `{show(ext.leaf)}`")
