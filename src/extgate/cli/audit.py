"""`extgate audit tail`: the record of what happened at the gates."""

from __future__ import annotations

import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from extgate.core.names import show
from extgate.errors import ExtgateError
from extgate.homes import find_homes
from extgate.settings import read_settings

MAX_LINE = 1024 * 1024
"""A longer line of a record is passed over, in bytes; the gate writes none."""
POLL_S = 0.2

Row = dict[str, Any]


@click.group("audit")
def command() -> None:
    """Read the record of what happened at the gates."""


@command.command("tail")
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("-n", "count", type=click.IntRange(0, 1_000_000), default=20, show_default=True, help="How many events.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what comes, until interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
@click.option("--agent", default=None, metavar="ID", help="Only this agent's events.")
@click.option("--refused", is_flag=True, help="Only refusals.")
def tail(root: str | None, count: int, follow: bool, as_json: bool, agent: str | None, refused: bool) -> None:
    """Show the last events, oldest first."""

    def is_wanted(row: Row) -> bool:
        return (agent is None or row.get("agent") == agent) and (not refused or row.get("outcome") == "refused")

    try:
        file = read_settings(find_homes(Path(root or click.get_current_context().obj or "."))).audit_file
    except ExtgateError as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)
    if not file.exists() and not follow:
        click.echo(f"nothing is recorded yet in {show(str(file))}", err=True)
        return
    tailed = Tail(file)
    for row in deque(filter(is_wanted, tailed.rows()), maxlen=count):
        click.echo(_line(row, as_json))
    while follow:
        for row in filter(is_wanted, tailed.rows()):
            click.echo(_line(row, as_json))
        time.sleep(POLL_S)


class Tail:
    """A record that may still grow, be cut, or be replaced by another file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._place = (-1, 0)
        """Inode and offset up to which it was read."""

    def rows(self) -> Iterator[Row]:
        """The whole events that were not read yet. A line that is no event is passed over."""
        try:
            handle = self._file.open("rb")
        except OSError:
            return
        with handle:
            found = os.fstat(handle.fileno())
            inode, offset = self._place
            if inode != found.st_ino or found.st_size < offset:
                offset = 0
            handle.seek(offset)
            while (line := handle.readline(MAX_LINE)).endswith(b"\n") or len(line) == MAX_LINE:
                offset += len(line)
                row = _event(line)
                if row is not None:
                    yield row
            self._place = (found.st_ino, offset)


def _event(line: bytes) -> Row | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and str(row.get("shape", "")).startswith("extgate.event/") else None


def _line(row: Row, as_json: bool) -> str:
    """One event for people; every part is escaped, because names and reasons come from others."""
    if as_json:
        return json.dumps(row)
    text: Callable[[str], str] = lambda key: show(str(row.get(key) or "-"))  # noqa: E731
    when = text("when")[:23].replace("T", " ")
    rule = row.get("rule")
    rule = rule if isinstance(rule, dict) else {}
    pattern = f" `{show(str(rule['pattern']))}`" if rule.get("pattern") is not None else ""
    place = f" {show(str(rule['file']))}:{show(str(rule.get('line')))}" if rule.get("file") and rule.get("line") else ""
    why = f"{text('reason')} ({show(str(rule.get('text') or '-'))}{pattern}{place})"
    return f"{when} {text('agent')} {text('door')} {text('action')} {text('outcome')} {text('extension')}: {why}"
