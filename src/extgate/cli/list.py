"""`extgate list [AGENT]`: what is installed, or what one agent sees of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from extgate.cli.options import Opened, complete_agents, print_json, workspace_options
from extgate.cli.tables import console, table
from extgate.core.extension import KINDS, Extension, Inventory
from extgate.core.names import shown_name
from extgate.discover.inventory_file import dump_inventory
from extgate.shapes import explanation_dict, finding_line, tokens


@click.command("list")
@click.argument("agent", required=False, shell_complete=complete_agents)
@workspace_options
def command(opened: Opened, agent: str | None, as_json: bool) -> None:
    """List what is installed; with AGENT, what that agent sees."""
    if agent is not None:
        _list_agent(opened, agent, as_json)
        return
    inventory = opened.inventory()
    if as_json:
        print_json(dump_inventory(inventory))
        return
    _print_inventory(opened, inventory)


def _list_agent(opened: Opened, name: str, as_json: bool) -> None:
    agent = opened.workspace.agent(name)
    explanation = opened.workspace.explain(agent, opened.inventory([agent]))
    visible = [decision for decision in explanation.decider.decisions if decision.visible]
    if explanation.agent.errors:
        visible = []
    if as_json:
        print_json(explanation_dict(explanation, visible))
        return
    if not explanation.availability.is_available:
        from extgate.cli.explain import say_unavailable

        say_unavailable(explanation, console())
    _print_items([decision.extension for decision in visible])


def _print_inventory(opened: Opened, inventory: Inventory) -> None:
    out = console()
    agents = (*opened.workspace.agents, *opened.workspace.natives)
    if agents:
        rows = [(a.id, a.dialect or "-", "error" if a.errors else "ok", a.file) for a in agents]
        table("agents", ("id", "dialect", "profile", "file"), rows, out)
    if inventory.servers:
        counts = {s.name: sum(e.server == s.name for e in inventory.extensions) for s in inventory.servers}
        servers = [(s.name, s.state, str(counts[s.name]), s.error or "") for s in inventory.servers]
        table("MCP servers", ("server", "state", "items", "error"), servers, out)
    _print_items(inventory.extensions)
    for problem in inventory.problems:
        if problem.severity != "info":
            click.echo(f"{problem.severity} {problem.code}: {finding_line(problem)}", err=True)
    if not inventory.extensions and not agents:
        click.echo("nothing is installed here: no agents, skills, servers or plugins", file=sys.stdout)
        click.echo("looked for agents/*.yaml, skills/**/SKILL.md, .mcp.json, plugins/; extgate.yaml can name others")


def _print_items(extensions: Iterable[Extension]) -> None:
    out = console()
    items = tuple(extensions)
    for kind in KINDS:
        rows = [
            (shown_name(e), e.source or "-", e.category or "-", str(tokens(e)), " ".join(e.description.split())[:80])
            for e in items
            if e.kind == kind
        ]
        if rows:
            table(f"{kind} ({len(rows)})", ("name", "source", "category", "tokens", "description"), rows, out)
