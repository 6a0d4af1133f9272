"""`extgate reload`: lets changes that waited take effect in the processes that run on a workspace."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import click

from extgate.cli.options import print_json
from extgate.control import ask, sockets
from extgate.core.names import show
from extgate.errors import ExtgateError
from extgate.homes import find_homes


@click.command("reload")
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(root: str | None, as_json: bool) -> None:
    """Let changes that waited take effect in every process that runs here.

    Exit: 0, also when nothing runs here; 1 when a process did not answer.
    """
    try:
        homes = find_homes(Path(root or click.get_current_context().obj or "."))
    except ExtgateError as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)
    answers = [answer for path in sockets(homes.root) if (answer := _asked(path)) is not None]
    if as_json:
        print_json({"processes": answers})
    else:
        _print(answers)
    sys.exit(1 if any("error" in answer for answer in answers) else 0)


def _asked(path: Path) -> dict[str, Any] | None:
    """What a process answered; None for one that is gone, whose socket is removed."""
    process = int(pid) if (pid := path.stem.rpartition("-")[2]).isdigit() else None
    try:
        return {"process": process, **ask(path, "accept")}
    except (ConnectionRefusedError, FileNotFoundError):
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    except (OSError, ValueError) as error:
        return {"process": process, "error": f"no answer: {error}"}


def _print(answers: list[dict[str, Any]]) -> None:
    if not answers:
        click.echo("nothing runs here; the next start reads the files as they are")
    for answer in answers:
        if "error" in answer:
            click.echo(f"extgate: process {answer['process']}: {show(str(answer['error']))}", err=True)
            continue
        click.echo(f"process {answer['process']}:")
        for line in answer.get("lines", ()):
            click.echo(f"  {show(str(line))}")
