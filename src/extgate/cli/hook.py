"""`extgate hook`: answers a runtime's own hook call, which stands on stdin. Started as a console script it is not even
loaded: `extgate.start` hands over to `hook_client.py` at once."""

from __future__ import annotations

import os

import click

from extgate.cli.options import complete_agents

NAMES = ("claude-code", "codex", "gemini", "hermes", "opencode")


@click.command("hook")
@click.argument("runtime", type=click.Choice(NAMES))
@click.option(
    "--agent", default="", metavar="AGENT", help="Default: the workspace's only one.", shell_complete=complete_agents
)
@click.option("-w", "--workspace", "root", default=None, metavar="DIR", help="The workspace; default: this directory.")
@click.option("--project", default="", metavar="DIR", help="The runtime's project; default: the workspace.")
@click.option("--gateway", default="", metavar="NAME", help="What extgate's own MCP server is called in the runtime.")
def command(runtime: str, agent: str, root: str | None, project: str, gateway: str) -> None:
    """Judge the tool call that RUNTIME is about to make, and answer as RUNTIME's hooks do.

    `extgate apply` writes the hook that calls this. What cannot be judged is refused. Exit: the runtime's; 2 refuses.
    """
    from extgate.hook_client import main

    here = root or click.get_current_context().obj or "."
    words = [runtime, "--agent", agent, "-w", here, "--project", project, "--gateway", gateway]
    os._exit(main(words))
