"""Bearer tokens that are known beforehand, by digest, each bound to agents; and how a token is taken from a header."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from extgate.enforce.callers.verdict import Verdict

MAX_TOKEN = 16 * 1024
"""Longest token that is looked at, in characters."""
BY_TOKEN = "token:"
"""How the names of callers begin who showed one."""
NEEDED = "a bearer token is needed"
NOT_THIS_AGENT = "this token is not one of this agent's"


def bearer(authorization: str) -> str | None:
    """The token of an `Authorization` header; None when there is none in it, or one that no issuer writes."""
    scheme, _, token = authorization.partition(" ")
    token = token.strip(" ")
    is_sound = scheme.lower() == "bearer" and 0 < len(token) <= MAX_TOKEN
    return token if is_sound and token.isascii() and token.isprintable() and " " not in token else None


def digest_of(token: str) -> bytes:
    """By which a token is known; nothing else of it is kept."""
    return hashlib.sha256(token.encode()).digest()


class Tokens:
    """Agents by token. withdrawn: digests that are refused whatever `agents_by_digest` says."""

    def __init__(self, agents_by_digest: Mapping[bytes, frozenset[str]]) -> None:
        self.agents_by_digest = agents_by_digest
        self.withdrawn: frozenset[bytes] = frozenset()

    def judge(self, token: str, agent: str) -> Verdict | None:
        """What a token gives; None when it is none of these."""
        digest = digest_of(token)
        agents = self.agents_by_digest.get(digest)
        if agents is None or digest in self.withdrawn:
            return None
        if agent not in agents:
            return Verdict(why=NOT_THIS_AGENT, error="invalid_token")
        return Verdict(caller=_caller(digest))

    def knows(self, caller: str, agent: str) -> bool:
        """Whether a caller whom one of these let in would be let in now."""
        return any(
            _caller(digest) == caller and agent in agents and digest not in self.withdrawn
            for digest, agents in self.agents_by_digest.items()
        )


def _caller(digest: bytes) -> str:
    return f"{BY_TOKEN}{digest.hex()[:16]}"
