"""The dicts that `--json` prints and the console serves: one shape each, as the contract has them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from extgate.core.decide import Decision, Step
from extgate.core.extension import Extension, Finding
from extgate.core.names import show
from extgate.core.require import Missing
from extgate.workspace import Explanation

CHARS_PER_TOKEN = 4
"""An estimate for English and JSON; what a request really costs depends on the model's tokenizer."""


def finding_dict(finding: Finding) -> dict[str, Any]:
    """code, severity, message, file, line, fix."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "file": finding.file,
        "line": finding.line,
        "fix": finding.fix,
    }


def rule_dict(step: Step) -> dict[str, Any]:
    """text, pattern, file, line; the pattern is null when no single one decided."""
    return {"text": step.text, "pattern": step.pattern, "file": step.file, "line": step.line}


def decision_dict(decision: Decision) -> dict[str, Any]:
    """One row of `explain --json`."""
    ext = decision.extension
    row: dict[str, Any] = {"id": ext.id, "kind": ext.kind}
    if ext.server is not None:
        row["server"] = ext.server
    return row | {
        "name": ext.name,
        "source": ext.source,
        "visible": decision.visible,
        "callable": decision.callable,
        "approval": decision.approval,
        "delivery": decision.delivery,
        "effect": decision.effect,
        "reason": decision.reason,
        "rule": rule_dict(decision.rule),
        "trail": [rule_dict(step) | {"outcome": step.outcome} for step in decision.trail],
    }


def missing_dict(missing: Missing) -> dict[str, Any]:
    """A required pattern with the state that explains it."""
    needed = missing.requirement
    return {
        "pattern": missing.pattern,
        "state": missing.state,
        "detail": missing.detail,
        "file": needed.file,
        "line": needed.line,
    }


def explanation_dict(explanation: Explanation, decisions: Iterable[Decision] | None = None) -> dict[str, Any]:
    """`explain --json`; `decisions` limits it to some."""
    rows = explanation.decider.decisions if decisions is None else tuple(decisions)
    availability = explanation.availability
    return {
        "agent": explanation.agent.id,
        "dialect": explanation.agent.dialect or None,
        "file": explanation.agent.file or None,
        "available": availability.is_available,
        "missing": [missing.pattern for missing in availability.missing],
        "missing_details": [missing_dict(missing) for missing in availability.missing],
        "error": availability.error or None,
        "policy_version": explanation.decider.profile.version,
        "inventory_version": explanation.decider.inventory.version,
        "tokens": {
            "visible": sum(tokens(d.extension) for d in rows if d.effect != "deny"),
            "all": sum(tokens(d.extension) for d in rows),
        },
        "decisions": [decision_dict(decision) for decision in rows],
        "findings": [finding_dict(finding) for finding in explanation.findings],
    }


def tokens(ext: Extension) -> int:
    """About how many tokens the item's definition adds to a request: name, description, schema."""
    if ext.kind in ("mcp_resource", "mcp_prompt", "subagent"):
        return 0
    schema = ext.facts.get("schema")
    text = len(ext.name) + len(ext.description) + (len(json.dumps(schema)) if schema else 0)
    return -(-text // CHARS_PER_TOKEN)


def finding_line(finding: Finding) -> str:
    """`file:line: message; fix [code]`, safe for a terminal."""
    place = f"{finding.file}:{finding.line}: " if finding.file and finding.line else ""
    place = place or (f"{finding.file}: " if finding.file else "")
    fix = f"; {finding.fix}" if finding.fix else ""
    return show(f"{place}{finding.message}{fix}")
