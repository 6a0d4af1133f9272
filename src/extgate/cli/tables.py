"""Tables for people: colour only in a terminal, whole text elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from extgate.core.names import show

_STYLES = {"yes": "green", "no": "red", "ask": "yellow", "error": "red", "warning": "yellow", "info": "cyan"}
_STYLES |= {"connected": "green", "failed": "red", "untrusted": "yellow", "configured": "yellow", "disabled": "dim"}
_WIDE = 10_000


def console() -> Console:
    """Standard output; not a terminal: plain, and as wide as the text."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=_WIDE, color_system=None)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], out: Console) -> None:
    """Prints one table under its title; untrusted text is shown with control characters escaped."""
    out.print(Text(title, style="bold"))
    grid = Table(box=None, pad_edge=False, show_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for index, column in enumerate(columns):
        grid.add_column(column, overflow="fold", no_wrap=not out.is_terminal and index < len(columns))
    for row in rows:
        grid.add_row(*(Text(show(cell), style=_STYLES.get(cell, "")) for cell in row))
    text = out.render_lines(grid, pad=False)
    for line in text:
        out.print(*(Text(s.text, style=s.style or "") for s in line), sep="", end="\n", soft_wrap=True)
    out.print()
