"""Names: which are refused, how an item is spelled in rules, and what runtimes call it on the wire.

An identity is never parsed back out of a name: every spelling is computed forward from the item.
"""

from __future__ import annotations

import hashlib
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

Facet = Literal[
    "name", "any", "sourced", "server", "item", "full", "full_plain", "item_any",
    "own", "category", "folder", "module", "type", "claude-code", "opencode", "hermes", "gemini-cli", "hint",
]  # fmt: skip
"""What of an item a pattern is held against.

name: what an allow may use. any: every spelling, for denies. sourced: `source/name`. server: the server's name.
item: `server/item`. full: `server__item` and `mcp__server__item`; full_plain: the same unless the server's name holds
a `/`, which a pattern with one must not reach. item_any: every spelling but the server's own.
own: dialect B's names of an item. category: a skill's frontmatter category, empty when it has none.
claude-code, opencode, hermes, gemini-cli: the name that this runtime alone gives an MCP item.
hint: `read-only` or `may write`, as the item itself says; `user only` for a skill that the model may not start.
folder, module, type: dialect B's parts; of a skill, `folder` is its parent folder, `module` every ancestor folder.
"""


_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0" + "".join(map(chr, range(0xFE00, 0xFE10))))
"""Letters and marks that print nothing: fillers, joiners, variation selectors."""


def refusal(name: str | None) -> str | None:
    """Why nothing of this name may be used; None when the name is sound."""
    if not name or not name.strip():
        return "it has no name"
    if name.isascii() and name.isprintable():
        return None
    for char in name:
        category = unicodedata.category(char)
        if category in ("Cc", "Cf", "Cs", "Zl", "Zp") or char in _BLANK or 0xE0100 <= ord(char) <= 0xE01EF:
            what = {"Cc": "a control character", "Cs": "half a surrogate pair"}.get(category, "an invisible character")
            return f"its name holds {what} (U+{ord(char):04X})"
    return None


def show(text: str) -> str:
    """The text with control and invisible characters escaped, safe for a terminal and a log line."""
    if text.isascii() and text.isprintable():
        return text
    bad = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return "".join(f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in bad else c for c in text)


def loose(key: str) -> str:
    """A JSON key as the most lenient parsers compare keys: without letter case (Go's, C#'s) or joints (Go's newer).

    Source: CVE-2026-27896, pkg.go.dev/encoding/json/v2 (seen 2026-11-30).
    """
    return key.upper().casefold().replace("-", "").replace("_", "")


_GEMINI = "A-Za-z0-9_.:-"


def cleaned(text: str, allowed: str = r"A-Za-z0-9_-") -> str:
    """The text with each character outside the set replaced by `_`, as runtimes do before a name goes out."""
    return re.sub(f"[^{allowed}]", "_", text)


def wire_names(server: str, item: str) -> tuple[str, ...]:
    """Every name that a known runtime gives an MCP item, each also cut at 64 characters.

    Claude Code 2.1.332 `mcp__server__item`; Hermes 0.19.0 the same with hyphens replaced too; Codex 0.171.0 the same as
    namespace and name, uncleaned; opencode 1.18.33 `server_item`; Gemini CLI 0.61.0 `mcp_server_item`, its middle cut
    out over 63; OpenProgram f27be0ee2 `server__item`, letters of any script kept, cut at the item's left; msAgent
    `server_item` as it stands. A runtime may normalise before it cleans, so both orders count. Seen 2026-11-30.
    """
    names: list[str] = []
    for s, i in dict.fromkeys(((server, item), (nfc(server), nfc(item)))):
        plain, hermes = (cleaned(s), cleaned(i)), (cleaned(s, "A-Za-z0-9_"), cleaned(i, "A-Za-z0-9_"))
        gemini = f"{cleaned(s, _GEMINI)}_{cleaned(i, _GEMINI)}"
        gemini = gemini if gemini.startswith("mcp_") else f"mcp_{gemini}"
        letters = (cleaned(s, r"\w-"), cleaned(i, r"\w-"))
        room = MAX_WIRE - len(letters[0]) - 2
        names += [f"mcp__{plain[0]}__{plain[1]}", f"{plain[0]}_{plain[1]}", f"{plain[0]}__{plain[1]}"]
        names += [f"mcp__{hermes[0]}__{hermes[1]}", f"mcp__{s}__{i}", f"{s}_{i}", gemini, "__".join(letters)]
        names += [f"{gemini[:30]}...{gemini[-30:]}"] if len(gemini) > 63 else []
        names += [f"{letters[0]}__{letters[1][-room:]}"] if room >= 8 else []
    return tuple(dict.fromkeys(part for name in names for part in (name, name[:MAX_WIRE])))


