"""`extgate version`."""

from __future__ import annotations

import click

from extgate import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(__version__)
