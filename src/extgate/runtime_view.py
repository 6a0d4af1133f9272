"""One agent of a workspace as it is inside a runtime: its profile in the runtime's words, over what is there.

A profile speaks of the tools of its own home (`bash`); a runtime has others (`Bash`, `run_shell_command`) that do the
same. A deny of one of a family denies all of them. An allow-list that admits every tool of a family that the home has
admits the runtime's ones: they are no stronger. Nothing else is carried over, so nothing is widened.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from extgate.applied.account import Account, accounts_of, without_ours
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.names import gateway_names
from extgate.core.policy import Either, Entry, Policy, Profile, Rule, Test
from extgate.dialects.document import Document
from extgate.dialects.native import MAIN
from extgate.dialects.native_denies import denied, nothing_of_servers, of_servers, relayed
from extgate.dialects.outline import CLASSES, SHELL
from extgate.dialects.registry import NATIVE
from extgate.discover.builtins import builtin_tools
from extgate.discover.everything import Sources, Wanted, assembled, wanted_servers
from extgate.discover.mcp_cache import cached
from extgate.discover.mcp_servers import Held, offering, probe_servers, server_of
from extgate.discover.server_config import ServerSpec
from extgate.discover.trust import TrustStore
from extgate.errors import DocumentError, WorkspaceError
from extgate.gateway.settings import options_of, read_gateway
from extgate.homes import user_cache_dir
from extgate.native_homes import files_in_force
from extgate.runtime_places import claude_state, rule_files, server_files, skill_folders
from extgate.workspace import Agent, Workspace

DIALECTS = {
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "hermes": "hermes",
    "opencode": "opencode",
}
"""The dialect by the name that the command line has for the runtime."""
TELLING = frozenset({"claude-code", "codex", "opencode"})
"""Runtimes whose hook is told which agent calls."""
_ALIKE = {name: group for group in CLASSES for name in group}


@dataclass(frozen=True, kw_only=True)
class RuntimeView:
    """What a workspace is for one runtime, whose own files lie in `project` and in the user's home.

    relays: whether the runtime reaches the workspace's servers through extgate's gateway, which it has under the name
    `gateway`.
    """

    workspace: Workspace
    runtime: str
    project: Path
    relays: bool = False
    gateway: str = "extgate"

    @property
    def dialect(self) -> str:
        return DIALECTS[self.runtime]

    @cached_property
    def _own(self) -> Workspace:
        root = self.workspace.homes.root
        same = os.path.realpath(root) == os.path.realpath(self.project)
        return self.workspace if same else Workspace.open(self.project)

    @cached_property
    def natives(self) -> dict[str, Agent]:
        """The agents of the runtime's own files, by their name there; the main one left out."""
        return {name: agent for name, agent in self._owned.items() if name != MAIN}

    @cached_property
    def _owned(self) -> dict[str, Agent]:
        """Every agent of the runtime's own files, as they are without what `apply` wrote there for this workspace."""
        found = self._own.natives_as(self.dialect, self._unwritten)
        return {agent.id.removeprefix(f"{self.dialect}/"): agent for agent in found}

    @cached_property
    def _accounts(self) -> list[Account]:
        where = {"workspace": str(self.workspace.homes.root.absolute()), "project": str(self.project.absolute())}
        return [account for account in accounts_of(self.runtime) if where.items() <= account.facts.items()]

    def _unwritten(self, document: Document) -> Document | None:
        path = Path(os.path.realpath(self.project / document.path))
        account = next((a for a in self._accounts if any(entry.path == path for entry in a.entries)), None)
        try:
            text = without_ours(account, path) if account else document.text
        except WorkspaceError:
            return document  # nobody knows what of it is ours, so all of it holds
        return replace(document, text=text) if text or not document.text else None

    # ------------------------------------------------------------------------------------------ what is there

    @cached_property
    def sources(self) -> Sources:
        """Where the runtime and the workspace have skills, plugins and servers; the runtime's own places come first."""
        native, base = NATIVE[self.dialect], self.workspace.sources()
        own = [self._place(place) for place in native.SKILLS if not place.startswith("~/")]
        skills = [(path, "project") for path in own if path.is_dir()]
        skills += [(path, "user") for path in self.skill_roots if path.is_dir() and path not in own]
        agents = [agent.id for agent in self.workspace.agents]
        return replace(
            base,
            skills=(*skills, *base.skills),
            runtimes=(),
            subagents=tuple(sorted({*agents, *self.natives, *native.SUBAGENTS})),
        )

    @cached_property
    def skill_roots(self) -> tuple[Path, ...]:
        """Every folder of skills that the runtime would look into, there or not."""
        found = [*map(self._place, NATIVE[self.dialect].SKILLS), *skill_folders(self.runtime)]
        return tuple(dict.fromkeys(found))

    def _place(self, place: str) -> Path:
        return Path.home() / place.removeprefix("~/") if place.startswith("~/") else self.project / place

    @cached_property
    def wanted(self) -> tuple[Wanted, ...]:
        """The servers that the workspace asks for, and those that the runtime's own files name besides."""
        places = map(self._place, NATIVE[self.dialect].SERVER_FILES)
        files = list(dict.fromkeys((*places, *server_files(self.runtime))))
        form = "" if self.runtime == "claude-code" else self.dialect
        native = replace(
            self.sources, root=self.project, server_files=tuple(filter(Path.is_file, files)), plugin_dirs=(), skills=(),
            server_runtime=form,
        )  # fmt: skip
        return wanted_servers(self.sources), wanted_servers(native)

    @cached_property
    def user_servers(self) -> tuple[str, ...]:
        """The names of servers that Claude Code keeps apart, the user's own and those of this project. Empty when its
        file cannot be read: then nobody knows of them."""
        if self.runtime != "claude-code":
            return ()
        try:
            state = json.loads(claude_state().read_bytes())
            own = state.get("projects", {}).get(os.path.realpath(self.project), {})
            return tuple(dict.fromkeys((*state.get("mcpServers", {}), *own.get("mcpServers", {}))))
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            return ()

    def learn(self, *, trust: bool, say: Callable[[str], None] = lambda line: None) -> None:
        """Asks servers of which nothing is known, and that may be started, what they offer; the answers are kept.

        trust: any of them may be started.
        """
        for wanted in self.wanted:
            probe_servers(
                wanted.specs,
                trusted=partial(_may_start, wanted.store, trust),
                timeout_s=self.workspace.homes.timeout_s,
                on_progress=lambda step: say(f"{step.done} of {step.total} servers: {step.server} {step.state}"),
                cache=user_cache_dir() / "servers",
                is_live=lambda spec: trust,
            )

    @cached_property
    def inventory(self) -> Inventory:
        """Everything that is installed there, without starting a server: what each said when it was last asked.

        A server is `configured` then, and so does not meet a requirement.
        """
        ours, natives = self.wanted
        specs = {spec.name: spec for spec in (*natives.specs, *ours.specs)}
        held = [_remembered(spec) for spec in specs.values()]
        answers = (
            tuple(one.server for one in held),
            tuple(ext for one in held for ext in one.extensions),
            tuple(finding for one in held for finding in one.findings),
        )
        found = assembled(self.sources, ours, answers)
        return replace(found, extensions=(*found.extensions, *self.tools))

    @cached_property
    def tools(self) -> tuple[Extension, ...]:
        """The runtime's tools. facts: `names` besides their own; `aliases` by which a deny reaches them."""
        own = builtin_tools(self.dialect)
        names = {ext.name for ext in own}
        return tuple(replace(ext, facts={**ext.facts, **_aliases(ext, names)}) for ext in own)

    @cached_property
    def _home_tools(self) -> tuple[Extension, ...]:
        found = [ext for name in self.workspace.homes.builtin_runtimes for ext in builtin_tools(name)]
        return tuple(found)

    # ------------------------------------------------------------------------------------------ profiles

    def profile(self, profile: Profile) -> Profile:
        """A profile of the workspace in the runtime's words."""
        return replace(profile, layers=tuple(self._layer(layer) for layer in profile.layers))

    def _layer(self, layer: Policy | Either) -> Policy | Either:
        if isinstance(layer, Either):
            return replace(layer, first=self.profile(layer.first), second=self.profile(layer.second))
        return replace(layer, rules=tuple(_extended(rule, self._home_tools, self.tools) for rule in layer.rules))

    def own_profile(self, name: str, *, is_child: bool = True) -> Profile | None:
        """What an agent of that type is under besides its starter: its profile here, and its own file there, or else
        the runtime's settings. is_child: whether it runs as a sub-agent, and not as the session's own."""
        found = next((agent for agent in self.workspace.agents if agent.id == name), None)
        native = self.natives.get(name) or self._settings
        given = [self.profile(found.profile)] if found else []
        given += [self._native_profile(native.profile, is_child)] if native else []
        if any(not profile.layers for profile in given):
            return Profile(id=name)  # one that cannot be read denies everything
        return Profile(id=name, layers=tuple(layer for p in given for layer in p.layers)) if given else None

    @cached_property
    def server_denies(self) -> Policy | None:
        """What the runtime's own files deny of servers that it now reaches through the gateway, whoever calls: the
        runtime itself goes by the direct servers' names. None where it reaches them itself."""
        if not self.relays:
            return None
        # Hermes reads no project's file, whatever lies there.
        root = None if self.runtime == "hermes" else self.project
        files = files_in_force(self.dialect, root, rule_files(self.runtime))
        documents = [own for document in files.documents if (own := self._unwritten(document))]
        if files.errors:
            return nothing_of_servers(self.dialect, files.errors[0].file or files.file, files.errors[0].message)
        try:
            found = of_servers(NATIVE[self.dialect].read(documents, MAIN), self.gateway) if documents else None
        except DocumentError as error:
            return nothing_of_servers(self.dialect, error.file or files.file, error.message)
        return found if found and any(rule.effect == "deny" for rule in found.rules) else None

    def relayed_names(self, agent: Agent) -> Mapping[Extension, str]:
        """What the gateway calls the tools of the workspace's servers."""
        options = options_of(agent, read_gateway(self.workspace.homes).options)
        servers = {spec.name for spec in self.wanted[0].specs}
        items = [ext for ext in self.inventory.of_kind("mcp_tool") if ext.server in servers]
        return gateway_names(items, prefix=options.prefix, aliases=options.aliases)

    def may_widen(self, name: str) -> bool:
        """Whether an agent of that type has a profile in the workspace: a runtime's own file only takes away."""
        return any(agent.id == name for agent in self.workspace.agents)

    @property
    def _settings(self) -> Agent | None:
        """The agent without a file of its own, where calls tell which agent makes them. One that cannot be read says
        nothing of the others."""
        found = self._owned.get(MAIN) if self.runtime in TELLING else None
        return found if found and found.profile.layers else None

    def _native_profile(self, profile: Profile, is_child: bool) -> Profile:
        layers = [denied(layer, is_child) for layer in profile.layers if isinstance(layer, Policy)]
        found = [relayed(layer, self.gateway) for layer in layers] if self.relays else layers
        return replace(profile, layers=tuple(found))


