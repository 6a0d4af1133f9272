"""Random worlds for the laws by generation: an inventory, and a profile whose patterns are made of its names.

Small alphabets and patterns cut from what is installed, so that rules and items meet; hostile names among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.oracle.items import Item, items_of
from tests.oracle.patterns_law import module_of, names_of, skill_category
from tests.oracle.profile_law import deny_spellings

Draw = Any  # what `composite` hands in
World = tuple[dict[str, Any], dict[str, Any]]

PLAIN = ["bash", "read", "send", "get_issue", "x_debug", "deploy", "notes", "search", "a", "b", "task"]
HOSTILE = [
    *(
        "a__b",
        "__x",
        "x__",
        "_x",
        "x_",
        "a/b",
        "a.b",
        "a b",
        "A",
        "Bash",
        "caf\u00e9",
        "cafe\u0301",
        "工具",
        "[a]",
        "a*",
    ),
    *("!x", "a:b", "", " ", "ba\u200bsh", "a\nb", "s" * 64, "mcp", "mcp__a", "default", "p\u0430y", "a-b", "what?"),
    *("\ufeffa", "a]b", "..", "x%2fy", "d\ufe0f", "{a}", " bash", "longer-name-" * 6 + "end"),
]
SERVERS = [
    *(
        "slack",
        "github",
        "github__evil",
        "github/evil",
        "a/b",
        "a.b",
        "my srv",
        "my-srv",
        "_s",
        "s_",
        "mcp_x",
        "mcp",
        "工",
    ),
    *("s" * 60, "k8s", "a", "a_b", "a__b", "sl\u200back", "caf\u00e9", "cafe\u0301"),
]
FOLDERS = ["ops", "a", "research", "deep/er", "default", "caf\u00e9"]
SOURCES = ["builtin", "kit", "plug"]
URIS = [
    *("file:///a", "file:///a/../b", "file:///%61", "file:///x/%2e%2e/y", "s://1", "repo://a/b", "u", "a/b/./c"),
    *("s://1%252e", "file:///a/b/..", "../x", "s://h/%2F..%2Fq", "x__y://z"),
]
CATEGORIES = ["research", "devops", "", "ops", "a", "cafe\u0301", " "]
TOOLSETS = ["safe", "none", "research", "safe", "no-such-preset"]
STATES = ["configured", "untrusted", "failed", "disabled"]

names = st.one_of(*[st.sampled_from(PLAIN)] * 3, st.sampled_from(HOSTILE), st.text("ab_/.-é*", max_size=4))
server_names = st.sampled_from(SERVERS)


def row(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping without the keys that came out as None."""
    return st.fixed_dictionaries(parts).map(lambda found: {k: v for k, v in found.items() if v is not None})


def some(rows: st.SearchStrategy[Any], most: int, *keys: str) -> st.SearchStrategy[list[Any]]:
    """A list of rows, no two alike in these keys."""
    return st.lists(rows, max_size=most, unique_by=lambda r: tuple(r[k] for k in keys))


@st.composite
def inventories(draw: Draw) -> dict[str, Any]:
    """An inventory file whose items share a handful of names, so that they collide."""
    pool = draw(st.lists(names, min_size=2, max_size=4))
    folders = draw(st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=2))
    name = st.one_of(*[st.sampled_from(pool)] * 4, names)
    server = row(
        server=server_names,
        state=st.none() | st.just("connected"),
        tools=some(row(name=name), 3, "name"),
        resources=some(row(uri=st.sampled_from(URIS)), 2, "uri"),
        prompts=some(row(name=name), 2, "name"),
    )
    down = row(server=server_names, state=st.sampled_from(STATES))
    skill = row(
        name=st.one_of(name, st.builds("{}/{}".format, st.sampled_from(folders), name)),
        source=st.just("project"),
        category=st.none() | st.sampled_from(CATEGORIES),
        declared_name=st.none() | name,
    )
    return {
        "tools": draw(some(row(name=name, source=st.sampled_from(SOURCES)), 4, "name", "source")),
        "skills": draw(some(skill, 4, "name")),
        "mcp": draw(some(st.one_of(server, server, server, down), 3, "server")),
        "subagents": draw(some(row(name=name), 1, "name")),
    }


def wild(text: str) -> st.SearchStrategy[str]:
    """A pattern made of one text: itself, or a piece of it with wildcards."""
    shapes = [
        text,
        text,
        text[:2] + "*",
        "*" + text[-2:],
        f"*{text[1:3]}*",
        "?" + text[1:],
        f" {text} ",
        text[:-1] + "?",
    ]
    shapes += [f"[{text[:1]}]{text[1:]}" if text[:1].isalnum() else text, f"[!z]{text[1:]}"]
    return st.sampled_from(shapes)


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


def patterns(texts: Sequence[str]) -> st.SearchStrategy[str]:
    """Patterns over these texts, a few that are about nothing or everything."""
    made = st.sampled_from(list(texts) or ["x"]).flatmap(wild)
    return st.one_of(made, made, made, st.sampled_from(ODD), names.flatmap(wild))


