"""Tokens of issuers: what is believed, and every way to make one pass that must not."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import Awaitable, Mapping
from functools import cache
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from extgate.enforce.callers.addresses import may_lead_to, sound_url
from extgate.enforce.callers.fetch import FetchError
from extgate.enforce.callers.grants import Grant
from extgate.enforce.callers.issuers import RETRY_S, STALE_S, Issuer, IssuerSettings
from extgate.enforce.callers.verdict import Verdict

pytestmark = pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")  # the tests make weak ones on purpose

ISSUER, HERE, NOW = "https://id.example", "https://gate.example/agents/a/mcp", 1_800_000_000.0
GRANTS = (Grant(agents=("a",), scopes=("mcp",)), Grant(agents=("team-*",), claims={"groups": "ml", "ok": True}))
CLAIMS: dict[str, Any] = {"iss": ISSUER, "aud": HERE, "exp": NOW + 60, "sub": "ann", "scope": "openid mcp"}


@cache
def key(kind: str = "EC", kid: str | None = "one") -> Any:
    about: dict[str, str] = {"kid": kid} if kid else {}
    if kind == "RSA":
        return RSAKey.generate_key(2048, about)
    if kind == "weak":
        return RSAKey.generate_key(1024, about)
    if kind == "OKP":
        return OKPKey.generate_key("Ed25519", about)
    return ECKey.generate_key("P-384" if kind == "EC384" else "P-256", about)


def token(claims: Mapping[str, Any] | None = None, by: Any = None, **head: Any) -> str:
    by = by or key()
    said = {"alg": "ES256", "kid": "one", "typ": "at+jwt"} | head
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, {**CLAIMS, **(claims or {})}, by, algorithms=[said["alg"]])


def raw(head: Any, claims: Any = CLAIMS, signature: bytes = b"") -> str:
    def part(value: Any) -> str:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    return f"{part(head)}.{part(claims)}.{part(signature)}"


class World:
    """An issuer whose keys and clocks are the test's. asked: what was fetched."""

    def __init__(self, *keys: Any, **settings: Any) -> None:
        self.keys = [one.as_dict(private=False) for one in keys or (key(),)]
        self.asked: list[str] = []
        self.now, self.clock, self.is_down = NOW, 0.0, False
        given: dict[str, Any] = {"issuer": ISSUER, "grants": GRANTS, "jwks": f"{ISSUER}/keys"} | settings
        self.issuer = Issuer(
            IssuerSettings(**given), fetch=self.fetch, now=lambda: self.now, clock=lambda: self.clock
        )  # fmt: skip

    async def fetch(self, url: str) -> Mapping[str, Any]:
        self.asked.append(url)
        if self.is_down:
            raise FetchError("it cannot be reached")
        return {"keys": self.keys}

    def judge(self, token: str, agent: str = "a", resource: str = HERE) -> Verdict:
        async def work() -> Verdict:
            found = self.issuer.judge(token, agent, resource)
            return await found if isinstance(found, Awaitable) else found

        return asyncio.run(work())


def test_a_token_with_the_scope_of_a_rule_is_its_subject_s() -> None:
    verdict = World().judge(token())
    assert verdict
    assert verdict.caller == f"subject:{ISSUER} ann"


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("RSA", "RS256"), ("RSA", "PS512"), ("EC384", "ES384"), ("OKP", "EdDSA")]
)
def test_every_signature_with_a_public_key_is_taken(kind: str, algorithm: str) -> None:
    assert World(key(kind)).judge(token(by=key(kind), alg=algorithm))


@pytest.mark.parametrize(
    ("claims", "word"),
    [
        ({"aud": "https://gate.example/agents/b/mcp"}, "not meant"),
        ({"aud": ["https://else.example", HERE + "/"]}, "not meant"),
        ({"aud": {HERE: 1}}, "not meant"),
        ({"aud": None}, "not meant"),
        ({"iss": ISSUER + "/"}, "another issuer"),
        ({"exp": NOW - 31}, "expired"),
        ({"exp": None}, "no time"),
        ({"exp": str(NOW + 60)}, "no time"),
        ({"exp": True}, "no time"),
        ({"exp": 10**400}, "no time"),
        ({"nbf": NOW + 31}, "not hold yet"),
        ({"iat": NOW + 31}, "not hold yet"),
        ({"nbf": "soon"}, "no time"),
        ({"sub": ""}, "nobody"),
        ({"sub": 7}, "nobody"),
        ({"cnf": {"jkt": "x"}}, "bound to a key"),
        ({"scope": "openid"}, "does not let"),
        ({"scope": ["mcp"]}, "does not let"),
        ({"scope": "mcpx"}, "does not let"),
    ],
)
def test_a_signed_token_that_is_not_for_here_and_now_is_refused(claims: dict[str, Any], word: str) -> None:
    verdict = World().judge(token(claims))
    assert word in verdict.why
    assert verdict.status == (403 if word == "does not let" else 401)


