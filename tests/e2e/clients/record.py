"""What was observed, kept as JSON: `date`, `versions`, `skipped`, and by runtime, intent and column what was seen."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.environments import ROOT

STATE = ROOT / ".cache" / "clients" / "observations.json"
KEPT = ROOT / "docs" / "reference" / "runtimes.json"
PAGE = ROOT / "docs" / "reference" / "runtimes.md"
Json = dict[str, Any]


@dataclass
class Record:
    """cells: by runtime, intent and column. skipped, unfinished: why a runtime, or cells of it, did not run."""

    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    unfinished: dict[str, str] = field(default_factory=dict)
    cells: dict[str, dict[str, Json]] = field(default_factory=dict)

    def at(self, runtime: str, intent: str) -> Json:
        return self.cells.setdefault(runtime, {}).setdefault(intent, {})

    def join(self, other: Record) -> None:
        """Takes in what another one saw; where both saw something, the other's counts."""
        self.date = max(self.date, other.date)
        self.versions |= other.versions
        self.skipped |= other.skipped
        self.unfinished |= other.unfinished
        for runtime, cells in other.cells.items():
            ran = {intent: cell for intent, cell in cells.items() if "control" in cell}
            self.cells[runtime] = {**self.cells.get(runtime, {}), **ran}

    def save(self, path: Path = STATE) -> None:
        """Writes it whole."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(vars(self), indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        os.replace(part, path)


def load(path: Path = STATE) -> Record:
    """The record there, or an empty one."""
    return Record(**json.loads(path.read_text())) if path.is_file() else Record()


def stamp(column: str, runtime: str) -> str:
    """A digest of the code that an observation in this column depends on."""
    here = Path(__file__).parent
    shared = [file for file in here.glob("*.py") if file.stem not in ("page", "record", "verdicts", "walls")]
    files = [*shared, *here.glob("programs/*.py"), here / "runtimes" / f"{runtime.replace('-', '_')}.py"]
    if column in ("open", "after"):
        files += [*(ROOT / "src" / "extgate").rglob("*.py"), *(ROOT / "src" / "extgate").rglob("*.toml")]
    return _digest(files)


def _digest(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for file in sorted(files):
        found.update(str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()[:16]
