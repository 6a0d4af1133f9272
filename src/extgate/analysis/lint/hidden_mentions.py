"""EG047: a prompt, or the description of a skill, that tells the model to use what it can't see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from extgate.analysis.lint.context import Context
from extgate.analysis.mentions import hidden_names, mentioned
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG047",)

_PROMPTS = ("system_prompt", "prompt", "instructions", "description")


def check(context: Context) -> Iterator[Finding]:
    """One finding for each text, with the hidden names that it holds."""
    names = hidden_names(context.decider)
    for key in _PROMPTS:
        text = context.policy.facts.get(key)
        if isinstance(text, str):
            yield from _finding(context, f"{key}", context.policy.file, text, names)
    for decision in context.visible:
        ext = decision.extension
        if ext.kind == "skill":
            yield from _finding(context, f"skill '{show(ext.name)}'", ext.file, ext.description, names)


def _finding(context: Context, what: str, file: str | None, text: str, names: Mapping[str, str]) -> Iterator[Finding]:
    found = [name for _, name, _ in mentioned(text, names)]
    if found:
        told = ", ".join(f"`{show(name)}`" for name in found[:5]) + (" and more" if len(found) > 5 else "")
        message = f"{what} speaks of {told}, which this agent may not use"
        yield Finding(
            code="EG047", message=message, file=file or context.policy.file, fix="allow it, or reword the text"
        )
