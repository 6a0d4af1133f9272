"""What a runtime's version really shows, where that is not what it lets be called; and what is known of it, as data."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from extgate.core.decide import Decision, holds
from extgate.core.explain import Decider
from extgate.core.policy import Policy, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """One way in which a version does not do what is documented.

    versions: from and to, both seen or both included. code: of the finding that `check` makes of it; empty: none.
    """

    id: str
    runtime: str
    versions: tuple[str, str]
    documented: str
    actual: str
    seen: str
    code: str = ""


@cache
def divergences(runtime: str = "") -> tuple[Divergence, ...]:
    """All that are known, or a runtime's own, in the order of the data."""
    data = tomllib.loads((files("extgate.dialects") / "divergences.toml").read_text(encoding="utf-8"))
    rows = (_row(row) for row in data["divergence"])
    return tuple(row for row in rows if runtime in ("", row.runtime))


def _row(row: Mapping[str, str]) -> Divergence:
    first, _, last = row["versions"].partition(" - ")
    rest = {key: row[key] for key in ("id", "runtime", "documented", "actual", "seen")}
    return Divergence(**rest, versions=(first, last or first), code=row.get("code", ""))


def known_version(runtime: str) -> str:
    """The newest version of a runtime that was looked at; empty for a runtime without divergences."""
    return max((row.versions[1] for row in divergences(runtime)), key=_ordered, default="")


def _ordered(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def is_listed(policy: Policy, decider: Decider, decision: Decision) -> bool:
    """Whether the model learns of the item, under a policy that was read as a version runs.

    `listed` in the policy's facts are rules that refuse the call and hide nothing; `unlisted` hide and refuse nothing.
    """
    facets = decider.naming.of(decision.extension)

    def speaks(rule: Rule) -> bool:
        entries = any(all(holds(test, facets) for test in entry.tests) for entry in rule.entries)
        return decision.extension.kind in rule.kinds and entries

    if any(speaks(rule) for rule in policy.facts.get("unlisted", ())):
        return False
    if decision.visible or not decider.availability.is_available:
        return decision.visible
    deciding = (decision.rule.text, decision.rule.pattern, decision.rule.file, decision.rule.line)
    return any(
        speaks(rule) and deciding == (rule.text, entry.text, entry.file, entry.line)
        for rule in policy.facts.get("listed", ())
        for entry in rule.entries
    )
