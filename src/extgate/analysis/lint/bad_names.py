"""EG036, EG037: installed items whose names are refused or shared, and look-alikes among them."""

from __future__ import annotations

from collections.abc import Iterator

from extgate.core.confusables import skeleton
from extgate.core.extension import Extension, Finding, Inventory
from extgate.core.names import refusal, show, shown_name

CODES = ("EG036", "EG037", "EG038")


def check_inventory(inventory: Inventory) -> Iterator[Finding]:
    """Findings about the installed items alone, whatever the profile."""
    yield from _servers(inventory)
    seen: dict[tuple[str, str], Extension] = {}
    looks: dict[tuple[str, str], Extension] = {}
    for ext in inventory.extensions:
        why = refusal(ext.name) or (refusal(ext.server) if ext.server is not None else None)
        if why:
            message = f"{ext.kind} '{shown_name(ext)}' is refused: {why}"
            yield Finding(code="EG036", message=message, file=ext.file, fix="rename it", severity="warning")
            continue
        key = (ext.kind, f"{ext.server or ''}/{ext.name}")
        other = seen.setdefault(key, ext)
        if other is not ext and ext.kind != "skill":
            message = f"{ext.kind} '{shown_name(ext)}' is offered by `{other.source}` and `{ext.source}`"
            yield Finding(code="EG037", message=message, file=ext.file, fix="name the source, as `source/name`")
        twin = looks.setdefault((ext.kind, skeleton(key[1])), ext)
        # Names that differ in case alone are different runtimes' words for one thing more often than a forgery.
        if twin is not ext and shown_name(twin).casefold() != shown_name(ext).casefold():
            message = f"{ext.kind} '{shown_name(ext)}' looks like '{shown_name(twin)}'"
            yield Finding(code="EG038", message=message, file=ext.file, fix="check where it comes from, and rename one")


def _servers(inventory: Inventory) -> Iterator[Finding]:
    looks: dict[str, str] = {}
    for server in inventory.servers:
        twin = looks.setdefault(skeleton(server.name), server.name)
        if twin != server.name:
            message = f"the servers `{show(twin)}` and `{show(server.name)}` look alike"
            yield Finding(code="EG038", message=message, fix="check where each comes from, and rename one")
