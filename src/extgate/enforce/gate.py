"""The gate: one object that every door asks, which decides and records."""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from extgate.audit.event import Event, Outcome, Question, Sink, rule_of
from extgate.core.decide import CompiledProfile, Decision
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.policy import Inherit, Profile, inherit
from extgate.core.require import Availability
from extgate.enforce.answer import (
    MAX_MESSAGE,
    Answer,
    Approver,
    allowance,
    denial,
    refusal,
    unavailable_because,
)
from extgate.enforce.question import (
    MAX_ID,
    MAX_TOLD,
    Asked,
    State,
    by_exact_name,
    by_item,
    by_name,
    by_uri,
    decided,
    decided_by_name,
    judged,
    owners,
)
from extgate.enforce.sinks import discard

__all__ = ["Answer", "Approver", "Gate", "unavailable_because"]


class Gate:
    """One agent's gate. `see` filters what the model may learn of, `use` judges one call, `swap` changes the rules.

    Safe for threads: a question is answered under one policy and one inventory, whatever `swap` does meanwhile.
    Never raises on a question: what goes wrong inside is a deny. sink: takes every event; what it raises is a deny.
    approver: answers an `ask` within `approval_timeout_s`; None denies it.
    """

    def __init__(
        self,
        profile: Profile,
        inventory: Inventory,
        *,
        door: str,
        agent: str = "",
        sink: Sink = discard,
        approver: Approver | None = None,
        approval_timeout_s: float = 300.0,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.agent = agent or profile.id
        self.door = door
        self.sink = sink
        self.approval_timeout_s = approval_timeout_s
        self._approver = approver
        self._clock = clock
        self._swapping = threading.Lock()
        self._children: weakref.WeakSet[Gate] = weakref.WeakSet()
        self._parent: tuple[Gate, Profile | None, Inherit] | None = None
        self._state = self._make(profile, inventory)

    # ------------------------------------------------------------------------------------------ state

    def _make(self, profile: Profile, inventory: Inventory, compiled: CompiledProfile | None = None) -> State:
        decider = Decider(profile, inventory, has_approver=self._approver is not None, compiled=compiled)
        return State(decider, decider.availability, by_exact_name(inventory.extensions, decider.naming))

    def swap(self, *, profile: Profile | None = None, inventory: Inventory | None = None) -> tuple[Decision, ...]:
        """Puts another policy or inventory in force; returns the decisions whose answer changed, in order.

        When it returns, every later question is answered under the new state, by this gate and by its children.
        profile: of a child gate, its own one, which goes on under its parent's.
        """
        with self._swapping:
            old = self._state
            if self._parent and profile is not None:
                self._parent = (self._parent[0], profile, self._parent[2])
            profile = self._inherited() or profile
            compiled = old.decider.compiled if profile is None else None
            new = self._state = self._make(profile or self.profile, inventory or self.inventory, compiled)
            for child in tuple(self._children):
                child.swap(inventory=inventory)
        before = {(d.extension.id, d.extension.source): d.visible for d in old.decider.decisions}
        changed = tuple(
            d for d in new.decider.decisions if before.get((d.extension.id, d.extension.source), False) != d.visible
        )
        for decision in changed:
            self._noted(new, decision, "reload", "swap", "changed")
        return changed

    def child(self, profile: Profile | None = None, *, agent: str = "", mode: Inherit = "ceiling") -> Gate:
        """The gate of a sub-agent, which follows every later `swap` of this one; `core.policy.inherit` says how.

        profile: the sub-agent's own; None: it is under this gate's. The sink and the approver are this gate's.
        """
        made = type(self)(
            inherit(self.profile, profile, child_id=agent, mode=mode), self.inventory, door=self.door, agent=agent,
            sink=self.sink, approver=self._approver, approval_timeout_s=self.approval_timeout_s, clock=self._clock,
        )  # fmt: skip
        made._parent = (self, profile, mode)
        with self._swapping:
            self._children.add(made)
        made.swap(inventory=self.inventory)
        return made

    def is_under(self, gate: Gate) -> bool:
        """Whether this gate is that one, or was made below it by `child`."""
        return self is gate or (self._parent is not None and self._parent[0].is_under(gate))

    @property
    def below(self) -> tuple[Gate, ...]:
        """The gates of its sub-agents that are in use, at any depth, parents first."""
        return tuple(gate for child in tuple(self._children) for gate in (child, *child.below))

    @property
    def own_profile(self) -> Profile | None:
        """Of a child gate, the profile of its own that lies under its parent's; None without one."""
        return self._parent[1] if self._parent else None

    def _inherited(self) -> Profile | None:
        if self._parent is None:
            return None
        parent, own, mode = self._parent
        return inherit(parent.profile, own, child_id=self.agent, mode=mode)

    @property
    def approver(self) -> Approver | None:
        """Who answers an `ask`; fixed, because what is visible depends on it."""
        return self._approver

    @property
    def profile(self) -> Profile:
        return self._state.decider.profile

    @property
    def inventory(self) -> Inventory:
        return self._state.decider.inventory

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What `explain` prints: one decision for each installed item."""
        return self._state.decider.decisions

    @property
    def availability(self) -> Availability:
        """Whether the agent may take a turn now."""
        return self._state.available

    # ------------------------------------------------------------------------------------------ names

    def owners(self, name: str, kinds: Sequence[str] = ()) -> tuple[Extension, ...]:
        """The installed items that some door knows by this exact name, wire names included."""
        return owners(self._state, name, kinds)

    # ------------------------------------------------------------------------------------------ what may be seen

    def see(self, items: Iterable[Extension], *, action: str = "list", session: str = "") -> tuple[Extension, ...]:
        """The items that the model may learn of, in order. Items never installed are judged like any other."""
        state, items = self._state, tuple(items)
        try:
            decisions = [state.decider.decide(ext) for ext in items]
        except Exception:  # one of them cannot be judged; the others can
            decisions = [decided(state, ext) for ext in items]
        shown = self._shown(state, decisions, action, session)
        return tuple(ext for ext, decision in zip(items, decisions, strict=True) if shown and decision.visible)

    def see_named(
        self, names: Iterable[str], kinds: Sequence[str] = (), *, action: str = "list", session: str = ""
    ) -> tuple[str, ...]:
        """`see` for a door that only has names: one without an owner is hidden, one with several if any is."""
        state, names, kinds = self._state, tuple(names), tuple(kinds)
        decisions = [decided_by_name(state, name, kinds) for name in names]
        shown = self._shown(state, decisions, action, session)
        return tuple(name for name, decision in zip(names, decisions, strict=True) if shown and decision.visible)

    def is_visible(self, ext: Extension) -> bool:
        """Whether the model may learn of one item; nothing is recorded."""
        return decided(self._state, ext).visible

    def decide(self, ext: Extension, args: Mapping[str, Any] | None = None) -> Decision:
        """The decision alone; nothing is recorded, and nothing may be run on it."""
        return decided(self._state, ext, args)

    # ------------------------------------------------------------------------------------------ what may be used

    def use(
        self, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
    ) -> Answer:
        """Whether this one use may happen. An `ask` goes to the approver, if it answers at once."""
        return self._use(by_item(ext, args, action, session))

    async def ause(
        self, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
    ) -> Answer:
        """`use` for an approver that may have to be awaited."""
        return await self._ause(by_item(ext, args, action, session))

    def use_named(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        kinds: Sequence[str] = (),
        action: str = "call",
        session: str = "",
    ) -> Answer:
        """`use` for a door that only has a name: no owner is a deny, several are denied if any is."""
        return self._use(by_name(name, kinds, args, action, session))

    async def ause_named(
        self,
        name: str,
        args: Mapping[str, Any] | None = None,
        *,
        kinds: Sequence[str] = (),
        action: str = "call",
        session: str = "",
    ) -> Answer:
        """`use_named` for an approver that may have to be awaited."""
        return await self._ause(by_name(name, kinds, args, action, session))

    def refuse_unknown(
        self,
        name: str,
        kind: str = "tool",
        args: Mapping[str, Any] | None = None,
        *,
        action: str = "call",
        session: str = "",
    ) -> Answer:
        """The recorded refusal of a name that nothing installed has."""
        return self._use(by_name(name, (kind,), args, action, session, is_known=False))

    def refuse_item(
        self,
        ext: Extension,
        reason: str,
        args: Mapping[str, Any] | None = None,
        *,
        action: str = "call",
        session: str = "",
    ) -> Answer:
        """The recorded refusal of an item for what only the door knows. reason: one sentence for the model."""
        refused = refusal(denial(ext, reason, "door"))
        return self._recorded(self._state, refused, by_item(ext, args, action, session))

    def refuse(
        self, name: str, kinds: Sequence[str] = (), *, why: str = "was not offered to this agent", session: str = ""
    ) -> Answer:
        """The recorded refusal of a name: for the reason that the rules have, else for the door's own."""
        return self._use(by_name(name, kinds, None, "call", session, refused=why))

    def read_uri(self, server: str, uri: str, *, session: str = "") -> Answer:
        """Whether one resource may be read: every form of the URI is judged."""
        return self._use(by_uri(server, uri, session))

    async def aread_uri(self, server: str, uri: str, *, session: str = "") -> Answer:
        """`read_uri` for an approver that may have to be awaited."""
        return await self._ause(by_uri(server, uri, session))

    # ------------------------------------------------------------------------------------------ inside

    def _use(self, asked: Asked) -> Answer:
        state = self._state
        decision = judged(state, asked)
        answer = self._without_asking(state, decision)
        if answer is None:
            said = self._ask(decision, asked)
            if isinstance(said, Coroutine):
                said.close()
            state, answer = self._settled(asked, said is True)
        return self._recorded(state, answer, asked)

    async def _ause(self, asked: Asked) -> Answer:
        state = self._state
        decision = judged(state, asked)
        answer = self._without_asking(state, decision)
        if answer is None:
            said = self._ask(decision, asked)
            if isinstance(said, Awaitable):
                said = await _within(said, self.approval_timeout_s)
            state, answer = self._settled(asked, said is True)
        return self._recorded(state, answer, asked)

    def _without_asking(self, state: State, decision: Decision) -> Answer | None:
        """The answer, or None when somebody has to be asked."""
        if not state.available.is_available:
            return refusal(decision, f"this agent is unavailable: {unavailable_because(state.available)}.")
        if decision.effect == "ask":
            return None if self._approver else refusal(decision, f"{decision.reason} Nobody is here to approve it.")
        return allowance(decision) if decision.callable and decision.effect == "allow" else refusal(decision)

    def _ask(self, decision: Decision, asked: Asked) -> object:
        try:
            # A copy, so that the call which runs is the one that was judged.
            return self._approver(decision, copy.deepcopy(dict(asked.args))) if self._approver else False
        except Exception:  # an approver that fails has not approved
            return False

    def _settled(self, asked: Asked, is_yes: bool) -> tuple[State, Answer]:
        """The answer after an approver's: the rules may have changed while somebody was thinking, and a deny binds."""
        state = self._state
        decision = judged(state, asked)
        answer = self._without_asking(state, decision)
        if answer is None:
            name = str(getattr(self._approver, "name", None) or type(self._approver).__name__)
            no = f"{decision.reason} It was not approved."
            answer = allowance(decision, name) if is_yes else refusal(decision, no, name)
        return state, answer

    def _recorded(self, state: State, answer: Answer, asked: Asked) -> Answer:
        outcome: Outcome = "allowed" if answer else "refused"
        took_us = (time.perf_counter() - asked.started) * 1e6
        why = self._noted(
            state, answer.decision, "use", asked.action, outcome, answer.approver, took_us, asked.session, asked.args
        )
        return refusal(answer.decision, f"the record cannot be written ({why}).") if why else answer

    def _shown(self, state: State, decisions: Sequence[Decision], action: str, session: str) -> bool:
        """Records what is hidden, once for each state; False while that cannot be done, so that nothing is shown."""
        hidden = [decision for decision in decisions if not decision.visible]
        told = state.told_of(session, action)
        if hidden == told.last:
            return True
        for decision in hidden:
            name = decision.extension.id
            if name not in told.ids:
                if self._noted(state, decision, "see", action, "refused", session=session):
                    return False
                told.ids.add(name)
        told.last = hidden
        if len(told.ids) >= MAX_TOLD:
            told.ids.clear()
        return True

    def _noted(
        self,
        state: State,
        decision: Decision,
        question: Question,
        action: str,
        outcome: Outcome,
        approver: str = "",
        took_us: float = 0.0,
        session: str = "",
        args: Iterable[object] = (),
    ) -> str:
        """Hands one event to the sink; what went wrong in a word, or the empty text."""
        try:
            event = Event(
                when=self._clock(),
                agent=self.agent,
                door=self.door,
                question=question,
                action=action,
                extension=decision.extension.id[:MAX_ID],
                outcome=outcome,
                effect=decision.effect,
                reason=decision.reason[:MAX_MESSAGE],
                rule=rule_of(decision),
                policy_version=state.decider.profile.version,
                inventory_version=state.decider.inventory.version,
                approver=approver,
                took_us=took_us,
                arguments=tuple(str(key)[:64] for key in list(args)[:64]),
                session=session,
            )
            self.sink(event)
        except Exception as error:  # an unrecorded use does not happen
            return type(error).__name__
        return ""


async def _within(said: Awaitable[object], seconds: float) -> object:
    """What the approver says, or False when it fails or takes too long."""
    import asyncio  # only here: a hook is a process per call, and has nobody to wait for

    try:
        async with asyncio.timeout(seconds):
            return await said
    except Exception:  # an approver that fails has not approved
        return False
