"""What one agent's clients are told of: lists of the bytes that servers sent, under the gateway's names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from extgate.core.decide import Decision
from extgate.core.explain import covers
from extgate.core.extension import Extension
from extgate.core.names import gateway_names
from extgate.core.patterns import nfc
from extgate.enforce.gate import Gate
from extgate.enforce.mcp import started, tasks
from extgate.enforce.mcp.envelope import Fields, Value, encode, write
from extgate.enforce.mcp.options import Options

IDENTITY = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}
"""The key that names an item, by the list it stands in."""
KIND = {"tools": "mcp_tool", "prompts": "mcp_prompt", "resources": "mcp_resource", "resourceTemplates": "mcp_resource"}
CHANGED = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "resources"}
"""The word in `notifications/…/list_changed`, by list."""

MAX_PAGES = 16
"""Pages that are kept; more are put together anew."""

Rows = Mapping[str, Mapping[str, Fields]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What one server says it has. rows: items by list and identity, as they came. capabilities, instructions: of its
    hello, as they came."""

    server: str
    rows: Rows = field(default_factory=dict)
    capabilities: Mapping[str, Value] = field(default_factory=dict)
    instructions: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One agent's lists under one policy and one inventory.

    lists: rows by list, in order. marks: a digest of each list. by_name: items by kind and name, the hidden ones too.
    exact, templates: the visible resources; hidden: items that are not. instructions, capabilities: of the servers that
    it sees something of. reads_arguments: whether some rule looks at what a call is given.
    """

    decisions: tuple[Decision, ...]
    offers: tuple[Offer, ...]
    lists: Mapping[str, tuple[bytes, ...]]
    marks: Mapping[str, str]
    by_name: Mapping[tuple[str, str], Extension]
    exact: Mapping[str, tuple[Extension, ...]]
    templates: tuple[Extension, ...]
    hidden: tuple[Extension, ...]
    instructions: str
    capabilities: frozenset[str]
    reads_arguments: bool
    pages: dict[tuple[str, int, int], bytes] = field(default_factory=dict, compare=False, repr=False)

    def page(self, what: str, start: int, size: int) -> bytes:
        """A part of a list, as a JSON array."""
        key = (what, start, size)
        found = self.pages.get(key)
        if found is None:
            found = b"[" + b",".join(self.lists[what][start : start + size]) + b"]"
            if len(self.pages) >= MAX_PAGES:
                self.pages.clear()
            self.pages[key] = found
        return found

    def resource(self, uri: str) -> tuple[Extension, ...]:
        """The visible resources that a URI could mean: those listed, else those whose template covers it."""
        found = self.exact.get(uri) or self.exact.get(nfc(uri))
        return found or _by_server(ext for ext in self.templates if covers(ext, uri))

    def hidden_resource(self, uri: str) -> Extension | None:
        """A resource that the URI would mean if it were not hidden."""
        return next((ext for ext in self.hidden if ext.kind == "mcp_resource" and covers(ext, uri)), None)


def view(gate: Gate, offers: tuple[Offer, ...], options: Options) -> View:
    """The lists as the gate allows them now. What it hides is recorded."""
    decisions = gate.decisions
    items = [d.extension for d in decisions if d.extension.server is not None]
    seen = gate.see(items)
    visible = {id(ext) for ext in seen}
    by_server = {offer.server: offer for offer in offers}
    names = _names(items, options)
    exact = _uris(ext for ext in seen if ext.kind == "mcp_resource" and not ext.facts.get("template"))
    lists = {what: tuple(_rows(what, seen, by_server, names, exact, options)) for what in IDENTITY}
    servers = {ext.server for ext in seen}
    said = [offer for offer in offers if offer.server in servers]
    return View(
        decisions=decisions,
        offers=offers,
        lists=lists,
        marks={what: hashlib.blake2b(b"\n".join(rows), digest_size=16).hexdigest() for what, rows in lists.items()},
        by_name={(ext.kind, name): ext for ext, name in names.items()},
        exact=exact,
        templates=tuple(ext for ext in seen if ext.facts.get("template")),
        hidden=tuple(ext for ext in items if id(ext) not in visible),
        instructions="\n\n".join(f"{offer.server}: {offer.instructions}" for offer in said if offer.instructions),
        capabilities=frozenset(_offered(said)),
        reads_arguments=any(rule.when for policy in gate.profile.policies for rule in policy.rules),
    )


def _names(items: Iterable[Extension], options: Options) -> dict[Extension, str]:
    items = tuple(items)
    found: dict[Extension, str] = {}
    for kind in ("mcp_tool", "mcp_prompt"):
        same = [ext for ext in items if ext.kind == kind and ext.name]
        found |= gateway_names(same, prefix=options.prefix, aliases=options.aliases)
    return found


def _uris(resources: Iterable[Extension]) -> dict[str, tuple[Extension, ...]]:
    found: dict[str, tuple[Extension, ...]] = {}
    for ext in resources:
        for form in {ext.name, nfc(ext.name)}:
            found[form] = (*found.get(form, ()), ext)
    return found


def _by_server(resources: Iterable[Extension]) -> tuple[Extension, ...]:
    return tuple({ext.server: ext for ext in resources}.values())


def _rows(
    what: str,
    seen: Iterable[Extension],
    offers: Mapping[str, Offer],
    names: Mapping[Extension, str],
    exact: Mapping[str, tuple[Extension, ...]],
    options: Options,
) -> Iterable[bytes]:
    for ext in seen:
        offer = offers.get(ext.server or "")
        row = offer.rows.get(what, {}).get(ext.name) if offer and ext.kind == KIND[what] else None
        if row is None or (what == "resources" and len(exact.get(ext.name, ())) > 1):
            continue
        if IDENTITY[what] == "name":
            name = names.get(ext)
            if name is None:
                continue
            row = {**row, "name": encode(name)} if name != ext.name else row
        described = options.descriptions.get(f"{ext.server}/{ext.name}")
        yield write(row if described is None else {**row, "description": encode(described)})


def _offered(offers: Iterable[Offer]) -> Iterable[str]:
    for offer in offers:
        for name in ("completions", "logging"):
            if name in offer.capabilities:
                yield name
        if b'"subscribe":true' in bytes(offer.capabilities.get("resources", b"")).replace(b" ", b""):
            yield "subscribe"
        if tasks.are_offered(offer.capabilities.get("tasks")):
            yield "tasks"
        if started.are_offered(offer.capabilities):
            yield tasks.EXTENSION
