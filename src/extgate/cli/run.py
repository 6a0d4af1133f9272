"""`extgate run`: starts an agent program behind all walls, for this process only."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from extgate.cli.options import complete_agents
from extgate.cli.serve import need
from extgate.core.names import show
from extgate.errors import ExtgateError

NAMES = ("claude-code", "codex", "opencode", "gemini", "hermes")


@click.command("run", context_settings={"ignore_unknown_options": True})
@click.argument("runtime", type=click.Choice(NAMES))
@click.option("--agent", required=True, metavar="AGENT", help="Whose profile holds.", shell_complete=complete_agents)
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--project", default=".", metavar="DIR", help="Where the program runs; default: this directory.")
@click.option("--program", default="", metavar="PATH", help="The program; default: the one on the path.")
@click.option("--at", default="", metavar="URL", help="A gateway that runs, with its token in EXTGATE_TOKEN.")
@click.option("--trust", is_flag=True, help="Start the servers that project files ask for, for this run.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing about what is started.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def command(
    runtime: str, agent: str, root: str | None, project: str, program: str, at: str, trust: bool, quiet: bool,
    args: tuple[str, ...],
) -> None:  # fmt: skip
    """Run RUNTIME as AGENT: its model, its servers and its tool calls pass extgate. Nothing of yours is changed.

    Everything behind `--` goes to the program. Exit: the program's; 1 when it cannot be started.
    """
    need()
    from extgate.launch_run import Job, run

    here = Path(root or click.get_current_context().obj or ".")
    job = Job(
        runtime=runtime, agent=agent, root=here, project=Path(project).absolute(), args=args, program=program, at=at,
        token=os.environ.get("EXTGATE_TOKEN", ""), trust=trust,
    )  # fmt: skip

    def say(line: str) -> None:
        if not quiet:
            click.echo(f"extgate: {show(line)}", err=True)

    try:
        sys.exit(_run(run(job, say)))
    except (ExtgateError, OSError) as error:
        click.echo(f"extgate: {show(str(error))}", err=True)
        sys.exit(1)


def _run(work: object) -> int:
    import asyncio
    from collections.abc import Coroutine

    assert isinstance(work, Coroutine)
    code = asyncio.run(work)
    return int(code)
