"""What a gate answers, and who may answer in its place when a rule says `ask`."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from extgate.core.decide import Decision, Step
from extgate.core.extension import Extension
from extgate.core.names import shown_name
from extgate.core.require import Availability

MAX_MESSAGE = 1000
"""Longest message to a model, in characters; a hostile name can be of any length."""


class Approver(Protocol):
    """Somebody who answers an `ask`: True runs the call. Raising, or anything but True, is a no.

    args: a copy; what is changed in it changes nothing.
    """

    name: str

    def __call__(self, decision: Decision, args: Mapping[str, Any]) -> bool | Awaitable[bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the gate says of one use. `message` is for the model: plain, one sentence, with the reason."""

    is_allowed: bool
    decision: Decision
    message: str = ""
    approver: str = ""

    def __bool__(self) -> bool:
        return self.is_allowed


def allowance(decision: Decision, approver: str = "") -> Answer:
    """A yes; approver: who said it, where somebody had to."""
    return Answer(is_allowed=True, decision=decision, approver=approver)


def refusal(decision: Decision, reason: str = "", approver: str = "") -> Answer:
    """A no, for the decision's own reason or another one."""
    reason = (reason or decision.reason)[:MAX_MESSAGE]
    decision = replace(decision, reason=reason, visible=False, callable=False)
    return Answer(is_allowed=False, decision=decision, message=reason, approver=approver)


def denial(ext: Extension, reason: str, rule: str) -> Decision:
    """The decision that no policy had to make. reason: `{name}` stands for the item."""
    reason = reason.replace("{name}", shown_name(ext)[:200])
    step = Step(text=rule, outcome="decides", effect="deny")
    return Decision(
        extension=ext, effect="deny", reason=reason, rule=step, trail=(), visible=False, callable=False
    )  # fmt: skip


def unavailable_because(availability: Availability) -> str:
    """What stands in the way of a turn, in one line."""
    parts = [f"required `{m.pattern}` is not met ({m.detail})" for m in availability.missing]
    return "; ".join([*parts, *([availability.error] if availability.error else [])])
