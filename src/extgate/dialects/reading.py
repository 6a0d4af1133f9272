"""What the dialect readers share: taking lists of patterns out of nodes, with every error kept and placed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extgate.core.confusables import skeleton
from extgate.core.extension import KINDS, Finding
from extgate.core.names import show
from extgate.core.patterns import MAX_PATTERN, clean, unclosed_bracket
from extgate.dialects.node import Node
from extgate.errors import DialectError, PatternError

BLOCKS: tuple[str, ...] = tuple(dict.fromkeys(["tools", "skills", "mcp", *(kind.block for kind in KINDS.values())]))
"""The top-level keys that gate."""


class Notes:
    """Collects what a reader finds wrong; nothing is dropped without a line here."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.errors: list[DialectError] = []
        self.findings: list[Finding] = []

    def error(self, code: str, message: str, line: int | None, fix: str) -> None:
        self.errors.append(DialectError(message, file=self.file, line=line, fix=fix, code=code))

    def warn(self, code: str, message: str, line: int | None, fix: str) -> None:
        self.findings.append(Finding(code=code, message=message, file=self.file, line=line, fix=fix))

    def raise_errors(self) -> None:
        """Raises the first error with the others in its `also`; returns when there is none."""
        if self.errors:
            first, *others = self.errors
            first.also = tuple(others)
            raise first

    # ------------------------------------------------------------------------------------------ lists

    def patterns(self, node: Node, where: str, *, is_scalar_read: bool = True) -> list[Node]:
        """The entries of a list of patterns, each checked to be a string; a lone string is one entry."""
        if node.kind == "scalar" and isinstance(node.scalar, str) and is_scalar_read:
            self.warn("EG005", f"{where}: read {node.shown} as a list of one", node.line, f"write [{node.scalar!r}]")
            return [node] if self.is_pattern(node, where) else []
        if node.kind != "list":
            self.error("EG003", f"{where}: expected a list of patterns, got {node.shown}", node.line, "write a list")
            return []
        return [child for child in node.children if self.is_pattern(child, where)]

    def is_pattern(self, node: Node, where: str) -> bool:
        if node.kind != "scalar" or not isinstance(node.scalar, str):
            fix = f'put it in quotes: "{node.text}"' if node.kind == "scalar" and node.text else "write text"
            self.error("EG003", f"{where}: a pattern must be a string, got {node.shown}", node.line, fix)
            return False
        try:
            clean(node.scalar)
        except PatternError:
            self.error("EG003", f"{where}: a pattern is longer than {MAX_PATTERN} characters", node.line, "shorten it")
            return False
        return True

    def check_bracket(self, text: str, where: str, line: int, *, is_deny: bool) -> None:
        """An unclosed `[` is read literally: an error where that would leave a deny or a requirement dead."""
        if not unclosed_bracket(text):
            return
        message, fix = (
            f"{where}: `{show(text)}` has a `[` that is never closed",
            "close it, or write [[] for a literal [",
        )
        if is_deny:
            self.error("EG004", message, line, fix)
        else:
            self.warn("EG031", message + ", so it only matches that text", line, fix)


def near_block(key: str, blocks: Iterable[str]) -> str | None:
    """The block that a top-level key looks like a misspelling of; None when it is none, or is one itself."""
    names = tuple(blocks)
    if key in names:
        return None
    # `tools.disabled` as one key is a block misspelt as well.
    plain = "".join(c for c in skeleton(key.partition(".")[0]) if c.isalnum())
    return next((name for name in names if _distance(plain, skeleton(name)) <= (2 if len(name) >= 8 else 1)), None)


def _distance(a: str, b: str) -> int:
    """Edits between two words; a swap of neighbours counts as one."""
    if abs(len(a) - len(b)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        new = [i]
        for j, y in enumerate(b, 1):
            cost = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            new.append(cost)
        before, row = row, new
    return row[-1]


def as_document_map(node: Node, notes: Notes) -> Node | None:
    """The document's mapping; anything else is an error."""
    if node.kind == "map":
        return node
    notes.error("EG003", f"expected a mapping of blocks, got {node.shown}", node.line, "write `tools: {…}` and so on")
    return None


def one_of(value: str, choices: Sequence[str]) -> str:
    """How a message lists the choices."""
    return f"`{show(value)}` is not one of {', '.join(choices)}"
