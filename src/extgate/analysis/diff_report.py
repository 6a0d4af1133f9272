"""A diff as plain facts, for `--json` and whoever serves them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extgate.analysis.diff import AgentDiff, Changed, KindDiff, Side, required
from extgate.analysis.policies import Outcome
from extgate.analysis.witness import Witness
from extgate.core.decide import Step
from extgate.core.extension import Extension
from extgate.core.require import Availability


def diff_dict(found: Iterable[AgentDiff]) -> dict[str, Any]:
    """`diff --json`: `verdict` is `equal`, `differs` or `undecided`; then one row an agent."""
    agents = tuple(found)
    return {"verdict": verdict(agents), "agents": [_agent(agent) for agent in agents]}


def verdict(agents: Iterable[AgentDiff]) -> str:
    """All agents together: one that differs counts more than one that is undecided."""
    statuses = {agent.status for agent in agents} - {"equal"}
    if not statuses:
        return "equal"
    return "undecided" if statuses == {"undecided"} else "differs"


def _agent(found: AgentDiff) -> dict[str, Any]:
    before, after = found.availability
    return {
        "agent": found.agent,
        "status": found.status,
        "verdict": found.verdict,
        "before": _side(found.before, before),
        "after": _side(found.after, after),
        "kinds": [_kind(kind) for kind in found.kinds],
    }


def _side(side: Side | None, availability: Availability) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "file": side.file or None,
        "error": side.error or None,
        "required": list(required(side)),
        "available": availability.is_available,
        "missing": [missing.pattern for missing in availability.missing],
    }


def _kind(found: KindDiff) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "verdict": found.verdict,
        "installed": [_changed(row) for row in found.installed],
        "wider": _outcome(found.names.wider),
        "narrower": _outcome(found.names.narrower),
        "examples": {side: [witness_dict(one) for one in rows] for side, rows in found.examples.items()},
    }


def _changed(row: Changed) -> dict[str, Any]:
    sides = (("before", row.before), ("after", row.after))
    answers = {name: {"effect": d.effect, "reason": d.reason, "rule": _rule(d.rule)} for name, d in sides}
    return extension_dict(row.after.extension) | answers


def _outcome(found: Outcome) -> dict[str, Any]:
    return {"witness": witness_dict(found.witness), "undecided": found.undecided or None}


def witness_dict(found: Witness | None) -> dict[str, Any] | None:
    """A thing that two policies answer differently, by its parts, with both answers."""
    if found is None:
        return None
    sides = (("before", found.before), ("after", found.after))
    answers = {name: {"effect": v.effect or "deny", "reason": v.reason, "rule": _rule(v.step)} for name, v in sides}
    return extension_dict(found.extension) | {"arguments": found.arguments} | answers


def extension_dict(ext: Extension) -> dict[str, Any]:
    """id, kind, server, name, source, category, declared name: what identifies a thing to a policy."""
    return {
        "id": ext.id,
        "kind": ext.kind,
        "server": ext.server,
        "name": ext.name,
        "source": ext.source or None,
        "category": ext.category,
        "declared_name": ext.declared_name,
    }


def _rule(step: Step) -> dict[str, Any]:
    return {"text": step.text, "pattern": step.pattern, "file": step.file, "line": step.line}
