"""Options that several verbs share, and the workspace they open."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from extgate.core.extension import Inventory
from extgate.errors import ExtgateError
from extgate.workspace import Agent, Workspace, load_inventory_file, must_be_live


class Opened:
    """The workspace of one command, and how its servers may be started."""

    def __init__(self, root: str, inventory_file: str | None, trust: bool, refresh: bool, is_quiet: bool) -> None:
        given = load_inventory_file(Path(inventory_file)) if inventory_file else None
        self.workspace = Workspace.open(root, inventory=given)
        self._trust, self._refresh, self._is_quiet = trust, refresh and given is None, is_quiet

    def inventory(self, agents: Iterable[Agent] = ()) -> Inventory:
        """What is installed for these agents, with a line of progress on a terminal's stderr while servers start.

        agents: those that are asked about. Servers that they require are asked now; the others may be answered from
        what they said before, unless --refresh is given.
        """
        from extgate.cli.progress import progress

        agents = tuple(agents)
        is_live = (lambda name: True) if self._refresh else must_be_live(agents)
        natives = {agent.dialect if agent in self.workspace.natives else "" for agent in agents}
        runtime = next(iter(natives)) if len(natives) == 1 else ""
        with progress(is_quiet=self._is_quiet) as say:
            return self.workspace.inventory(trust=self._trust, runtime=runtime, is_live=is_live, on_progress=say)

    def native_inventory(self, runtime: str) -> Inventory:
        """What the agents of a runtime's own files have installed."""
        return self.inventory(agent for agent in self.workspace.natives if agent.dialect == runtime)


def workspace_options(function: Callable[..., Any]) -> Any:
    """Adds -w, --json, --inventory, --trust and --refresh; the function gets an `Opened` and `as_json`."""

    @click.option(
        "-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory."
    )
    @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    @click.option(
        "--inventory", "inventory_file", metavar="FILE", help="Use this inventory; nothing is discovered or started."
    )
    @click.option("--trust", is_flag=True, help="Start the servers that project files ask for, for this run.")
    @click.option("--refresh", is_flag=True, help="Ask every server again, whatever is cached.")
    @functools.wraps(function)
    def wrapped(
        root: str | None,
        as_json: bool,
        inventory_file: str | None,
        trust: bool,
        refresh: bool,
        **rest: Any,
    ) -> Any:
        try:
            opened = Opened(
                root or click.get_current_context().obj or ".", inventory_file, trust, refresh, is_quiet=as_json
            )
            return function(opened, as_json=as_json, **rest)
        except ExtgateError as error:
            click.echo(f"extgate: {error}", err=True)
            sys.exit(1)

    return wrapped


def print_json(value: object) -> None:
    """One JSON document on stdout; characters outside ASCII are escaped, so no name can move the terminal."""
    click.echo(json.dumps(value, indent=1))


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Shell completion of agents' ids."""
    try:
        workspace = Workspace.open(ctx.params.get("root") or ".")
        agents = (*workspace.agents, *workspace.natives)
    except ExtgateError:
        return []
    return [CompletionItem(agent.id) for agent in agents if agent.id.startswith(incomplete)]
