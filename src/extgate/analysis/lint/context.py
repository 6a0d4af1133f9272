"""What every lint rule is given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from extgate.core.decide import Decision, holds
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Finding, Inventory
from extgate.core.names import Facet
from extgate.core.patterns import NameIndex
from extgate.core.policy import Entry, Policy, Rule, Test
from extgate.core.uris import lenient_forms, uri_forms

SHELLS = frozenset(
    {"bash", "shell", "sh", "zsh", "powershell", "execute", "exec", "exec_command", "run_command", "terminal"}
    | {"run_shell_command", "execute_code", "process", "python", "run_python", "local_shell", "write_stdin", "monitor"}
)
"""Names of tools that run commands or code, in lower case; a tool's own `group` fact counts first."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One entry of one list as the user wrote it, with every rule it became part of (bridges included)."""

    list: str
    entry: Entry
    rules: tuple[tuple[Rule, Entry], ...]

    @property
    def is_deny(self) -> bool:
        return any(rule.effect != "allow" and not rule.unless for rule, _ in self.rules)


class Context:
    """One policy, decided over one inventory."""

    def __init__(self, policy: Policy, decider: Decider) -> None:
        self.policy = policy
        self.decider = decider
        self.inventory: Inventory = decider.inventory
        self._indexes: dict[tuple[tuple[Facet, ...], frozenset[str]], tuple[NameIndex, list[Extension]]] = {}

    @cached_property
    def spots(self) -> tuple[Spot, ...]:
        """Every list entry once, in file order."""
        found: dict[tuple[str, str, int | None], list[tuple[Rule, Entry]]] = {}
        for rule in self.policy.rules:
            for entry in rule.entries if rule.file else ():  # a runtime's own defaults are no lists of the user's
                found.setdefault((rule.text, entry.text, entry.line), []).append((rule, entry))
        return tuple(Spot(key[0], rows[0][1], tuple(rows)) for key, rows in found.items())

    @cached_property
    def visible(self) -> tuple[Decision, ...]:
        """What the profile lets through, were the agent available."""
        return tuple(d for d in self.decider.decisions if d.effect != "deny")

    def hits(self, spot: Spot) -> tuple[Extension, ...]:
        """The installed items that the entry matches, through any of its rules."""
        found = {id(e): e for rule, entry in spot.rules for e in self._entry_hits(rule.kinds, entry)}
        return tuple(sorted(found.values(), key=lambda e: e.order))

    def _entry_hits(self, kinds: frozenset[str], entry: Entry) -> Iterator[Extension]:
        key = max(entry.tests, key=lambda t: len(t.pattern.strip("*")))
        for ext in self._rows(kinds, key):
            if len(entry.tests) == 1 or all(holds(test, self.decider.naming.of(ext)) for test in entry.tests):
                yield ext

    def _rows(self, kinds: frozenset[str], test: Test) -> tuple[Extension, ...]:
        if (test.facets, kinds) not in self._indexes:
            pairs = [
                (name, ext)
                for ext in self.inventory.of_kind(*kinds)
                for form in (
                    (*uri_forms(ext.name), *lenient_forms(ext.name)) if ext.kind == "mcp_resource" else (ext.name,)
                )
                for facet in test.facets
                for name in self.decider.naming.of(replace(ext, name=form)).get(facet, ())
            ]
            self._indexes[test.facets, kinds] = (NameIndex([name for name, _ in pairs]), [ext for _, ext in pairs])
        index, owners = self._indexes[test.facets, kinds]
        return tuple({id(owners[row]): owners[row] for row in index.rows(test.pattern)}.values())

    def warn(
        self,
        code: str,
        message: str,
        *,
        at: Entry | Rule | None = None,
        fix: str = "",
        severity: Literal["error", "warning", "info"] = "warning",
    ) -> Finding:
        """A finding placed at the entry or rule, else at the file."""
        file, line = (at.file or self.policy.file, at.line) if at else (self.policy.file, None)
        return Finding(code=code, message=message, file=file, line=line, fix=fix, severity=severity)


def is_shell(ext: Extension) -> bool:
    """Whether a tool can run commands, so that it reaches what other tools are denied."""
    group = ext.facts.get("group")
    return ext.kind == "tool" and (group == "shell" if group else ext.name.lower() in SHELLS)
