"""One agent's door: its gate, what its clients are told of, and the judgement of each request of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from extgate.audit.event import Event
from extgate.core.explain import MAX_URI
from extgate.core.extension import Extension
from extgate.core.names import show
from extgate.enforce.answer import Answer, unavailable_because
from extgate.enforce.gate import Gate
from extgate.enforce.mcp.catalog import Offer, View, view
from extgate.enforce.mcp.envelope import Value, has_twins, value_of
from extgate.enforce.mcp.options import Options
from extgate.enforce.question import MAX_ID

ASK = "ask"
"""The record's action for what a server asks of a client."""
_TO_COME = ("configured", "failed")
MAX_TWIN_CHECK = 4 * 1024 * 1024
"""Longer arguments are refused where a rule reads them, in bytes."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The item that a name means, or why it may not be used. ext: None when refused."""

    ext: Extension | None
    message: str = ""


class Door:
    """What the sessions of one agent share. offers: what the servers say they have now.

    why_not: why the agent has no policy at all; empty when it has one. counts: judgements by server and whether they
    let it pass; the server is empty where a name is nobody's.
    """

    def __init__(
        self,
        gate: Gate,
        options: Options,
        offers: Callable[[], tuple[Offer, ...]],
        why_not: Callable[[], str] = lambda: "",
    ) -> None:
        self.gate, self.options, self._offers, self._why_not = gate, options, offers, why_not
        self._view: View | None = None
        self.counts: Counter[tuple[str, bool]] = Counter()

    @property
    def view(self) -> View:
        """The lists as they are now; made anew when the policy, the inventory or a server's offer is another."""
        decisions, offers, kept = self.gate.decisions, self._offers(), self._view
        if kept is None or kept.decisions is not decisions or kept.offers is not offers:
            kept = view(self.gate, offers, self.options)
            # What could not be recorded was not shown; that must not last longer than the cause.
            live = {offer.server for offer in offers}
            is_whole = any(kept.lists.values()) or not any(d.visible and d.extension.server in live for d in decisions)
            self._view = kept if is_whole else None
        return kept

    def configure(self, options: Options) -> None:
        """Sets what the profile says of its gateway now."""
        if options != self.options:
            self.options, self._view = options, None

    def why_unavailable(self) -> str:
        """Why the agent may take no turn now; empty when it may."""
        if why := self._why_not():
            return f"agent `{show(self.gate.agent)}` is unavailable: {why}"
        standing = self.gate.availability
        if standing.is_available:
            return ""
        return f"agent `{show(self.gate.agent)}` is unavailable: {unavailable_because(standing)}"

    def judge(self, kind: str, name: str, arguments: Value | None, *, action: str, session: str) -> Judged:
        """Whether the tool or prompt of this name may be used, recorded. arguments: as they came."""
        ext = self.view.by_name.get((kind, name))
        args = value_of(arguments) if arguments is not None else None
        args = args if isinstance(args, dict) else {}
        if ext is None and self._is_waiting():
            unknown = Extension(kind=kind, name=name[:MAX_ID], source="unknown")
            why = f"'{show(name)[:200]}' is not available right now: not every server has said yet what it has."
            return self._judged(self.gate.refuse_item(unknown, why, args, action=action, session=session))
        if ext is None:
            return self._judged(self.gate.refuse_unknown(name, kind, args, action=action, session=session))
        if arguments is not None and self.view.reads_arguments and self._is_twofold(bytes(arguments)):
            why = f"'{name}' is refused: its arguments can be read in two ways."
            return self._judged(self.gate.refuse_item(ext, why, args, action=action, session=session))
        # Without rules on arguments their values decide nothing; the names are recorded all the same.
        return self._judged(self.gate.use(ext, args, action=action, session=session))

    def judge_uri(self, uri: str, *, session: str) -> Judged:
        """Whether the resource that this URI means may be read, recorded. Several servers' is nobody's."""
        if len(uri) > MAX_URI:  # before it is held against every template
            return self._judged(self.gate.refuse_unknown(uri, "mcp_resource", action="read", session=session))
        found = self.view.resource(uri)
        if len(found) > 1:
            servers = " and ".join(sorted(show(ext.server or "") for ext in found))
            why = f"'{show(uri)[:200]}' is refused: {servers} both have it; let the profile deny all but one."
            return self._judged(self.gate.refuse_item(found[0], why, {"uri": uri}, action="read", session=session))
        meant = found[0] if found else self.view.hidden_resource(uri)
        if meant is None:
            args = {"uri": uri}
            return self._judged(self.gate.refuse_unknown(uri, "mcp_resource", args, action="read", session=session))
        judged = self._judged(self.gate.read_uri(meant.server or "", uri, session=session))
        return Judged(meant) if judged.ext else judged

    def may_hear_of(self, server: str, uri: str) -> bool:
        """Whether a client may be told that this resource changed; nothing is recorded."""
        meant = next((ext for ext in self.view.resource(uri) if ext.server == server), None)
        return meant is not None and self.gate.is_visible(meant) and not self.why_unavailable()

    def judge_template(self, uri: str, *, session: str) -> Judged:
        """Whether values for a template, or a resource, written exactly so may be asked for, recorded."""
        named = [ext for ext in self.view.templates if ext.name == uri]
        if len(named) != 1:
            return self.judge_uri(uri, session=session)
        return self._judged(self.gate.use(named[0], action="complete", session=session))

    def may_ask(self, server: str, what: str, *, has: bool = True, session: str) -> str:
        """Why a server may not ask the client for that, recorded; empty when it may. has: the client declared it."""
        why = "" if has else f"{what} is nothing that this client has"
        why = why or ("" if self.options.may_ask(server, what) else f"{what} is not permitted for this agent")
        gate, is_allowed = self.gate, not why
        event = Event(
            when=datetime.now(UTC), agent=gate.agent, door=gate.door, question="use", action=ASK,
            extension=f"mcp_ask:{show(server)}/{show(what)[:60]}", outcome="allowed" if is_allowed else "refused",
            effect="allow" if is_allowed else "deny", reason=why or "the profile's gateway lets servers ask for it",
            rule={"text": "gateway.client", "pattern": "", "file": "", "line": None},
            policy_version=gate.profile.version, inventory_version=gate.inventory.version, session=session,
        )  # fmt: skip
        try:
            gate.sink(event)
        except Exception as error:  # what cannot be recorded is not asked
            return why or f"the record cannot be written ({type(error).__name__})"
        return why

    def _is_waiting(self) -> bool:
        """Whether some server has listed nothing so far and may still come."""
        missing = {server.name for server in self.gate.inventory.servers if server.state in _TO_COME}
        return bool(missing) and not missing <= {d.extension.server for d in self.gate.decisions}

    def _is_twofold(self, arguments: bytes) -> bool:
        is_object = arguments[:1] == b"{" or arguments == b"null"
        return not is_object or len(arguments) > MAX_TWIN_CHECK or has_twins(arguments)

    def _judged(self, answer: Answer) -> Judged:
        ext = answer.decision.extension
        self.counts[(ext.server or "", bool(answer))] += 1
        return Judged(ext) if answer else Judged(None, answer.message)
