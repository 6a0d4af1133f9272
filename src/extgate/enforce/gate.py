"""The gate: one object that every door asks, which decides and records."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from extgate.audit.event import Event, Question, Sink, rule_of
from extgate.core.decide import CompiledProfile, Decision, Step
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.names import Naming, shown_name
from extgate.core.patterns import nfc
from extgate.core.policy import Profile
from extgate.core.require import Availability
from extgate.enforce.sinks import discard


class Approver(Protocol):
    """Somebody who answers an `ask`: True runs the call. Raising, or anything but True, is a no."""

    name: str

    def __call__(self, decision: Decision, args: Mapping[str, Any]) -> bool | Awaitable[bool]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the gate says of one use. `message` is for the model: plain, one sentence, with the reason."""

    is_allowed: bool
    decision: Decision
    message: str = ""
    approver: str = ""

    def __bool__(self) -> bool:
        return self.is_allowed


@dataclass(frozen=True, slots=True)
class _State:
    """Everything an answer depends on, replaced as one by `swap`."""

    decider: Decider
    naming: Naming
    owners: dict[str, tuple[Extension, ...]]


class Gate:
    """One agent's gate. `see` filters what the model may learn of, `use` judges one call, `swap` changes the rules.

    Safe for threads: a question is answered under one policy and one inventory, whatever `swap` does meanwhile.
    sink: takes every event; what it raises is a deny. approver: answers an `ask`; None denies it.
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
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.agent = agent or profile.id
        self.door = door
        self.sink = sink
        self.approver = approver
        self._clock = clock
        self._swapping = threading.Lock()
        self._state = self._make(profile, inventory)

    # ------------------------------------------------------------------------------------------ state

    def _make(self, profile: Profile, inventory: Inventory, compiled: CompiledProfile | None = None) -> _State:
        decider = Decider(profile, inventory, has_approver=self.approver is not None, compiled=compiled)
        return _State(decider, decider.naming, _owners(inventory.extensions, decider.naming))

    def swap(self, *, profile: Profile | None = None, inventory: Inventory | None = None) -> tuple[Decision, ...]:
        """Puts another policy or inventory in force; returns the decisions whose answer changed, in order.

        When it returns, every later question is answered under the new state.
        """
        with self._swapping:
            old = self._state
            compiled = old.decider.compiled if profile is None else None
            new = self._make(profile or self.profile, inventory or self.inventory, compiled)
            before = {(d.extension.id, d.extension.source): d.visible for d in old.decider.decisions}
            changed = tuple(
                d for d in new.decider.decisions if before.pop((d.extension.id, d.extension.source), False) != d.visible
            )
            self._state = new
        for decision in changed:
            self._record(new, "reload", "swap", decision, is_allowed=decision.visible, outcome="changed")
        return changed

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
        return self._state.decider.availability

    # ------------------------------------------------------------------------------------------ names

    def owners(self, name: str, kinds: Sequence[str] = ()) -> tuple[Extension, ...]:
        """The installed items that some door knows by this exact name, wire names included."""
        found = self._state.owners.get(nfc(name), ())
        return tuple(ext for ext in found if not kinds or ext.kind in kinds)

    # ------------------------------------------------------------------------------------------ questions

    def see(self, items: Iterable[Extension], *, action: str = "list", session: str = "") -> tuple[Extension, ...]:
        """The items that the model may learn of, in order. Items never installed are judged like any other."""
        state, started = self._state, time.perf_counter()
        visible: list[Extension] = []
        hidden: list[Decision] = []
        for ext in items:
            decision = state.decider.decide(ext)
            visible.append(ext) if decision.visible else hidden.append(decision)
        took = (time.perf_counter() - started) * 1e6
        for decision in hidden:
            self._record(state, "see", action, decision, is_allowed=False, took_us=took, session=session)
        return tuple(visible)

    def is_visible(self, ext: Extension) -> bool:
        """Whether the model may learn of one item; nothing is recorded."""
        return self._state.decider.decide(ext).visible

    def decide(self, ext: Extension, args: Mapping[str, Any] | None = None) -> Decision:
        """The decision alone; nothing is recorded, and nothing may be run on it."""
        return self._state.decider.decide(ext, args)

    def use(
        self, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
    ) -> Answer:
        """Whether this one use may happen. An `ask` goes to the approver, if it answers at once."""
        state, started = self._state, time.perf_counter()
        answer = self._first_answer(state, ext, args)
        if answer is None:
            said = self._ask(state, ext, args)
            if inspect.isawaitable(said):
                if inspect.iscoroutine(said):
                    said.close()
                said = False
            answer = self._approved(state, ext, args, said is True)
        return self._recorded(state, answer, args, action, started, session)

    async def ause(
        self, ext: Extension, args: Mapping[str, Any] | None = None, *, action: str = "call", session: str = ""
    ) -> Answer:
        """`use` for an approver that may have to be awaited."""
        state, started = self._state, time.perf_counter()
        answer = self._first_answer(state, ext, args)
        if answer is None:
            said = self._ask(state, ext, args)
            if inspect.isawaitable(said):
                try:
                    said = await said
                except Exception:  # an approver that fails has not approved
                    said = False
            answer = self._approved(state, ext, args, said is True)
            # The rules may have changed while somebody was thinking: a new deny binds.
            state = self._state
            if answer and state.decider.decide(ext, args or {}).effect == "deny":
                answer = self._first_answer(state, ext, args) or answer
        return self._recorded(state, answer, args, action, started, session)

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
        owners = self.owners(name, kinds)
        if not owners:
            return self.refuse_unknown(name, kinds[0] if kinds else "tool", args, action=action, session=session)
        answers = [self.use(ext, args, action=action, session=session) for ext in owners]
        return next((answer for answer in answers if not answer), answers[0])

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
        state, started = self._state, time.perf_counter()
        ext = Extension(kind=kind, name=name[:512], source="unknown")
        step = Step(text="name", outcome="decides", effect="deny")
        decision = replace(
            state.decider.decide(ext), effect="deny", visible=False, callable=False, rule=step, trail=(),
            reason=f"'{shown_name(ext)}' is not installed.",
        )  # fmt: skip
        return self._recorded(state, _refusal(decision), args, action, started, session)

    def read_uri(self, server: str, uri: str, *, session: str = "") -> Answer:
        """Whether one resource may be read: every form of the URI is judged."""
        state, started = self._state, time.perf_counter()
        decision = state.decider.decide_uri(server, uri)
        answer = Answer(is_allowed=True, decision=decision) if decision.callable else _refusal(decision)
        return self._recorded(state, answer, {"uri": uri}, "read", started, session)

    # ------------------------------------------------------------------------------------------ inside

    def _first_answer(self, state: _State, ext: Extension, args: Mapping[str, Any] | None) -> Answer | None:
        """The answer, or None when somebody has to be asked."""
        available = state.decider.availability
        decision = state.decider.decide(ext, args or {})
        if not available.is_available:
            return _refusal(replace(decision, reason=f"this agent is unavailable: {unavailable_because(available)}."))
        if decision.effect == "ask" and self.approver is not None:
            return None
        return Answer(is_allowed=True, decision=decision) if decision.callable else _refusal(decision)

    def _ask(self, state: _State, ext: Extension, args: Mapping[str, Any] | None) -> object:
        assert self.approver is not None
        try:
            return self.approver(state.decider.decide(ext, args or {}), args or {})
        except Exception:  # an approver that fails has not approved
            return False

    def _approved(self, state: _State, ext: Extension, args: Mapping[str, Any] | None, is_yes: bool) -> Answer:
        decision = state.decider.decide(ext, args or {})
        name = self.approver.name if self.approver else ""
        if is_yes:
            return Answer(is_allowed=True, decision=decision, approver=name)
        return replace(_refusal(replace(decision, reason=f"{decision.reason} It was not approved.")), approver=name)

    def _recorded(
        self,
        state: _State,
        answer: Answer,
        args: Mapping[str, Any] | None,
        action: str,
        started: float,
        session: str,
    ) -> Answer:
        took = (time.perf_counter() - started) * 1e6
        try:
            keys = tuple(str(key)[:64] for key in list(args or ())[:64])
            self._record(
                state, "use", action, answer.decision, is_allowed=answer.is_allowed, took_us=took,
                approver=answer.approver, arguments=keys, session=session,
            )  # fmt: skip
        except Exception as error:  # an unrecorded use does not happen
            return _refusal(replace(answer.decision, reason=f"the record cannot be written ({type(error).__name__})."))
        return answer

    def _record(
        self,
        state: _State,
        question: Question,
        action: str,
        decision: Decision,
        *,
        is_allowed: bool,
        took_us: float = 0.0,
        approver: str = "",
        arguments: tuple[str, ...] = (),
        session: str = "",
        outcome: str = "",
    ) -> None:
        self.sink(
            Event(
                when=self._clock(),
                agent=self.agent,
                door=self.door,
                question=question,
                action=action,
                extension=decision.extension.id,
                outcome="changed" if outcome else "allowed" if is_allowed else "refused",
                effect=decision.effect,
                reason=decision.reason,
                rule=rule_of(decision),
                policy_version=state.decider.profile.version,
                inventory_version=state.decider.inventory.version,
                approver=approver,
                took_us=took_us,
                arguments=arguments,
                session=session,
            )
        )


def unavailable_because(availability: Availability) -> str:
    """What stands in the way of a turn, in one line."""
    parts = [f"required `{m.pattern}` is not met ({m.detail})" for m in availability.missing]
    return "; ".join([*parts, *([availability.error] if availability.error else [])])


def _refusal(decision: Decision) -> Answer:
    reason = decision.reason
    if decision.effect == "ask" and "approved" not in reason:
        reason += " Nobody is here to approve it."
    return Answer(is_allowed=False, decision=replace(decision, reason=reason, callable=False), message=reason)


def _owners(extensions: Iterable[Extension], naming: Naming) -> dict[str, tuple[Extension, ...]]:
    """Installed items by every exact name that a door could know them by."""
    found: dict[str, list[Extension]] = {}
    for ext in extensions:
        names = naming.of(ext)
        spelled = {ext.id, nfc(ext.name), *names["name"], *names.get("item_any", ()), *names.get("own", ())}
        for name in spelled:
            found.setdefault(name, []).append(ext)
    return {name: tuple(items) for name, items in found.items()}