def runtime_names(server: str, item: str) -> dict[Facet, tuple[str, ...]]:
    """By runtime the name that it gives an MCP item; sources as in `wire_names`."""
    gemini = f"{cleaned(server, _GEMINI)}_{cleaned(item, _GEMINI)}"
    gemini = gemini if gemini.startswith("mcp_") else f"mcp_{gemini}"
    return {
        "claude-code": (f"mcp__{cleaned(server)}__{cleaned(item)}",),
        "opencode": (f"{cleaned(server)}_{cleaned(item)}",),
        "hermes": (f"mcp__{cleaned(server, 'A-Za-z0-9_')}__{cleaned(item, 'A-Za-z0-9_')}",),
        "gemini-cli": (gemini if len(gemini) <= 63 else f"{gemini[:30]}...{gemini[-30:]}",),
    }


MCP_MARKS = {"claude-code": "mcp__", "hermes": "mcp__", "codex": "mcp__", "gemini-cli": "mcp_"}
"""By runtime what every MCP tool's wire name begins with; one that is not here marks them by nothing. As above."""


def in_namespace(namespace: str, name: str) -> tuple[str, ...]:
    """The names of a tool that is offered inside a namespace: as an MCP item's, and as a built-in tool's (Codex)."""
    return (f"{namespace}__{name}", f"{namespace}::{name}") if namespace else (name,)


