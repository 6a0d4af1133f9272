"""`extgate diff OLD NEW`: what two policies decide differently, with a witness and a direction."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.console import Console

from extgate.analysis.budget import WORK
from extgate.analysis.diff import AgentDiff, Changed, diff
from extgate.analysis.diff_report import diff_dict, verdict
from extgate.analysis.diff_words import ANSWERS, KINDS, count, headline, markdown, plain_lines, ticked, why
from extgate.cli.options import Opened, print_json, workspace_options
from extgate.cli.sides import both_sides
from extgate.cli.tables import console, table
from extgate.core.names import show, shown_name

EXITS = {"equal": 0, "differs": 3, "undecided": 5}


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print a comment for a pull request.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 whatever is found.")
@click.option("--budget", default=WORK, show_default=True, metavar="UNITS", help="Work for one kind and direction.")
@workspace_options
def command(opened: Opened, old: str, new: str, as_markdown: bool, exit_zero: bool, budget: int, as_json: bool) -> None:
    """Compare what OLD and NEW decide: over what is installed, and over all names.

    Each is a profile file, a folder, an agent's id, or `REV:path` of a git revision. Exit: 0 equal, 3 differs, 5 when
    nothing differs but something could not be decided.
    """
    with both_sides(opened.workspace, old, new) as (before, after):
        found = diff(before, after, opened.inventory(opened.workspace.agents), budget=budget)
    if as_json:
        print_json(diff_dict(found))
    elif as_markdown:
        click.echo(markdown(found))
    else:
        _print(found)
    sys.exit(0 if exit_zero else EXITS[verdict(found)])


def _print(found: Sequence[AgentDiff]) -> None:
    out = console()
    changed = [agent for agent in found if agent.status != "equal"]
    if not changed:
        out.print(f"equal for {count(len(found), 'agent')}, over all names")
    for agent in changed:
        _print_agent(agent, out)
    same = [agent.agent for agent in found if agent.status == "equal"]
    if changed and same:
        out.print(f"equal over all names: {show(', '.join(same))}", markup=False)


def _print_agent(agent: AgentDiff, out: Console) -> None:
    out.print(f"{show(agent.agent)} {headline(agent)}", style="bold", markup=False)
    rows = [row for kind in agent.kinds for row in kind.installed] if agent.before and agent.after else []
    if rows:
        columns = ("what", "before", "after", "why")
        table("installed", columns, (_row(row) for row in sorted(rows, key=lambda row: not row.is_wider)), out)
    for line in plain_lines(agent):
        out.print(f"  {line}", markup=False, soft_wrap=True)
    out.print()


def _row(row: Changed) -> tuple[str, str, str, str]:
    name = f"{KINDS[row.after.extension.kind]} {shown_name(row.after.extension)}"
    return name, ANSWERS[row.before.effect], ANSWERS[row.after.effect], why(row, ticked)