def _remembered(spec: ServerSpec) -> Held:
    if spec.is_disabled or spec.error is not None:
        return Held(server=server_of(spec, "disabled" if spec.is_disabled else "failed", error=spec.error))
    folder = user_cache_dir() / "servers"
    found = cached(folder, spec, now=time.time(), age_s=math.inf)
    return offering(spec, "configured", found) if found else Held(server=server_of(spec, "configured"))


def _may_start(store: TrustStore, trust: bool, spec: ServerSpec) -> bool:
    return spec.error is None and (trust or store.is_trusted(spec))


def _aliases(ext: Extension, own: set[str]) -> dict[str, object]:
    """Any shell is every shell; of the other families the runtime's own tools are told apart."""
    alike = _ALIKE.get(ext.name, frozenset())
    names = tuple(map(str, ext.facts.get("aliases", ())))
    reached = alike if alike is SHELL else alike - own
    return {"names": names, "aliases": tuple(sorted({*names, *reached} - {ext.name}))}


def _extended(rule: Rule, home: tuple[Extension, ...], there: tuple[Extension, ...]) -> Rule:
    """The rule with the runtime's tools: where it denies or asks, those that do the same as one that it names; where it
    admits, those that do no more than what it admits at home."""
    is_list = rule.effect == "deny" and rule.unless
    if "tool" in rule.kinds and rule.effect != "allow" and not rule.unless:
        return replace(rule, entries=(*rule.entries, *_reached(rule, there)))
    if "tool" not in rule.kinds or rule.when or not (is_list or (rule.effect == "allow" and not rule.unless)):
        return rule
    alone = Policy(dialect="", rules=(rule,), default="allow" if is_list else "deny")
    decider = Decider(Profile(id="rule", layers=(alone,)), Inventory(extensions=home))
    names = {ext.name for ext in home}
    return replace(rule, entries=(*rule.entries, *_admitted(decider, home, [e for e in there if e.name not in names])))


def _reached(rule: Rule, there: Iterable[Extension]) -> Iterator[Entry]:
    alone = Policy(dialect="", rules=(replace(rule, effect="deny", when=()),), default="allow")
    decider = Decider(Profile(id="rule", layers=(alone,)), Inventory())
    for ext in there:
        alike = (Extension(kind="tool", name=name, source="builtin") for name in ext.facts["aliases"])
        hit = next((other.name for other in alike if decider.decide(other).effect == "deny"), None)
        if hit is not None and decider.decide(ext).effect != "deny":
            yield Entry(text=hit, tests=(Test(facets=("name",), pattern=ext.name, is_exact=True),), file=rule.file)


def _admitted(decider: Decider, home: tuple[Extension, ...], strange: Iterable[Extension]) -> Iterator[Entry]:
    for ext in strange:
        alike = [other for other in home if other.name in _ALIKE.get(ext.name, ())]
        if alike and all(decider.decide(other).effect == "allow" for other in alike):
            text = ", ".join(other.name for other in alike)
            yield Entry(text=text, tests=(Test(facets=("name",), pattern=ext.name, is_exact=True),))