def test_a_token_of_one_agent_is_none_of_another_s() -> None:
    assert World().judge(token(), "b", "https://gate.example/agents/b/mcp").status == 401
    wide = World(audiences=("https://gate.example",))
    assert wide.judge(token({"aud": "https://gate.example"}), "b").status == 403
    assert wide.judge(token({"aud": "https://gate.example"}), "a")


@pytest.mark.parametrize(
    ("claims", "may"),
    [
        ({"groups": ["x", "ml"], "ok": True}, True),
        ({"groups": "ml", "ok": True}, True),
        ({"groups": ["ml"], "ok": 1}, False),
        ({"groups": ["ml"], "ok": "true"}, False),
        ({"groups": "ml,x", "ok": True}, False),
        ({"ok": True}, False),
    ],
)
def test_a_rule_s_claims_must_all_be_held_and_of_the_same_type(claims: dict[str, Any], may: bool) -> None:
    assert bool(World().judge(token(claims), "team-one")) is may


def test_a_refusal_for_want_of_a_scope_says_which() -> None:
    verdict = World().judge(token({"scope": ""}))
    assert (verdict.error, verdict.scope) == ("insufficient_scope", "mcp")


def pem() -> bytes:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key("RSA").raw_value.public_key().public_bytes(serialization.Encoding.PEM, kind))


def signed_with(secret: bytes) -> str:
    unsigned = raw({"alg": "HS256", "kid": "one", "typ": "JWT"}).rpartition(".")[0]
    mac = hmac.new(secret, unsigned.encode(), hashlib.sha256).digest()
    return f"{unsigned}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