def starts_of(name: str, servers: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The items (server, item) of these servers that a name would be, by any known runtime's spelling of the server."""
    found = [
        (server, name[len(start) :])
        for server in servers
        for start in wire_names(server, "")
        if start != name and name.startswith(start)
    ]
    return tuple(dict.fromkeys(found))


def cuts_of(name: str) -> tuple[tuple[str, str], ...]:
    """What a name of unknown origin could mean as (server, item), at each join: to hold denies against, for no allow.

    A name with more joins than are looked at has none of its later ones.
    """
    mark = next((mark for mark in ("mcp__", "mcp_") if name.startswith(mark)), "")
    rest = name[len(mark) :]
    join = "__" if "__" in rest else "_"
    places = [at.start() for at in re.finditer(f"(?={join})", rest)][:_MOST_CUTS]
    found = [(rest[:at], rest[at + len(join) :]) for at in places]
    return tuple((server, item) for server, item in found if server and item)


_MOST_CUTS = 16


def rule_parts(text: str) -> tuple[str, str] | None:
    """Server and item of a rule's text `mcp__server` or `mcp__server__item`, cut as Claude Code cuts it.

    The item is empty where the rule is for the server; None when the text is no such rule.
    """
    if not text.startswith("mcp__"):
        return None
    server, _, item = text.removeprefix("mcp__").partition("__")
    return server, item


def rule_name(server: str, item: str = "") -> str:
    """The text of such a rule."""
    return f"mcp__{server}__{item}" if item else f"mcp__{server}"


def _hint(ext: Extension) -> str:
    if ext.facts.get("disable_model_invocation"):
        return "user only"
    annotations = ext.facts.get("annotations")
    said = annotations.get("readOnlyHint") if isinstance(annotations, Mapping) else ext.facts.get("read_only")
    return "read-only" if said is True else "may write"


def server_names(server: str) -> tuple[str, ...]:
    """The server's name as it is, and as known runtimes clean it."""
    forms = dict.fromkeys((server, nfc(server)))
    kept = (r"A-Za-z0-9_-", "A-Za-z0-9_", _GEMINI, r"\w-")
    return tuple(dict.fromkeys((*forms, *(cleaned(form, allowed) for form in forms for allowed in kept))))


def unique_wire_names(items: Iterable[Extension], taken: Iterable[str] = ()) -> dict[Extension, str]:
    """A name for each MCP item that no other has: `server_item`, with a digest where that is not enough.

    It is not enough when characters were replaced, it is too long for the wire, or another item or `taken` has it. The
    names are a function of the sets.
    """
    most, spelled = MAX_WIRE, {ext: cleaned(f"{ext.server}_{ext.name}") for ext in items}
    uses = Counter(spelled.values()) + Counter(taken)
    found = {}
    for ext, name in spelled.items():
        if name != f"{ext.server}_{ext.name}" or len(name) > most or uses[name] > 1:
            digest = hashlib.sha256(f"{ext.server}\0{ext.name}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
            name = f"{name[: most - 11]}_{digest}"
        found[ext] = name
    return found


Prefix = Literal["always", "never", "on-clash"]


def gateway_names(
    items: Iterable[Extension], *, prefix: Prefix = "always", aliases: Mapping[str, str] | None = None
) -> dict[Extension, str]:
    """A name for each MCP item, which no other has: `server__item`, or the item's alone where `prefix` says so.

    Up to 64 letters, digits, `_` and `-`; a digest of the identity follows where the join could be read in two ways,
    characters were replaced, or it is too long. The names are a function of the set, and an item that only a digest
    tells from another never takes that one's name, nor does one that is called like another with its server. aliases:
    names by `server/item`; one that is not clean or is taken is not used. With `never`, items that share a name have
    none.
    """
    items = tuple(items)
    whole = {ext: f"{ext.server}__{ext.name}" for ext in items}
    given = [*(aliases or {}).values(), *(ext.name for ext in items if prefix != "always")]
    may_be_forged = any(map(_MAYBE_DIGESTED.search, given))  # a digest can be reckoned by whoever knows the names
    forged = {_digested(ext, name) for ext, name in whole.items()} if may_be_forged else set[str]()
    wanted = {path: name for path, name in (aliases or {}).items() if _is_wire(name) and name not in forged}
    uses, bare = Counter(wanted.values()), Counter(cleaned(ext.name)[:MAX_WIRE] for ext in items)
    found = {ext: wanted[path] for ext in items if uses[wanted.get(path := f"{ext.server}/{ext.name}", "")] == 1}
    left = [ext for ext in items if ext not in found]
    if prefix != "always":
        unused = [ext for ext in left if bare[ext.name] == 1 and not uses[ext.name]]
        forged |= set(whole.values())
        clear = {ext for ext in unused if _is_wire(ext.name) and ext.name not in forged}
        found |= {ext: ext.name for ext in clear}
        left = [ext for ext in left if ext not in clear and prefix == "on-clash"]
    joined = {ext: whole[ext] for ext in left}
    plain = [e for e in left if _is_wire(joined[e]) and full_names(e.server or "", e.name)]
    found |= {ext: _digested(ext, joined[ext]) for ext in left if ext not in plain}
    taken = set(found.values())
    return found | {ext: joined[ext] if joined[ext] not in taken else _digested(ext, joined[ext]) for ext in plain}


_MAYBE_DIGESTED = re.compile(r"_[0-9a-f]{16}\Z")


def _is_wire(name: str) -> bool:
    return 0 < len(name) <= MAX_WIRE and cleaned(name) == name


def _digested(ext: Extension, name: str) -> str:
    digest = hashlib.sha256(f"{ext.server}\0{ext.name}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{cleaned(name)[: MAX_WIRE - 17]}_{digest}"


def full_names(server: str, item: str) -> tuple[str, ...]:
    """`server__item` and `mcp__server__item` where the join can be read one way only, else none.

    Neither part may hold `__`, nor may a `_` stand at the join: otherwise another server's item could have the name.
    """
    if "__" in server or "__" in item or server.endswith("_") or item.startswith("_"):
        return ()
    return (f"{server}__{item}", f"mcp__{server}__{item}")


_MEMO = 200_000
"""Items whose spellings are kept; past it they are computed again, so that late names cannot fill the memory."""


class Naming:
    """The spellings of each item of one inventory; some depend on what else is installed."""

    def __init__(self, extensions: Iterable[Extension]) -> None:
        extensions = tuple(extensions)
        skills = [e for e in extensions if e.kind == "skill"]
        self._leaves = Counter(nfc(e.leaf) for e in skills)
        self._declared = Counter(nfc(e.declared_name) for e in skills if e.declared_name)
        self._sources = Counter((e.kind, nfc(e.name)) for e in extensions if e.kind not in ("skill",) and not e.server)
        self._memo: dict[tuple[str | None, ...], Mapping[Facet, tuple[str, ...]]] = {}

    def of(self, ext: Extension) -> Mapping[Facet, tuple[str, ...]]:
        """Every facet of the item with its spellings, in NFC; the first of `name` is how a reason names it."""
        told = (ext.facts.get("folder"), ext.facts.get("builtin"), *ext.facts.get("aliases", ()))
        declared = ext.declared_name
        key = (ext.kind, ext.server, ext.name, ext.source, ext.category, declared, _hint(ext), *map(str, told))
        found = self._memo.get(key)
        if found is None:
            facets = self._facets(ext)
            found = {facet: tuple(dict.fromkeys(map(nfc, names))) for facet, names in facets.items()}
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[key] = found
        return found

    def _facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        if ext.server is not None:
            return _mcp_facets(ext, ext.server)
        return self._skill_facets(ext) if ext.kind == "skill" else self._plain_facets(ext)

    def _plain_facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        is_own = is_runtime_source(ext)
        is_plain = is_own or self._sources[(ext.kind, nfc(ext.name))] <= 1
        aliases = tuple(str(a) for a in ext.facts.get("aliases", ()))
        module = "deepagents" if is_own else ext.source.removeprefix("plugin:")
        kind = "impl" if ext.kind == "tool" else ext.kind
        return {
            "name": (ext.name,) if is_plain else (),
            "any": (ext.name, *aliases),
            "sourced": (f"{ext.source}/{ext.name}",) if ext.source else (),
            "own": (ext.name,),
            "module": (module,),
            "type": (kind,),
            "hint": (_hint(ext),),
        }

    def _skill_facets(self, ext: Extension) -> dict[Facet, tuple[str, ...]]:
        *folders, leaf = ext.name.split("/")
        declared = (ext.declared_name,) if ext.declared_name else ()
        allow = (ext.name, leaf) if self._leaves[nfc(leaf)] <= 1 else (ext.name,)
        ancestors = [*folders, *([ext.category] if ext.category else [])]
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
            "hint": (_hint(ext),),
        }


def _mcp_facets(ext: Extension, server: str) -> dict[Facet, tuple[str, ...]]:
    item, path = ext.name, f"{server}/{ext.name}"
    full, wires = full_names(server, item), wire_names(server, item)
    joined = (f"{server}__{item}", f"mcp__{server}__{item}")
    items = (path, *joined, *wires)
    return {
        "name": (path,),
        "any": (*server_names(server), *items),
        "server": (server,),
        "item": () if "/" in server else (path,),
        "full": full,
        "full_plain": () if "/" in server else full,
        "item_any": items,
        "own": (item, f"{server}_{item}", *joined),
        "module": (server,),
        "type": ("mcp",),
        "hint": (_hint(ext),),
        **runtime_names(server, item),
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
