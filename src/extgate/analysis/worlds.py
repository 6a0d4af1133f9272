"""What a thing of each kind is made of, so that questions over all of them can be asked text by text.

A world is one way in which a thing can stand among what is installed: a skill one folder deep whose last segment nobody
else has, a plugin's tool. Its texts may be anything; `build` makes the thing that they describe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from extgate.analysis.boxes import Text
from extgate.core.extension import KINDS, Extension
from extgate.core.names import RUNTIMES

MAX_DEPTH = 2
"""Folders above a skill, at most."""

Values = Mapping[str, str]
Build = Callable[[Values], tuple[Extension, tuple[Extension, ...]]]


@dataclass(frozen=True, kw_only=True)
class World:
    """texts: what a thing here is made of. never, one_of: patterns that a text must not match, names of which it must
    be one. build: the thing that values describe, and what is installed beside it."""

    kind: str
    texts: tuple[Text, ...]
    build: Build
    never: tuple[tuple[str, str], ...] = ()
    one_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def worlds(kind: str) -> tuple[World, ...]:
    """Every world of a kind, the plainest first."""
    if KINDS[kind].is_mcp:
        found = [_served(kind)]
    else:
        found = _skills() if kind == "skill" else _plain(kind)
    return (*found, *(_with(world, _HINTS[kind == "skill"]) for world in found))


_HINTS: tuple[Mapping[str, Any], Mapping[str, Any]] = ({"read_only": True}, {"disable_model_invocation": True})
"""Facts that turn around what a thing says of itself: of all but skills, and of skills."""


def _with(world: World, facts: Mapping[str, Any]) -> World:
    """The same world of things of which further facts are known."""

    def build(values: Values) -> tuple[Extension, tuple[Extension, ...]]:
        ext, others = world.build(values)
        return replace(ext, facts={**ext.facts, **facts}), others

    return replace(world, build=build)


def _served(kind: str) -> World:
    def build(values: Values) -> tuple[Extension, tuple[Extension, ...]]:
        return Extension(kind=kind, server=values["server"], name=values["item"]), ()

    return World(kind=kind, texts=(Text(name="server"), Text(name="item")), build=build)


# ---------------------------------------------------------------------------------------------- tools, sub-agents

_OWN = tuple(sorted(RUNTIMES - {""}))
_PLUGIN = "plugin:"


def _plain(kind: str) -> list[World]:
    name, source = Text(name="name"), Text(name="source")

    def own(values: Values) -> tuple[Extension, tuple[Extension, ...]]:
        facts = {"builtin": True}
        return Extension(kind=kind, name=values["name"], source=values.get("source", ""), facts=facts), ()

    def of_plugin(prefix: str, is_shared: bool) -> Build:
        def build(values: Values) -> tuple[Extension, tuple[Extension, ...]]:
            ext = Extension(kind=kind, name=values["name"], source=prefix + values["source"])
            twin = Extension(kind=kind, name=values["name"], source="builtin")
            return ext, (twin,) if is_shared else ()

        return build

    never = tuple(("source", text) for text in (*_OWN, f"{_PLUGIN}*"))
    found = [
        World(kind=kind, texts=(name,), build=own),
        World(kind=kind, texts=(name, source), build=own, one_of={"source": _OWN}),
    ]
    for is_shared in (False, True):
        plain, marked = of_plugin("", is_shared), of_plugin(_PLUGIN, is_shared)
        found.append(World(kind=kind, texts=(name, source), build=plain, never=never))
        found.append(World(kind=kind, texts=(name, source), build=marked))
    return found


# ---------------------------------------------------------------------------------------------- skills


def _skills() -> list[World]:
    flags = sorted(product((False, True), repeat=2), key=sum)
    return [_skill(depth, *shared) for shared in flags for depth in range(MAX_DEPTH + 1)]


def _skill(depth: int, is_leaf_shared: bool, is_declared_shared: bool) -> World:
    folders = tuple(f"folder{at}" for at in range(depth))

    def build(values: Values) -> tuple[Extension, tuple[Extension, ...]]:
        leaf, declared = values["leaf"], values.get("declared")
        name = "/".join((*(values[folder] for folder in folders), leaf))
        ext = Extension(kind="skill", name=name, category=values.get("category") or None, declared_name=declared)
        others = []
        if is_leaf_shared:
            others.append(Extension(kind="skill", name=f"another/place/of/{leaf}"))
        if is_declared_shared and declared:
            others.append(Extension(kind="skill", name="another/place/of/one", declared_name=declared))
        return ext, tuple(others)

    texts = (
        Text(name="leaf"),
        *(Text(name=folder) for folder in folders),
        Text(name="category", min_length=0),
        Text(name="declared", is_optional=True),
    )
    never = tuple((text, "*/*") for text in ("leaf", *folders))
    return World(kind="skill", texts=texts, build=build, never=never)
