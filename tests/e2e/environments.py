"""Environments with one version of one framework each, under `.cache`, made once and found again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "frameworks"


def environment(*requirements: str) -> Path:
    """The Python of an environment that holds these, this package and pytest.

    With uv where there is one (in `.venv`, as `make venv` leaves it, or on the path), else with venv and pip. Raises
    CalledProcessError, with the installer's own words, when something does not install.
    """
    folder = CACHE / "+".join(r.replace("==", "-").replace("[", "-").replace("]", "") for r in requirements)
    python, marker = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(requirements)
    if not marker.is_file() or marker.read_text() != wanted:
        _install(folder, python, [*requirements, "pytest", "pytest-timeout", "-e", str(ROOT)])
        marker.write_text(wanted)
    return python


def _install(folder: Path, python: Path, packages: list[str]) -> None:
    own = Path(sys.executable).with_name("uv")
    uv = str(own) if own.exists() else shutil.which("uv")
    if uv:
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(folder)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *packages], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=True)
