"""Plain data as TOML."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def toml(data: Mapping[str, Any]) -> str:
    """Mappings as tables, lists of mappings as lists of tables, all else as values."""
    return "\n".join(_lines(data, ())) + "\n"


def _lines(data: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    tables = {k: v for k, v in data.items() if _is_table(v)}
    lines = [f"{json.dumps(k)} = {json.dumps(v)}" for k, v in data.items() if k not in tables]
    for key, value in tables.items():
        name = ".".join(json.dumps(part) for part in (*path, key))
        for one in value if isinstance(value, list) else [value]:
            lines += [f"[[{name}]]" if isinstance(value, list) else f"[{name}]", *_lines(one, (*path, key))]
    return lines


def _is_table(value: object) -> bool:
    is_rows = isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)
    return isinstance(value, Mapping) or is_rows
