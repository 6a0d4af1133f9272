"""The command line: one file a verb, found by name only when it is asked for."""

from __future__ import annotations

import importlib
import sys

import click

VERBS = (
    "list",
    "explain",
    "check",
    "diff",
    "prove",
    "convert",
    "serve",
    "run",
    "mcp",
    "install",
    "apply",
    "hook",
    "chat",
    "audit",
    "reload",
    "trust",
    "version",
)
"""The commands, in the order of the help. Each lives in `cli/VERB.py` as `command`."""


class _Verbs(click.Group):
    """Imports a verb's module when it runs, so that one verb does not pay for another's libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        command = importlib.import_module(f"extgate.cli.{name}").command
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option("-w", "--workspace", "root", default=".", metavar="DIR", help="The workspace; default: this directory.")
@click.pass_context
def cli(ctx: click.Context, root: str) -> None:
    """What may this agent see and use?

    Shell completion: `eval "$(_EXTGATE_COMPLETE=bash_source extgate)"`, or zsh_source, fish_source.
    """
    ctx.obj = root


def main() -> None:
    """Entry point of `extgate`."""
    from extgate.errors import ExtgateError

    try:
        cli(prog_name="extgate", standalone_mode=True)
    except ExtgateError as error:
        click.echo(f"extgate: {error}", err=True)
        sys.exit(1)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)


if __name__ == "__main__":
    main()
