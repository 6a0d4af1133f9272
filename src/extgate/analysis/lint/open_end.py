"""EG018: a deny list over everything, which the next new tool will pass."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Extension, Finding
from extgate.core.names import show

CODES = ("EG018",)

_NEW = "zz_new_tool_of_tomorrow"


def check(context: Context) -> Iterator[Finding]:
    """One finding when tools are denied by name and a tool that nobody named would be let through."""
    denies = [s for s in context.spots if s.is_deny and s.list.startswith("tools.") and s.entry.text.strip("*?")]
    if not denies:
        return
    tomorrow = Extension(kind="tool", name=_NEW, source="builtin")
    if context.decider.decide(tomorrow).effect == "deny":
        return
    positive = next((s for s in context.spots if s.list.startswith("tools.") and not s.is_deny), None)
    over = f" over `{show(positive.entry.text)}`" if positive else ""
    message = f"{denies[0].list}: a list of {len(denies)} denies{over}; the next new tool will be let through"
    fix = "list what the agent needs in `allowed`, if that is meant"
    yield context.warn("EG018", message, at=denies[0].entry, fix=fix, severity="info")