def lists(texts: Sequence[str]) -> st.SearchStrategy[Any]:
    """Lists of patterns; now and then a lone string, or a list that makes the profile unreadable."""
    one = patterns(texts)
    short = st.lists(one, max_size=3)
    return st.one_of(*[short] * 8, one, st.lists(one | st.sampled_from(BROKEN), max_size=2))


def optional(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping in which any key may be absent."""
    return st.fixed_dictionaries({}, optional=parts)


def spellings(items: Sequence[Item], *kinds: str) -> list[str]:
    """Every spelling of the items of these kinds, and servers' names."""
    return [text for item in items if item.kind in kinds for text in deny_spellings(item)]


ODDITIES = [{}] * 8 + [{"tool": {}}, {"mpc": {"disabled": []}}, {"name": "x"}, {"model": "m"}, {"dialect": "profile"}]


@st.composite
def profile_worlds(draw: Draw) -> World:
    """A profile of dialect A and an inventory."""
    inventory = draw(inventories())
    items = items_of(inventory)
    mcp = spellings(items, "mcp_tool", "mcp_resource", "mcp_prompt") + [s["server"] for s in inventory["mcp"]]
    wanted = [f"{i.server}/{i.name}" for i in items if i.is_mcp] + [s["server"] for s in inventory["mcp"]] * 2
    wanted += [f"{s['server']}/*" for s in inventory["mcp"]]
    tools = spellings(items, "tool", "mcp_tool")

    def block(texts: Sequence[str], **more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        keys = {"disabled": lists(texts), "allowed": lists(texts), **more}
        return few(keys, 2)

    later = block(
        tools,
        mode=st.sampled_from(["automatic", "selected", "none", "automatic"]),
        enabled=lists(tools),
        toolset=st.sampled_from(TOOLSETS),
        web_search=st.booleans(),
    )
    categories = st.lists(st.sampled_from([*CATEGORIES, "*", "**", "re*", " ", "?*"]), max_size=2)
    skills = spellings(items, "skill")
    blocks = {
        "tools": st.one_of(block(tools), block(tools), later, lists(tools)),
        "skills": st.one_of(block(skills, categories=categories), block(skills), lists(skills)),
        "mcp": block(mcp, required=st.lists(patterns(wanted), max_size=3)),
        "resources": block(mcp),
        "prompts": block(mcp),
        "subagents": block(spellings(items, "subagent")),
    }
    return {**draw(few(blocks, 3)), **draw(st.sampled_from(ODDITIES))}, inventory


def few(parts: dict[str, st.SearchStrategy[Any]], most: int) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping of some of these keys, at least one."""
    chosen = st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=most, unique=True)
    return chosen.flatmap(lambda keys: st.fixed_dictionaries({key: parts[key] for key in keys}))


def rules(wholes: Sequence[tuple[str, ...]], parts: int) -> st.SearchStrategy[Any]:
    """Pattern lists of dialect B, cut from what items are called in full; some with the wrong number of parts."""
    column = st.one_of(*[st.just("*")] * 2, st.sampled_from(ODD))
    known = st.sampled_from(list(wholes) or [("*",) * parts])
    meant = known.flatmap(lambda whole: st.tuples(*(st.one_of(wild(part), st.just(part), column) for part in whole)))
    mark = st.sampled_from(["", "", "!", "! ", " !"])
    whole = st.builds(lambda m, words: m + ":".join(words), mark, meant)
    crooked = st.builds(
        lambda m, words, cut: m + ":".join((*words, "x")[cut:] if cut else words[:1]),
        st.sampled_from(["", "!", "!!", "! !"]),
        meant,
        st.integers(0, parts),
    )
    everything = st.just(":".join("*" * parts))
    rule = st.one_of(*[whole] * 5, everything, everything, crooked)
    broken = st.lists(rule | st.sampled_from(BROKEN), max_size=2)
    return st.one_of(*[st.lists(rule, min_size=1, max_size=5)] * 10, broken)


@st.composite
def patterns_worlds(draw: Draw) -> World:
    """A profile of dialect B and an inventory."""
    inventory = draw(inventories())
    items = items_of(inventory)
    callables = [(*module_of(i), name) for i in items if i.kind == "tool" or i.is_mcp for name in names_of(i)]
    skills = [
        (category, name)
        for i in items
        if i.kind == "skill"
        for category in {skill_category(i), *i.ancestors, i.category or "*"}
        for name in (i.leaf, i.declared or "*")
    ]
    profile = draw(
        optional(
            tools=st.one_of(
                *[st.fixed_dictionaries({"patterns": rules(callables, 3)})] * 8,
                optional(patterns=rules(callables, 3), use_catalog=st.booleans()),
            ),
            skills=st.one_of(
                *[st.fixed_dictionaries({"patterns": rules(skills, 2)})] * 8,
                optional(patterns=rules(skills, 2), use_catalog=st.booleans()),
            ),
            subagents=st.lists(st.sampled_from([i.name for i in items if i.kind == "subagent"] or ["x"]), max_size=2),
        )
    )
    extra = draw(st.sampled_from([{}] * 8 + [{"name": "x"}, {"mcp": {"disabled": []}}]))
    return {"dialect": "patterns", **profile, **extra}, inventory
