"""What a server defines, as plain lists of JSON, and the extensions they stand for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from extgate.core.extension import Extension, Finding
from extgate.core.names import wire_names
from extgate.discover.codes import finding
from extgate.discover.server_config import ServerSpec, canonical

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """One of a server's lists. capability: what it announces when it has one; identity: the key that names an item.

    defines: the keys that make a definition; its digest covers these alone, so that the SDK's version does not change
    it, nor what changes by itself (a resource's size or date).
    """

    what: str
    kind: str
    capability: str
    identity: str
    defines: tuple[str, ...]


LISTINGS: tuple[Listing, ...] = (
    Listing(
        what="tools",
        kind="mcp_tool",
        capability="tools",
        identity="name",
        defines=("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
    ),
    Listing(
        what="resources",
        kind="mcp_resource",
        capability="resources",
        identity="uri",
        defines=("uri", "name", "title", "description", "mimeType"),
    ),
    Listing(
        what="resourceTemplates",
        kind="mcp_resource",
        capability="resources",
        identity="uriTemplate",
        defines=("uriTemplate", "name", "title", "description", "mimeType"),
    ),
    Listing(
        what="prompts",
        kind="mcp_prompt",
        capability="prompts",
        identity="name",
        defines=("name", "title", "description", "arguments"),
    ),
)

_KINDS: tuple[tuple[str, type, str], ...] = (
    ("title", str, "text"), ("description", str, "text"), ("mimeType", str, "text"),
    ("outputSchema", Mapping, "object"), ("annotations", Mapping, "object"), ("arguments", list, "list"),
)  # fmt: skip
"""What an item's keys hold where it has them. Source: the protocol's schema of 2026-07-28 (seen 2026-11-30)."""
_HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """All that one server defines. lists: items by `Listing.what`; about: JSON-like facts of the server itself."""

    lists: Mapping[str, Sequence[Item]] = field(default_factory=dict)
    instructions: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)


def extensions_of(spec: ServerSpec, definitions: Definitions) -> tuple[tuple[Extension, ...], tuple[Finding, ...]]:
    """The extensions of a server's lists; of two items with one name the first stays, with a finding, and a malformed
    one is left out, with another.

    `include` and `exclude` of its entry leave tools out, by their own name or any name a runtime gives them.
    """
    findings: list[Finding] = []
    kept: dict[str, Extension] = {}
    for listing in LISTINGS:
        for item in definitions.lists.get(listing.what, ()):
            if why := why_malformed(listing, item):
                findings.append(_note(spec, "EG317", f"leaves out of its {listing.what} {why}"))
                continue
            ext = _extension(spec, listing, item)
            if kept.setdefault(ext.id, ext) is not ext:
                findings.append(_note(spec, "EG312", f"lists the {listing.kind} `{ext.name}` twice"))
    left, notes = _narrowed(spec, tuple(kept.values()))
    return left, (*findings, *notes)


def why_malformed(listing: Listing, item: object) -> str:
    """What is wrong with an item of a list, in words that name it; empty when nothing is."""
    if not isinstance(item, Mapping):
        return "an item that is no object"
    name = item.get(listing.identity)
    if not isinstance(name, str) or not name:
        return f"an item without `{listing.identity}`"
    if listing.what == "tools" and not isinstance(item.get("inputSchema"), Mapping):
        return f"`{name[:100]}`, whose `inputSchema` is no object"
    for key, kind, word in _KINDS:
        if item.get(key) is not None and not isinstance(item[key], kind):
            return f"`{name[:100]}`, whose `{key}` is no {word}"
    return ""


def _extension(spec: ServerSpec, listing: Listing, item: Item) -> Extension:
    return Extension(
        kind=listing.kind,
        name=str(item.get(listing.identity) or ""),
        server=spec.name,
        source=spec.source,
        description=str(item.get("description") or ""),
        digest=_digest(listing, item),
        facts=dict(_facts(listing, item)),
    )


def _digest(listing: Listing, item: Item) -> str:
    definition = {key: item[key] for key in listing.defines if item.get(key) is not None}
    if "annotations" in definition:
        hints = definition["annotations"]
        definition["annotations"] = {key: hints[key] for key in _HINTS if hints.get(key) is not None}
    return hashlib.sha256(canonical(definition).encode("utf-8", "surrogatepass")).hexdigest()


def _facts(listing: Listing, item: Item) -> Iterator[tuple[str, Any]]:
    """Only what the item has."""
    pairs = {"schema": "inputSchema", "output_schema": "outputSchema", "annotations": "annotations"}
    pairs |= {"arguments": "arguments", "mime_type": "mimeType"}
    for fact, key in pairs.items():
        if item.get(key) is not None:
            yield fact, item[key]
    title = item.get("title") or (item.get("name") if listing.identity != "name" else None)
    if title:
        yield "title", title
    if listing.identity == "uriTemplate":
        yield "template", True


def _narrowed(spec: ServerSpec, extensions: tuple[Extension, ...]) -> tuple[tuple[Extension, ...], list[Finding]]:
    if spec.include is None and not spec.exclude:
        return extensions, []
    names = {e.name: {e.name, *wire_names(spec.name, e.name)} for e in extensions if e.kind == "mcp_tool"}
    out = {name for name, spellings in names.items() if not _is_kept(spec, spellings)}
    known = set().union(*names.values())
    findings = [
        _note(spec, "EG315", f"`{entry}` names none of its tools")
        for entry in (*(spec.include or ()), *spec.exclude)
        if entry not in known
    ]
    if out:
        findings.append(_note(spec, "EG314", f"its entry leaves out {', '.join(f'`{name}`' for name in sorted(out))}"))
    return tuple(e for e in extensions if e.kind != "mcp_tool" or e.name not in out), findings


def _is_kept(spec: ServerSpec, spellings: set[str]) -> bool:
    is_included = spec.include is None or not spellings.isdisjoint(spec.include)
    return is_included and spellings.isdisjoint(spec.exclude)


def _note(spec: ServerSpec, code: str, message: str) -> Finding:
    return finding(code, f"the server `{spec.name}`: {message}", file=spec.file or None, line=spec.line)
