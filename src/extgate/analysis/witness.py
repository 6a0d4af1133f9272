"""What an answer to a question over all things consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from extgate.core.decide import Verdict
from extgate.core.extension import Extension

Direction = Literal["wider", "narrower"]
DIRECTIONS: tuple[Direction, Direction] = ("wider", "narrower")
Arguments = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A thing that two profiles answer differently, and their answers. beside: what is installed with it where that
    counts. arguments: of the call that tells them apart; None: the thing itself does."""

    extension: Extension
    before: Verdict
    after: Verdict
    beside: tuple[Extension, ...] = ()
    arguments: Arguments | None = None
