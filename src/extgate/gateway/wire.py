"""What files say of the wire: `wire:` in `extgate.yaml` for all agents, and in a profile for one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from extgate.core.extension import Extension
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.discover.builtins import builtin_tools, runtimes
from extgate.enforce.wire.clients import CLIENTS, Client
from extgate.enforce.wire.front import Upstream, Wire, WireSettings
from extgate.enforce.wire.provider import Options
from extgate.enforce.wire.providers import PROVIDERS
from extgate.enforce.wire.road import NO_PROXY, Road
from extgate.errors import DialectError, DocumentError
from extgate.gateway.reading import error, mapping, text, texts
from extgate.gateway.running import Gateway
from extgate.homes import Homes
from extgate.host import Host
from extgate.workspace import Agent, Workspace

KEY = "wire"
_KEYS = ("unknown", "client", "tools", "gateway", "proxy", "ca", *PROVIDERS)
_UPSTREAM = ("url", "key_env", "key_file")
_OPTIONS = {"refuse": Options(unknown="refuse"), "pass": Options(unknown="pass")}
MAX_KEY = 16 * 1024


def read_wire(homes: Homes, environ: Mapping[str, str] = os.environ) -> WireSettings:
    """What `extgate.yaml` says. Raises DialectError at the line of what has no meaning."""
    node = homes.node.get(KEY) if homes.node is not None else None
    made = WireSettings(clients=_clients(), usual=homes.runtime)
    return made if node is None else _read(node, made, homes.root, environ)


def wire_of(agent: Agent, defaults: WireSettings, root: Path, environ: Mapping[str, str] = os.environ) -> WireSettings:
    """What an agent's profile says of its wire, over what holds for all. Raises DialectError."""
    if not agent.text or KEY not in agent.text:
        return defaults
    try:
        node = Document(path=agent.file, text=agent.text).parse().get(KEY)
    except DialectError:
        raise
    except DocumentError:  # the agent has no policy then, which says why
        return defaults
    return defaults if node is None else _read(node, defaults, root, environ)


def _read(node: Node, defaults: WireSettings, root: Path, environ: Mapping[str, str]) -> WireSettings:
    mapping(node, KEY, _KEYS)
    unknown, client = text(node.get("unknown"), "wire.unknown"), text(node.get("client"), "wire.client")
    if unknown and unknown not in _OPTIONS:
        raise error(cast(Node, node.get("unknown")), "wire.unknown", "`refuse` or `pass`")
    if client and client not in CLIENTS:
        raise error(cast(Node, node.get("client")), "wire.client", f"one of {', '.join(CLIENTS)}")
    upstreams = {name: _upstream(found, name, root, environ) for name in PROVIDERS if (found := node.get(name))}
    return replace(
        defaults,
        options=_OPTIONS[unknown] if unknown else defaults.options,
        client=client or defaults.client,
        clients=_with_tools(defaults.clients, texts(node.get("tools"), "wire.tools")),
        upstreams={**defaults.upstreams, **upstreams},
        gateway=text(node.get("gateway"), "wire.gateway") or defaults.gateway,
        road=_road(node, defaults.road, root),
    )


def _no_address(node: Node, key: str, expected: str) -> DialectError:
    """The error of an address; what may hold a password is not repeated."""
    if "@" not in str(node.shown):
        return error(node, key, expected)
    return DialectError(f"{key}: expected {expected}, got an address with credentials", file=node.file, line=node.line)


def _road(node: Node, defaults: Road, root: Path) -> Road:
    proxy, ca = (text(node.get(key), f"wire.{key}") for key in ("proxy", "ca"))
    if proxy and proxy != NO_PROXY:
        parts = urlsplit(proxy)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.path.strip("/"):
            wanted = "`none`, or http://HOST:PORT; credentials belong into HTTPS_PROXY"
            raise _no_address(cast(Node, node.get("proxy")), "wire.proxy", wanted)
    file = str(root / Path(ca).expanduser()) if ca else defaults.ca
    return Road(proxy=proxy or defaults.proxy, ca=file)


