"""What a converted policy says of calls: each tool whose arguments some rule looks at, against what does the same.

Two runtimes name a tool and its arguments each in their way. So both policies are put as rules on one tool: the rules
that speak of it, without its name, their arguments renamed. What is left is a comparison over all calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from extgate.analysis.ground import Ground
from extgate.analysis.policies import differing
from extgate.analysis.witness import DIRECTIONS, Direction, Witness
from extgate.core.decide import Verdict, holds
from extgate.core.extension import Extension
from extgate.core.names import Naming
from extgate.core.policy import Policy, Profile, Rule
from extgate.dialects.outline import CLASSES, SHELL, Loss, Outline

MOST = 64
"""Differences of one tool and direction that are looked for."""

SHELLS = frozenset(("Bash", "bash", "exec_command", "run_shell_command", "terminal", "execute"))
"""Of the tools that are one family with a shell those that take a whole line; only their calls are compared."""

_SAME = {"cmd": "command", "filePath": "file_path", "notebook_path": "file_path", "absolute_path": "file_path"}
_SAME |= {"path": "file_path", "dir_path": "file_path"}
"""Names that runtimes have for one argument."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A tool of the target, and those of the source that it stands for: of several the strictest counts."""

    tool: Extension
    members: tuple[Extension, ...]


def members_of(outline: Outline, ext: Extension) -> tuple[Extension, ...]:
    """The source's things that a tool of the target stands for: itself where it is known there, else what does the
    same, else one that is not installed."""
    tools = [own for own in outline.stock.of_kind("tool") if own.name not in SHELL or own.name in SHELLS]
    same = tuple(own for own in tools if own.name == ext.name)
    alike = next((group for group in CLASSES if ext.name in group), frozenset())
    return same or tuple(own for own in tools if own.name in alike) or (replace(ext, source="builtin"),)


def rules_on_calls(policy: Policy, ext: Extension, naming: Naming) -> Policy:
    """The rules that speak of one thing, as rules that hold whatever it is called."""
    facets = naming.of(ext)
    kept = [
        replace(
            rule,
            entries=(),
            unless=True,
            when=tuple(replace(test, name=_SAME.get(test.name, test.name)) for test in rule.when),
        )
        for rule in policy.rules
        if ext.kind in rule.kinds
        and any(all(holds(test, facets) for test in entry.tests) for entry in rule.entries) != rule.unless
    ]
    return replace(policy, rules=tuple(kept), default=policy.default or "deny")


def call_losses(
    policies: tuple[Policy, Policy], pair: Pair, namings: tuple[Naming, Naming], budget: int
) -> Iterator[Loss | str]:
    """A loss for each rule on the pair's calls that says otherwise, then why these may not be all.

    policies: the source's, and what was read back. namings: of what is installed on each side.
    """
    source, found = policies
    if not any(rule.when for policy in policies for rule in policy.rules if pair.tool.kind in rule.kinds):
        return
    old = [rules_on_calls(source, member, namings[0]) for member in pair.members]
    new = rules_on_calls(found, pair.tool, namings[1])
    if not any(rule.when for policy in (*old, new) for rule in policy.rules):
        return
    sides = Profile(id="a", layers=tuple(old)), Profile(id="a", layers=(new,))
    yield from call_differences(*sides, pair.tool.kind, budget, name=pair.tool.name)


def call_differences(old: Profile, new: Profile, kind: str, budget: int, *, name: str = "") -> Iterator[Loss | str]:
    """A loss for each rule on calls that says otherwise, then why these may not be all. name: of what is called."""
    ground = Ground(old, new, kind)
    for direction in DIRECTIONS:
        yield from _each((old, new), kind, name, direction, ground, budget)


def _each(
    sides: tuple[Profile, Profile], kind: str, name: str, direction: Direction, ground: Ground, budget: int
) -> Iterator[Loss | str]:
    told: list[Rule] = []
    left = budget
    rules = tuple(dict.fromkeys(_conditions(sides)))
    for _ in range(MOST):
        outcome = differing(*sides, kind, direction, budget=left, ground=ground, asked="calls", told=told, among=rules)
        left = max(left - outcome.spent, 1)
        witness = outcome.witness
        if witness is None:
            if outcome.undecided:
                yield f"{name or kind}: {outcome.undecided}"
            break
        strict, lenient = witness.before, witness.after
        if direction == "narrower":
            strict, lenient = lenient, strict
        yield _loss(name or witness.extension.id, direction, witness)
        rule = next((r for verdict in (strict, lenient) if (r := _decided_by(sides, verdict))), None)
        if rule is None or rule in told:
            break
        told.append(rule)
    else:
        yield f"{name or kind}: more than {MOST} rules say otherwise; those that are told are sure"
    if name:
        outcome = differing(*sides, kind, direction, budget=left, ground=ground, asked="calls", told=rules)
        if outcome.witness:
            yield _loss(name, direction, outcome.witness)
        elif outcome.undecided:
            yield f"{name}: {outcome.undecided}"


def _decided_by(sides: Sequence[Profile], verdict: Verdict) -> Rule | None:
    """The rule on arguments that gave the verdict."""
    step = verdict.step
    place = (step.text, step.file, step.line, step.effect)
    return next((rule for rule in _conditions(sides) if (rule.text, rule.file, rule.line, rule.effect) == place), None)


def _conditions(sides: Sequence[Profile]) -> Iterator[Rule]:
    return (rule for side in sides for policy in side.policies for rule in policy.rules if rule.when)


def _loss(called: str, direction: Direction, witness: Witness) -> Loss:
    text = _spelled(witness.arguments or {})
    before, after = (side.effect or "deny" for side in (witness.before, witness.after))
    step = (witness.before if direction == "wider" else witness.after).step
    return Loss(
        code="arguments",
        name=f"{called}({text})",
        message=f"{before} here, {after} there",
        witness=f"{called}({text})",
        rule=step.text,
        file=step.file,
        line=step.line,
        is_wider=direction == "wider",
    )


def _spelled(arguments: object) -> str:
    """The one text that the call is about, or all its arguments."""
    values = list(arguments.values()) if isinstance(arguments, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else f"{arguments}" if values else ""
