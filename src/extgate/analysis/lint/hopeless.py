"""EG045: a requirement that no server could ever meet, whatever is installed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from extgate.analysis.lint.context import Context
from extgate.analysis.policies import differing
from extgate.core.extension import KINDS, Finding
from extgate.core.names import show
from extgate.core.policy import Entry, Policy, Profile, Requirement, Rule, Test

CODES = ("EG045",)

_KINDS = tuple(kind.name for kind in KINDS.values() if kind.is_mcp)


def check(context: Context) -> Iterator[Finding]:
    """One finding for each required pattern all of whose servers the profile's own `mcp` block closes.

    A server that is installed and removed is told by EG020 already.
    """
    told = {missing.requirement for missing in context.decider.availability.missing if missing.state == "removed"}
    block = tuple(rule for rule in context.policy.rules if rule.text.startswith("mcp"))
    for needed in context.policy.requirements if block else ():
        if needed not in told and not _can_be_met(needed, replace(context.policy, rules=block, default="allow")):
            message = (
                f"{needed.text}: `{show(needed.pattern)}` can never be met: the `mcp` block closes every such server"
            )
            yield Finding(
                code="EG045",
                message=message,
                file=needed.file,
                line=needed.line,
                fix="allow such a server, or drop the requirement",
                severity="error",
            )


def _can_be_met(needed: Requirement, block: Policy) -> bool:
    """Whether some item of such a server could be let through; in doubt it could."""
    head = needed.pattern.partition("/")[0]
    entries = (Entry(text=head, tests=(Test(facets=("server",), pattern=head),)),)
    rule = Rule(text="required", effect="deny", kinds=frozenset(_KINDS), entries=entries, unless=True)
    only = Profile(id="only", layers=(block, Policy(dialect="required", rules=(rule,))))
    outcomes = (differing(Profile(id="nobody"), only, kind, "wider", budget=200_000) for kind in _KINDS)
    return any(outcome.witness or outcome.undecided for outcome in outcomes)
