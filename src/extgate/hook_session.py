"""One runtime's session of an agent, behind its hook: opened from files, and opened anew whenever one of them changes.

`answer` is for a process that judges one call; `Sessions` keeps what it opened, and looks at every file's stamp before
each answer, so that an edit binds the next call. A file that cannot be read makes its agent unavailable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from extgate.applied.work import follow
from extgate.audit.event import Event
from extgate.control import ask, sockets
from extgate.core.extension import Server, ServerState
from extgate.core.names import show
from extgate.core.policy import Inherit, Policy, Profile
from extgate.dialects.registry import NATIVE
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import Closed
from extgate.enforce.hooks.call import Hook, Reply, Verdict
from extgate.enforce.hooks.door import HookDoor, UserAsks
from extgate.enforce.hooks.owners import Owners
from extgate.enforce.hooks.paths import CallPaths
from extgate.enforce.hooks.reading import PayloadError, parse
from extgate.enforce.hooks.registry import HOOKS
from extgate.enforce.sinks import JsonLines
from extgate.errors import UNFORESEEN, ExtgateError, WorkspaceError
from extgate.homes import user_cache_dir
from extgate.policy_places import closed_places, policy_files, skill_roots
from extgate.runtime_places import installation, own_files
from extgate.runtime_view import RuntimeView
from extgate.settings import read_settings, user_state_dir
from extgate.stamps import Stamp, Stamps, settled
from extgate.workspace import DEFAULT_AGENT, Agent, Workspace

Answer = tuple[int, bytes, bytes]
"""Exit code, stdout, stderr."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the hook's command line says: whose hook, for which agent, of which workspace; the runtime's project.

    agent: empty for the workspace's only one. gateway: what extgate's own server is called in the runtime, if it is.
    """

    runtime: str
    agent: str
    root: Path
    project: Path
    gateway: str = ""


def answer(words: Sequence[str], body: bytes) -> Answer:
    """The answer to one hook call; words: those of the command line, as `client.py` sorts them."""
    return Sessions().answer(words, body)


class Sessions:
    """Answers hook calls, keeping open what it has opened."""

    def __init__(self) -> None:
        self._kept: dict[Question, _Kept] = {}

    def answer(self, words: Sequence[str], body: bytes) -> Answer:
        """The answer to one call. Everything that is wrong with it, or with the workspace, is a deny."""
        runtime, agent, root, project, gateway = words
        hook = HOOKS.get(runtime)
        if hook is None:
            return _bytes(Reply(stderr=f"extgate: `{show(runtime)}` has no hook here\n", code=2))
        asked = Question(runtime=runtime, agent=agent, root=Path(root), project=Path(project), gateway=gateway)
        try:
            verdict = self._judged(hook, asked, body)
        except (ExtgateError, OSError, *UNFORESEEN) as error:
            verdict = Verdict(effect="deny", reason=f"extgate refuses this call: {show(str(error))[:1000]}")
        return _bytes(hook.reply(verdict))

    def _judged(self, hook: Hook, asked: Question, body: bytes) -> Verdict:
        kept = self._kept.get(asked)
        if kept is None or not kept.stamps.still(kept.stamp):
            self._kept.pop(asked, None)
            kept = self._kept[asked] = _opened(hook, asked)
        _enliven(kept.door.gate, asked.root)
        try:
            call = hook.read(parse(body))
        except PayloadError as error:
            return kept.door.unreadable(str(error))
        return kept.door.judge(call)


def _enliven(gate: Gate, root: Path) -> None:
    """Where something is required, brings in which servers live: by what a gateway of the workspace holds now."""
    if not any(policy.requirements for policy in gate.profile.policies):
        return
    live = connected_servers(root)
    now = tuple(replace(s, state="connected" if s.name in live else _resting(s)) for s in gate.inventory.servers)
    if now != gate.inventory.servers:
        gate.swap(inventory=replace(gate.inventory, servers=now))


def _resting(server: Server) -> ServerState:
    return "configured" if server.state == "connected" else server.state


def connected_servers(root: Path) -> frozenset[str]:
    """The servers that some running process of the workspace holds open; none when no process runs."""
    found: set[str] = set()
    for path in sockets(root):
        try:
            names = ask(path, "connected").get("connected")
        except (OSError, ValueError):
            continue  # it has ended, or is of an older version
        found |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
    return frozenset(found)


def _bytes(reply: Reply) -> Answer:
    return reply.code, reply.stdout.encode(), reply.stderr.encode("utf-8", "backslashreplace")


# ---------------------------------------------------------------------------------------------- opening


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """A door that was opened; stamp: None when it has to be opened anew for the next call."""

    door: HookDoor
    stamps: Stamps
    stamp: Stamp | None


def _opened(hook: Hook, asked: Question) -> _Kept:
    workspace = Workspace.open(asked.root)
    view = RuntimeView(
        workspace=workspace, runtime=asked.runtime, project=asked.project, relays=bool(asked.gateway),
        gateway=asked.gateway,
    )  # fmt: skip
    stamps = _stamps(view)
    before = stamps.now()
    view = replace(view, workspace=Workspace.open(asked.root))  # read after the stamps were taken
    agent = _agent(view.workspace, asked.agent)
    door = open_door(hook, view, agent, gateway=asked.gateway)
    follow(view, agent)
    return _Kept(door=door, stamps=stamps, stamp=settled(before))


def _agent(workspace: Workspace, name: str) -> Agent:
    if name:
        return workspace.agent(name)
    if len(workspace.agents) > 1:
        raise WorkspaceError(
            "holds several agents", file=str(workspace.homes.root), fix="name one in the hook's command with --agent"
        )
    return workspace.agents[0] if workspace.agents else workspace.agent(DEFAULT_AGENT)


def open_door(hook: Hook, view: RuntimeView, agent: Agent, *, gateway: str = "") -> HookDoor:
    """The door for one agent inside a runtime."""
    workspace, shape = view.workspace, hook.SHAPE
    asks = UserAsks() if shape.asks else None
    plain = view.profile(agent.profile)
    profile = _held(plain, view.server_denies)
    gate = Gate(
        profile, view.inventory, door=f"hook:{view.runtime}", agent=agent.id,
        sink=_Record(read_settings(workspace.homes).audit_file), approver=asks,
    )  # fmt: skip
    if agent.errors:
        raise WorkspaceError(f"agent `{show(agent.id)}` is unavailable: {agent.errors[0].message}", file=agent.file)
    return HookDoor(
        shape,
        gate,
        paths=CallPaths(shape, closed(view, agent), view.project),
        own=lambda name, is_child: None if name == agent.id else view.own_profile(name, is_child=is_child),
        mode=lambda name, is_child: _mode(agent, workspace) if is_child and view.may_widen(name) else "ceiling",
        asks=asks,
        owners=Owners(gateway, view.relayed_names(agent) if gateway else {}, is_held=profile is not plain),
    )


def _mode(agent: Agent, workspace: Workspace) -> Inherit:
    said = agent.policy.facts.get("inherit") if agent.policy else None
    found = said or workspace.homes.inherit
    modes: dict[object, Inherit] = {"own": "own", "union": "union"}
    return modes.get(found, "ceiling")


def _held(profile: Profile, denies: Policy | None) -> Profile:
    """The profile with what the runtime's own files deny of servers behind the gateway, at any depth."""
    if denies is None or not profile.layers:
        return profile
    return replace(profile, layers=(*profile.layers, denies), ceiling=(*profile.ceiling, denies))


