"""A workspace: agents' profiles, what is installed, and one decider for each agent."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from extgate.analysis.lint.table import lint, lint_inventory
from extgate.core.explain import Decider
from extgate.core.extension import Finding, Inventory
from extgate.core.patterns import matches
from extgate.core.policy import ALLOW_ALL, Policy, Profile
from extgate.core.require import Availability
from extgate.dialects.document import MAX_CHARS, Document
from extgate.dialects.registry import dialect_of, read_agent, read_natives
from extgate.discover.everything import Sources, discover
from extgate.discover.inventory_file import load_inventory
from extgate.errors import UNFORESEEN, DialectError, DocumentError, WorkspaceError
from extgate.homes import Homes, find_homes, user_cache_dir, user_config_dir, user_data_dir
from extgate.native_homes import NativeFiles, find_natives, native_sources
from extgate.shared_tests import rows_of, stray_tests, with_tests

DEFAULT_AGENT = "default"
"""The agent of a workspace that configures none: everything installed, the model picks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent's file, read. `errors` (in place order) say why it has no policy.

    text: the file's text, in which findings can be silenced. texts: of further files, for a runtime's own agent.
    """

    id: str
    file: str
    dialect: str = ""
    policy: Policy | None = None
    errors: tuple[Finding, ...] = ()
    text: str = field(default="", repr=False)
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def profile(self) -> Profile:
        """What it is under; without a readable policy it has no layer, which denies everything."""
        layers = (self.policy,) if self.policy else ()
        return Profile(id=self.id, layers=layers, dialect=self.dialect or "profile")


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Everything there is to say of one agent over one inventory."""

    agent: Agent
    decider: Decider

    @cached_property
    def availability(self) -> Availability:
        if self.agent.errors:
            return Availability(error="; ".join(_line(e) for e in self.agent.errors))
        return self.decider.availability

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the agent's file, errors first; silenced ones left out."""
        found = self.agent.errors or lint(self.decider)
        return unsilenced(found, {self.agent.file: self.agent.text, **self.agent.texts})


