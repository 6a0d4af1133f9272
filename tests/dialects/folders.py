"""Writing files into a test's folder."""

from __future__ import annotations

import json
from pathlib import Path


def put(root: Path, path: str, value: object) -> None:
    """A file with this text, these bytes, or this value as JSON."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str | bytes) else json.dumps(value)
    (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())
