"""Writers of the profile and the patterns dialect: lists that deny, and lists that admit. Neither can ask."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from extgate.core.patterns import matches
from extgate.core.policy import Effect
from extgate.dialects.commands import literal
from extgate.dialects.document import Document
from extgate.dialects.outline import Family, Outline

NOTHING: dict[str, list[str]] = {"disabled": ["*"]}
"""Lists that admit nothing: an empty `allowed` would put no limit."""


def write_profile(outline: Outline) -> list[Document]:
    """`agents/NAME.json` in the profile dialect."""
    blocks: dict[str, object] = {"id": outline.name}
    for block, family in (("tools", outline.tools), ("skills", outline.skills), ("subagents", outline.subagents)):
        lists = _lists(outline, family, block)
        if lists:
            blocks[block] = lists
    mcp = _mcp_lists(outline)
    limits_tools = isinstance(tools := blocks.get("tools"), dict) and "allowed" in tools
    if limits_tools and "allowed" not in mcp:
        mcp["allowed"] = ["*"]  # else the list of tools would hold for servers as well
    required = [r.pattern for r in outline.policy.requirements]
    if mcp or required:
        blocks["mcp"] = mcp | ({"required": required} if required else {})
    return [Document(path=f"agents/{outline.name}.json", text=json.dumps(blocks, indent=1, ensure_ascii=False) + "\n")]


def _lists(outline: Outline, family: Family, what: str) -> dict[str, list[str]]:
    strict: tuple[Effect, ...] = ("deny", "ask")
    denied = [p for effect in strict for p in family.patterns(effect)]
    if family.unknown == "allow":
        listed = _besides([name for effect in strict for name in family.of(effect)], denied)
        return {"disabled": [*denied, *listed]} if denied or listed else {}
    globs = family.patterns("allow") if family.has_one_list else []
    allowed = _besides(family.of("allow"), globs)
    if not globs and not allowed:
        return NOTHING
    lists = {"allowed": [*globs, *allowed]}
    return ({"disabled": denied} if denied else {}) | lists


def _besides(names: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """The names, literally, but those that a pattern holds anyway, as it stands or by its last segment: a skill that a
    list admits by that segment is not admitted any more once another one bears it."""
    forms = ((name, (name, name.rpartition("/")[2])) for name in names)
    return [literal(name) for name, told in forms if not any(matches(form, p) for form in told for p in patterns)]


def _mcp_lists(outline: Outline) -> dict[str, list[str]]:
    family, servers = outline.mcp, outline.servers
    denied = [p for effect in ("deny", "ask") for p in family.patterns(effect)]
    is_limited = family.unknown != "allow" or any(
        items.get("*") != "allow" and "allow" in items.values() for items in servers.values()
    )
    for server, items in servers.items():
        if not is_limited and items.get("*") != "allow":
            denied.append(f"{literal(server)}/*")
            continue
        denied += [
            f"{literal(server)}/{literal(name)}"
            for name, effect in items.items()
            if effect != "allow" and name != "*" and (items.get("*") == "allow")
        ]
    if not is_limited:
        return {"disabled": list(dict.fromkeys(denied))} if denied else {}
    allowed = family.patterns("allow") if family.has_one_list else []
    for server, items in servers.items():
        if items.get("*") == "allow":
            allowed.append(f"{literal(server)}/*")
        else:
            allowed += [f"{literal(server)}/{literal(n)}" for n, e in items.items() if e == "allow"]
    if not allowed:
        return NOTHING
    lists = {"allowed": list(dict.fromkeys(allowed))}
    return ({"disabled": list(dict.fromkeys(denied))} if denied else {}) | lists


# ---------------------------------------------------------------------------------------------- patterns


def write_patterns(outline: Outline) -> list[Document]:
    """`.msagent/agents/NAME.yml` in the patterns dialect."""
    import yaml

    tools = _rows(outline.tools, lambda name: _part("impl:*:{}", name))
    items = _mcp_rows(outline)
    skills = _rows(outline.skills, _skill)
    data: dict[str, object] = {
        "name": outline.name,
        "tools": {"patterns": [*tools, *items]},
        "skills": {"patterns": skills},
        "subagents": outline.subagents.of("allow"),
    }
    for needed in outline.policy.requirements:
        outline.lose("required", needed.pattern, "nothing here can be required")
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
    return [Document(path=f".msagent/agents/{outline.name}.yml", text=text)]


def _rows(family: Family, row: Callable[[str], str | None]) -> list[str]:
    """Positive patterns, then negative ones."""
    globs = family.patterns("allow") if family.has_one_list else []
    positive = ["*"] if family.unknown == "allow" else [*globs, *map(literal, family.of("allow"))]
    strict = [p for effect in ("deny", "ask") for p in family.patterns(effect)]
    strict += [literal(n) for effect in ("deny", "ask") for n in family.of(effect)] if positive else []
    found = [text for name in positive if (text := row(name)) is not None]
    return list(dict.fromkeys([*found, *(f"!{row(n.replace(':', '?'))}" for n in strict)]))


def _part(form: str, name: str) -> str | None:
    """A pattern of this form; None for a name with a colon, for which it has no spelling that admits just it."""
    return None if ":" in name else form.format(name)


def _skill(name: str) -> str | None:
    if ":" in name:
        return None
    *folders, leaf = name.split("/")
    return f"{folders[-1] if folders else '*' if '*' in leaf or '?' in leaf else 'default'}:{leaf}"


def _mcp_rows(outline: Outline) -> list[str]:
    lists = _mcp_lists(outline)
    if lists == NOTHING:
        return []
    parts = [path.partition("/") for path in lists.get("allowed", ["*/*"])]
    found = [f"mcp:{server}:{item}" for server, _, item in parts if ":" not in server + item]
    for path in lists.get("disabled", []):
        server, _, item = path.replace(":", "?").partition("/")
        found.append(f"!mcp:{server}:{item or '*'}")
    return found
