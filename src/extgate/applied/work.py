"""`apply` from end to end: look, plan, compare with what was written before, write, or take all of it back."""

from __future__ import annotations

import difflib
import fcntl
import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from extgate.applied import skills_view
from extgate.applied.account import Account, Change, account_of, accounts_of, carry_out, changes
from extgate.applied.plan import Ground, Plan, Scope
from extgate.applied.runtimes import PLANS, SCOPES
from extgate.core.names import show
from extgate.errors import WorkspaceError
from extgate.runtime_places import user_folder
from extgate.runtime_view import RuntimeView
from extgate.workspace import Agent, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is asked for.

    scope: None: the first of the runtime's `SCOPES`. gateway: None: where the workspace names servers and the gateway
    can run. trust: starts the servers that files ask for, to learn their tools. program: of the gateway's entry.
    """

    runtime: str
    agent: str
    root: Path
    project: Path
    scope: Scope | None = None
    gateway: bool | None = None
    trust: bool = False
    program: str = ""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What would be done, or was. ground and plan: None when everything is taken back."""

    account: Account
    made: tuple[Change, ...]
    ground: Ground | None = None
    plan: Plan | None = None
    links: Mapping[Path, Path] = field(default_factory=dict)
    """Of the runtime's skill folder: entries, with the folders of the view that they lead to."""

    @property
    def changed(self) -> tuple[Change, ...]:
        return tuple(change for change in self.made if change.is_one)


def prepared(wish: Wish, say: Callable[[str], None] = lambda line: None) -> Work:
    """Everything that has to be written; nothing is written yet. Raises WorkspaceError."""
    account = account_of(wish.runtime, _place(wish))
    ground = ground_of(wish, account, say)
    plan = PLANS[wish.runtime](ground)
    made = tuple(changes(account, plan.files))
    return Work(account=account, made=made, ground=ground, plan=plan, links=skills_view.links(ground))


def undone(wish: Wish) -> Work:
    """What has to be written to take everything back. Raises WorkspaceError when nothing was applied there."""
    account = account_of(wish.runtime, _place(wish))
    if not account.is_open:
        raise WorkspaceError("nothing was applied here, so nothing is taken back", file=str(_place(wish)))
    return Work(account=account, made=tuple(changes(account, ())))


def carried_out(work: Work) -> None:
    """Writes it. Raises OSError."""
    with _alone(work.account.folder.parent):
        old = work.account.facts.get("links", {})
        if work.ground is None:
            skills_view.relink(old, {})
            shutil.rmtree(work.account.facts.get("skills", os.devnull), ignore_errors=True)
            carry_out(work.account, work.made, None)
        else:
            folder = skills_view.view_folder(work.ground)
            skills_view.refresh(folder, skills_view.visible(work.ground) if work.links else {})
            skills_view.relink(old, work.links)
            view = work.ground.view
            facts = {
                "runtime": view.runtime,
                "agent": work.ground.agent.id,
                "scope": work.ground.scope,
                "workspace": str(view.workspace.homes.root.absolute()),
                "project": str(view.project.absolute()),
                "skills": str(folder),
                "relays": view.relays,
                "closed": list(work.ground.closed_servers),
                "links": {str(path): str(target) for path, target in work.links.items()},
            }
            carry_out(work.account, work.made, facts)


def ground_of(wish: Wish, account: Account, say: Callable[[str], None] = lambda line: None) -> Ground:
    """The agent laid out for the runtime. Raises WorkspaceError when it has no policy."""
    ground = known_ground(wish, account)
    ground.view.learn(trust=wish.trust, say=say)
    return ground


def known_ground(wish: Wish, account: Account) -> Ground:
    """The same by what is known of servers already: none is started. Raises WorkspaceError."""
    workspace = Workspace.open(wish.root)
    agent = workspace.agent(wish.agent)
    if agent.policy is None:
        told = "; ".join(show(error.message) for error in agent.errors)
        raise WorkspaceError(f"`{show(agent.id)}` has no policy: {told}", file=agent.file)
    if not wish.project.is_dir():
        raise WorkspaceError("no such directory", file=str(wish.project), fix="pass one with --project DIR")
    view = RuntimeView(workspace=workspace, runtime=wish.runtime, project=wish.project)
    has_servers = bool(view.wanted[0].specs)
    relays = has_servers and can_relay() if wish.gateway is None else wish.gateway
    view = replace(view, relays=relays)
    return Ground(view=view, agent=agent, account=account, scope=scope_of(wish), program=wish.program)


def follow(view: RuntimeView, agent: Agent) -> None:
    """Takes skills that are denied now out of the views that were applied, before anything of them can be read.

    Raises OSError.
    """
    where = {"workspace": str(view.workspace.homes.root.absolute()), "project": str(view.project.absolute())}
    for account in accounts_of(view.runtime):
        facts = account.facts
        if facts.get("links") and facts.get("agent") == agent.id and where.items() <= facts.items():
            ground = Ground(view=view, agent=agent, account=account, scope=facts["scope"])
            with _alone(account.folder.parent):
                skills_view.refresh(skills_view.view_folder(ground), skills_view.visible(ground))


def follow_all(workspace: Workspace) -> None:
    """The same for every runtime and agent that was applied from a workspace. Raises WorkspaceError, OSError."""
    root, agents = os.path.realpath(workspace.homes.root), {agent.id: agent for agent in workspace.agents}
    for facts in (account.facts for runtime in PLANS for account in accounts_of(runtime)):
        agent = agents.get(facts["agent"]) if os.path.realpath(facts["workspace"]) == root else None
        if agent is not None and os.path.isdir(facts["project"]):
            project = Path(facts["project"])
            follow(RuntimeView(workspace=workspace, runtime=facts["runtime"], project=project), agent)


def can_relay() -> bool:
    """Whether the gateway's libraries are installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("msgspec", "httptools"))


def diff(change: Change) -> Iterator[str]:
    """A unified diff of one change."""
    now, then = (change.now or "").splitlines(), (change.then or "").splitlines()
    before = str(change.path) if change.now is not None else os.devnull
    after = str(change.path) if change.then is not None else os.devnull
    yield from difflib.unified_diff(now, then, before, after, lineterm="")


def _place(wish: Wish) -> Path:
    return wish.project if scope_of(wish) == "project" else user_folder(wish.runtime)


def scope_of(wish: Wish) -> Scope:
    """Whose files are written. Raises WorkspaceError for those that the runtime does not always read."""
    known = SCOPES[wish.runtime]
    if wish.scope is not None and wish.scope not in known:
        message = f"a project's files do not always hold for {wish.runtime}"
        raise WorkspaceError(message, fix="leave --scope out: the user's are written")
    return wish.scope or known[0]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps a second `apply` of this user waiting."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
