"""Names: which are refused, how an item is spelled in rules, and what runtimes call it on the wire.

An identity is never parsed back out of a name: every spelling is computed forward from the item.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from extgate.core.extension import KINDS, Extension
from extgate.core.patterns import nfc

MAX_WIRE = 64
"""Longest tool name that model APIs take, in characters (Anthropic and OpenAI, seen 2026-11-30)."""

RUNTIMES = frozenset(
    {"", "builtin", "native", "runtime", "claude-code", "opencode", "hermes", "openprogram", "msagent", "codex"}
    | {"gemini-cli", "deepagents"}
)
"""Sources that mean the runtime's own tools and not a plugin's."""

Facet = Literal["name", "any", "server", "item", "full", "item_any", "own", "category", "folder", "module", "type"]
"""What of an item a pattern is held against.

name: what an allow may use. any: every spelling, for denies. server: the server's name. item: `server/item`.
full: `server__item` and `mcp__server__item`. item_any: every spelling of an item but its server's own names.
own: dialect B's names of an item. category: a skill's frontmatter category, empty when it has none.
folder, module, type: dialect B's parts; of a skill, `folder` is its parent folder, `module` every ancestor folder.
"""


def refusal(name: str | None) -> str | None:
    """Why nothing of this name may be used; None when the name is sound."""
    if not name:
        return "it has no name"
    if name.isascii() and name.isprintable():
        return None
    for char in name:
        category = unicodedata.category(char)
        if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            what = {"Cc": "a control character", "Cs": "half a surrogate pair"}.get(category, "an invisible character")
            return f"its name holds {what} (U+{ord(char):04X})"
    return None


def show(text: str) -> str:
    """The text with control and invisible characters escaped, safe for a terminal and a log line."""
    if text.isascii() and text.isprintable():
        return text
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in bad else c for c in text)


def cleaned(text: str, allowed: str = r"A-Za-z0-9_-") -> str:
    """The text with each character outside the set replaced by `_`, as runtimes do before a name goes out."""
    return re.sub(f"[^{allowed}]", "_", text)


def wire_names(server: str, item: str) -> tuple[str, ...]:
    """Every name that a known runtime gives an MCP item, each also cut at 64 characters.

    Sources: reference notes on each runtime's requests, seen 2026-11-30. Claude Code and Hermes
    `mcp__server__item`; Codex the same as namespace and name; opencode and msAgent `server_item`; Gemini CLI
    `mcp_server_item`, its middle cut out over 63; OpenProgram `server__item`, letters of any script kept.
    """
    s, i = cleaned(server), cleaned(item)
    gemini = "mcp_" + cleaned(server, r"A-Za-z0-9_.:-").removeprefix("mcp_") + "_" + cleaned(item, r"A-Za-z0-9_.:-")
    if len(gemini) > 63:
        gemini = f"{gemini[:30]}...{gemini[-30:]}"
    letters_s, letters_i = cleaned(server, r"\w-"), cleaned(item, r"\w-")
    names = [f"mcp__{s}__{i}", f"{s}_{i}", f"{s}__{i}", f"{server}_{item}", gemini, f"{letters_s}__{letters_i}"]
    return tuple(dict.fromkeys(part for name in names for part in (name, name[:MAX_WIRE])))


def full_names(server: str, item: str) -> tuple[str, ...]:
    """`server__item` and `mcp__server__item` where the join can be read one way only, else none.

    Neither part may hold `__`, nor may a `_` stand at the join: otherwise another server's item could have the name.
    """
    if "__" in server or "__" in item or server.endswith("_") or item.startswith("_"):
        return ()
    return (f"{server}__{item}", f"mcp__{server}__{item}")


class Naming:
    """The spellings of each item of one inventory; some depend on what else is installed."""

    def __init__(self, extensions: Iterable[Extension]) -> None:
        extensions = tuple(extensions)
        skills = [e for e in extensions if e.kind == "skill"]
        self._leaves = Counter(nfc(e.leaf) for e in skills)
        self._declared = Counter(nfc(e.declared_name) for e in skills if e.declared_name)
        self._sources = Counter((e.kind, nfc(e.name)) for e in extensions if e.kind not in ("skill",) and not e.server)
        self._memo: dict[tuple[str, str | None, str, str, str | None], Mapping[Facet, tuple[str, ...]]] = {}

    def of(self, ext: Extension) -> Mapping[Facet, tuple[str, ...]]:
        """Every facet of the item with its spellings, in NFC; the first of `name` is how a reason names it."""
        key = (ext.kind, ext.server, ext.name, ext.source, ext.category)
        found = self._memo.get(key)
        if found is None:
            facets = self._facets(ext)
            found = {facet: tuple(dict.fromkeys(map(nfc, names))) for facet, names in facets.items()}
            self._memo[key] = found
        return found

    def _facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        if ext.server is not None:
            return _mcp_facets(ext, ext.server)
        return self._skill_facets(ext) if ext.kind == "skill" else self._plain_facets(ext)

    def _plain_facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        names = [f"{ext.source}/{ext.name}"] if ext.source else []
        is_own = is_runtime_source(ext)
        if is_own or self._sources[(ext.kind, nfc(ext.name))] <= 1:
            names.insert(0, ext.name)
        aliases = tuple(str(a) for a in ext.facts.get("aliases", ()))
        module = "deepagents" if is_own else ext.source.removeprefix("plugin:")
        kind = "impl" if ext.kind == "tool" else ext.kind
        return {
            "name": tuple(names),
            "any": (ext.name, *names, *aliases),
            "own": (ext.name,),
            "module": (module,),
            "type": (kind,),
        }

    def _skill_facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        *folders, leaf = ext.name.split("/")
        declared = (ext.declared_name,) if ext.declared_name else ()
        allow = (ext.name, leaf) if self._leaves[nfc(leaf)] <= 1 else (ext.name,)
        ancestors = [*folders, *([ext.category] if ext.category is not None else [])]
        aliases = tuple(str(a) for a in ext.facts.get("aliases", ()))
        folder = str(ext.facts.get("folder") or (folders[-1] if folders else "default"))
        unique = tuple(d for d in declared if self._declared[nfc(d)] <= 1)
        return {
            "name": allow,
            "any": (ext.name, leaf, *declared, *(f"{folder}/{leaf}" for folder in ancestors), *aliases),
            "own": (leaf, *unique),
            "item_any": (leaf, *declared, *aliases),
            "category": (ext.category or "",),
            "folder": (folder,),
            "module": tuple(dict.fromkeys((folder, *folders))),
            "type": ("skill",),
        }


def _mcp_facets(ext: Extension, server: str) -> dict[Facet, tuple[str, ...]]:
    item, path = ext.name, f"{server}/{ext.name}"
    full, wires = full_names(server, item), wire_names(server, item)
    joined = (f"{server}__{item}", f"mcp__{server}__{item}")
    items = (path, *joined, *wires)
    return {
        "name": (path,),
        "any": (server, *items, cleaned(server), cleaned(server, r"\w-")),
        "server": (server,),
        "item": () if "/" in server else (path,),
        "full": full,
        "item_any": items,
        "own": (item, f"{server}_{item}", *joined),
        "module": (server,),
        "type": ("mcp",),
    }


def is_runtime_source(ext: Extension) -> bool:
    """Whether the runtime itself offers it, and not a plugin."""
    return ext.source in RUNTIMES or bool(ext.facts.get("builtin"))


def shown_name(ext: Extension) -> str:
    """How messages name the item: `server/item`, else its name."""
    return show(f"{ext.server}/{ext.name}" if ext.server is not None else ext.name)


def kind_of_block(block: str) -> tuple[str, ...]:
    """The kinds that a profile's top-level block gates: `mcp` all that a server offers."""
    if block == "mcp":
        return tuple(kind.name for kind in KINDS.values() if kind.is_mcp)
    return tuple(kind.name for kind in KINDS.values() if kind.block == block)
