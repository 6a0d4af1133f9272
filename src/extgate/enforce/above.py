"""The gates above the one that is asked: those of the agents that called this one. They travel with the context.

What an agent may have is asked here, so that a cache, a catalog or a file tool that knows one gate obeys all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from extgate.core.extension import Extension
from extgate.enforce.answer import Answer
from extgate.enforce.gate import Gate

ABOVE: ContextVar[tuple[Gate, ...]] = ContextVar("extgate_gates_above", default=())


def gates_above() -> tuple[Gate, ...]:
    """The gates that hold for what runs now, besides its own."""
    return ABOVE.get()


def state_of(gate: Gate) -> tuple[object, ...]:
    """The objects that an answer about this agent depends on now, those above it included; compare them by `is`."""
    return tuple(part for held in (gate, *gates_above()) for part in (held.profile, held.inventory))


def is_visible(gate: Gate, ext: Extension) -> bool:
    """Whether the agent, and those above it, may know of an item; nothing is recorded."""
    return bool(visible(gate, (ext,)))


def visible(gate: Gate, items: Iterable[Extension]) -> tuple[Extension, ...]:
    """Those of the items that the agent, and those above it, may know of, in order; nothing is recorded."""
    caps = gates_above()
    shown = tuple(ext for ext in items if gate.is_visible(ext) and all(cap.is_visible(ext) for cap in caps))
    closed = hidden_files(caps) if any(ext.file for ext in shown) else frozenset()
    return tuple(e for e in shown if not (e.file and os.path.realpath(e.file) in closed)) if closed else shown


def see(gate: Gate, items: Iterable[Extension], *, action: str = "list") -> tuple[Extension, ...]:
    """`visible`, and the gate records what of them it hides."""
    return visible(gate, gate.see(items, action=action))


def hidden_files(gates: Iterable[Gate]) -> frozenset[str]:
    """Files of the skills that one of the gates hides, links followed: whatever else a gate below calls them."""
    files = (ext.file for cap in gates for ext in cap.inventory.of_kind("skill") if not cap.is_visible(ext))
    return frozenset(os.path.realpath(file) for file in files if file)


def use(
    gate: Gate, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
) -> Answer:
    """The gate's answer to one use, and that of every gate above it."""
    answer = gate.use(ext, args, action=action, session=session)
    for above in gates_above():
        if answer and _concerns(above, ext, args, answer):
            answer = above.use(ext, args, action=action, session=session)
    return answer


async def ause(
    gate: Gate, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
) -> Answer:
    """`use` for an approver that may have to be awaited."""
    answer = await gate.ause(ext, args, action=action, session=session)
    for above in gates_above():
        if answer and _concerns(above, ext, args, answer):
            answer = await above.ause(ext, args, action=action, session=session)
    return answer


def _concerns(above: Gate, ext: Extension, args: Mapping[str, Any] | None, answer: Answer) -> bool:
    """Whether the gate above has more to say than yes; who was asked once is not asked again."""
    decision = above.decide(ext, args)
    return not decision.callable or (decision.effect == "ask" and not answer.approver)
