"""TOML text of plain values, which the standard library only reads."""

from __future__ import annotations

import json
from collections.abc import Mapping


def toml_text(value: Mapping[str, object], path: tuple[str, ...] = ()) -> str:
    """The mapping as TOML: plain values first, then its tables; lists of mappings as arrays of tables."""
    lines = [f"{_key(k)} = {_value(v)}" for k, v in value.items() if not isinstance(v, Mapping) and not _is_tables(v)]
    text = "\n".join(lines) + ("\n" if lines else "")
    for key, item in value.items():
        here = (*path, _key(key))
        if isinstance(item, Mapping):
            text += f"\n[{'.'.join(here)}]\n{toml_text(item, here)}"
        elif _is_tables(item):
            assert isinstance(item, list)
            text += "".join(f"\n[[{'.'.join(here)}]]\n{toml_text(row, here)}" for row in item)
    return text


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _key(key: str) -> str:
    return key if key and all(c.isascii() and (c.isalnum() or c in "_-") for c in key) else _text(key)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped, and surrogate pairs, which it does not know.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
