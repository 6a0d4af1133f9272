"""EG019, EG029: a tool that runs commands is left in, and reaches around the other rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from extgate.analysis.lint.context import Context, is_shell
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG019", "EG029")


def check(context: Context) -> Iterator[Finding]:
    """A finding when tools are limited and a shell is not; a note where a shell could edit the gate's own files."""
    shells = [d for d in context.visible if is_shell(d.extension)]
    if not shells:
        return
    names = ", ".join(f"`{show(d.extension.name)}`" for d in shells[:5])
    rules = [rule for rule in context.policy.rules if rule.text.startswith("tools.")]
    rule = next((rule for rule in rules if rule.unless or rule.effect == "allow"), rules[0] if rules else None)
    if rule:
        message = f"{rule.text}: tools are limited, yet {names} can run commands and so do what the others may not"
        is_list = rule.unless or rule.effect == "allow"
        severity: Literal["warning", "info"] = "warning" if is_list else "info"
        yield context.warn("EG019", message, at=rule, fix="deny it, unless a shell is meant", severity=severity)
    message = f"{names} can write files, the gate's own included"
    fix = "keep profiles where the agent's user cannot write, or deny the tool"
    yield context.warn("EG029", message, fix=fix, severity="info")
