"""EG046: a skill whose header asks for tools that its agent may not use."""

from __future__ import annotations

import re
from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Extension, Finding
from extgate.core.names import show

CODES = ("EG046",)

_ARGUMENTS = re.compile(r"\(.*\)\s*$", re.DOTALL)


def check(context: Context) -> Iterator[Finding]:
    """One finding for each visible skill with a tool in `allowed-tools` that is installed and denied.

    A tool that is not installed is another runtime's word, and says nothing.
    """
    for decision in context.visible:
        skill = decision.extension
        beyond = list(_beyond(context, skill)) if skill.kind == "skill" else []
        if beyond:
            names = ", ".join(f"`{show(name)}`" for name in beyond)
            message = f"skill '{show(skill.name)}' asks for {names} in `allowed-tools`, which this agent may not use"
            fix = "allow it, or hide the skill from this agent"
            yield Finding(code="EG046", message=message, file=skill.file or context.policy.file, fix=fix)


def _beyond(context: Context, skill: Extension) -> Iterator[str]:
    for text in skill.facts.get("allowed_tools") or ():
        name = _ARGUMENTS.sub("", str(text)).strip()
        found = [e for e in context.decider.named(name) if e.kind in ("tool", "mcp_tool")] if name else []
        if found and all(context.decider.decide(ext).effect == "deny" for ext in found):
            yield name
