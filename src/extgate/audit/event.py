"""One thing that happened at a gate, in a documented and versioned shape. Argument values are never in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from extgate.core.decide import Decision

SHAPE = "extgate.event/1"
"""Version of the shape: keys may be added under the same number, never change their meaning."""

Question = Literal["see", "use", "reload"]
Outcome = Literal["allowed", "refused", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One answer of a gate.

    when: UTC. door: where it was asked (`langchain`, `mcp`, `hook:codex`, …). action: what was wanted (`list`, `call`,
    `read`, `spawn`, `expand`). arguments: the names of a call's top-level arguments, never their values.
    approver: who answered an `ask`, empty when nobody had to. took_us: microseconds from question to answer.
    """

    when: datetime
    agent: str
    door: str
    question: Question
    action: str
    extension: str
    outcome: Outcome
    effect: str
    reason: str
    rule: Mapping[str, Any]
    policy_version: str
    inventory_version: str
    approver: str = ""
    took_us: float = 0.0
    arguments: tuple[str, ...] = ()
    session: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON-like shape, one line of an audit file."""
        return {
            "shape": SHAPE,
            "when": self.when.astimezone(UTC).isoformat(timespec="microseconds"),
            "agent": self.agent,
            "door": self.door,
            "question": self.question,
            "action": self.action,
            "extension": self.extension,
            "outcome": self.outcome,
            "effect": self.effect,
            "reason": self.reason,
            "rule": dict(self.rule),
            "policy_version": self.policy_version,
            "inventory_version": self.inventory_version,
            "approver": self.approver,
            "took_us": round(self.took_us, 1),
            "arguments": list(self.arguments),
            "session": self.session,
        }


Sink = Callable[[Event], None]
"""Takes each event, in order. What it raises makes the answer a deny: an unrecorded use does not happen."""


def rule_of(decision: Decision) -> dict[str, Any]:
    """The deciding rule as an event names it."""
    step = decision.rule
    return {"text": step.text, "pattern": step.pattern, "file": step.file, "line": step.line}
