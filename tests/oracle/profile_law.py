"""Dialect A by the letter of law 1-3: loops over every pattern and every spelling."""

from __future__ import annotations

from typing import Any

from tests.oracle.items import RUNTIMES, Item, connected_servers
from tests.oracle.text import any_hits, clean, hits, is_bad_name, nfc, uri_forms
from tests.oracle.wire_names import clean_servers, wire_names

Block = dict[str, Any]


# -- spellings (law 2) -------------------------------------------------------------------------------------------


def full_names(item: Item) -> list[str]:
    """The item spellings of an MCP item that a deny is tried on: never the bare server."""
    names: list[str] = []
    for name in uri_forms(item.name) if item.kind == "mcp_resource" else [item.name]:
        names += [f"{item.server}/{name}", f"{item.server}__{name}", f"mcp__{item.server}__{name}"]
        names += wire_names(item.server, name)
        # A runtime may normalise before it cleans, so a deny is tried on what either order gives.
        names += wire_names(nfc(item.server), nfc(name))
    return names


def deny_spellings(item: Item) -> list[str]:
    """Every spelling a deny is tried on.

    Reading: a skill's last segment denies every skill that has it; only allowing needs it to be unique. Otherwise
    installing a second skill of that name would lift the deny.
    """
    if item.kind == "tool":
        return [item.name, f"{item.source}/{item.name}"]
    if item.kind == "skill":
        spellings = [item.name, item.leaf, f"{item.category}/{item.leaf}"] if item.category else [item.name, item.leaf]
        if item.declared:
            spellings.append(item.declared)
        return spellings + [f"{folder}/{item.leaf}" for folder in item.ancestors]
    if item.is_mcp:
        return [item.server, *clean_servers(item.server), *clean_servers(nfc(item.server)), *full_names(item)]
    return [item.name]


def mcp_allows(pattern: str, server: str, name: str, *, by_server: bool) -> bool:
    """Whether one allow pattern admits one MCP item; `by_server`: a bare pattern names servers.

    Reading: a pattern with `/` never reaches a server whose name has one, by whatever spelling.
    """
    text, server, name = clean(pattern), nfc(server), nfc(name)
    if "/" not in text and "__" not in text:
        return by_server and hits(text, server)
    return any(hits(text, full) for full in allow_full_names(text, server, name))


def allow_full_names(text: str, server: str, name: str) -> list[str]:
    """The full names of an MCP item that a pattern of this text may allow by."""
    if "/" in text and "/" in server:
        return []
    names = [f"{server}/{name}"] if "/" in text else []
    joined = "__" in server or "__" in name or server.endswith("_") or name.startswith("_")
    if "__" in text and not joined:
        names += [f"{server}__{name}", f"mcp__{server}__{name}"]
    return names


def tool_hit(pattern: str, item: Item, *, by_name: bool) -> bool:
    """Whether a pattern means this tool; `by_name`: its bare name may be used.

    Reading: `source/name` is a spelling for patterns that hold a `/`. Otherwise `b*` would mean every tool of
    `builtin`, a word that nobody wrote: more allowed, and more denied, than was asked.
    """
    text = clean(pattern)
    return (by_name and hits(text, item.name)) or ("/" in text and hits(text, f"{item.source}/{item.name}"))


def bare_name_allows(item: Item, everything: list[Item]) -> bool:
    """Whether an allow may use a tool's bare name: nobody else offers it, or it is the runtime's own."""
    rivals = [t for t in everything if t.kind == "tool" and nfc(t.name) == nfc(item.name) and t.source != item.source]
    return not rivals or item.source in RUNTIMES


def denied_by(patterns: list[str], item: Item) -> bool:
    """Whether a deny-list names the item, through any spelling."""
    if item.kind == "tool":
        return any(tool_hit(p, item, by_name=True) for p in patterns)
    return any_hits(patterns, deny_spellings(item))


def allowed_by(patterns: list[str], item: Item, everything: list[Item]) -> bool:
    """Whether an allow-list admits the item, through the spellings that may allow."""
    if item.is_mcp:
        # Each form of a URI must be admitted, by whichever pattern.
        forms = uri_forms(item.name) if item.kind == "mcp_resource" else [item.name]
        return all(any(mcp_allows(p, item.server, form, by_server=True) for p in patterns) for form in forms)
    if item.kind == "tool":
        # Reading: a lone `*` is everything that is offered, so it reaches a plugin's twin of the runtime's tool too.
        by_name = bare_name_allows(item, everything)
        return any(tool_hit(p, item, by_name=by_name or set(clean(p)) == {"*"}) for p in patterns)
    if item.kind == "skill":
        namesakes = [s for s in everything if s.kind == "skill" and nfc(s.leaf) == nfc(item.leaf)]
        return any_hits(patterns, [item.name, item.leaf] if len(namesakes) == 1 else [item.name])
    return any_hits(patterns, [item.name])


def category_fits(patterns: list[str], category: str) -> bool:
    """Whether a skill's category is permitted; the uncategorised fit `""` and `*` only."""
    if not category:
        return any(clean(p) in ("", "*") for p in patterns)
    return any_hits(patterns, [category])


# -- the steps (law 3) -------------------------------------------------------------------------------------------


def passes_block(block: Block, item: Item, everything: list[Item]) -> bool:
    """Steps 1 to 3 of one block for one item of its kind."""
    if denied_by(block["disabled"], item):
        return False
    if block["allowed"] and not allowed_by(block["allowed"], item, everything):
        return False
    return not (item.kind == "skill" and block["categories"] and not category_fits(block["categories"], item.category))