class Workspace:
    """A directory that was opened. Files are read at once; servers start only when `inventory` is asked for."""

    def __init__(self, homes: Homes, *, inventory: Inventory | None = None) -> None:
        self.homes = homes
        self._tests = rows_of(homes)
        self.agents = self._tested(_unique(_read_agents(homes)))
        self._inventory = inventory

    @classmethod
    def open(cls, root: str | Path = ".", *, inventory: Inventory | None = None) -> Workspace:
        """The workspace at `root`. Raises WorkspaceError or DocumentError; a bad agent file is its agent's error."""
        return cls(find_homes(Path(root)), inventory=inventory)

    def agent(self, name: str) -> Agent:
        """The agent of that id, or of the profile file of that path. Raises WorkspaceError when there is none."""
        found = next((agent for agent in chain(self.agents, self._natives_named(name)) if agent.id == name), None)
        if found:
            return found
        path = Path(name)
        for candidate in (path, self.homes.root / path):
            if path.suffix in (".yaml", ".yml", ".json") and candidate.is_file():
                return read_agent_file(candidate, str(path))
        if not self.agents and name == DEFAULT_AGENT:
            return Agent(id=DEFAULT_AGENT, file="", dialect="default", policy=ALLOW_ALL)
        raise self._no_agent(name)

    def _no_agent(self, name: str) -> WorkspaceError:
        ids = sorted(agent.id for agent in (*self.agents, *self.natives)) or [DEFAULT_AGENT]
        near = difflib.get_close_matches(name, ids, n=1)
        hint = f"did you mean `{near[0]}`? " if near else ""
        shown = ", ".join(ids[:20]) + (f" and {len(ids) - 20:,} more" if len(ids) > 20 else "")
        return WorkspaceError(f"no agent `{name}`", file=str(self.homes.root), fix=f"{hint}the agents are {shown}")

    def _natives_named(self, name: str) -> Iterator[Agent]:
        """Reads runtimes' own files only for a name that can be one of their agents'."""
        if "/" in name:
            yield from self.natives

    @cached_property
    def natives(self) -> tuple[Agent, ...]:
        """The agents of runtimes' own files, as `runtime/agent`; they see their runtime's tools, servers and skills."""
        found = tuple(agent for files in self._native_files for agent in _native_agents(files))
        return self._tested(found)

    def _tested(self, agents: Iterable[Agent]) -> tuple[Agent, ...]:
        """The agents with the workspace's tests of them."""
        if not self._tests:
            return tuple(agents)
        return tuple(
            replace(agent, policy=with_tests(agent.policy, agent.id, self._tests)) if agent.policy else agent
            for agent in agents
        )

    def natives_as(self, runtime: str, change: Callable[[Document], Document | None]) -> tuple[Agent, ...]:
        """The same of one runtime, as if each file were what it is changed to; None: not there."""
        own = (files for files in self._native_files if files.runtime == runtime)
        made = (replace(files, documents=tuple(filter(None, map(change, files.documents)))) for files in own)
        return tuple(agent for files in made for agent in _native_agents(files))

    @cached_property
    def _native_files(self) -> tuple[NativeFiles, ...]:
        return find_natives(self.homes.root, Path.home())

    def sources(self, runtime: str = "") -> Sources:
        """Where discovery looks, in order of precedence; for the agents of a runtime's own files its own places."""
        homes = self.homes
        found = next((files for files in self._native_files if files.runtime == runtime), None) if runtime else None
        if found is not None:
            return native_sources(found, homes, user_cache_dir() / "servers")
        skills = [(path, "project") for path in homes.existing(homes.skills)]
        skills += [(user_config_dir() / "skills", "user")]
        return Sources(
            root=homes.root,
            skills=tuple(skills),
            pulled=user_data_dir() / "skills",
            server_files=tuple(homes.existing(homes.servers)),
            plugin_dirs=tuple(homes.existing(homes.plugins)),
            runtimes=homes.builtin_runtimes,
            subagents=tuple(agent.id for agent in self.agents if "subagents" in Path(agent.file).parts),
            timeout_s=homes.timeout_s,
            cache=user_cache_dir() / "servers",
        )

    def inventory(
        self,
        *,
        trust: bool = False,
        runtime: str = "",
        is_live: Callable[[str], bool] = lambda name: True,
        on_progress: Callable[[str], None] | None = None,
    ) -> Inventory:
        """What is installed. A given inventory is final; else this starts servers, each time it is asked.

        runtime: that of an agent in `natives`; empty: the workspace's own.
        is_live: whether a server of this name has to be asked now, or may be answered from what it said before.
        """
        if self._inventory is not None:
            return self._inventory
        return discover(self.sources(runtime), trust=trust, is_live=is_live, on_progress=on_progress)

    def explain(self, agent: Agent, inventory: Inventory, *, has_approver: bool = False) -> Explanation:
        """Every decision for one agent."""
        return Explanation(agent=agent, decider=Decider(agent.profile, inventory, has_approver=has_approver))

    def check(
        self, inventory: Inventory, *, inventory_of: Callable[[str], Inventory] | None = None
    ) -> tuple[Finding, ...]:
        """Every finding over the agents, skills, servers and plugins; silenced ones left out.

        inventory_of: what a runtime's own agents have installed; None: the same.
        """
        found = [f for agent in self.agents for f in self.explain(agent, inventory).findings]
        by_runtime = {
            agent.dialect: inventory_of(agent.dialect) if inventory_of else inventory for agent in self.natives
        }
        found += [f for agent in self.natives for f in self.explain(agent, by_runtime[agent.dialect]).findings]
        found += [f for each in (inventory, *by_runtime.values()) for f in unsilenced(lint_inventory(each), {})]
        found += stray_tests(self._tests, [agent.id for agent in (*self.agents, *self.natives)])
        return tuple(dict.fromkeys(found))


def read_agent_file(path: Path, shown: str) -> Agent:
    """One agent's file; whatever is wrong with it becomes its `errors`."""
    stem = path.parent.name if path.name == "agent.json" else path.stem
    try:
        document = Document.of_bytes(shown, _read_bounded(path))
    except (OSError, DocumentError) as error:
        return Agent(id=stem, file=shown, errors=(_as_finding(error, shown),))
    try:
        dialect = dialect_of(document)
        policy = read_agent(document)
    except DocumentError as error:
        found = [error, *error.also] if isinstance(error, DialectError) else [error]
        name = _declared_id(document) or stem
        return Agent(id=name, file=shown, errors=tuple(_as_finding(e, shown) for e in found), text=document.text)
    except UNFORESEEN as error:
        return Agent(id=stem, file=shown, errors=(_as_finding(error, shown),), text=document.text)
    return Agent(id=policy.id or stem, file=shown, dialect=dialect, policy=policy, text=document.text)


