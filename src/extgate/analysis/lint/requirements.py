"""EG020, EG021: a required server that the profile itself removes, or that is not there now."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG020", "EG021")


def check(context: Context) -> Iterator[Finding]:
    """One finding for each required pattern of this policy that is not met."""
    for missing in context.decider.availability.missing:
        needed = missing.requirement
        if needed not in context.policy.requirements:
            continue
        where = f"{needed.text}: `{show(missing.pattern)}`"
        if missing.state == "removed":
            message, fix = f"{where} contradicts the profile: {missing.detail}", "drop one of the two"
            finding = Finding(
                code="EG020", message=message, file=needed.file, line=needed.line, fix=fix, severity="error"
            )
        else:
            message = f"{where} is not met, so the agent is unavailable: {missing.detail}"
            fix = "configure and start such a server" if missing.state == "not configured" else "see the server's state"
            finding = Finding(code="EG021", message=message, file=needed.file, line=needed.line, fix=fix)
        yield finding
