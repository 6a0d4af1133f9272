"""The terminal of a chat: what is printed is escaped, whoever wrote it; lines come from a prompt or a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from extgate.cli.chat_session import Piece
from extgate.core.names import show

MAX_LINES = 40
"""Lines of one report that are printed; the record has them all."""


def safe(text: str) -> str:
    """The text with its line breaks and tabs, and every other control character escaped."""
    return "\n".join("\t".join(show(part) for part in line.split("\t")) for line in text.split("\n"))


class Screen:
    """Where a chat prints: what was asked for to stdout, all else to stderr. Safe for threads.

    The two streams are looked up for each piece, because a prompt puts others in their place.
    """

    def __init__(self) -> None:
        self._is_in_line = False

    def piece(self, piece: Piece) -> None:
        """Prints a part of a turn as it comes."""
        if piece.kind == "text":
            self._write(sys.stdout, safe(piece.text))
            self._is_in_line = not piece.text.endswith("\n")
        elif piece.kind == "call":
            self.note(f"· {piece.name}")
        else:
            self.note(f"· {piece.name} answered: {piece.text}")

    def end(self) -> None:
        """Ends an answer that did not end its line."""
        if self._is_in_line:
            self._write(sys.stdout, "\n")
            self._is_in_line = False

    def line(self, text: str) -> None:
        """Prints a line that was asked for."""
        self.end()
        self._write(sys.stdout, show(text) + "\n")

    def note(self, text: str) -> None:
        """Prints a line that was not asked for."""
        self.end()
        self._write(sys.stderr, show(text) + "\n")

    def notes(self, lines: Sequence[str]) -> None:
        """Prints some lines that were not asked for, cut when there are many."""
        for line in lines[:MAX_LINES]:
            self.note(line)
        if len(lines) > MAX_LINES:
            self.note(f"and {len(lines) - MAX_LINES} more lines; `extgate audit tail` shows every decision")

    def _write(self, stream: TextIO, text: str) -> None:
        stream.write(text)
        stream.flush()


class Lines:
    """The user's lines: with history and completion in a terminal where prompt_toolkit is installed."""

    def __init__(self, history: Path, words: Sequence[str], say: Callable[[str], None]) -> None:
        self._session = _prompt_session(history, words, say) if sys.stdin.isatty() else None

    def around(self) -> AbstractContextManager[object]:
        """Keeps what others print above the prompt."""
        if self._session is None:
            return nullcontext()
        from prompt_toolkit.patch_stdout import patch_stdout

        return patch_stdout(raw=False)

    async def next(self, prompt: str) -> str | None:
        """The next line; None at the end. A line that is interrupted is empty."""
        try:
            if self._session is not None:
                return str(await self._session.prompt_async(prompt))
            shown = prompt if sys.stdin.isatty() else ""
            return await asyncio.to_thread(_read, shown)
        except EOFError:
            return None
        except KeyboardInterrupt:
            return ""


def _read(prompt: str) -> str:
    if prompt:
        return input(prompt)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


def _prompt_session(history: Path, words: Sequence[str], say: Callable[[str], None]) -> Any:
    try:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter
        from prompt_toolkit.history import FileHistory
    except ImportError:
        say("prompt_toolkit is not installed: there is no history; install extgate[chat]")
        return None
    history.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(history, os.O_CREAT | os.O_WRONLY, 0o600))
    completer = WordCompleter(list(words), sentence=True)
    return PromptSession(history=FileHistory(os.fspath(history)), completer=completer, complete_while_typing=False)
