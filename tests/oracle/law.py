"""The law again, slow and obvious: what a profile lets an agent see of an inventory.

Written from the law's text alone, sections 1 to 5, by somebody who had not seen the implementation. No indexes, no
caches, no compiled patterns: loops and `fnmatch.fnmatchcase`. Where the law says nothing, the reading that never widens
is taken and written down beside the line that takes it ("Reading:").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.oracle import patterns_law, profile_law
from tests.oracle.items import items_of
from tests.oracle.shapes import BLOCKS, TOOLSETS, dialect_of, patterns_errors, profile_errors


@dataclass(frozen=True)
class Verdict:
    """allowed: by (id, source); what the rules say, whether or not the agent is available."""

    allowed: dict[tuple[str, str], bool]
    available: bool
    missing: list[str]


@dataclass(frozen=True)
class Unreadable:
    """A profile that must not be followed in part; the reasons are for people."""

    reasons: frozenset[str]


def judge(doc: Any, inventory: dict[str, Any]) -> Verdict | Unreadable:
    """What the law says of a parsed profile over an inventory file."""
    if not isinstance(doc, dict):
        return Unreadable(frozenset({"not a mapping"}))
    dialect = dialect_of(doc)
    if dialect is None:
        return Unreadable(frozenset({"a mixture of dialects, or no dialect at all"}))
    errors = profile_errors(doc) if dialect == "profile" else patterns_errors(doc)
    if errors:
        return Unreadable(frozenset(errors))
    items = items_of(inventory)
    if dialect == "patterns":
        return Verdict({i.key: patterns_law.allowed(doc, i, items) for i in items}, True, [])
    blocks = {name: block_of(name, doc.get(name, {})) for name in BLOCKS}
    lost = profile_law.missing(blocks, inventory, items)
    return Verdict({i.key: profile_law.allowed(blocks, i, items) for i in items}, not lost, lost)


def as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def block_of(name: str, raw: Any) -> dict[str, Any]:
    """One block of dialect A in full: every list there, old forms turned into what they mean.

    nothing: no tool at all. exact: lists of plain names an item must be in, besides `allowed`.
    Reading: `enabled` takes exact names, as the runtime that has it does (in its cases `enabled: ["w*"]` is nothing).
    """
    empty: dict[str, Any] = {
        "disabled": [],
        "allowed": [],
        "categories": [],
        "required": [],
        "nothing": False,
        "exact": [],
    }
    if isinstance(raw, list | str):
        if name == "skills":
            return {**empty, "disabled": as_list(raw)}
        return {**empty, "allowed": as_list(raw), "nothing": raw == []}
    block = {
        **empty,
        **{key: as_list(raw[key]) for key in ("disabled", "allowed", "categories", "required") if key in raw},
    }
    if name != "tools":
        return block
    exact = [as_list(raw["enabled"])] if raw.get("enabled", []) != [] else []
    if "toolset" in raw:
        exact.append(list(TOOLSETS[raw["toolset"]]))
    # Reading: `selected` looks at the names in `allowed`; `enabled` beside it is one more list, not its names.
    empty_selection = raw.get("mode") == "selected" and not block["allowed"]
    nothing = raw.get("mode") == "none" or raw.get("toolset") == "none" or empty_selection
    return {**block, "nothing": nothing, "exact": exact}
