"""Errors that extgate raises; a refusal is a result, never one of these.

ExtgateError                 anything this package raises on purpose
├── PatternError             a pattern that cannot be used (also a ValueError)
├── DocumentError            a file that cannot be read as YAML, JSON or TOML
│   └── DialectError         a file that reads, but says something its dialect has no meaning for
├── WorkspaceError           no such agent, folder or inventory
└── DiscoveryError           an inventory that cannot be made
"""

from __future__ import annotations


class ExtgateError(Exception):
    """Base of all errors; `place` says where, `fix` the way out. Both may be empty."""

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None, fix: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.fix = fix

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else f"{self.file}: " if self.file else ""
        return f"{place}{self.message}" + (f"; {self.fix}" if self.fix else "")


class PatternError(ExtgateError, ValueError):
    """A pattern that is not a string, is too long, or holds an unclosed `[` where it denies or requires."""


class DocumentError(ExtgateError):
    """A file that is not UTF-8, too large, too deep, or not well-formed."""


class DialectError(DocumentError):
    """A well-formed file with a key, type or value that its dialect gives no meaning.

    code: of the finding it becomes. also: the further errors of the same file, each with its own place.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        fix: str = "",
        code: str = "EG003",
        also: tuple[DialectError, ...] = (),
    ) -> None:
        super().__init__(message, file=file, line=line, fix=fix)
        self.code = code
        self.also = also


class WorkspaceError(ExtgateError):
    """A workspace, agent or file that was asked for and is not there."""


class DiscoveryError(ExtgateError):
    """An inventory that could not be made at all (a single broken item is a `Problem` instead)."""


UNFORESEEN = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a mistake in a reader or a library could raise. One agent's file must not take the others down with it, nor end
the watching of all files: whoever reads files of others' making turns these into an error of that one file."""
