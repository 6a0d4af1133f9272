"""What paths and addresses say to rules on arguments; shell lines: commands.py.

Readings for `ArgTest`. What cannot be told for sure is None, which a deny takes for a match and an allow does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Paths:
    """A path argument as absolute text below `root` (empty: as given), `.` and `..` resolved, `\\` read as `/`.

    is_relative: what lies below the root is told from there, as `src/a`.
    """

    least: ClassVar[int] = 1
    root: str = ""
    home: str = ""
    is_relative: bool = False

    def __call__(self, value: object) -> tuple[str, ...] | None:
        values = value if isinstance(value, list | tuple) else (value,)
        if not values or not all(isinstance(text, str) and text for text in values):
            return None
        found = tuple(self.absolute(str(text)) for text in values)
        below = f"{self.root.rstrip('/')}/"
        return tuple(text.removeprefix(below) for text in found) if self.is_relative and self.root else found

    def written(self, texts: Sequence[str]) -> Iterator[object]:
        """Paths that read as these texts, and at the end one that cannot be told."""
        yield from texts
        if len(texts) > 1:
            yield list(texts)
        yield ""

    def absolute(self, text: str) -> str:
        """The path with its root before it."""
        text = text.replace("\\", "/")
        if text == "~" or text.startswith("~/"):
            text = (self.home or "~") + text[1:]
        elif not text.startswith("/") and not re.match(r"[A-Za-z]:/", text):
            text = f"{self.root.rstrip('/')}/{text}" if self.root else text
        parts: list[str] = []
        for part in text.split("/"):
            if part == ".." and parts and parts[-1] not in ("", ".."):
                parts.pop()
            elif part not in (".", "") or not parts:
                parts.append(part)
        return "/".join(parts) or "/"


@dataclass(frozen=True, slots=True)
class Host:
    """The host of a URL argument, in lower case."""

    least: ClassVar[int] = 1

    def __call__(self, value: object) -> tuple[str, ...] | None:
        if not isinstance(value, str):
            return None
        try:
            host = urlsplit(value if "://" in value else f"https://{value}").hostname
        except ValueError:
            return None
        return (host.rstrip("."),) if host else None

    def written(self, texts: Sequence[str]) -> Iterator[object]:
        """URLs on these hosts, and at the end one that cannot be told."""
        yield from (f"https://{text}/" for text in texts)
        yield "["
