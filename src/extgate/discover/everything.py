"""All discoverers, one after the other, into one inventory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from extgate.core.extension import Extension, Finding, Inventory
from extgate.core.names import show
from extgate.discover.builtins import builtin_tools
from extgate.discover.mcp_servers import Probed, Progress, probe_servers
from extgate.discover.plugins import Plugin, find_plugins
from extgate.discover.runtime_servers import load_runtime_servers
from extgate.discover.server_config import ServerSpec, load_servers, merge_servers
from extgate.discover.skills import SkillSource, find_skills
from extgate.discover.trust import TrustStore, trust_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where to look. skills: (folder, source name) in order of precedence, before plugins' and `pulled`.
    runtimes: whose built-in tools are installed.
    subagents: names that the workspace's own files offer to spawn.
    server_runtime: whose form the server files have; empty: the common one. cache: where server definitions are kept.
    """

    root: Path
    skills: tuple[tuple[Path, str], ...] = ()
    pulled: Path | None = None
    server_files: tuple[Path, ...] = ()
    plugin_dirs: tuple[Path, ...] = ()
    runtimes: tuple[str, ...] = ()
    subagents: tuple[str, ...] = ()
    timeout_s: float = 30.0
    cache: Path | None = None
    server_runtime: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The servers that the workspace's files and plugins ask for, and the approvals that hold for them."""

    specs: tuple[ServerSpec, ...]
    store: TrustStore
    plugins: tuple[Plugin, ...]
    findings: tuple[Finding, ...]


def wanted_servers(sources: Sources) -> Wanted:
    """Reads every file that asks for servers; starts none."""
    groups: list[tuple[ServerSpec, ...]] = []
    findings: list[Finding] = []
    for path in sources.server_files:
        root, runtime = sources.root.absolute(), sources.server_runtime
        specs, found = (
            load_runtime_servers(runtime, path, root, environ=os.environ)
            if runtime
            else load_servers(path, root, environ=os.environ)
        )
        if path.parent.name == ".msagent":
            # There an empty `include` puts no limit (msAgent at 9eb360f); elsewhere it admits nothing.
            specs = tuple(replace(spec, include=spec.include or None) for spec in specs)
        groups.append(specs)
        findings += found
    plugins, found = find_plugins(sources.plugin_dirs, environ=os.environ)
    findings += found
    specs, found = merge_servers(*groups, *(plugin.servers for plugin in plugins))
    store = TrustStore.open(trust_file(os.environ), sources.root)
    findings += [*found, *([store.problem] if store.problem else [])]
    return Wanted(specs=specs, store=store, plugins=plugins, findings=tuple(findings))


def discover(
    sources: Sources,
    *,
    trust: bool = False,
    is_live: Callable[[str], bool] = lambda name: True,
    on_progress: Callable[[str], None] | None = None,
) -> Inventory:
    """Everything that is installed. trust: starts every server that files ask for, for this run.

    is_live: whether a server of this name is asked now; another may be answered from what it said before, which leaves
    it `configured`.
    """
    wanted = wanted_servers(sources)
    return assembled(sources, wanted, _asked(wanted, sources, trust, is_live, on_progress))


def assembled(sources: Sources, wanted: Wanted, answers: Probed) -> Inventory:
    """What lies in folders and files, read now, with what servers have answered."""
    offered = (ext for plugin in wanted.plugins for ext in plugin.extensions)
    extensions: list[Extension] = [*(ext for name in sources.runtimes for ext in builtin_tools(name)), *offered]
    extensions += [Extension(kind="subagent", name=name, source="project") for name in sources.subagents]
    skills, problems = find_skills(
        [*_own_skills(sources), *(s for p in wanted.plugins for s in p.skills), *_pulled(sources)]
    )
    servers, items, found = answers
    return Inventory(
        extensions=(*extensions, *skills, *items),
        servers=servers,
        problems=(*wanted.findings, *problems, *found),
    )


def _own_skills(sources: Sources) -> Iterator[SkillSource]:
    yield from (SkillSource(root=path, name=name) for path, name in sources.skills)


def _pulled(sources: Sources) -> Iterator[SkillSource]:
    if sources.pulled is not None:
        yield SkillSource(root=sources.pulled, name="pulled")


def _asked(
    wanted: Wanted,
    sources: Sources,
    trust: bool,
    is_live: Callable[[str], bool],
    on_progress: Callable[[str], None] | None,
) -> Probed:
    """The servers' answers: those that must be live are started, the rest may come from the cache."""

    def is_trusted(spec: ServerSpec) -> bool:
        return spec.error is None and (trust or wanted.store.is_trusted(spec))

    def tell(step: Progress) -> None:
        if on_progress:
            on_progress(f"{step.done} of {step.total} servers: {show(step.server)} {step.state}")

    return probe_servers(
        wanted.specs,
        trusted=is_trusted,
        timeout_s=sources.timeout_s,
        on_progress=tell,
        cache=sources.cache,
        is_live=lambda spec: is_live(spec.name),
    )
