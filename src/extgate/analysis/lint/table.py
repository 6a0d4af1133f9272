"""The lint rules, a row each; taking one out takes its file and its row."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from extgate.analysis.lint import (
    bad_names,
    dead_rules,
    foreign_syntax,
    hidden_mentions,
    hopeless,
    matches_nothing,
    native_leaks,
    old_spelling,
    open_end,
    order_only,
    pattern_dialect,
    policy_tests,
    requirements,
    shell_left,
    skill_tools,
    star_deny,
    wide_deny,
)
from extgate.analysis.lint.context import Context
from extgate.core.explain import Decider
from extgate.core.extension import Finding, Inventory

RULES: tuple[Callable[[Context], Iterator[Finding]], ...] = (
    requirements.check,
    matches_nothing.check,
    foreign_syntax.check,
    star_deny.check,
    wide_deny.check,
    old_spelling.check,
    pattern_dialect.check,
    shell_left.check,
    open_end.check,
    native_leaks.check,
    dead_rules.check,
    order_only.check,
    hopeless.check,
    skill_tools.check,
    hidden_mentions.check,
    policy_tests.check,
)

INVENTORY_RULES: tuple[Callable[[Inventory], Iterator[Finding]], ...] = (bad_names.check_inventory,)


def lint(decider: Decider) -> tuple[Finding, ...]:
    """Every finding about an agent's policies over its inventory: what its readers noted, then the rules' own."""
    found: list[Finding] = []
    for policy in decider.profile.policies:
        context = Context(policy, decider)
        found += policy.notes
        for rule in RULES:
            found += rule(context)
    return tuple(sorted(dict.fromkeys(found), key=lambda f: (f.file or "", f.line or 0, f.code, f.message)))


def lint_inventory(inventory: Inventory) -> tuple[Finding, ...]:
    """Findings about what is installed, whoever uses it."""
    found = [*inventory.problems, *(f for rule in INVENTORY_RULES for f in rule(inventory))]
    return tuple(dict.fromkeys(found))