def is_stars(pattern: str) -> bool:
    """Whether a pattern is made of `*` and `?` alone."""
    return bool(clean(pattern)) and set(clean(pattern)) <= {"*", "?"}


def passes_tools_block(tools: Block, item: Item, everything: list[Item]) -> bool:
    """The `tools` block for a tool: `disabled`, then every one of its allow-lists."""
    if tools["nothing"] or not passes_block(tools, item, everything):
        return False
    spellings = [f"{item.source}/{item.name}"]
    if bare_name_allows(item, everything):
        spellings.append(item.name)
    return all(any(clean(n) in [nfc(s) for s in spellings] for n in names) for names in tools["exact"])


def bridge_passes(blocks: dict[str, Block], item: Item) -> bool:
    """What the `tools` block says about an MCP item (the two bridges, both only narrowing).

    Reading: `mode: none`, `toolset: none` and `tools: []` take the MCP tools whatever `mcp` says ("included").
    Reading: an allow pattern without `/` and `__` names no full name, so `tools.allowed: ["*"]` stays among tools.
    """
    tools, mcp, own = blocks["tools"], blocks["mcp"], blocks[OWN_BLOCK[item.kind]]
    if item.kind == "mcp_tool":
        if tools["nothing"]:
            return False
        if any_hits([p for p in tools["disabled"] if not is_stars(p)], full_names(item)):
            return False
    narrows = tools["nothing"] or tools["allowed"] or tools["exact"]
    if mcp["allowed"] or not narrows:
        return True
    if item.kind != "mcp_tool":
        return bool(own["allowed"])
    if tools["allowed"] and not any(mcp_allows(p, item.server, item.name, by_server=False) for p in tools["allowed"]):
        return False
    return all(any(exact_mcp(n, item) for n in names) for names in tools["exact"])


def exact_mcp(name: str, item: Item) -> bool:
    """Whether a plain name of `enabled` or a toolset is this MCP item's full name."""
    return clean(name) in allow_full_names(clean(name), nfc(item.server), nfc(item.name))


OWN_BLOCK = {
    "tool": "tools",
    "skill": "skills",
    "subagent": "subagents",
    "mcp_tool": "mcp",
    "mcp_resource": "resources",
    "mcp_prompt": "prompts",
}


def has_bad_name(item: Item) -> bool:
    """Whether the item is refused by its name, or by its server's (reading: a server is a name like any other)."""
    return is_bad_name(item.name) or (item.is_mcp and is_bad_name(item.server))


def passes_without_tools(blocks: dict[str, Block], item: Item, everything: list[Item]) -> bool:
    """Everything but the `tools` block: what `required` looks at."""
    if has_bad_name(item) or not passes_block(blocks["mcp"], item, everything):
        return False
    return item.kind == "mcp_tool" or passes_block(blocks[OWN_BLOCK[item.kind]], item, everything)


def allowed(blocks: dict[str, Block], item: Item, everything: list[Item]) -> bool:
    """The decision for one item."""
    if has_bad_name(item):
        return False
    if item.kind == "tool":
        return passes_tools_block(blocks["tools"], item, everything)
    if item.is_mcp:
        return passes_without_tools(blocks, item, everything) and bridge_passes(blocks, item)
    return passes_block(blocks[OWN_BLOCK[item.kind]], item, everything)


# -- required ----------------------------------------------------------------------------------------------------


def is_removed(blocks: dict[str, Block], server: str, items: list[Item]) -> bool:
    """Whether the `mcp` block removes a server: by name, by `server/*` as a whole, or item by item.

    Reading: a server that lists nothing is removed when an allow-list admits neither its name nor `server/*`.
    """
    mcp = blocks["mcp"]
    names = [server, *clean_servers(server)]
    for pattern in mcp["disabled"]:
        text = clean(pattern)
        if any(hits(text, name) for name in names):
            return True
        if text.endswith("/*") and any(hits(text[:-2], name) for name in names):
            return True
    listed = [i for i in items if i.is_mcp and i.server == server]
    if listed:
        return not any(not has_bad_name(i) and passes_block(mcp, i, items) for i in listed)
    if not mcp["allowed"]:
        return False
    for pattern in mcp["allowed"]:
        text = clean(pattern)
        if "/" not in text and "__" not in text and hits(text, server):
            return False
        if text.endswith("/*") and "/" not in server and hits(text[:-2], server):
            return False
    return True


def is_met(blocks: dict[str, Block], pattern: str, servers: list[str], items: list[Item]) -> bool:
    """Whether one required pattern is met by a connected server that the profile keeps.

    Reading: with a `/` in it a pattern is `server/item` only, so a server called `github/evil` never meets `github/*`.
    """
    text = clean(pattern)
    for server in servers:
        if is_bad_name(server) or is_removed(blocks, server, items):
            continue
        if "/" not in text:
            if hits(text, server):
                return True
            continue
        if "/" in server:
            continue
        if text.endswith("/*") and hits(text[:-2], server):
            return True
        for item in items:
            is_its_own = item.is_mcp and item.server == server and hits(text, f"{server}/{item.name}")
            if is_its_own and passes_without_tools(blocks, item, items):
                return True
    return False


def missing(blocks: dict[str, Block], inventory: dict[str, Any], items: list[Item]) -> list[str]:
    """The required patterns that nothing meets, each once, in the order of the profile."""
    servers = connected_servers(inventory)
    out: list[str] = []
    for pattern in blocks["mcp"]["required"]:
        if clean(pattern) not in out and not is_met(blocks, pattern, servers, items):
            out.append(clean(pattern))
    return out
