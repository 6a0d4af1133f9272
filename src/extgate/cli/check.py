"""`extgate check`: the doctor: findings over profiles, skills, servers and plugins."""

from __future__ import annotations

import sys

import click

from extgate.applied.drift.table import drift
from extgate.cli.options import Opened, print_json, workspace_options
from extgate.cli.skill_texts import skill_text_findings
from extgate.cli.tables import console
from extgate.shapes import finding_dict, finding_line

ERRORS = 3


@click.command("check")
@workspace_options
def command(opened: Opened, as_json: bool) -> None:
    """Check profiles, skills, servers and plugins.

    Exit: 0 when nothing is at error level, else 3. A finding is silenced by `extgate: ignore CODE` in its own file.
    """
    workspace = opened.workspace
    inventory = opened.inventory(workspace.agents)
    explained = (workspace.explain(agent, inventory) for agent in workspace.agents)
    findings = workspace.check(inventory, inventory_of=opened.native_inventory)
    findings += tuple(finding for each in explained for finding in skill_text_findings(each))
    findings += drift(workspace.homes)
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        print_json({"findings": [finding_dict(finding) for finding in findings], "errors": errors})
    else:
        out = console()
        styles = {"error": "red", "warning": "yellow", "info": "cyan"}
        for finding in findings:
            out.print(
                f"{finding.severity} {finding.code}: {finding_line(finding)}",
                style=styles[finding.severity],
                markup=False,
            )
        agents = len(workspace.agents) + len(workspace.natives)
        out.print(f"{_counted(len(findings), 'finding')} over {_counted(agents, 'agent')}, {errors} at error level")
    sys.exit(ERRORS if errors else 0)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
