"""One session of a runtime behind its hook: each call is judged by the gate, and then what it is used on.

A name that nothing installed has is refused, and so is a call of which the target cannot be told. What the runtime
calls through extgate's own gateway is judged there; here only a sub-agent's calls of it are, for the gateway knows one
agent. See: a hook is asked about calls only, so lists are the runtime's own affair (`extgate apply` writes them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extgate.core.extension import Extension
from extgate.core.policy import Inherit, Profile
from extgate.enforce.gate import Gate
from extgate.enforce.hooks.call import Args, Call, Shape, Verdict
from extgate.enforce.hooks.owners import Owners
from extgate.enforce.hooks.paths import CallPaths
from extgate.enforce.hooks.targets import Targets

CALLABLE = ("tool", "mcp_tool")
PASS = Verdict(effect="pass")


class UserAsks:
    """The approver where the runtime asks its user: says yes, and notes that the user has to be asked."""

    name = "the runtime's user"

    def __init__(self) -> None:
        self.reason = ""

    def __call__(self, decision: Any, args: Args) -> bool:
        self.reason = self.reason or decision.reason
        return True


class HookDoor:
    """Judges calls. Never raises: what goes wrong is a deny.

    own: the profile of an agent by its type, and by whether it is a sub-agent; None for one without. mode: how an agent
    of that type inherits. asks: the gate's approver, when the runtime has a user to ask.
    """

    def __init__(
        self,
        shape: Shape,
        gate: Gate,
        *,
        paths: CallPaths,
        own: Callable[[str, bool], Profile | None] = lambda agent, is_child: None,
        mode: Callable[[str, bool], Inherit] = lambda agent, is_child: "ceiling",
        asks: UserAsks | None = None,
        owners: Owners | None = None,
    ) -> None:
        self.shape, self.gate, self._own, self._mode = shape, gate, own, mode
        self._asks, self._owners = asks, owners or Owners()
        self._targets = Targets(shape, self._owners, paths, self._gate_of)
        self._gates: dict[tuple[str, bool], Gate] = {}

    def judge(self, call: Call) -> Verdict:
        """What the runtime is told. Every refusal is recorded, and every use that the gate let pass."""
        try:
            if self._asks:
                self._asks.reason = ""
            reason = self._refusal(call)
        except Exception as error:  # a call that cannot be judged does not run
            reason = self.gate.refuse(call.tool[:200], why=f"could not be judged ({type(error).__name__})").message
        if reason:
            return Verdict(effect="deny", reason=reason)
        asked = self._asks.reason if self._asks else ""
        return Verdict(effect="ask", reason=asked) if asked else PASS

    def unreadable(self, why: str) -> Verdict:
        """The recorded refusal of a call that cannot be read. why: one clause."""
        ext = Extension(kind="tool", name="unreadable", source="unknown")
        answer = self.gate.refuse_item(ext, f"This call cannot be judged: {why}.")
        return Verdict(effect="deny", reason=answer.message)

    # ------------------------------------------------------------------------------------------ inside

    def _gate_of(self, agent: str, is_child: bool = True) -> Gate:
        """The gate of an agent of that type; one without a profile of its own is under the session's."""
        if not agent:
            return self.gate
        key = (agent, is_child)
        if key not in self._gates:
            own, mode = self._own(agent, is_child), self._mode(agent, is_child)
            self._gates[key] = self.gate.child(own, agent=f"{self.gate.agent}/{agent}", mode=mode)
        return self._gates[key]

    def _refusal(self, call: Call) -> str:
        gate = self._gate_of(call.agent, call.is_child)
        items = self._owners.of(gate.inventory, call)
        if not items and self._owners.is_relayed(gate.inventory, call):
            if not _says_of_servers(gate.own_profile) and not self._owners.may_be_denied(gate, call):
                return ""
            return gate.refuse(call.tool, CALLABLE, why="is not known to its agent").message
        if not items:
            return gate.refuse_unknown(call.tool, args=call.args, session=call.session).message
        for ext in items:
            if not (answer := gate.use(ext, call.args, session=call.session)):
                return answer.message
        return self._targets.refusal(gate, items, call)


def _says_of_servers(profile: Profile | None) -> bool:
    """Whether a sub-agent's own profile could refuse what is of some server: the gateway knows the session's alone."""
    if profile is None:
        return False
    takes = any(policy.default in ("ask", "deny") for policy in profile.policies)
    rules = (rule for policy in profile.policies for rule in policy.rules if rule.effect != "allow")
    return takes or not profile.layers or any(kind.startswith("mcp_") for rule in rules for kind in rule.kinds)