def _read_bounded(path: Path) -> bytes:
    """The file's bytes, at most one more than a document may have; never waits, as a pipe would make it."""
    if not path.is_file():
        raise OSError("it is no regular file, or a link that leads nowhere")
    with path.open("rb") as file:
        return file.read(MAX_CHARS + 1)


def _native_agents(files: NativeFiles) -> Iterator[Agent]:
    texts = {document.path: document.text for document in files.documents}
    for name, policy in read_natives(files.runtime, files.documents).items():
        blank = Agent(id=f"{files.runtime}/{name}", file=files.file, dialect=files.runtime, texts=texts)
        if files.errors:
            yield replace(blank, errors=files.errors)
        elif isinstance(policy, Policy):
            yield replace(blank, file=policy.file or files.file, policy=policy)
        else:
            also = policy.also if isinstance(policy, DialectError) else ()
            yield replace(blank, errors=tuple(_as_finding(error, files.file) for error in (policy, *also)))


def load_inventory_file(path: Path) -> Inventory:
    """The inventory in a file. Raises DiscoveryError or WorkspaceError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(
            f"cannot be read: {error}", file=str(path), fix="`extgate list --json` writes one"
        ) from None
    return load_inventory(text, str(path))


def _read_agents(homes: Homes) -> list[Agent]:
    agents = [read_agent_file(path, str(path.relative_to(homes.root))) for path in homes.agent_files()]
    return sorted(agents, key=lambda agent: (agent.id, agent.file))


def _unique(agents: Iterable[Agent]) -> tuple[Agent, ...]:
    """The agents; those that share an id are all unavailable."""
    agents = tuple(agents)
    by_id: dict[str, list[Agent]] = {}
    for agent in agents:
        by_id.setdefault(agent.id, []).append(agent)
    result = []
    for same in by_id.values():
        if len(same) > 1:
            files = " and ".join(agent.file for agent in same)
            message = f"{files} have one id, `{same[0].id}`; none of them is available"
            clash = Finding(
                code="EG008", message=message, file=same[0].file, fix="give each its own `id`", severity="error"
            )
            first = same[0]
            result.append(Agent(id=first.id, file=first.file, errors=(clash, *first.errors), text=first.text))
        else:
            result.append(same[0])
    return tuple(result)


def _declared_id(document: Document) -> str:
    try:
        node = document.parse().get("id")
    except (DocumentError, *UNFORESEEN):
        return ""
    return node.scalar.strip() if node and isinstance(node.scalar, str) else ""


def _as_finding(error: Exception, shown: str) -> Finding:
    if isinstance(error, DocumentError):
        code = error.code if isinstance(error, DialectError) else "EG001"
        file, line = error.file or shown, error.line
        return Finding(code=code, message=error.message, file=file, line=line, fix=error.fix, severity="error")
    return Finding(
        code="EG001", message=f"cannot be read: {error}", file=shown, severity="error", fix="let this user read it"
    )


def _line(finding: Finding) -> str:
    place = f"{finding.file}:{finding.line}: " if finding.line else f"{finding.file}: " if finding.file else ""
    return place + finding.message


_SILENCE = re.compile(r"extgate:\s*ignore((?:[\s,]+EG\d{3})+)")


def unsilenced(findings: Iterable[Finding], texts: dict[str, str]) -> tuple[Finding, ...]:
    """The findings but those whose own file says `extgate: ignore EG…`; errors can't be silenced.

    On a line with something else the words hold for that line, on a line of their own for the file.
    """
    kept = []
    for finding in findings:
        text = texts.get(finding.file or "", "")
        if finding.severity == "error" or not _is_silenced(finding, text):
            kept.append(finding)
    return tuple(kept)


def _is_silenced(finding: Finding, text: str) -> bool:
    for number, line in enumerate(text.split("\n"), 1) if "extgate:" in text else ():
        words = _SILENCE.search(line)
        if words and finding.code in words[1].replace(",", " ").split():
            has_more = bool(re.search(r"\w", line[: words.start()]))
            if not has_more or finding.line == number:
                return True
    return False


def must_be_live(agents: Iterable[Agent]) -> Callable[[str], bool]:
    """Whether a server could meet a requirement of one of these agents, so that what it said before does not do."""
    patterns = [r.pattern for agent in agents if agent.policy for r in agent.policy.requirements]
    heads = [pattern.partition("/")[0] for pattern in patterns]
    return lambda name: any(matches(name, head) for head in heads)
