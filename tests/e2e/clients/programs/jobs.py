"""A program that plays jobs: one JSON line in, one JSON line out, in the environment of one framework.

A job: url (of the model), lab (its root), project, workspace, marker (folders and a file), servers (by name, as MCP
configuration), pieces (of the case), is_gated, number (its own).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

Job = dict[str, Any]


def serve(play: Callable[[Job], Awaitable[None]]) -> None:
    """Plays until the input ends. What a job raises is told; a run that ends so has run all the same."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        error = ""
        try:
            asyncio.run(play(job))
        except Exception as raised:  # noqa: BLE001 - whatever ends a run has ended it
            error = "".join(traceback.format_exception(raised, limit=-3))[-1500:]
        out.write(json.dumps({"error": error}) + "\n")
        out.flush()


def shell_of(job: Job) -> Callable[[str], str]:
    """A tool of the program that runs a shell command."""

    def run_command(command: str) -> str:
        """Runs a shell command."""
        return subprocess.run(command, shell=True, capture_output=True, text=True, cwd=job["project"]).stdout

    return run_command


def read_file(path: str) -> str:
    """Reads a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()