FORGED = {
    "none": lambda: raw({"alg": "none"}),
    "None": lambda: raw({"alg": "None", "kid": "one"}),
    "no algorithm": lambda: raw({"kid": "one"}),
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "another signature": lambda: token(by=key("EC", "other")),
    "a list of algorithms": lambda: raw({"alg": ["ES256"]}),
    "public key as a secret": lambda: signed_with(pem()),
    "shared secret": lambda: jwt.encode({"alg": "HS256", "kid": "one"}, CLAIMS, OctKey.import_key("s" * 32)),
    "algorithm of another family": lambda: token(alg="RS256", by=key("RSA")),
    "own key": lambda: token(jwk=key("EC", "other").as_dict(private=False), by=key("EC", "other")),
    "key elsewhere": lambda: token(jku="https://evil.example/keys", by=key("EC", "other")),
    "certificate elsewhere": lambda: token(x5u="https://evil.example/cert"),
    "kid as a path": lambda: token(kid="../../../../dev/null", by=key("EC", "other")),
    "kid as a query": lambda: token(kid="one' OR '1'='1", by=key("EC", "other")),
    "kid as a number": lambda: raw({"alg": "ES256", "kid": 1}),
    "kid too long": lambda: raw({"alg": "ES256", "kid": "k" * 257}),
    "critical entry": lambda: raw({"alg": "ES256", "kid": "one", "crit": ["exp"]}),
    "ID token's neighbour": lambda: token(typ="logout+jwt"),
    "a key twice in the head": lambda: raw(b'{"alg":"none","alg":"ES256","kid":"one"}'),
    "other alphabet": lambda: token().replace("-", "+").replace("_", "/") + "=",
    "not JSON": lambda: raw(b"\xff"),
    "deep": lambda: raw(b"[" * 5000),
    "a list": lambda: raw([]),
    "empty": lambda: "..",
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_what_no_issuer_signed_is_refused(name: str) -> None:
    world = World(key(), key("RSA", "rsa"))
    verdict = world.judge(FORGED[name]())
    assert (verdict.status, verdict.error) == (401, "invalid_token")
    assert all(url.startswith(ISSUER) for url in world.asked)


def test_claims_that_stand_twice_are_refused_though_they_are_signed() -> None:
    from joserfc import jws

    body = json.dumps(CLAIMS)[:-1] + ', "aud": "https://else.example"}'
    twice = jws.serialize_compact({"alg": "ES256", "kid": "one"}, body, key())
    assert "no token" in World().judge(twice).why


@pytest.mark.parametrize(
    "change",
    [{"use": "enc"}, {"key_ops": ["sign"]}, {"alg": "ES512"}, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": 1}, {"x": "!"}],
)
def test_a_key_that_is_for_something_else_checks_nothing(change: dict[str, Any]) -> None:
    world = World()
    world.keys = [world.keys[0] | change]
    assert not world.judge(token())


def test_a_weak_key_checks_nothing() -> None:
    assert World(key("weak")).judge(token(alg="RS256", by=key("weak"))).status == 503


def test_a_token_without_a_key_s_name_is_taken_only_where_one_key_can_be_meant() -> None:
    anonymous = token(kid=None)
    assert World(key()).judge(anonymous)
    assert World(key(), key("EC", "two")).judge(anonymous).status == 401


def test_a_new_key_is_fetched_when_a_token_names_it_and_the_old_one_no_longer_holds() -> None:
    world = World()
    old, new = token(), token(by=key("EC", "two"), kid="two")
    assert world.judge(old)
    world.keys = [key("EC", "two").as_dict(private=False)]
    assert world.judge(old)
    world.clock += RETRY_S
    assert world.judge(new)
    assert world.judge(old).status == 401


def test_key_ids_that_nobody_has_do_not_make_the_issuer_be_asked_again_and_again() -> None:
    world = World()
    assert world.judge(token())
    for number in range(50):
        assert world.judge(raw({"alg": "ES256", "kid": f"k{number}"})).status == 401
    assert len(world.asked) == 1
    world.clock += RETRY_S
    world.judge(raw({"alg": "ES256", "kid": "k"}))
    assert len(world.asked) == 2


def test_many_who_come_at_once_wait_for_one_fetch() -> None:
    async def work() -> None:
        world = World()
        judged = [world.issuer.judge(token(), "a", HERE) for _ in range(20)]
        verdicts = await asyncio.gather(*(found for found in judged if isinstance(found, Awaitable)))
        assert len(verdicts) == 20
        assert all(verdicts)
        assert len(world.asked) == 1

    asyncio.run(work())


def test_keys_that_cannot_be_fetched_again_hold_for_a_while_and_then_nobody_is_let_in() -> None:
    world = World()
    assert world.judge(token())
    world.is_down, world.clock = True, STALE_S
    assert world.judge(token())
    world.clock += RETRY_S
    assert world.judge(token()).status == 503
    world.is_down, world.clock = False, world.clock + RETRY_S
    assert world.judge(token())


def test_a_token_that_passed_once_expires_all_the_same_whichever_way_the_clock_jumps() -> None:
    world = World()
    once = token()
    assert world.judge(once)
    for jump, may in ((3600, False), (0, True), (89, True), (91, False), (-86_400, True)):
        world.now = NOW + jump
        assert bool(world.judge(once)) is may, jump
    world.now = NOW - 86_400
    assert "not hold yet" in world.judge(token({"iat": NOW})).why


def test_a_revoked_token_is_refused_though_all_else_holds() -> None:
    world = World(revoked=({"jti": "7"}, {"sub": "eve", "client_id": "app"}))
    assert world.judge(token({"jti": "7"})).why == "this token is revoked"
    assert world.judge(token({"sub": "eve", "client_id": "app"})).error == "invalid_token"
    assert world.judge(token({"sub": "eve"}))


@pytest.mark.parametrize(
    ("metadata", "may"),
    [
        ({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/k"}, True),
        ({"issuer": ISSUER, "jwks_uri": "https://keys.example/k"}, True),
        ({"issuer": ISSUER + "/", "jwks_uri": f"{ISSUER}/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "http://id.example/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "file:///etc/passwd"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://127.0.0.1/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://169.254.169.254/latest"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://[::1]/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://2130706433/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://0x7f.1/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://localhost./k"}, False),
        ({"issuer": ISSUER, "jwks_uri": "https://u:p@keys.example/k"}, False),
        ({"issuer": ISSUER, "jwks_uri": 7}, False),
        ({"jwks_uri": f"{ISSUER}/k"}, False),
    ],
)
def test_metadata_leads_only_where_an_issuer_may_send_the_gateway(metadata: dict[str, Any], may: bool) -> None:
    world = World(jwks="")
    keys = world.keys

    async def fetch(url: str) -> Mapping[str, Any]:
        world.asked.append(url)
        return {"keys": keys} if url.endswith("/k") else metadata

    world.issuer.keys._fetch = fetch
    assert bool(world.judge(token())) is may
    assert len(world.asked) == (2 if may else 1)


def test_a_private_network_s_issuer_may_name_its_own_address_and_no_other() -> None:
    near = sound_url("https://10.0.0.7/realm")
    assert near is not None
    assert may_lead_to(near, "https://10.0.0.7/keys")
    assert not may_lead_to(near, "https://10.0.0.8/keys")
    assert sound_url("http://id.example") is None
    assert sound_url("http://localhost:8080/realm") is not None
