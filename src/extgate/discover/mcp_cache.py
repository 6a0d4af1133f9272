"""Definitions of servers that were seen before, by the digest of their configuration; never whether they live."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from extgate.discover.mcp_definitions import LISTINGS, Definitions
from extgate.discover.reading import UnreadableError, read_bytes, write_private
from extgate.discover.server_config import ServerSpec

FORMAT = 1
MAX_BYTES = 64 * 1024 * 1024


def cached(folder: Path, spec: ServerSpec, *, now: float, age_s: float) -> Definitions | None:
    """What is kept of a server with exactly this configuration; None when nothing is, or it is older than `age_s`."""
    try:
        kept = json.loads(read_bytes(_file(folder, spec), MAX_BYTES))
        if kept["format"] != FORMAT or not 0 <= now - kept["seen"] <= age_s:
            return None
        found = Definitions(**kept["definitions"])
        names = [item[listing.identity] for listing in LISTINGS for item in found.lists.get(listing.what, ())]
    except (UnreadableError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return found if all(isinstance(name, str) for name in (*names, found.instructions)) else None


def keep(folder: Path, spec: ServerSpec, definitions: Definitions, *, now: float) -> None:
    """Keeps what a server defines. Raises OSError when the folder cannot be written."""
    kept = {"format": FORMAT, "seen": now, "definitions": asdict(definitions)}
    write_private(_file(folder, spec), json.dumps(kept).encode("utf-8", "surrogatepass"))


def _file(folder: Path, spec: ServerSpec) -> Path:
    return folder / f"{spec.digest}.json"
