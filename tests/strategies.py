"""Random profiles and inventories for the laws by generation: small alphabets, so that things meet."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

PLAIN = ["bash", "read", "send", "get_issue", "x_debug", "deploy", "notes", "search", "a", "b"]
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
        "what?",
        "{a}",
    ),
    *(
        "!x",
        "a:b",
        "",
        " ",
        "ba\u200bsh",
        "a\nb",
        "s" * 64,
        "mcp",
        "mcp__a",
        "default",
        "p\u0430y",
        "a-b",
        "\ufeffa",
        "[",
        "a]b",
        "..",
        "x%2fy",
    ),
]
SERVERS = [
    "slack",
    "github",
    "github__evil",
    "a/b",
    "a.b",
    "my srv",
    "_s",
    "s_",
    "mcp_x",
    "工",
    "s" * 60,
    "k8s",
    "a",
    "a_b",
    "a__b",
    "sl\u200back",
    "",
]
FOLDERS = ["ops", "a", "research", "deep/er", "default", "caf\u00e9"]
SOURCES = ["builtin", "kit", "plug"]
URIS = [
    "file:///a",
    "file:///a/../b",
    "file:///%61",
    "file:///x/%2e%2e/y",
    "s://1",
    "repo://a/b",
    "u",
    "a/b/./c",
    "s://1%252e",
]
CATEGORIES = ["research", "devops", "", "ops", "a", "cafe\u0301"]
TOOLSETS = ["safe", "none", "research"]

names = st.one_of(
    st.sampled_from(PLAIN), st.sampled_from(PLAIN), st.sampled_from(HOSTILE), st.text("ab_/.-é*", max_size=4)
)
server_names = st.sampled_from(SERVERS)
skill_names = st.one_of(names, st.builds("{}/{}".format, st.sampled_from(FOLDERS), names))


def _row(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping without the keys that came out as None."""
    return st.fixed_dictionaries(parts).map(lambda row: {k: v for k, v in row.items() if v is not None})


tool_rows = _row(name=names, source=st.sampled_from(SOURCES))
skill_rows = _row(
    name=skill_names,
    source=st.just("project"),
    category=st.none() | st.sampled_from(CATEGORIES),
    declared_name=st.none() | names,
)
server_rows = _row(
    server=server_names,
    state=st.none() | st.just("connected"),
    tools=st.lists(_row(name=names), max_size=3, unique_by=lambda r: r["name"]),
    resources=st.lists(_row(uri=st.sampled_from(URIS)), max_size=2, unique_by=lambda r: r["uri"]),
    prompts=st.lists(_row(name=names), max_size=2, unique_by=lambda r: r["name"]),
)
down_rows = _row(server=server_names, state=st.sampled_from(["configured", "untrusted", "failed", "disabled"]))

inventories = st.fixed_dictionaries(
    {
        "tools": st.lists(tool_rows, max_size=5, unique_by=lambda r: (r["name"], r["source"])),
        "skills": st.lists(skill_rows, max_size=4, unique_by=lambda r: r["name"]),
        "mcp": st.lists(server_rows | server_rows | down_rows, max_size=3, unique_by=lambda r: r["server"]),
        "subagents": st.lists(_row(name=names), max_size=2, unique_by=lambda r: r["name"]),
    }
)

_wild = st.builds(
    lambda text, how: {
        "same": text,
        "prefix": text[:2] + "*",
        "suffix": "*" + text[-2:],
        "infix": f"*{text[1:3]}*",
        "one": "?" + text[1:],
    }[how],
    st.one_of(names, server_names),
    st.sampled_from(["same", "prefix", "suffix", "infix", "one"]),
)
_joined = st.builds(
    "{}{}{}".format,
    st.one_of(server_names, _wild),
    st.sampled_from(["/", "__", "_", ":"]),
    st.one_of(names, _wild, st.sampled_from(URIS)),
)
_odd = st.sampled_from(
    ["*", "**", "?", "?*", "", " ", "[a-c]*", "[!b]*", "*[_/]*", "mcp__*", "*__*", "*/*", " bash ", "[]", "[a]"]
)
patterns = st.one_of(_wild, _wild, _joined, _joined, _odd, st.builds("mcp__{}__{}".format, server_names, names))
broken_patterns = st.sampled_from([7, None, True, ["a"], "[a", "x[!"])
pattern_lists = st.one_of(
    st.lists(patterns, max_size=4),
    st.lists(patterns, max_size=4),
    st.lists(patterns, max_size=2),
    patterns,
    st.lists(patterns | broken_patterns, max_size=3),
)


def _optional(**parts: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=parts)


def _block(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _optional(disabled=pattern_lists, allowed=pattern_lists, **more)


tools_block = st.one_of(
    _block(),
    _block(),
    _block(
        mode=st.sampled_from(["automatic", "selected", "none", "automatic"]),
        enabled=pattern_lists,
        toolset=st.sampled_from(TOOLSETS),
        web_search=st.booleans(),
    ),
    pattern_lists,
)
oddities = st.sampled_from(
    [
        {"tool": {}},
        {"mpc": {"disabled": []}},
        {"name": "x"},
        {"model": "m", "id": "y"},
        {"dialect": "profile"},
        {},
        {},
        {},
    ]
)
profile_documents = st.builds(
    lambda body, extra: {**body, **extra},
    _optional(
        tools=tools_block,
        skills=_block(categories=st.lists(st.sampled_from([*CATEGORIES, "*", "**", "re*", " "]), max_size=2))
        | pattern_lists,
        mcp=_block(required=pattern_lists) | _block(),
        resources=_block(),
        prompts=_block(),
        subagents=_block(),
    ),
    oddities,
)

_part = st.one_of(_wild, _odd, st.sampled_from(["*", "*", "impl", "mcp", "deepagents", "kit", "default", "ops"]))


def _rule(parts: int) -> st.SearchStrategy[str]:
    whole = st.builds(
        lambda mark, words: mark + ":".join(words),
        st.sampled_from(["", "", "!", "! ", " !"]),
        st.lists(_part, min_size=parts, max_size=parts),
    )
    crooked = st.builds(
        lambda mark, words: mark + ":".join(words), st.sampled_from(["", "!", "!!", "! !"]), st.lists(_part, max_size=4)
    )
    return st.one_of(
        whole, whole, whole, crooked, st.sampled_from(["*:*:*", "*:*", "impl:*:*", "mcp:*:*", "default:*"])
    )


def _rules(parts: int) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(_rule(parts), max_size=5),
        st.lists(_rule(parts), max_size=5),
        st.lists(_rule(parts) | broken_patterns, max_size=3),
    )


patterns_documents = st.builds(
    lambda body, extra: {"dialect": "patterns", **body, **extra},
    _optional(
        tools=_optional(patterns=_rules(3), use_catalog=st.booleans()),
        skills=_optional(patterns=_rules(2), use_catalog=st.booleans()),
        subagents=st.lists(names, max_size=2),
    ),
    st.sampled_from([{}, {}, {}, {"name": "x"}, {"mcp": {"disabled": []}}]),
)
