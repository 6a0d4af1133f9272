"""Reads a workspace again and offers what it says to the gates of this process, as decisions.

A file that cannot be read leaves the last good policy in force, with the error told; where there never was one, and for
a profile that is gone or shares its id, the agent is unavailable. Other agents go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from extgate.core.decide import Decision
from extgate.core.extension import Finding, Inventory
from extgate.core.names import show, shown_name
from extgate.core.policy import Profile
from extgate.enforce.dispatch import Dispatcher
from extgate.enforce.gate import Gate
from extgate.enforce.in_force import Change
from extgate.errors import UNFORESEEN, ExtgateError
from extgate.homes import Homes, find_homes
from extgate.settings import read_settings
from extgate.shapes import decision_dict, finding_dict, finding_line
from extgate.workspace import DEFAULT_AGENT, Agent, Workspace, read_agent_file

SHARED_ID = "EG008"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one reload did. kept: agents whose file cannot be read, and whose last good policy stays in force."""

    changes: tuple[Change, ...] = ()
    errors: tuple[Finding, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def is_waiting(self) -> bool:
        """Whether something waits for `extgate reload`."""
        return any(change.is_waiting for change in self.changes)


class Reloader:
    """Keeps a dispatcher's seats as the workspace's files say. Safe for threads; one reload at a time.

    make_gate: the gate of an agent's profile. inventory_of: what is installed, for a workspace just read; an
    ExtgateError leaves the last inventory in force. also: profiles that were given by their path.
    """

    def __init__(
        self,
        workspace: Workspace,
        dispatcher: Dispatcher,
        *,
        make_gate: Callable[[Profile], Gate],
        inventory_of: Callable[[Workspace], Inventory],
        also: Iterable[Path] = (),
    ) -> None:
        self._dispatcher, self._make_gate, self._inventory_of = dispatcher, make_gate, inventory_of
        self._also = tuple(also)
        self._root = workspace.homes.root
        self._homes = workspace.homes
        self._workspace = self._in_force = workspace
        self._files: dict[str, str] = {}
        self._lock = threading.RLock()
        self._settings_wait = False
        for agent in self._agents(workspace) or [workspace.agent(DEFAULT_AGENT)]:
            self._seat(agent)

    @property
    def homes(self) -> Homes:
        """Where things lie, by the last `extgate.yaml` that could be read."""
        return self._homes

    @property
    def workspace(self) -> Workspace:
        """The workspace as it was last read; a broken file's agent has errors in it."""
        return self._workspace

    @property
    def in_force(self) -> Workspace:
        """The workspace as it was last read and put in force; `workspace` may be a later one on its way there."""
        return self._in_force

    def reload(self) -> Report:
        """Reads everything again. When it returns, the next question of every gate is answered under what binds."""
        with self._lock:
            errors: list[Finding] = []
            self._read_homes(errors)
            inventory = self._dispatcher.inventory
            try:
                self._workspace = Workspace(self._homes)
                inventory = self._inventory_of(self._workspace)
            except (ExtgateError, OSError, *UNFORESEEN) as error:
                errors.append(_finding(error))
            agents = {agent.id: agent for agent in self._agents(self._workspace)}
            errors += [error for agent in agents.values() for error in agent.errors]
            profiles, withdrawn, kept = self._judged(agents)
            changes = [self._dispatcher.seated(name).withdraw(why) for name, why in withdrawn.items()]
            changes += self._dispatcher.put(inventory, profiles)
            changes += [self._seat_late(agents[name]) for name in sorted(agents.keys() - self._files.keys())]
            self._in_force = self._workspace
            return Report(changes=_merged(changes), errors=tuple(errors), kept=tuple(kept))

    def accept(self) -> Report:
        """Reads everything again and puts in force what waited."""
        with self._lock:
            report = self.reload()
            self._set_mode(is_accepted=True)
            changes = _merged((*report.changes, *self._dispatcher.accept()))
            return replace(report, changes=changes)

    # ------------------------------------------------------------------------------------------ inside

    def _agents(self, workspace: Workspace) -> list[Agent]:
        given = [read_agent_file(path, str(path)) for path in self._also if path.is_file()]
        known = {agent.id for agent in given}
        agents = [*given, *(agent for agent in workspace.agents if agent.id not in known)]
        # Who started without any profile goes on so; deleting the last one later makes no such agent.
        return [workspace.agent(DEFAULT_AGENT)] if not agents and DEFAULT_AGENT in self._files else agents

    def _seat(self, agent: Agent) -> None:
        self._files[agent.id] = agent.file
        self._dispatcher.seat(self._make_gate(agent.profile), error=_told(agent.errors))

    def _seat_late(self, agent: Agent) -> Change:
        """Seats an agent that came after the start: in `narrow` mode its policy waits."""
        self._files[agent.id] = agent.file
        seat = self._dispatcher.seat(self._make_gate(Profile(id=agent.id)), error="it has no policy yet")
        return seat.withdraw(_told(agent.errors)) if agent.errors else seat.offer(profile=agent.profile)

    def _judged(self, agents: dict[str, Agent]) -> tuple[dict[str, Profile], dict[str, str], list[str]]:
        """The new profiles, the agents to take away with why, and those that keep their last good policy.

        A broken file may have lost its id; it is known by its path, and taken out of `agents`.
        """
        profiles: dict[str, Profile] = {}
        withdrawn: dict[str, str] = {}
        kept: list[str] = []
        broken = {agent.file: agent for agent in agents.values() if agent.errors}
        for name, file in self._files.items():
            agent = agents.get(name) or broken.get(file)
            seat = self._dispatcher.seated(name)
            if agent is None:
                withdrawn[name] = f"its profile {file} is gone" if file else "profiles are configured now"
            elif not agent.errors:
                profiles[name], self._files[name] = agent.profile, agent.file
            else:
                if seat.withdrawn or any(error.code == SHARED_ID for error in agent.errors):
                    withdrawn[name] = _told(agent.errors)
                else:
                    kept.append(name)
                agents.pop(agent.id, None)
        return profiles, withdrawn, kept

    def _read_homes(self, errors: list[Finding]) -> None:
        try:
            homes = find_homes(self._root)
            read_settings(homes)
        except (ExtgateError, OSError, *UNFORESEEN) as error:
            errors.append(_finding(error))
            return
        self._homes = homes
        self._set_mode(is_accepted=False)

    def _set_mode(self, *, is_accepted: bool) -> None:
        """Follows `reload` and `liveness_s`; what is laxer than before waits while the mode is `narrow`."""
        wanted, dispatcher = read_settings(self._homes), self._dispatcher
        may_widen = is_accepted or dispatcher.mode == "auto"
        if wanted.reload == "narrow" or may_widen:
            dispatcher.set_mode(wanted.reload)
        if wanted.liveness_s < dispatcher.liveness.bound_s or may_widen:
            dispatcher.liveness.bound_s = wanted.liveness_s


def _merged(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Changes of one gate as one, in order; an item that came and went again is told as it is now."""
    by_agent: dict[str, Change] = {}
    for new in changes:
        old = by_agent.get(new.agent)
        if old is None:
            by_agent[new.agent] = new
            continue
        by_agent[new.agent] = replace(
            new,
            gained=_once((*old.gained, *new.gained), without=new.lost),
            lost=_once((*old.lost, *new.lost), without=new.gained),
            changed=_once((*old.changed, *new.changed)),
            gone=tuple(dict.fromkeys((*old.gone, *new.gone))),
            was_available=old.was_available,
        )
    return tuple(by_agent.values())


def _once(decisions: Iterable[Decision], without: Iterable[Decision] = ()) -> tuple[Decision, ...]:
    left = {(d.extension.id, d.extension.source) for d in without}
    kept = {(d.extension.id, d.extension.source): d for d in decisions}
    return tuple(d for key, d in kept.items() if key not in left)


def _told(errors: Iterable[Finding]) -> str:
    return "; ".join(finding_line(error) for error in errors)


def _finding(error: Exception) -> Finding:
    if isinstance(error, ExtgateError):
        return Finding(
            code="EG001", message=error.message, file=error.file, line=error.line, fix=error.fix, severity="error"
        )
    return Finding(
        code="EG001",
        message=f"cannot be read: {type(error).__name__}: {error}",
        severity="error",
        fix="let this user read it",
    )


# ---------------------------------------------------------------------------------------------- shapes


def report_lines(report: Report) -> list[str]:
    """A report for people: errors first, then each gate's changes, each line safe for a terminal."""
    lines = [f"error {error.code}: {finding_line(error)}" for error in report.errors]
    lines += [f"{show(name)}: its last good policy stays in force" for name in report.kept]
    for change in report.changes:
        lines += change_lines(change)
    if not any(report.changes):
        lines.append("no decision changed")
    return lines


def change_lines(change: Change) -> list[str]:
    """One gate's change: a line for each decision, and the policy version that is in force. Nothing if none changed."""
    agent = show(change.agent)
    lines = [f"{agent}: + {_item(d)}" for d in change.gained]
    lines += [f"{agent}: - {_item(d)}: {show(d.reason)}{_place(d)}" for d in change.lost]
    lines += [f"{agent}: ~ {_item(d)}: approval is now {d.approval}" for d in change.changed]
    lines += [f"{agent}: - {show(ext.id)}: it is no longer installed" for ext in change.gone]
    if change.was_available != change.is_available:
        lines.append(f"{agent}: {'available again' if change.is_available else 'unavailable'}")
    lines += [f"{agent}: waits for `extgate reload`: + {_item(d)}" for d in change.waiting]
    if change.is_waiting and not change.waiting:
        lines.append(f"{agent}: an edit that is not shown to be narrower waits for `extgate reload`")
    if lines:
        lines.append(f"{agent}: policy {change.policy_version}, inventory {change.inventory_version} in force")
    return lines


def _item(decision: Decision) -> str:
    return f"{decision.extension.kind} {shown_name(decision.extension)}"


def _place(decision: Decision) -> str:
    rule = decision.rule
    parts = [rule.text, f"`{rule.pattern}`" if rule.pattern is not None else ""]
    parts.append(f"{rule.file}:{rule.line}" if rule.file and rule.line else rule.file or "")
    return show(f" ({' '.join(part for part in parts if part)})")


def report_dict(report: Report) -> dict[str, Any]:
    """A report as JSON, as the control socket and `extgate reload --json` give it."""
    return {
        "changes": [change_dict(change) for change in report.changes],
        "errors": [finding_dict(error) for error in report.errors],
        "kept": list(report.kept),
        "waiting": report.is_waiting,
    }


def change_dict(change: Change) -> dict[str, Any]:
    """One gate's change as JSON."""
    return {
        "agent": change.agent,
        "policy_version": change.policy_version,
        "inventory_version": change.inventory_version,
        "available": change.is_available,
        "gained": [decision_dict(d) for d in change.gained],
        "lost": [decision_dict(d) for d in change.lost],
        "changed": [decision_dict(d) for d in change.changed],
        "gone": [ext.id for ext in change.gone],
        "waiting": [decision_dict(d) for d in change.waiting],
        "is_waiting": change.is_waiting,
    }
