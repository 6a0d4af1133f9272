"""Policies for tests of gates and doors, written in two ways: as a profile's text, or as rules no profile can say."""

from __future__ import annotations

from extgate.core.policy import ArgTest, Effect, Entry, Policy, Profile, Rule, Test
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent


def policy(text: str, id_: str = "agent") -> Policy:
    """The policy of a profile file with this YAML text."""
    return read_agent(Document(path=f"agents/{id_}.yaml", text=text))


def profile(text: str, *more: Policy, id_: str = "agent") -> Profile:
    """One agent under a profile file, and under further layers."""
    return Profile(id=id_, layers=(policy(text, id_), *more))


def rule(effect: Effect, *names: str, kind: str = "tool", when: tuple[tuple[str, str], ...] = ()) -> Rule:
    """A rule on items by name; when: (argument, pattern) pairs that must all hold."""
    facet = "item" if kind.startswith("mcp") else "name"
    entries = tuple(
        Entry(text=name, tests=(Test(facets=(facet,), pattern=name),), file="agents/x.yaml", line=3) for name in names
    )
    tests = tuple(ArgTest(name=argument, pattern=pattern) for argument, pattern in when)
    return Rule(
        text=f"{kind}.{effect}", effect=effect, kinds=frozenset({kind}), entries=entries, when=tests,
        file="agents/x.yaml", line=2,
    )  # fmt: skip


def layer(*rules: Rule) -> Policy:
    """A layer that lets everything else be."""
    return Policy(dialect="profile", rules=rules, default="allow", id="extra")
