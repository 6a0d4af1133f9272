"""All discoverers, one after the other, into one inventory."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from extgate.core.extension import Extension, Finding, Inventory
from extgate.discover.server_config import ServerSpec, load_servers, merge_servers
from extgate.discover.skills import SkillSource, find_skills
from extgate.discover.trust import TrustStore, trust_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where to look. skills: (folder, source name) in order of precedence, before plugins' and `pulled`.

    subagents: names that the workspace's own files offer to spawn. cache: where server definitions are kept.
    """

    root: Path
    skills: tuple[tuple[Path, str], ...] = ()
    pulled: Path | None = None
    server_files: tuple[Path, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()
    runtime: str = ""
    subagents: tuple[str, ...] = ()
    timeout_s: float = 30.0
    cache: Path | None = None


def wanted_servers(sources: Sources) -> tuple[tuple[ServerSpec, ...], TrustStore, tuple[Finding, ...]]:
    """The servers that the workspace's files ask for, which of them are trusted, and what was wrong with the files."""
    groups: list[tuple[ServerSpec, ...]] = []
    findings: list[Finding] = []
    for path in sources.server_files:
        specs, found = load_servers(path, sources.root.absolute(), environ=os.environ)
        groups.append(specs)
        findings += found
    specs, found = merge_servers(*groups)
    return specs, TrustStore.open(trust_file(os.environ), sources.root), (*findings, *found)


def discover(
    sources: Sources,
    *,
    trust: bool = False,
    refresh: bool = False,
    is_live: Callable[[str], bool] = lambda name: True,
    on_progress: Callable[[str], None] | None = None,
) -> Inventory:
    """Everything that is installed. trust: starts every server that files ask for, for this run.

    is_live: whether a server of this name is asked now; the others may be answered from what they said before, which
    leaves them `configured`. refresh: asks every server.
    """
    extensions: list[Extension] = []
    findings: list[Finding] = []
    skills, found = find_skills([SkillSource(root=path, name=name) for path, name in sources.skills])
    extensions += skills
    findings += found
    return Inventory(extensions=tuple(extensions), problems=tuple(findings))