def _upstream(node: Node, name: str, root: Path, environ: Mapping[str, str]) -> Upstream:
    where = f"wire.{name}"
    mapping(node, where, _UPSTREAM)
    url, env, file = (text(node.get(key), f"{where}.{key}") for key in _UPSTREAM)
    parts = urlsplit(url)
    if url and (parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query):
        raise _no_address(
            cast(Node, node.get("url")), f"{where}.url", "an address that begins with https:// or http://"
        )
    if env and file:
        raise error(node, where, "one of `key_env` and `key_file`")
    key: Callable[[], str] | None = partial(_from_env, environ, env) if env else None
    key = partial(_from_file, root / Path(file).expanduser()) if file else key
    return Upstream(url=url.rstrip("/"), key=key)


def _from_env(environ: Mapping[str, str], name: str) -> str:
    return _sound(environ.get(name, ""))


def _from_file(path: Path) -> str:
    with path.open(encoding="ascii") as file:
        return _sound(file.read(MAX_KEY).strip())


def _sound(key: str) -> str:
    if not key or not key.isascii() or not key.isprintable():
        raise ValueError("no key")
    return key


@cache
def _clients() -> Mapping[str, Client]:
    """The programs with the tools that they bring by themselves."""
    known = runtimes()
    return {name: replace(c, builtins=_named(name)) if name in known else c for name, c in CLIENTS.items()}


def _named(runtime: str) -> Mapping[str, Extension]:
    tools = builtin_tools(runtime)
    aliases = {str(alias): tool for tool in tools for alias in tool.facts.get("aliases", ())}
    return {**aliases, **{tool.name: tool for tool in tools}}


def _with_tools(clients: Mapping[str, Client], names: tuple[str, ...]) -> Mapping[str, Client]:
    """The programs with further tools of their own, which come from no server."""
    if not names:
        return clients
    own = {name: Extension(kind="tool", name=name, source="native") for name in names}
    return {name: replace(client, builtins={**own, **client.builtins}) for name, client in clients.items()}


def open_wire(
    gateway: Gateway,
    is_open: Callable[[], bool],
    change: Callable[[WireSettings], WireSettings] = lambda settings: settings,
) -> Wire:
    """The wire of a gateway's agents. is_open: whether nobody has to prove who calls. change: of what files say.

    Raises DialectError.
    """
    book = WireBook(gateway.host, gateway.say)
    limit = gateway.settings.limits.message
    return Wire(gateway.hub.doors, lambda agent: change(book.of(agent)), is_open=is_open, limit=limit)


class WireBook:
    """Every agent's wire as the files say it now. The last good settings stay in force; where there never were any, the
    agent has no wire."""

    def __init__(self, host: Host, say: Callable[[str], None]) -> None:
        self._host, self._say = host, say
        self._defaults = read_wire(host.homes)
        self._workspace: Workspace | None = None
        self._agents: dict[str, Agent] = {}
        self._good: dict[str, WireSettings] = {}
        self._read: dict[str, WireSettings | DialectError] = {}

    def of(self, agent: str) -> WireSettings:
        """One agent's. Raises DialectError when there are none."""
        if self._workspace is not self._host.workspace:
            self._reload(self._host.workspace)
        found = self._read.get(agent)
        if found is None:
            found = self._read[agent] = self._read_agent(agent)
        if isinstance(found, DialectError):
            raise found
        return found

    def _reload(self, workspace: Workspace) -> None:
        self._workspace, self._read = workspace, {}
        self._agents = {agent.id: agent for agent in workspace.agents}
        try:
            self._defaults = read_wire(self._host.homes)
        except DialectError as problem:
            self._say(str(problem))

    def _read_agent(self, name: str) -> WireSettings | DialectError:
        agent = self._agents.get(name)
        try:
            self._good[name] = wire_of(agent, self._defaults, self._host.homes.root) if agent else self._defaults
        except DialectError as problem:
            self._say(str(problem))
            return self._good.get(name, problem)
        return self._good[name]
