"""`extgate trust`: approve the server commands that project files and plugins ask for."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from extgate.cli.options import Opened, print_json, workspace_options
from extgate.cli.tables import console, table
from extgate.core.names import show
from extgate.discover.everything import wanted_servers
from extgate.discover.server_config import ServerSpec


@click.command("trust")
@click.argument("servers", metavar="[SERVER]...", nargs=-1)
@click.option("--yes", is_flag=True, help="Approve without asking.")
@click.option("--revoke", is_flag=True, help="Take approvals back: of these servers, or of all.")
@workspace_options
def command(opened: Opened, servers: tuple[str, ...], yes: bool, revoke: bool, as_json: bool) -> None:
    """Approve the server commands that this workspace's files ask for.

    What is approved is exactly what is shown; any change to it must be approved again. The approvals are kept outside
    the project. Without --yes, each server is asked about in the terminal.
    """
    wanted = wanted_servers(opened.workspace.sources())
    specs, store = wanted.specs, wanted.store
    asked = [spec for spec in specs if not servers or spec.name in servers]
    unknown = [name for name in servers if name not in {spec.name for spec in specs}]
    if revoke:
        store = store.revoke(asked if servers else None)
    elif not as_json or yes:
        approved = [s for s in asked if not store.is_trusted(s) and s.error is None and (yes or _is_approved(s))]
        store = store.trust(approved) if approved else store
    if as_json:
        print_json({"servers": [_row(spec, store.is_trusted(spec)) for spec in specs], "unknown": unknown})
    else:
        _print(specs, [store.is_trusted(spec) for spec in specs])
    for name in unknown:
        click.echo(f"extgate: no server `{show(name)}` is configured; `extgate trust` shows those that are", err=True)
    sys.exit(1 if unknown else 0)


def _is_approved(spec: ServerSpec) -> bool:
    if not sys.stdin.isatty():
        return False
    where = f"{spec.file}:{spec.line}" if spec.line else spec.file
    click.echo(f"\n{show(spec.name)}, asked for in {show(where)}, would run or call:\n  {show(spec.shown)}")
    return click.confirm("approve it?", default=False)


def _row(spec: ServerSpec, is_trusted: bool) -> dict[str, Any]:
    return {
        "server": spec.name,
        "runs": spec.shown,
        "source": spec.source,
        "file": spec.file,
        "line": spec.line,
        "trusted": is_trusted,
        "error": spec.error,
    }


def _print(specs: Sequence[ServerSpec], trusted: Sequence[bool]) -> None:
    rows = [
        ("yes" if ok else "no", spec.name, spec.error or spec.shown, f"{spec.file}:{spec.line}")
        for spec, ok in zip(specs, trusted, strict=True)
    ]
    if not specs:
        click.echo("no file here asks for a server; they are configured in .mcp.json")
        return
    table("servers", ("trusted", "server", "runs", "asked for in"), rows, console())
    if not sys.stdin.isatty() and not all(trusted):
        click.echo("no terminal to ask in: `extgate trust --yes [SERVER]...` approves", err=True)
