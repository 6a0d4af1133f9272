"""All ways to prove who calls, in one question; and what OAuth clients are told of where to get a token."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

from extgate.enforce.callers.grants import is_revoked
from extgate.enforce.callers.proxies import BY_CERTIFICATE, Proxies, is_within
from extgate.enforce.callers.tokens import BY_TOKEN, NEEDED, Tokens, bearer
from extgate.enforce.callers.verdict import Verdict

if TYPE_CHECKING:
    from extgate.enforce.callers.issuers import Issuer

WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(slots=True, kw_only=True)
class Callers:
    """url: of the gateway as its clients know it, without a slash at the end. issuers: by their name."""

    url: str = ""
    tokens: Tokens | None = None
    issuers: Mapping[str, Issuer] = field(default_factory=dict)
    proxies: Proxies | None = None

    @property
    def is_open(self) -> bool:
        """Whether nobody has to prove anything: for loopback."""
        return self.tokens is None and not self.issuers and self.proxies is None

    def judge(self, headers: Mapping[str, str], peer: str, agent: str) -> Verdict | Awaitable[Verdict]:
        """Whether the sender of these headers may be an agent. A token decides where one is shown, else the proxy."""
        if self.is_open:
            return Verdict()
        by_proxy = self.proxies.judge(headers, peer, agent) if self.proxies is not None else None
        authorization = headers.get("authorization")
        if by_proxy is not None and (authorization is None or not self._is_from_proxy(peer)):
            return by_proxy
        token = bearer(authorization or "")
        if token is None:
            return Verdict(why=NEEDED, scope=self._scope(agent))
        known = self.tokens.judge(token, agent) if self.tokens is not None else None
        if known is not None:
            return known
        return self._by_issuer(token, agent)

    def knows(self, caller: str, agent: str) -> bool:
        """Whether a caller who was let in would be let in now, as far as can be said without what it showed."""
        if caller.startswith(BY_TOKEN):
            return self.tokens is not None and self.tokens.knows(caller, agent)
        if caller.startswith(BY_CERTIFICATE):
            return self.proxies is not None and self.proxies.knows(caller.removeprefix(BY_CERTIFICATE), agent)
        if not caller:
            return self.is_open
        issuer, _, subject = caller.partition(":")[2].partition(" ")
        known = self.issuers.get(issuer)
        return known is not None and not is_revoked(known.settings.revoked, {"sub": subject})

    def _by_issuer(self, token: str, agent: str) -> Verdict | Awaitable[Verdict]:
        if self.issuers and token.count(".") == 2:
            from extgate.enforce.callers.issuers import issuer_for  # needs PyJWT, which tokens of a file do not

            issuer = issuer_for(self.issuers, token)
            if issuer is not None:
                return issuer.judge(token, agent, self.resource(agent))
        return Verdict(why="this token is not known here", error="invalid_token", scope=self._scope(agent))

    def _is_from_proxy(self, peer: str) -> bool:
        return self.proxies is not None and is_within(peer, self.proxies.peers)

    # ------------------------------------------------------------------------------------------ what clients are told

    def resource(self, agent: str) -> str:
        """The address of an agent, which its tokens must be meant for (RFC 8707)."""
        return f"{self.url}/agents/{quote(agent, safe='')}/mcp"

    def metadata(self, agent: str) -> bytes:
        """An agent's protected-resource metadata (RFC 9728). The same for agents that there are not: it tells none."""
        scopes = sorted({scope for scopes in self._scopes(agent) for scope in scopes})
        found: dict[str, object] = {
            "resource": self.resource(agent),
            "authorization_servers": sorted(self.issuers),
            "bearer_methods_supported": ["header"],
        }
        return json.dumps(found | ({"scopes_supported": scopes} if scopes else {})).encode()

    def challenge(self, verdict: Verdict, agent: str) -> str:
        """The `WWW-Authenticate` header of a refusal (RFC 6750, RFC 9728)."""
        parts = []
        if self.issuers:
            parts.append(f'resource_metadata="{self.url}{WELL_KNOWN}/agents/{quote(agent, safe="")}/mcp"')
        if verdict.error:
            parts += [f'error="{verdict.error}"', f'error_description="{_quotable(verdict.why)}"']
        if verdict.scope:
            parts.append(f'scope="{_quotable(verdict.scope)}"')
        return "Bearer" + (" " + ", ".join(parts) if parts else "")

    def _scope(self, agent: str) -> str:
        """The scopes to ask for first: those of the first rule for the agent."""
        return " ".join(next(iter(self._scopes(agent)), ()))

    def _scopes(self, agent: str) -> list[tuple[str, ...]]:
        grants = [grant for issuer in self.issuers.values() for grant in issuer.settings.grants]
        return [grant.scopes for grant in grants if grant.scopes and grant.is_for(agent)]


def _quotable(text: str) -> str:
    """A text as it may stand between quotes in a header."""
    return "".join(char if char.isascii() and char.isprintable() and char not in '"\\' else "'" for char in text)
