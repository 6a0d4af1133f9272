"""Things to try, random profiles in both dialects, and random layered policies of the model itself."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from extgate.core.decide import CompiledProfile, judge
from extgate.core.extension import Extension
from extgate.core.names import Naming
from extgate.core.policy import STRICTNESS, ArgTest, Either, Entry, Policy, Profile, Rule
from extgate.core.policy import Test as EntryTest
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent

Thing = tuple[Extension, Naming]

_WORDS = ["a", "b", "_", "ab", "ba", "aa", "a_", "_a", "a_b", "a/b", "a__b", "c", "mcp_a", "é.", "-"]
_SKILLS = ["a", "b", "ab", "a/b", "b/a", "c/a", "a/b/a", "b/c/b"]
_PIECES = ["a", "b", "*", "a", "b", "?", "_", "__", "/", "[!a]", "mcp__", "[ab]"]


def profile(document: Mapping[str, Any]) -> Profile:
    """The profile of one agent's document, in whichever dialect."""
    policy = read_agent(Document.of_bytes("agents/a.json", json.dumps(document).encode()))
    return Profile(id="a", layers=(policy,), dialect=policy.dialect)


def things() -> list[Thing]:
    """Things of every kind, alone and beside others that take spellings away from them."""
    found = [*_served(), *_plain(), *_skills()]
    return [(ext, Naming((ext, *others))) for ext, others in found]


def _served() -> Iterator[tuple[Extension, tuple[Extension, ...]]]:
    for kind in ("mcp_tool", "mcp_resource"):
        for server in [*_WORDS, "a" * 40]:
            for item in [*_WORDS, "b" * 60]:
                yield Extension(kind=kind, server=server, name=item), ()


def _plain() -> Iterator[tuple[Extension, tuple[Extension, ...]]]:
    for kind in ("tool", "subagent"):
        for name in _WORDS:
            for source in ("", "builtin", "a", "plugin:b"):
                ext = Extension(kind=kind, name=name, source=source)
                yield ext, ()
                yield ext, (Extension(kind=kind, name=name, source="builtin"),)


def _skills() -> Iterator[tuple[Extension, tuple[Extension, ...]]]:
    for name in _SKILLS:
        for category in (None, "a", "b", "ab"):
            for declared in (None, "a", "b", "c"):
                ext = Extension(kind="skill", name=name, category=category, declared_name=declared)
                yield ext, ()
                yield ext, (Extension(kind="skill", name=f"q/w/{ext.leaf}", declared_name=declared),)


CALLS: list[dict[str, Any] | None] = [
    None,
    {},
    *({"command": c, "path": {"x": x}} for c in ("a", "b", "ab", "c") for x in ("a", "ab", "c")),
    {"command": "ab"},
    {"path": {"x": "ab"}},
]


def differences(
    old: Profile, new: Profile, tried: list[Thing], calls: bool = False
) -> dict[tuple[str, str], Extension]:
    """For each kind and direction in which some thing tried is answered otherwise, that thing."""
    before, after = CompiledProfile(old), CompiledProfile(new)
    found: dict[tuple[str, str], Extension] = {}
    for ext, naming in tried:
        for arguments in CALLS if calls else (None,):
            answers = (judge(side, naming, ext, arguments).effect or "deny" for side in (before, after))
            first, second = (STRICTNESS[effect] for effect in answers)
            if first != second:
                found.setdefault((ext.kind, "wider" if first > second else "narrower"), ext)
    return found


# ---------------------------------------------------------------------------------------------- random policies


def pattern(rng: random.Random) -> str:
    return "".join(rng.choice(_PIECES) for _ in range(rng.randint(1, 4)))


def _list(rng: random.Random, most: int) -> list[str]:
    return [pattern(rng) for _ in range(rng.randint(0, most))]


def document(rng: random.Random) -> dict[str, Any]:
    return _dialect_a(rng) if rng.random() < 0.6 else _dialect_b(rng)


