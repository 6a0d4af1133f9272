"""What a runtime's own files deny, where extgate judges for them: of every tool, or of what its gateway has instead."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.names import show, wire_names
from extgate.core.policy import Policy, Profile, Rule
from extgate.dialects.native import MCP, NOT_IN_CHILDREN, is_of_runtime

_NEW = "qj-never-heard-of"


def denied(layer: Policy, is_child: bool) -> Policy:
    """What a runtime's own file denies. Its asks are the runtime's to ask."""
    own = (rule for rule in layer.rules if is_child or rule.text not in NOT_IN_CHILDREN)
    rules = (replace(rule, effect="allow") if rule.effect == "ask" else rule for rule in own)
    default = "allow" if layer.default == "ask" else layer.default
    return replace(layer, rules=tuple(rules), default=default, requirements=())


def relayed(layer: Policy, gateway: str) -> Policy:
    """The same where the runtime reaches the servers through the gateway, by names that the runtime itself judges.

    What denies a server or a tool of one goes on denying it behind the gateway. What denies every server does too, but
    where the file lets the gateway in: then the runtime holds the agent to what it lets in of it. What the runtime
    does by itself is its own to do.
    """
    own = Extension(kind="mcp_tool", server=gateway, name=_NEW)
    is_in = Decider(Profile(id="native", layers=(layer,)), Inventory()).decide(own).effect != "deny"
    heads = {name.removesuffix("x") for name in wire_names(gateway, "x")}
    rules = (
        replace(rule, kinds=_native_kinds(rule.kinds))
        if is_of_runtime(rule) or (_is_for_all(rule) and (is_in or _names(rule, heads)))
        else rule
        for rule in layer.rules
    )
    return replace(layer, rules=tuple(rule for rule in rules if rule.kinds))


def of_servers(layer: Policy, gateway: str) -> Policy:
    """What it denies of servers alone, as `relayed` has it, for whoever calls."""
    found = relayed(denied(layer, is_child=True), gateway)
    rules = (replace(rule, kinds=rule.kinds & MCP) for rule in found.rules)
    return replace(found, rules=tuple(rule for rule in rules if rule.kinds), notes=(), facts={})


def nothing_of_servers(dialect: str, file: str, why: str) -> Policy:
    """Denies all that servers offer: nobody knows what a file that cannot be read would deny."""
    reason = "'{name}' is closed: the runtime's own file " + f"`{show(file)}` cannot be read ({show(why)})."
    rule = Rule(text="unreadable", effect="deny", kinds=MCP, unless=True, reason=reason, file=file)
    return Policy(dialect=dialect, rules=(rule,), file=file)


def _is_for_all(rule: Rule) -> bool:
    """Whether it denies what servers offer of which nobody has heard."""
    alone = Policy(dialect="", rules=(replace(rule, when=()),), default="allow")
    new = Extension(kind="mcp_tool", server=_NEW, name=_NEW)
    return Decider(Profile(id="rule", layers=(alone,)), Inventory()).decide(new).effect == "deny"


def _names(rule: Rule, heads: Iterable[str]) -> bool:
    """Whether the rule is a list that names something of a server. heads: how names of its tools begin."""
    tests = (test for entry in rule.entries for test in entry.tests) if rule.unless else ()
    return any(test.pattern.startswith(head) for test in tests for head in heads)


def _native_kinds(kinds: frozenset[str]) -> frozenset[str]:
    return frozenset(kind for kind in kinds if not kind.startswith("mcp_"))
