"""A line of progress on stderr while something slow goes on; nothing when stderr is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(*, is_quiet: bool = False) -> Iterator[Callable[[str], None]]:
    """Yields a function that replaces the line; the line goes away at the end."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    if is_quiet or not console.is_terminal:
        yield lambda line: None
        return
    with console.status("looking at what is installed") as status:
        yield lambda line: status.update(line)
