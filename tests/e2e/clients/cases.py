"""A cell of the table before it is run: what one runtime does for one intent, with and without its own deny."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.clients.intents import Effect
from tests.e2e.clients.wires import Step

CHILD = "CHILD-MARK"
"""Stands in what a sub-agent is asked, and so chooses its turns."""

Pieces = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One cell. attack: what the model does. child: what it does as a sub-agent.

    base: pieces of the runtime's configuration in every column. native: pieces that deny, in its own words; None where
    it has no words for it. profile: the agent's file that denies the same for extgate, without its id. told: the entry
    that extgate must have a finding about, where the intent is about silence.
    """

    effect: Effect
    attack: Sequence[Step]
    native: Pieces | None
    profile: str
    base: Pieces = field(default_factory=dict)
    child: Sequence[Step] = ()
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotThere:
    """The runtime has nothing that the intent could be about."""

    why: str


def merged(first: Any, second: Any) -> Any:
    """Mappings laid over each other, lists one after the other, else the second."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return {
            k: merged(first[k], second[k]) if k in first and k in second else {**first, **second}[k]
            for k in [*first, *(k for k in second if k not in first)]
        }
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    return second
