"""`extgate apply`: makes a runtime run under a profile, says which walls stand then, and takes all of it back."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from extgate.cli.options import complete_agents, print_json
from extgate.core.names import show
from extgate.errors import ExtgateError

NAMES = ("claude-code", "codex", "opencode", "gemini", "hermes")
AT_HOME = ("openprogram", "msagent")
OPEN = 3


@click.command("apply")
@click.argument("runtime", type=click.Choice((*NAMES, *AT_HOME)))
@click.argument("agent", shell_complete=complete_agents)
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--project", default=".", metavar="DIR", help="The runtime's project; default: this directory.")
@click.option("--scope", type=click.Choice(("project", "user")), help="Whose files; default: those that always hold.")
@click.option("--gateway/--no-gateway", default=None, help="Reach the workspace's servers through the gateway.")
@click.option("--trust", is_flag=True, help="Start the servers that files ask for now, to learn what they offer.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--undo", "is_undo", is_flag=True, help="Take back everything that was written.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    runtime: str, agent: str, root: str | None, project: str, scope: str | None, gateway: bool | None, trust: bool,
    dry_run: bool, is_undo: bool, as_json: bool,
) -> None:  # fmt: skip
    """Make RUNTIME run under AGENT's profile: its own lists, the hook, the gateway's entry, its skills.

    A second run changes nothing; after an edit of the profile it takes out what no longer belongs. Exit: 0; 3 when
    something that is denied stays open; 1 when nothing was written.
    """
    if runtime in AT_HOME:
        click.echo(f"{runtime} reads the profile itself; nothing is written")
        return
    try:
        from extgate.applied.work import Wish

        here = Path(root or click.get_current_context().obj or ".")
        wish = Wish(
            runtime=runtime, agent=agent, root=here, project=Path(project), gateway=gateway, trust=trust,
            scope="user" if scope == "user" else "project" if scope else None,
        )  # fmt: skip
        sys.exit(_run(wish, dry_run, is_undo, as_json))
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {show(str(error))}", err=True)
        sys.exit(1)


def _run(wish: object, is_dry: bool, is_undo: bool, as_json: bool) -> int:
    from extgate.applied import work as applied
    from extgate.applied.shapes import lines, open_leaks, work_dict

    assert isinstance(wish, applied.Wish)
    work = applied.undone(wish) if is_undo else applied.prepared(wish, say=_say)
    if not is_dry:
        applied.carried_out(work)
    if as_json:
        print_json(work_dict(work))
    elif is_dry:
        for change in work.changed:
            for line in applied.diff(change):
                click.echo(show(line))
    for line in () if as_json else lines(work):
        click.echo(show(line), err=is_dry)
    return OPEN if open_leaks(work) else 0


def _say(line: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"extgate: {show(line)}", err=True)
