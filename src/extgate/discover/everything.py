"""All discoverers, one after the other, into one inventory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from extgate.core.extension import Extension, Finding, Inventory
from extgate.discover.builtins import builtin_tools
from extgate.discover.skills import SkillSource, find_skills


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where to look. skills: (folder, source name) in order of precedence, before plugins' and `pulled`.

    agents: the workspace's own agents, which are what it can spawn. cache: where server definitions are kept.
    """

    root: Path
    skills: tuple[tuple[Path, str], ...] = ()
    pulled: Path | None = None
    server_files: tuple[Path, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()
    runtime: str = ""
    agents: tuple[str, ...] = ()
    timeout_s: float = 30.0
    cache: Path | None = None
