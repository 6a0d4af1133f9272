"""What `extgate.yaml` says of who may call: files of tokens, issuers, proxies; and the callers that come of it."""

from __future__ import annotations

import ipaddress
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from extgate.dialects.node import Node
from extgate.discover.reading import UnreadableError, read_bytes
from extgate.enforce.callers.addresses import sound_url
from extgate.enforce.callers.callers import Callers
from extgate.enforce.callers.grants import Grant, Simple
from extgate.enforce.callers.proxies import Network, Proxies
from extgate.enforce.callers.tokens import Tokens, digest_of
from extgate.errors import WorkspaceError
from extgate.gateway.reading import error, mapping, number, path, patterns, rows, text, texts

if TYPE_CHECKING:
    from extgate.enforce.callers.issuers import Issuer, IssuerSettings

MIN_TOKEN = 20
"""Shortest token that is taken, in characters."""
MAX_FILE = 4 * 1024 * 1024
KEYS = ("url", "tokens", "operators", "oauth", "proxy")
_ISSUER = ("issuer", "jwks", "audiences", "algorithms", "agents", "revoked", "leeway_s")
_HEADER = re.compile(r"[a-z0-9-]{1,100}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerSettings:
    """Who may call. url: of the gateway as its clients know it; empty: where it listens. tokens, operators: files;
    operators may see metrics and state."""

    url: str = ""
    tokens: Path | None = None
    operators: Path | None = None
    issuers: tuple[IssuerSettings, ...] = ()
    proxies: Proxies | None = None

    @property
    def is_open(self) -> bool:
        """Whether nobody has to prove anything, which is for loopback alone."""
        return self.tokens is None and not self.issuers and self.proxies is None


def read_callers(node: Node, root: Path) -> CallerSettings:
    """What a `gateway` mapping says of callers. Raises DialectError at the line of what has no meaning."""
    url = node.get("url")
    if url is not None:
        parts = sound_url(text(url, "gateway.url", "the gateway's address"))
        if parts is None or parts.query or parts.path not in ("", "/"):
            raise error(url, "gateway.url", "https://HOST, or http:// on this machine, without a path")
    proxy, oauth = node.get("proxy"), node.get("oauth")
    return CallerSettings(
        url=text(url, "gateway.url").rstrip("/"),
        tokens=path(node.get("tokens"), "gateway.tokens", root),
        operators=path(node.get("operators"), "gateway.operators", root),
        issuers=_issuers(oauth, url) if oauth is not None else (),
        proxies=_proxies(proxy) if proxy is not None else None,
    )


def _issuers(node: Node, url: Node | None) -> tuple[IssuerSettings, ...]:
    found = tuple(_issuer(row) for row in rows(node, "gateway.oauth"))
    if not found or len({one.issuer for one in found}) != len(found):
        raise error(node, "gateway.oauth", "issuers, each once")
    return found


def _issuer(node: Node) -> IssuerSettings:
    try:
        from extgate.enforce.callers.access_tokens import ALGORITHMS  # needs PyJWT
        from extgate.enforce.callers.issuers import IssuerSettings
    except ImportError:
        message, fix = "gateway.oauth needs the package `pyjwt`", "install extgate[oauth]"
        raise WorkspaceError(message, file=node.file, line=node.line, fix=fix) from None
    key = "gateway.oauth"
    mapping(node, key, _ISSUER)
    issuer, jwks = (text(node.get(name), f"{key}.{name}") for name in ("issuer", "jwks"))
    for name, url in (("issuer", issuer), ("jwks", jwks)):
        if sound_url(url) is None and (url or name == "issuer"):
            raise error(node.get(name) or node, f"{key}.{name}", "https://…, or http:// on this machine")
    algorithms = texts(node.get("algorithms"), f"{key}.algorithms") or ALGORITHMS
    if not set(algorithms) <= set(ALGORITHMS):
        raise error(node.items["algorithms"], f"{key}.algorithms", f"some of {', '.join(ALGORITHMS)}")
    grants, revoked = node.get("agents"), node.get("revoked")
    leeway_s = number(node.get("leeway_s"), f"{key}.leeway_s", least=-1.0)
    if leeway_s is not None and not 0 <= leeway_s <= 300:
        raise error(node.items["leeway_s"], f"{key}.leeway_s", "seconds from 0 to 300")
    return IssuerSettings(
        issuer=issuer,
        jwks=jwks,
        audiences=texts(node.get("audiences"), f"{key}.audiences"),
        algorithms=algorithms,
        grants=tuple(_grant(row) for row in rows(grants, f"{key}.agents")) if grants is not None else (),
        revoked=tuple(_claims(row, f"{key}.revoked") for row in rows(revoked, key)) if revoked is not None else (),
        leeway_s=30.0 if leeway_s is None else leeway_s,
    )


def _grant(node: Node) -> Grant:
    key = "gateway.oauth.agents"
    mapping(node, key, ("agents", "scopes", "claims"))
    agents, claims = patterns(node.get("agents"), f"{key}.agents"), node.get("claims")
    if not agents:
        raise error(node, key, "the `agents` that a token may be")
    scopes = texts(node.get("scopes"), f"{key}.scopes")
    return Grant(agents=agents, scopes=scopes, claims=_claims(claims, f"{key}.claims") if claims is not None else {})


def _claims(node: Node, key: str) -> dict[str, Simple]:
    """Claims and their values. A mapping of none would hold of every token."""
    found = {name: value.scalar for name, value in node.items.items()}
    if node.kind != "map" or not found or any(value is None for value in found.values()):
        raise error(node, key, "claims with a text, number or boolean each")
    return {name: value for name, value in found.items() if value is not None}


def _proxies(node: Node) -> Proxies:
    key = "gateway.proxy"
    mapping(node, key, ("peers", "header", "agents", "proof"))
    header, agents, proof = text(node.get("header"), f"{key}.header").lower(), node.get("agents"), node.get("proof")
    if not _HEADER.fullmatch(header) or header in ("authorization", "host", "origin", "cookie"):
        raise error(node.get("header") or node, f"{key}.header", "the name of the header that names the caller")
    if agents is None or agents.kind != "map":
        raise error(agents or node, f"{key}.agents", "agents by the caller's name")
    peers = texts(node.get("peers"), f"{key}.peers")
    if not peers:
        raise error(node, f"{key}.peers", "the addresses of the proxies")
    return Proxies(
        peers=tuple(network(peer, node.items["peers"], f"{key}.peers") for peer in peers),
        header=header,
        agents={name: patterns(row, f"{key}.agents") for name, row in agents.items.items()},
        proof=_proof(proof) if proof is not None else None,
    )


def network(written: str, node: Node, key: str) -> Network:
    """An address or a network of addresses. Raises DialectError."""
    try:
        return ipaddress.ip_network(written)
    except ValueError:
        raise error(node, key, "addresses such as 10.0.0.7 or 10.0.0.0/8") from None


def _proof(node: Node) -> tuple[str, str]:
    found = {name: value.scalar for name, value in node.items.items()}
    ((name, value),) = found.items() if len(found) == 1 else (("", None),)
    if not _HEADER.fullmatch(name.lower()) or not isinstance(value, str):
        raise error(node, "gateway.proxy.proof", "a header and the value that it must have")
    return name.lower(), value


# ---------------------------------------------------------------------------------------------- the callers


def open_callers(settings: CallerSettings, url: str, before: Callers | None = None) -> Callers:
    """The callers of these settings. url: where the gateway listens. before: whose issuers' keys are kept.

    Raises WorkspaceError for a file of tokens that cannot be read or that others can read.
    """
    issuers: dict[str, Issuer] = {}
    for one in settings.issuers:
        from extgate.enforce.callers.issuers import Issuer

        known = before.issuers.get(one.issuer) if before is not None else None
        issuers[one.issuer] = known if known is not None and known.settings == one else Issuer(one)
    tokens = Tokens(read_tokens(settings.tokens)) if settings.tokens is not None else None
    return Callers(url=settings.url or url, tokens=tokens, issuers=issuers, proxies=settings.proxies)


def open_operators(settings: CallerSettings) -> frozenset[bytes] | None:
    """The digests of the operators' tokens; None where nobody needs one. Where callers have to prove something and no
    file names operators, there are none."""
    if settings.operators is not None:
        return read_operators(settings.operators)
    return None if settings.is_open else frozenset()


def read_tokens(file: Path) -> Mapping[bytes, frozenset[str]]:
    """The agents that each token may be, by the token's digest.

    The file is JSON: agents' lists of tokens by agent id. Raises WorkspaceError when it cannot be read or others can.
    """
    data = _read_private(file)
    found: dict[bytes, frozenset[str]] = {}
    for agent, tokens in data.items() if isinstance(data, dict) else [("", None)]:
        for token in _checked(tokens, file, 'write {"AGENT": ["TOKEN"]}'):
            digest = digest_of(token)
            found[digest] = found.get(digest, frozenset()) | {agent}
    return found


def read_operators(file: Path) -> frozenset[bytes]:
    """The digests of the operators' tokens. The file is a JSON list. Raises WorkspaceError as `read_tokens` does."""
    return frozenset(digest_of(token) for token in _checked(_read_private(file), file, 'write ["TOKEN"]'))


def _read_private(file: Path) -> Any:
    try:
        data = json.loads(read_bytes(file, MAX_FILE))
        found = file.stat()
    except (UnreadableError, OSError, ValueError, RecursionError) as problem:
        raise WorkspaceError(f"cannot be read: {problem}", file=str(file)) from None
    # A secret that an orchestrator mounts is another user's, and readable through this process's group.
    bad = 0o077 if found.st_uid == os.geteuid() else 0o027
    if stat.S_IMODE(found.st_mode) & bad:
        raise WorkspaceError("can be read by other users", file=str(file), fix=f"chmod 600 {file}")
    return data


def _checked(tokens: object, file: Path, fix: str) -> list[str]:
    if isinstance(tokens, list) and all(isinstance(t, str) and len(t) >= MIN_TOKEN for t in tokens):
        return tokens
    message = f"expected lists of tokens of {MIN_TOKEN} characters or more, by agent"
    raise WorkspaceError(message, file=str(file), fix=fix)
