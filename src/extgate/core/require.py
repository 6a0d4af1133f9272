"""Whether an agent's required servers are there; a missing one makes it unavailable for the turn."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace

from extgate.core.decide import CompiledProfile, judge
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.names import Naming, refusal, show
from extgate.core.patterns import matches
from extgate.core.policy import Policy, Profile, Requirement

_FRESH = ("q7zvx", "KJ-WQ", "0", "m.n", "b" * 61)
"""Item names with nothing in common: what refuses them all refuses the server as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """One required pattern that nothing meets.

    state: `not configured`, `untrusted`, `failed`, `configured`, `disabled`, `removed` (by the profile itself) or
    `no matching item`. detail: the servers it could have been, and why not, in one line.
    """

    requirement: Requirement
    state: str
    detail: str

    @property
    def pattern(self) -> str:
        return self.requirement.pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether the agent may take a turn; `missing` says what stands in the way, `error` that its profile is unread."""

    missing: tuple[Missing, ...] = ()
    error: str = ""

    @property
    def is_available(self) -> bool:
        return not self.missing and not self.error


def availability(profile: Profile, inventory: Inventory) -> Availability:
    """Checks every requirement of every layer against the servers as they are now."""
    found: dict[str, Missing] = {}
    naming = Naming(inventory.extensions)
    for policy in profile.policies:
        servers = _Servers(policy, inventory, naming)
        for requirement in policy.requirements:
            missing = servers.judge(requirement)
            if missing:
                found.setdefault(requirement.pattern, missing)
    return Availability(missing=tuple(found.values()))


class _Servers:
    """The servers under the `mcp` block alone: what `tools` says does not count here."""

    def __init__(self, policy: Policy, inventory: Inventory, naming: Naming) -> None:
        rules = tuple(rule for rule in policy.rules if rule.text.startswith("mcp"))
        default = policy.default if policy.dialect == "patterns" else "allow"
        rules = policy.rules if policy.dialect == "patterns" else rules
        self.policy = replace(policy, rules=rules, default=default)
        self.compiled = CompiledProfile(Profile(id=policy.id, layers=(self.policy,)))
        # Whether a single item is visible, every block but `tools` says.
        others = tuple(rule for rule in policy.rules if not rule.text.startswith("tools"))
        kept = policy if policy.dialect == "patterns" else replace(policy, rules=others, default=default)
        self.items = CompiledProfile(Profile(id=policy.id, layers=(kept,)))
        self.inventory, self.naming = inventory, naming

    def judge(self, requirement: Requirement) -> Missing | None:
        """None when the requirement is met."""
        pattern = requirement.pattern
        head, slash, item = pattern.partition("/")
        named = [s for s in self.inventory.servers if not refusal(s.name)]
        # `a/b` speaks of the item `b` of the server `a`, never of a server whose own name is `a/b`.
        by_server = [s for s in named if matches(s.name, head) and not (slash and "/" in s.name)]
        by_name, by_item = ([], by_server) if slash and item != "*" else (by_server, [])
        removed = {s.name: why for s in (*by_name, *by_item) if (why := self.removal(s))}
        usable = [s for s in by_name if s.state == "connected" and s.name not in removed]
        if usable or any(
            self._has_item(s, pattern) for s in by_item if s.state == "connected" and s.name not in removed
        ):
            return None
        return self._missing(requirement, [*by_name, *by_item], removed)

    def removal(self, server: Server) -> str | None:
        """How the profile's own `mcp` block takes the server away; None when it does not."""
        items = [e for e in self.inventory.extensions if e.server == server.name]
        fresh = [Extension(kind="mcp_tool", server=server.name, name=name) for name in _FRESH]
        refused = [step for ext in fresh if (step := self._refused(ext))]
        if len(refused) == len(fresh) and not any(step.startswith("mcp.allowed") for step in refused):
            return f"removed by {refused[0]}"
        if items and all(self._refused(ext) for ext in items):
            return f"every item of it is removed by {self._refused(items[0])}"
        if not items and len(refused) == len(fresh) and not self._could_admit(server):
            return f"removed by {refused[0]}"
        return None

    def _could_admit(self, server: Server) -> bool:
        """Whether an allow-list speaks of single items of this server, which lists none yet."""
        entries = [e for rule in self.policy.rules if rule.unless for e in rule.entries]
        heads = [e.text.strip().removeprefix("mcp__").partition(sep)[0] for e in entries for sep in ("/", "__")]
        return all(any(matches(server.name, head) for head in heads) for rule in self.policy.rules if rule.unless)

    def _refused(self, ext: Extension) -> str | None:
        verdict = judge(self.compiled, self.naming, ext)
        if verdict.effect != "deny":
            return None
        step = verdict.step
        place = f" ({step.file}:{step.line})" if step.file and step.line else ""
        return f"{step.text} `{step.pattern}`{place}" if step.pattern else f"{step.text}{place}"

    def _has_item(self, server: Server, pattern: str) -> bool:
        return any(
            matches(f"{server.name}/{e.name}", pattern) and judge(self.items, self.naming, e).effect != "deny"
            for e in self.inventory.extensions
            if e.server == server.name
        )

    def _missing(self, requirement: Requirement, near: list[Server], removed: dict[str, str]) -> Missing:
        if not near:
            names = [s.name for s in self.inventory.servers]
            close = difflib.get_close_matches(requirement.pattern.strip("*"), names, n=1)
            hint = f"; the nearest is `{show(close[0])}`" if close else ""
            return Missing(requirement=requirement, state="not configured", detail=f"no such server{hint}")
        order = ("connected", "failed", "untrusted", "configured", "disabled")
        server = min(near, key=lambda s: (order.index(s.state), s.name))
        state: str = server.state if server.state != "connected" else "no matching item"
        detail = f"`{show(server.name)}` is connected but has no visible item that matches"
        if server.name in removed:
            state, detail = "removed", f"`{show(server.name)}` is {removed[server.name]}"
        elif server.state != "connected":
            detail = f"`{show(server.name)}` is {server.state}" + (f": {show(server.error)}" if server.error else "")
        return Missing(requirement=requirement, state=state, detail=detail)
