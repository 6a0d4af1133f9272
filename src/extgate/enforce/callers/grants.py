"""From a token's claims to agents: rules of which any may let in, and claims that keep out whatever the rules say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from extgate.core.lists import match_any

Claims = Mapping[str, object]
Simple = str | bool | int | float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Lets a token be the agents that any pattern matches, if it holds all scopes and all claims.

    claims: values that the claim must equal, or hold in its list. No wildcards here: the issuer says who somebody is.
    """

    agents: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    claims: Mapping[str, Simple] = field(default_factory=dict, hash=False)

    def is_for(self, agent: str) -> bool:
        return match_any(agent, self.agents)

    def holds(self, claims: Claims) -> bool:
        """Whether a token with these claims has what this asks for, its scopes apart."""
        return all(_has(claims.get(name), value) for name, value in self.claims.items())


def may_be(agent: str, grants: tuple[Grant, ...], claims: Claims) -> tuple[bool, str]:
    """Whether the claims let their bearer be an agent; else the scopes that would, empty where none would do."""
    scopes = scopes_of(claims)
    missing = ""
    for grant in grants:
        if grant.is_for(agent) and grant.holds(claims):
            if scopes.issuperset(grant.scopes):
                return True, ""
            missing = missing or " ".join(grant.scopes)
    return False, missing


def is_revoked(revoked: tuple[Mapping[str, Simple], ...], claims: Claims) -> bool:
    """Whether all that one of the entries names stands in the claims."""
    return any(all(_has(claims.get(name), value) for name, value in entry.items()) for entry in revoked)


def scopes_of(claims: Claims) -> frozenset[str]:
    """The token's scopes: `scope` as RFC 9068 has it, a text with blanks, or `scp`, a text or a list."""
    found: set[str] = set()
    for name in ("scope", "scp"):
        value = claims.get(name)
        if isinstance(value, str):
            found |= set(value.split(" "))
        elif isinstance(value, list) and name == "scp":
            found |= {entry for entry in value if isinstance(entry, str)}
    return frozenset(found - {""})


def _has(claim: object, wanted: Simple) -> bool:
    values = claim if isinstance(claim, list) else [claim]
    return any(type(value) is type(wanted) and value == wanted for value in values)
