"""Random worlds: an inventory, and a profile whose patterns are made of its names. Plain functions of a `Random`.

Small alphabets, names shared between kinds, and patterns cut from what is installed, so that rules and items meet;
hostile names are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from tests.oracle.items import Item, items_of
from tests.oracle.patterns_law import module_of, names_of, skill_category
from tests.oracle.profile_law import deny_spellings

T = TypeVar("T")
Json = dict[str, Any]
World = tuple[Json, Json]

PLAIN = ["bash", "read", "send", "get_issue", "x_debug", "deploy", "notes", "search", "a", "b", "task"]
HOSTILE = [
    *[
        "a__b",
        "__x",
        "x__",
        "_x",
        "x_",
        "a/b",
        "a.b",
        "A",
        "Bash",
        "café",
        "café",
        "工具",
        "[a]",
        "a*",
        "!x",
        "a:b",
        "mcp",
        "mcp__a",
        "default",
        "pаy",
        "a-b",
    ],
    *("a b", "", " ", "ba\u200bsh", "a\nb", "s" * 64, "what?", "\ufeffa", "a]b", "..", "x%2fy", "d\ufe0f", "{a}"),
    *(" bash", "longer-name-" * 6 + "end", "builtin", "[]", "x" * 49, "deploy\u00e9"),
]
SERVERS = [
    *[
        "slack",
        "github",
        "github__evil",
        "github/evil",
        "a/b",
        "a.b",
        "my-srv",
        "_s",
        "s_",
        "mcp_x",
        "mcp",
        "工",
        "k8s",
        "a",
        "a_b",
        "a__b",
        "café",
        "café",
    ],
    *("my srv", "s" * 60, "sl\u200back", "t" * 50),
]
FOLDERS = ["ops", "a", "research", "deep/er", "default", "caf\u00e9"]
SOURCES = ["builtin", "builtin", "kit", "plug"]
URIS = [
    *[
        "file:///a",
        "file:///a/../b",
        "file:///%61",
        "file:///x/%2e%2e/y",
        "s://1",
        "repo://a/b",
        "u",
        "a/b/./c",
        "s://1%252e",
        "../x",
    ],
    *("file:///a/b/..", "s://h/%2F..%2Fq", "x__y://z"),
]
CATEGORIES = ["research", "devops", "", "ops", "a", "cafe\u0301", " "]
STATES = ["configured", "untrusted", "failed", "disabled"]
ODD = [
    "*",
    "**",
    "?",
    "?*",
    "",
    " ",
    "[a-c]*",
    "[!b]*",
    "*[_/]*",
    "mcp__*",
    "m*",
    "*__*",
    "*/*",
    "[]",
    "[a]",
    "b*",
    "!a",
]
BROKEN = [7, None, True, ["a"], "[a", "x[!"]


def times(rng: Random, most: int, make: Callable[[], T]) -> list[T]:
    """Up to so many of what `make` makes."""
    return [make() for _ in range(rng.randint(0, most))]


def unlike(rows: list[Json], *keys: str) -> list[Json]:
    """The rows, the first of each that agree in these keys."""
    return list({tuple(row[k] for k in keys): row for row in reversed(rows)}.values())


def name(rng: Random) -> str:
    """A name, now and then a hostile one."""
    kind = rng.randint(0, 4)
    if kind == 0:
        return rng.choice(HOSTILE)
    return rng.choice(PLAIN) if kind < 4 else "".join(times(rng, 4, lambda: rng.choice("ab_/.-é*")))


def inventory(rng: Random) -> Json:
    """An inventory file whose items share a handful of names."""
    pool = [name(rng) for _ in range(3)]
    folders = [rng.choice(FOLDERS), rng.choice(FOLDERS)]

    def pick() -> str:
        return rng.choice(pool) if rng.randint(0, 4) else name(rng)

    def skill() -> Json:
        row = {"name": pick() if rng.randint(0, 1) else f"{rng.choice(folders)}/{pick()}", "source": "project"}
        if rng.randint(0, 1):
            row["category"] = rng.choice(CATEGORIES)
        return row | ({"declared_name": pick()} if rng.randint(0, 1) else {})

    def server() -> Json:
        row: Json = {"server": rng.choice(SERVERS)}
        if rng.randint(0, 4) == 0:
            return row | {"state": rng.choice(STATES)}
        row |= {"state": "connected"} if rng.randint(0, 1) else {}
        return row | {
            "tools": unlike(times(rng, 3, lambda: {"name": pick()}), "name"),
            "resources": unlike(times(rng, 2, lambda: {"uri": rng.choice(URIS)}), "uri"),
            "prompts": unlike(times(rng, 2, lambda: {"name": pick()}), "name"),
        }

    return {
        "tools": unlike(times(rng, 4, lambda: {"name": pick(), "source": rng.choice(SOURCES)}), "name", "source"),
        "skills": unlike(times(rng, 4, skill), "name"),
        "mcp": unlike(times(rng, 3, server), "server"),
        "subagents": unlike(times(rng, 1, lambda: {"name": pick()}), "name"),
    }


def wild(rng: Random, text: str) -> str:
    """A pattern made of one text: itself, or a piece of it with wildcards."""
    shapes = [text, text, text, text[:2] + "*", "*" + text[-2:], f"*{text[1:3]}*", "?" + text[1:], f" {text} "]
    shapes += [text[:-1] + "?", f"[!z]{text[1:]}", f"[{text[:1]}]{text[1:]}" if text[:1].isalnum() else text]
    return rng.choice(shapes)


def pattern(rng: Random, texts: Sequence[str]) -> str:
    """A pattern over these texts; now and then one about nothing or everything."""
    kind = rng.randint(0, 4)
    if kind == 0:
        return rng.choice(ODD)
    return wild(rng, rng.choice(texts) if texts and kind < 4 else name(rng))


def patterns(rng: Random, texts: Sequence[str]) -> Any:
    """A list of patterns; now and then a lone string, or an entry that makes the profile unreadable."""
    kind = rng.randint(0, 19)
    if kind == 0:
        return pattern(rng, texts)
    found: list[Any] = times(rng, 3, lambda: pattern(rng, texts))
    return [*found, rng.choice(BROKEN)] if kind == 1 else found


def some_of(rng: Random, most: int, parts: dict[str, Callable[[], Any]]) -> Json:
    """A mapping of one or more of these keys, in any order."""
    keys = rng.sample(sorted(parts), rng.randint(1, min(most, len(parts))))
    return {key: parts[key]() for key in keys}


def spellings(items: Sequence[Item], *kinds: str) -> list[str]:
    """Every spelling of the items of these kinds."""
    return [text for item in items if item.kind in kinds for text in deny_spellings(item)]


def profile_world(rng: Random) -> World:
    """A profile of dialect A and an inventory."""
    stock = inventory(rng)
    items = items_of(stock)
    servers = [row["server"] for row in stock["mcp"]]
    mcp = spellings(items, "mcp_tool", "mcp_resource", "mcp_prompt") + servers * 4
    wanted = [f"{i.server}/{i.name}" for i in items if i.is_mcp] + servers * 2 + [f"{s}/*" for s in servers]
    tools = [text for i in items if i.kind == "tool" for text in (i.name, f"{i.source}/{i.name}")] * 3
    tools += spellings(items, "mcp_tool")
    skills = spellings(items, "skill")

    def block(texts: Sequence[str], **more: Callable[[], Any]) -> Json:
        return some_of(
            rng, 2, {"disabled": lambda: patterns(rng, texts), "allowed": lambda: patterns(rng, texts)} | more
        )

    def tools_block() -> Any:
        if rng.randint(0, 5) == 0:
            return patterns(rng, tools)
        later = {
            "mode": lambda: rng.choice(["automatic", "selected", "none"]),
            "enabled": lambda: patterns(rng, tools),
            "toolset": lambda: rng.choice(["safe", "none", "research", "no-such-preset"]),
            "web_search": lambda: rng.choice([True, False]),
        }
        return block(tools, **(later if rng.randint(0, 2) == 0 else {}))

    def skills_block() -> Any:
        if rng.randint(0, 5) == 0:
            return patterns(rng, skills)
        return block(
            skills, categories=lambda: times(rng, 2, lambda: rng.choice([*CATEGORIES, "*", "**", "re*", "?*"]))
        )

    profile = some_of(
        rng,
        3,
        {
            "tools": tools_block,
            "skills": skills_block,
            "mcp": lambda: block(mcp, required=lambda: times(rng, 3, lambda: pattern(rng, wanted))),
            "resources": lambda: block(mcp),
            "prompts": lambda: block(mcp),
            "subagents": lambda: block(spellings(items, "subagent")),
        },
    )
    odd = [{"tool": {}}, {"mpc": {"disabled": []}}, {"name": "x"}, {"model": "m"}, {"dialect": "profile"}]
    return profile | (rng.choice(odd) if rng.randint(0, 9) == 0 else {}), stock


def rules(rng: Random, wholes: Sequence[tuple[str, ...]], parts: int) -> list[Any]:
    """Patterns of dialect B, cut from what items are called in full; some with the wrong number of parts."""

    def words() -> list[str]:
        meant = rng.choice(wholes) if wholes else ("*",) * parts
        return [rng.choice([part, part, wild(rng, part), wild(rng, part), "*", rng.choice(ODD)]) for part in meant]

    def rule() -> Any:
        kind = rng.randint(0, 7)
        if kind == 0:
            return ":".join("*" * parts)
        if kind == 1:
            return rng.choice(["", "!", "!!", "! !"]) + ":".join([*words(), "x"][rng.randint(0, parts) :])
        return rng.choice(["", "", "!", "! ", " !"]) + ":".join(words())

    found = times(rng, 4, rule)
    return [*found, rng.choice(BROKEN)] if rng.randint(0, 19) == 0 else found


def patterns_world(rng: Random) -> World:
    """A profile of dialect B and an inventory."""
    stock = inventory(rng)
    items = items_of(stock)
    callables = [(*module_of(i), n) for i in items if i.kind == "tool" or i.is_mcp for n in names_of(i)]
    skills = [
        (category, leaf)
        for i in items
        if i.kind == "skill"
        for category in (skill_category(i), *i.ancestors, i.category or "*")
        for leaf in (i.leaf, i.declared or "*")
    ]

    def block(wholes: Sequence[tuple[str, ...]], parts: int) -> Json:
        found: Json = {"patterns": rules(rng, wholes, parts)} if rng.randint(0, 9) else {}
        return found | ({"use_catalog": rng.choice([True, False])} if rng.randint(0, 4) == 0 else {})

    profile = some_of(
        rng,
        3,
        {
            "tools": lambda: block(callables, 3),
            "skills": lambda: block(skills, 2),
            "subagents": lambda: times(rng, 2, lambda: rng.choice([i.name for i in items] or ["x"])),
        },
    )
    odd = [{"name": "x"}, {"mcp": {"disabled": []}}]
    return {"dialect": "patterns"} | profile | (rng.choice(odd) if rng.randint(0, 9) == 0 else {}), stock
