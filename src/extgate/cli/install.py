"""`extgate install`: puts a client behind the gateway, by an entry in its own MCP configuration."""

from __future__ import annotations

import difflib
import shutil
import sys
from pathlib import Path

import click

from extgate.cli.options import complete_agents
from extgate.core.names import show
from extgate.errors import ExtgateError

NAMES = ("claude-code", "codex", "opencode", "gemini", "hermes", "vscode", "cursor")


@click.command("install")
@click.argument("client", type=click.Choice(NAMES))
@click.argument("agent", shell_complete=complete_agents)
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--project", default=".", metavar="DIR", help="Whose configuration; default: this directory.")
@click.option("--replace", is_flag=True, help="Take the client's direct servers out, so that only the gate is left.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--undo", "is_undo", is_flag=True, help="Put the file back as it was before.")
def command(
    client: str, agent: str, root: str | None, project: str, replace: bool, dry_run: bool, is_undo: bool
) -> None:
    """Write AGENT's gateway into CLIENT's MCP configuration; the old file is kept beside it.

    Exit: 0; 1 when the file cannot be edited.
    """
    try:
        if is_undo:
            _undo(client, Path(project))
        else:
            here = Path(root or click.get_current_context().obj or ".")
            _install(client, agent, here, Path(project), replaces=replace, is_dry=dry_run)
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)


def _install(name: str, agent: str, root: Path, project: Path, *, replaces: bool, is_dry: bool) -> None:
    from extgate.client_config import CLIENTS, apply, plan
    from extgate.workspace import Workspace

    workspace = Workspace.open(root)
    workspace.agent(agent)
    client = CLIENTS[name]
    program = shutil.which("extgate") or "extgate"
    command = [program, "mcp", agent, "-w", str(root.absolute())]
    edit = plan(client, project, command, replaces=replaces)
    if edit.path.absolute() in {path.absolute() for path in workspace.homes.existing(workspace.homes.servers)}:
        fix = "pass --project: the client's folder must not be the workspace"
        raise ExtgateError("is where this workspace's own servers are named", file=str(edit.path), fix=fix)
    if is_dry:
        lines = difflib.unified_diff(
            (edit.before or "").splitlines(), edit.after.splitlines(), str(edit.path), str(edit.path), lineterm=""
        )
        for line in lines:
            click.echo(show(line))
        return
    apply(edit)
    click.echo(f"{edit.path}: `extgate` added for {show(agent)}; the old file is {edit.backup.name}")
    for server in edit.gone:
        click.echo(f"{edit.path}: `{show(server)}` taken out")


def _undo(name: str, project: Path) -> None:
    from extgate.client_config import CLIENTS, undo

    click.echo(f"{undo(CLIENTS[name], project)}: as it was before")
