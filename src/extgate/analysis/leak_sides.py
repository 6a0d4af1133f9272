"""A runtime's policy as documented beside what its version runs: what comes out more lenient, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from extgate.core.decide import Step
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.names import show, shown_name
from extgate.core.policy import STRICTNESS, Entry, Policy, Profile, Rule

_READERS = frozenset({"file", "search", "shell"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Items of one kind that one documented rule denies (or asks for) and the version does not."""

    step: Step
    kind: str
    effect: str
    names: tuple[str, ...]
    place: Entry | None


class Sides:
    """One agent's documented policy and the one that runs, over one inventory."""

    def __init__(self, policy: Policy, decider: Decider, actual: Policy) -> None:
        self.policy, self.documented, self.actual = policy, decider, actual
        profile = Profile(id=policy.id, layers=(actual,), dialect=policy.dialect)
        self.running = Decider(profile, decider.inventory, has_approver=True)
        self.version = f"{policy.facts.get('runtime')} {policy.facts.get('version')}"

    @property
    def inventory(self) -> Inventory:
        return self.documented.inventory

    @cached_property
    def has_denies(self) -> bool:
        return any(rule.effect == "deny" and rule.file for rule in self.policy.rules)

    def lost(self) -> Iterator[Lost]:
        """What the version lets through, by the documented rule that does not hold there."""
        groups: dict[tuple[Step, str, str], list[str]] = {}
        for decision in self.documented.decisions:
            runs = self.running.decide(decision.extension)
            if STRICTNESS[runs.effect] < STRICTNESS[decision.effect]:
                key = (decision.rule, decision.extension.kind, "allowed" if runs.effect == "allow" else "asked for")
                groups.setdefault(key, []).append(shown_name(decision.extension))
        for (step, kind, effect), names in groups.items():
            place = Entry(text="", tests=(), file=step.file, line=step.line) if step.file else None
            yield Lost(step=step, kind=kind, effect=effect, names=tuple(names), place=place)

    def inert(self) -> Iterator[Rule]:
        """Denies and asks on arguments that the version does not have."""
        theirs = {_key(rule) for rule in self.actual.rules}
        seen = set()
        for rule in self.policy.rules:
            key = _key(rule)
            if rule.when and rule.effect != "allow" and rule.file and key not in theirs and key not in seen:
                seen.add(key)
                yield rule

    def listed(self, kind: str) -> Iterator[Rule]:
        """Rules that refuse the call of something of this kind and leave it in view."""
        yield from (
            rule for rule in self.actual.facts.get("listed", ()) if kind in rule.kinds and rule.effect == "deny"
        )

    def shown(self, rule: Rule) -> str:
        """The rule's entries, for a message."""
        return ", ".join(dict.fromkeys(f"`{show(entry.text)}`" for entry in rule.entries))

    def readable_skill(self) -> tuple[str, str] | None:
        """A denied skill, and a tool that may read its file."""
        hidden = next(
            (d for d in self.documented.decisions if d.extension.kind == "skill" and d.effect == "deny"), None
        )
        reader = next((d for d in self.documented.decisions if _reads_files(d.extension) and d.effect != "deny"), None)
        return (shown_name(hidden.extension), reader.extension.name) if hidden and reader else None

    def wider_children(self) -> Iterator[tuple[str, Extension]]:
        """An agent that may be started and something that it may use and this one may not; one for each agent."""
        below: dict[str, Policy] = self.policy.facts.get("below", {})
        for name, policy in below.items():
            own = next((e for e in self.inventory.of_kind("subagent") if e.name == name), None)
            if own is None or self.documented.decide(own).effect == "deny":
                continue
            child = Decider(Profile(id=name, layers=(policy,)), self.inventory, has_approver=True)
            for decision in self.documented.decisions:
                if decision.effect == "deny" and child.decide(decision.extension).effect != "deny":
                    yield name, decision.extension
                    break


def _key(rule: Rule) -> tuple[object, ...]:
    return rule.effect, rule.text, tuple(entry.text for entry in rule.entries), rule.file, rule.line, rule.kinds


def _reads_files(ext: Extension) -> bool:
    return ext.kind == "tool" and ext.facts.get("group") in _READERS
