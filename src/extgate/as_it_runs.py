"""`explain --as-run`: one agent of a runtime's own files as the runtime's version runs it, beside the documentation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.core.policy import Policy
from extgate.dialects.as_run import divergences, is_listed
from extgate.errors import WorkspaceError
from extgate.workspace import Explanation


@dataclass(frozen=True, kw_only=True)
class Running:
    """What runs, what is documented, and the version that was looked at."""

    explanation: Explanation
    documented: Explanation
    version: str

    def seen(self, decisions: Iterable[Decision]) -> list[Decision]:
        """The decisions with what the model really has in view."""
        policy = self.explanation.agent.policy
        if policy is None:
            return list(decisions)
        return [replace(d, visible=is_listed(policy, self.explanation.decider, d)) for d in decisions]

    @cached_property
    def differing(self) -> tuple[Decision, ...]:
        """Decisions that come out otherwise than documented, as they run."""
        before = {id(d.extension): d for d in self.documented.decider.decisions}
        return tuple(
            d
            for d in self.seen(self.explanation.decider.decisions)
            if (d.effect, d.visible) != (before[id(d.extension)].effect, before[id(d.extension)].visible)
        )


def as_it_runs(explanation: Explanation) -> Running:
    """The same explanation under what runs. Raises WorkspaceError for an agent of another kind of file.

    Where the version does not start with these files, the agent is unavailable.
    """
    agent = explanation.agent
    facts = agent.policy.facts if agent.policy else {}
    if agent.policy is None or "version" not in facts:
        fix = "ask about an agent of a runtime's own files that can be read, as `claude-code/main`"
        raise WorkspaceError(f"--as-run: `{show(agent.id)}` has no runtime whose versions are known", fix=fix)
    actual = facts.get("as_run")
    errors = () if isinstance(actual, Policy) else (_refusal(str(facts.get("as_run_error")), agent.file),)
    policy = actual if isinstance(actual, Policy) else None
    running = replace(agent, policy=policy, errors=errors)
    decider = Decider(running.profile, explanation.decider.inventory, has_approver=True)
    return Running(
        explanation=Explanation(agent=running, decider=decider), documented=explanation, version=str(facts["version"])
    )


def _refusal(error: str, file: str) -> Finding:
    return Finding(code="EG001", message=f"the runtime does not start: {error}", file=file, severity="error")


def as_run_dict(running: Running) -> dict[str, Any]:
    """What `explain --as-run --json` has besides: the version, the items that differ, and the divergences known."""
    known = divergences(running.documented.agent.dialect)
    rows = [{"id": row.id, "documented": row.documented, "actual": row.actual, "seen": row.seen} for row in known]
    return {
        "as_run": {"version": running.version, "differs": [d.extension.id for d in running.differing], "known": rows}
    }


def as_run_lines(running: Running) -> list[str]:
    """The same for people."""
    before = {id(d.extension): d for d in running.documented.decider.decisions}
    lines = [f"as {running.documented.agent.dialect} {running.version} runs, {len(running.differing)} items differ:"]
    for decision in running.differing:
        was = before[id(decision.extension)]
        view = "" if decision.visible == was.visible else ", in view" if decision.visible else ", out of view"
        lines.append(show(f"  {decision.extension.id}: {was.effect} as documented, {decision.effect} as run{view}"))
    return lines
