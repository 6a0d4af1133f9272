"""OpenID Connect and OAuth issuers: their keys, fetched with bounds and kept, and the judgement of their tokens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from extgate.enforce.callers.access_tokens import (
    ALGORITHMS,
    Head,
    Key,
    TokenError,
    check_claims,
    expiry_of,
    issuer_of,
    read_head,
    read_key,
    verified,
)
from extgate.enforce.callers.addresses import may_lead_to
from extgate.enforce.callers.fetch import FetchError, fetch_json
from extgate.enforce.callers.grants import Claims, Grant, Simple, is_revoked, may_be
from extgate.enforce.callers.tokens import digest_of
from extgate.enforce.callers.verdict import Verdict

REFRESH_S = 600.0
"""Keys older than this are fetched again beside the calls that they still serve."""
STALE_S = 3600.0
"""Keys that could not be fetched again for so long are no longer believed."""
RETRY_S = 10.0
"""An issuer is not asked for its keys more often than this, whatever key ids tokens name."""
BY_ISSUER = "subject:"
"""How the names of callers begin for whom an issuer speaks."""
MAX_KEYS = 100
MAX_KNOWN = 4096
Fetch = Callable[[str], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerSettings:
    """One issuer. jwks: where its keys are; empty: where its metadata says. audiences: names of this gateway besides
    each agent's address. revoked: claims of tokens that are refused though they are valid."""

    issuer: str
    jwks: str = ""
    audiences: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ALGORITHMS
    grants: tuple[Grant, ...] = ()
    revoked: tuple[Mapping[str, Simple], ...] = field(default=(), hash=False)
    leeway_s: float = 30.0


class Keys:
    """An issuer's public keys. clock: seconds that only go forward."""

    def __init__(self, issuer: str, jwks: str, fetch: Fetch, clock: Callable[[], float] = time.monotonic) -> None:
        self.issuer, self.jwks = issuer, jwks
        self._fetch, self._clock = fetch, clock
        self._keys: tuple[Key, ...] = ()
        self._fetched_at: float | None = None
        self._asked_at: float | None = None
        self._fetching: asyncio.Task[None] | None = None
        self.why = "its keys have not been fetched"
        self.version = 0

    @property
    def is_fresh(self) -> bool:
        """Whether the keys are young enough to be believed; begins to fetch them when they are getting old."""
        if self._fetched_at is None:
            return False
        age_s = self._clock() - self._fetched_at
        if age_s > REFRESH_S and self._may_ask():
            self._begin()
        return age_s <= STALE_S

    def find(self, head: Head) -> Key | None:
        """The key that a token names, or the only one that can be meant where it names none."""
        found = [key for key in self._keys if key.suits(head.algorithm) and head.kid in (key.kid, None)]
        return found[0] if len(found) == 1 else None

    async def refresh(self) -> None:
        """Fetches the keys, unless that was done just now; many who ask at once wait for the same fetch."""
        if self._fetching is None and self._may_ask():
            self._begin()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    def _may_ask(self) -> bool:
        is_due = self._asked_at is None or self._clock() - self._asked_at >= RETRY_S
        return is_due and self._fetching is None

    def _begin(self) -> None:
        self._asked_at = self._clock()
        self._fetching = asyncio.ensure_future(self._load())
        self._fetching.add_done_callback(self._loaded)

    def _loaded(self, task: asyncio.Task[None]) -> None:
        self._fetching = None

    async def _load(self) -> None:
        try:
            document = await self._fetch(self.jwks or await self._discover())
        except FetchError as error:
            self.why = str(error)
            return
        rows = document.get("keys")
        found = [read_key(row) for row in rows[:MAX_KEYS] if isinstance(row, dict)] if isinstance(rows, list) else []
        keys = tuple(key for key in found if key is not None)
        if not keys:
            self.why = "it has no key that this gateway takes"
            return
        self._keys, self._fetched_at, self.why = keys, self._clock(), ""
        self.version += 1

    async def _discover(self) -> str:
        """Where the keys are, by the issuer's metadata: OpenID Connect's place first, then RFC 8414's."""
        parts = urlsplit(self.issuer)
        base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (f"{base}{path}/.well-known/openid-configuration",
                  f"{base}/.well-known/oauth-authorization-server{path}")  # fmt: skip
        why = ""
        for place in places:
            try:
                found = await self._fetch(place)
            except FetchError as error:
                why = why or str(error)
                continue
            if found.get("issuer") != self.issuer:
                raise FetchError("its metadata names another issuer")
            url = found.get("jwks_uri")
            if not isinstance(url, str) or not may_lead_to(parts, url):
                raise FetchError("its metadata names no address of keys that may be asked")
            return url
        raise FetchError(why)


class Issuer:
    """One issuer and its tokens. now: the wall clock, in seconds; tokens' times are on it."""

    def __init__(
        self,
        settings: IssuerSettings,
        *,
        fetch: Fetch = fetch_json,
        now: Callable[[], float] = time.time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings, self._now = settings, now
        self.keys = Keys(settings.issuer, settings.jwks, fetch, clock)
        self._known: dict[bytes, Claims] = {}
        self._known_version = 0

    def judge(self, token: str, agent: str, resource: str) -> Verdict | Awaitable[Verdict]:
        """What a token gives for an agent, whose address is `resource`; later when keys have to be fetched."""
        try:
            head = read_head(token, self.settings.algorithms)
        except TokenError as error:
            return _invalid(error)
        if not self.keys.is_fresh or self.keys.find(head) is None:
            return self._later(token, head, agent, resource)
        return self._judge(token, head, agent, resource)

    async def _later(self, token: str, head: Head, agent: str, resource: str) -> Verdict:
        await self.keys.refresh()
        if not self.keys.is_fresh:
            return Verdict(why=f"the issuer of this token cannot be asked: {self.keys.why}", status=503)
        return self._judge(token, head, agent, resource)

    def _judge(self, token: str, head: Head, agent: str, resource: str) -> Verdict:
        try:
            claims = self._claims(token, head)
            audiences = frozenset((resource, *self.settings.audiences))
            own = self.settings
            check_claims(claims, issuer=own.issuer, audiences=audiences, now=self._now(), leeway_s=own.leeway_s)
        except TokenError as error:
            return _invalid(error)
        if is_revoked(self.settings.revoked, claims):
            return Verdict(why="this token is revoked", error="invalid_token")
        may, scope = may_be(agent, self.settings.grants, claims)
        if not may:
            why = "this token does not let its bearer be this agent"
            return Verdict(why=why, status=403, error="insufficient_scope", scope=scope)
        who = claims.get("sub", claims.get("client_id"))
        until = expiry_of(claims) + own.leeway_s
        return Verdict(caller=f"{BY_ISSUER}{self.settings.issuer} {who}", until=until)

    def _claims(self, token: str, head: Head) -> Claims:
        """The claims of a token whose signature holds; remembered as long as the keys are the same."""
        if self._known_version != self.keys.version or len(self._known) >= MAX_KNOWN:
            self._known, self._known_version = {}, self.keys.version
        digest = digest_of(token)
        claims = self._known.get(digest)
        if claims is None:
            key = self.keys.find(head)
            if key is None:
                raise TokenError("no key of its issuer is the one that it names")
            claims = self._known[digest] = verified(token, head, key)
        return claims


def issuer_for(issuers: Mapping[str, Issuer], token: str) -> Issuer | None:
    """The issuer that a token names, when it is one of these."""
    try:
        return issuers.get(issuer_of(token))
    except TokenError:
        return None


def _invalid(error: TokenError) -> Verdict:
    return Verdict(why=f"this token is refused: {error}", error="invalid_token")
