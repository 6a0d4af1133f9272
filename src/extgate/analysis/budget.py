"""A bound on the work of one question, so that an answer comes or is said not to have come."""

from __future__ import annotations

from extgate.errors import ExtgateError

WORK = 1_000_000
"""Default budget. A unit is a step of a few microseconds; what is kept in memory costs units as well."""


class BudgetSpent(ExtgateError):
    """The work that one question may cost is done, and there is no answer yet."""


class Meter:
    """Counts work. limit: units after which `spend` raises BudgetSpent."""

    __slots__ = ("limit", "spent")

    def __init__(self, limit: int = WORK) -> None:
        self.limit = limit
        self.spent = 0

    def spend(self, units: int = 1) -> None:
        self.spent += units
        if self.spent > self.limit:
            raise BudgetSpent(f"no answer within {self.limit:,} units of work", fix="raise the budget")

    def part(self, units: int) -> Meter:
        """A meter over at most so many of the units that are left; `join` books what it used."""
        return Meter(min(units, self.limit - self.spent))

    def join(self, part: Meter) -> None:
        self.spent = min(self.limit, self.spent + part.spent)
