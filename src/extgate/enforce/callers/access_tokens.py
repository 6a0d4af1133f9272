"""JWT access tokens: how one is read, and what must hold of it before anything that it says is believed.

The signature is PyJWT's work. Everything else is decided here, on an injected clock, and fails closed: algorithms come
from the settings and the key, never from the token alone; a token that points to its own key, is bound to a key that is
not shown here, or has a claim twice, is refused. Source: RFC 8725, RFC 9068 (seen 2026-11-30).
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.exceptions import PyJWTError

from extgate.enforce.callers.grants import Claims

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""All are signatures with a public key; `none` and shared secrets cannot be asked for."""
FAMILY = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
CURVE = {"ES256": ("P-256",), "ES384": ("P-384",), "ES512": ("P-521",), "EdDSA": ("Ed25519", "Ed448")}
MIN_RSA_BITS = 2048
_TYPES = ("at+jwt", "application/at+jwt", "jwt")
_OWN_KEY = ("jku", "jwk", "x5u", "x5c", "crit", "enc", "zip", "b64")


class TokenError(Exception):
    """Why a token is not believed, in words that hold nothing of it."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a token says of its signature; none of it is believed."""

    algorithm: str
    kid: str | None


@dataclass(frozen=True, slots=True)
class Key:
    """One public key of an issuer. algorithm: the only one that it is for; empty: any of its family."""

    kid: str | None
    family: str
    curve: str
    algorithm: str
    public: Any

    def suits(self, algorithm: str) -> bool:
        """Whether a signature of that algorithm can be this key's."""
        is_family = FAMILY.get(algorithm[:2]) == self.family
        is_curve = algorithm not in CURVE or self.curve in CURVE[algorithm]
        return is_family and is_curve and self.algorithm in ("", algorithm)


def is_jwt(token: str) -> bool:
    return token.count(".") == 2


def read_head(token: str, algorithms: tuple[str, ...]) -> Head:
    """The head of a token. Raises TokenError."""
    head = _object(token.partition(".")[0])
    algorithm, kid, kind = head.get("alg"), head.get("kid"), head.get("typ", "JWT")
    if not isinstance(algorithm, str) or algorithm not in algorithms or algorithm not in ALGORITHMS:
        raise TokenError("its algorithm is none that this gateway takes")
    if any(name in head for name in _OWN_KEY):
        raise TokenError("its head has an entry that this gateway does not follow")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise TokenError("it is no access token")
    if kid is not None and (not isinstance(kid, str) or not 0 < len(kid) <= 256):
        raise TokenError("its `kid` is no name of a key")
    return Head(algorithm, kid)


def issuer_of(token: str) -> str:
    """The issuer that a token names, to look up whose keys to try; nothing more. Raises TokenError."""
    issuer = _object(token.split(".")[1]).get("iss")
    if not isinstance(issuer, str):
        raise TokenError("it names no issuer")
    return issuer


def read_key(jwk: Mapping[str, object]) -> Key | None:
    """A key of a JWK set; None for one that is not for checking signatures, or too weak."""
    family, use, operations = jwk.get("kty"), jwk.get("use", "sig"), jwk.get("key_ops", ["verify"])
    kid, algorithm, curve = jwk.get("kid"), jwk.get("alg", ""), jwk.get("crv", "")
    texts = (family, use, kid or "", algorithm, curve)
    if not all(isinstance(text, str) for text in texts) or family not in FAMILY.values() or use != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    try:
        public = jwt.PyJWK.from_dict({k: v for k, v in jwk.items() if k != "d"}).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    if family == "RSA" and getattr(public, "key_size", 0) < MIN_RSA_BITS:
        return None
    return Key(kid if isinstance(kid, str) else None, str(family), str(curve), str(algorithm), public)


def verified(token: str, head: Head, key: Key) -> Claims:
    """The claims of a token that this key has signed. Raises TokenError."""
    if not key.suits(head.algorithm):
        raise TokenError("its algorithm is not its key's")
    try:
        jwt.PyJWS().decode(token, key.public, algorithms=[head.algorithm])
    except (PyJWTError, ValueError, TypeError):
        raise TokenError("its signature is not its issuer's") from None
    return _object(token.split(".")[1])


def check_claims(claims: Claims, *, issuer: str, audiences: frozenset[str], now: float, leeway_s: float) -> None:
    """Whether a signed token is for here and now. Raises TokenError."""
    if claims.get("iss") != issuer:
        raise TokenError("it is another issuer's")
    audience = claims.get("aud")
    named = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(name, str) and name in audiences for name in named):
        raise TokenError("it is not meant for this resource")
    if _time(claims, "exp") + leeway_s <= now:
        raise TokenError("it has expired")
    if max(_time(claims, "nbf", -math.inf), _time(claims, "iat", -math.inf)) - leeway_s > now:
        raise TokenError("it does not hold yet")
    if "cnf" in claims:
        raise TokenError("it is bound to a key, which cannot be shown here")
    subject = claims.get("sub", claims.get("client_id"))
    if not isinstance(subject, str) or not subject:
        raise TokenError("it names nobody")


def expiry_of(claims: Claims) -> float:
    """When a checked token ends, on the wall clock."""
    return _time(claims, "exp")


def _time(claims: Claims, name: str, absent: float | None = None) -> float:
    if name not in claims and absent is not None:
        return absent
    value = claims.get(name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not -1e15 < value < 1e15:
        raise TokenError(f"its `{name}` is no time")
    return float(value)


def _object(part: str) -> dict[str, Any]:
    """One part of a token as its object, every key once. Raises TokenError."""
    try:
        data = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        if base64.urlsafe_b64encode(data).rstrip(b"=").decode() != part:
            raise TokenError("it is not written as a token is")
        found = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, binascii.Error, RecursionError):
        raise TokenError("it is no token") from None
    if not isinstance(found, dict):
        raise TokenError("it is no token")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(name)