def _dialect_a(rng: random.Random) -> dict[str, Any]:
    keys = {
        "tools": ("disabled", "allowed"),
        "mcp": ("disabled", "allowed"),
        "skills": ("disabled", "allowed", "categories"),
    }
    keys |= {"resources": ("disabled", "allowed"), "subagents": ("disabled", "allowed")}
    chosen = {block: names for block, names in keys.items() if rng.random() < 0.6}
    return {block: {name: _list(rng, 3) for name in names if rng.random() < 0.6} for block, names in chosen.items()}


def _dialect_b(rng: random.Random) -> dict[str, Any]:
    parts = ["*", "a", "b", "a*", "*b", "?", "[!a]", "a_b", "*_*", "impl", "mcp", "deepagents", "default"]

    def rule(count: int) -> str:
        first = ["impl", "mcp", "*"] if count == 3 else parts
        return rng.choice(["", "", "!"]) + ":".join([rng.choice(first), *rng.choices(parts, k=count - 1)])

    tools = [rule(3) for _ in range(rng.randint(0, 4))]
    skills = [rule(2) for _ in range(rng.randint(0, 3))]
    found: dict[str, Any] = {"dialect": "patterns", "tools": {"patterns": tools}, "skills": {"patterns": skills}}
    return found | ({"subagents": ["a"]} if rng.random() < 0.3 else {})


def rewritten(rng: random.Random, found: dict[str, Any]) -> dict[str, Any]:
    """The document with lists shuffled and entries doubled; sometimes one is changed."""
    result = json.loads(json.dumps(found))
    lists = [(block, key) for block, keys in result.items() if isinstance(keys, dict) for key in keys]
    for block, key in lists:
        entries = result[block][key]
        rng.shuffle(entries)
        if entries and rng.random() < 0.4:
            entries.append(rng.choice(entries))
        if entries and rng.random() < 0.3 and key != "patterns":
            entries[rng.randrange(len(entries))] = pattern(rng)
    return result


_FACETS: list[Any] = [("name",), ("any",), ("server",), ("item",), ("own",), ("name", "sourced"), ("module",)]


def layered(rng: random.Random, depth: int = 0) -> Profile:
    """Layers of ordered rules: every effect, guards, conditions on arguments, defaults, unions."""
    layers: list[Policy | Either] = []
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 0])):
        is_plain = depth or rng.random() < 0.85
        layers.append(_policy(rng) if is_plain else Either(first=layered(rng, 1), second=layered(rng, 1)))
    return Profile(id="p", layers=tuple(layers))


def _policy(rng: random.Random) -> Policy:
    rules = tuple(_rule(rng) for _ in range(rng.randint(0, 4)))
    return Policy(dialect="x", rules=rules, default=rng.choice(["allow", "ask", "deny", None, "deny"]))


def _rule(rng: random.Random) -> Rule:
    names, texts = ["command", "path.x"], ["a*", "*b", "a", "*"]
    count = rng.randint(1, 2) if rng.random() < 0.25 else 0
    return Rule(
        text="r",
        effect=rng.choice(["allow", "ask", "deny"]),
        kinds=frozenset(rng.sample(["tool", "mcp_tool"], rng.randint(1, 2))),
        entries=tuple(_entry(rng) for _ in range(rng.randint(0, 2))),
        unless=rng.random() < 0.2,
        when=tuple(ArgTest(name=rng.choice(names), pattern=rng.choice(texts)) for _ in range(count)),
    )


def _entry(rng: random.Random) -> Entry:
    count = 1 if rng.random() < 0.7 else 2
    tests = (
        EntryTest(facets=rng.choice(_FACETS), pattern=pattern(rng), is_exact=rng.random() < 0.1) for _ in range(count)
    )
    return Entry(text="e", tests=tuple(tests))


def relayered(rng: random.Random, found: Profile) -> Profile:
    """The layers with rules doubled, dropped or shuffled within their entries."""
    layers = []
    for layer in found.layers:
        if isinstance(layer, Policy) and layer.rules:
            rules = [replace(rule, entries=tuple(rng.sample(rule.entries, len(rule.entries)))) for rule in layer.rules]
            if rng.random() < 0.3:
                rules.insert(rng.randrange(len(rules) + 1), rng.choice(rules))
            if rng.random() < 0.2:
                rules.pop(rng.randrange(len(rules)))
            layer = replace(layer, rules=tuple(rules))
        layers.append(layer)
    return replace(found, layers=tuple(layers))
