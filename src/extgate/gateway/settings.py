"""What files say of the gateway: `gateway:` in `extgate.yaml` for the process, and in a profile for one agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from extgate.core.patterns import unclosed_bracket
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.enforce.mcp.options import Limits, Options
from extgate.errors import DialectError, DocumentError
from extgate.gateway.callers import KEYS as CALLERS
from extgate.gateway.callers import CallerSettings, read_callers
from extgate.gateway.limits import read_limits
from extgate.gateway.shared import SharedSettings, read_shared
from extgate.homes import CONFIG, Homes
from extgate.workspace import Agent

KEY = "gateway"
_CHOICES = {
    "prefix": ("always", "never", "on-clash"),
    "share": ("auto", "always", "never"),
    "unavailable": ("error", "empty"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The process: names that it may be addressed by, besides loopback's, who may call, and what replicas share."""

    options: Options = field(default_factory=Options)
    limits: Limits = field(default_factory=Limits)
    hosts: tuple[str, ...] = ()
    callers: CallerSettings = field(default_factory=CallerSettings)
    shared: SharedSettings | None = None


def read_gateway(homes: Homes) -> GatewaySettings:
    """What `extgate.yaml` says. Raises DialectError at the line of what has no meaning."""
    node = homes.node.get(KEY) if homes.node is not None else None
    if node is None:
        return GatewaySettings()
    where = str(homes.root / CONFIG)
    _check(node, where, ("hosts", "limits", "shared", *CALLERS, *_READERS))
    hosts, shared = node.get("hosts"), node.get("shared")
    return GatewaySettings(
        options=_options(node, Options(), where),
        limits=read_limits(node.get("limits")),
        hosts=_texts(hosts, where, "hosts") if hosts is not None else (),
        callers=read_callers(node, homes.root),
        shared=read_shared(shared, homes.root) if shared is not None else None,
    )


def options_of(agent: Agent, defaults: Options) -> Options:
    """What an agent's profile says of its gateway, over what holds for all. Raises DialectError."""
    if not agent.text or KEY not in agent.text:
        return defaults
    try:
        node = Document(path=agent.file, text=agent.text).parse().get(KEY)
    except DialectError:
        raise
    except DocumentError:  # the agent has no policy then, which says why
        return defaults
    if node is None:
        return defaults
    _check(node, agent.file, tuple(_READERS))
    return _options(node, defaults, agent.file)


def _check(node: Node, file: str, known: tuple[str, ...]) -> None:
    if node.kind != "map":
        raise _error(file, node, KEY, "a mapping")
    for key in node.items:
        if key not in known:
            message = f"{KEY}.{key}: no such key"
            fix = f"the keys here are {', '.join(known)}"
            raise DialectError(message, file=file, line=node.key_line(key), fix=fix)


def _options(node: Node, defaults: Options, file: str) -> Options:
    given: dict[str, Any] = {}
    for key, read in _READERS.items():
        value = node.get(key)
        if value is not None:
            given |= read(value, file, key)
    for key in ("aliases", "descriptions"):
        given[key] = {**getattr(defaults, key), **given.get(key, {})}
    # What all agents are denied stays denied; a profile adds to it.
    given["no_asks"] = (*defaults.no_asks, *given.get("no_asks", ()))
    return replace(defaults, **given)


def _choice(node: Node, file: str, key: str) -> Mapping[str, Any]:
    if node.scalar not in _CHOICES[key]:
        raise _error(file, node, f"gateway.{key}", f"one of {', '.join(_CHOICES[key])}")
    return {key: node.scalar}


def _pairs(node: Node, file: str, key: str) -> Mapping[str, Any]:
    pairs = {path: value.scalar for path, value in node.items.items()}
    if node.kind != "map" or not all(isinstance(value, str) and value for value in pairs.values()):
        raise _error(file, node, f"gateway.{key}", "a mapping of texts by `server/item`")
    return {key: pairs}


def _client(node: Node, file: str, key: str) -> Mapping[str, Any]:
    """`{disabled, allowed}` on what servers may ask of the client."""
    if node.kind != "map" or not set(node.items) <= {"disabled", "allowed"}:
        raise _error(file, node, "gateway.client", "a mapping with `disabled` and `allowed`")
    names = {"disabled": "no_asks", "allowed": "asks"}
    return {names[word]: _texts(entries, file, f"client.{word}") for word, entries in node.items.items()}


_READERS: dict[str, Callable[[Node, str, str], Mapping[str, Any]]] = {
    "prefix": _choice,
    "share": _choice,
    "unavailable": _choice,
    "aliases": _pairs,
    "descriptions": _pairs,
    "client": _client,
}


def _texts(node: Node, file: str, key: str) -> tuple[str, ...]:
    entries = [child.scalar for child in node] if node.kind == "list" else [node.scalar]
    if not all(isinstance(e, str) and e.strip() and not unclosed_bracket(e) for e in entries):
        raise _error(file, node, f"gateway.{key}", "a list of texts")
    return tuple(str(entry).strip() for entry in entries)


def _error(file: str, node: Node, key: str, expected: str) -> DialectError:
    return DialectError(f"{key}: expected {expected}, got {node.shown}", file=file, line=node.line)