def closed(view: RuntimeView, agent: Agent) -> Closed:
    """What the runtime's file tools may not open: the workspace's places, and the runtime's own, wherever they are."""
    also = [view.workspace.homes.root / agent.file] if agent.file else []
    found = closed_places(view.workspace.homes, also=also)
    return replace(
        found,
        files=(*found.files, *own_files(view.runtime, view.project)),
        skills=(*found.skills, *view.skill_roots),
        kept=(*found.kept, *installation()),
    )


class _Record:
    """Opens the record for each event, so that one that was moved away is made again."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self, event: Event) -> None:
        lines = JsonLines(self._path)
        try:
            lines(event)
        finally:
            lines.close()


def _stamps(view: RuntimeView) -> Stamps:
    """Everything that decides what the door says, but the servers themselves."""
    homes, project = view.workspace.homes, view.project
    globs = [(homes.root, glob) for glob in policy_files(homes)]
    globs += [(Path("/"), path.lstrip("/")) for path in own_files(view.runtime, project)]
    globs += [(Path("/"), path.lstrip("/")) for path in NATIVE[view.dialect].MANAGED_FILES]
    globs.append((Path("/"), str(user_state_dir() / "applied" / "*" / "account.json").lstrip("/")))
    plugins = (homes.root / place for place in homes.plugins)
    return Stamps.of(globs, (*skill_roots(homes), *view.skill_roots, *plugins, user_cache_dir() / "servers"))
