"""MCP servers as files ask for them: `.mcp.json` and `mcp.json` read into specs; nothing is started here.

Form: `{"mcpServers": {NAME: {command, args, env, cwd} | {url, headers}}}` as in Claude Code's docs "MCP" (seen
2026-11-30), with `type` or `transport`, `disabled` or `enabled`, and the `include` / `exclude` that msAgent reads.
OpenProgram's `{"servers": {NAME: {"command": ["npx", ...]}}}` (f27be0ee2) is read as well.
`${NAME}`, `${env:NAME}` and `${NAME:-default}` are filled in from the environment; one not set fails its server.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from extgate.core.extension import Finding
from extgate.core.names import refusal
from extgate.core.patterns import nfc
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.discover.codes import finding
from extgate.discover.reading import UnreadableError, one_line, read_bytes
from extgate.discover.references import NAME, VARIABLE, NoValueError, is_secret, secret
from extgate.errors import DocumentError

Transport = Literal["stdio", "http", "sse"]

MAX_BYTES = 1024 * 1024

_TRANSPORTS: dict[str, Transport] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamablehttp": "http",
    "sse": "sse",
}
_INCLUDES, _EXCLUDES = ("include", "includeTools", "enabledTools"), ("exclude", "excludeTools", "disabledTools")
_KNOWN = frozenset({"command", "args", "env", "cwd", "url", "headers", "type", "transport", "disabled", "enabled"})
_SILENT = frozenset({"description", "title", "name", "timeout", "timeout_seconds"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """One server as a file asks for it, with variables filled in.

    env, headers: only its own. cwd: where a command starts, absolute; empty: where extgate runs. include: None when
    the file has no such list.
    error: why it cannot be started. shown: its command or URL as written, for a question of trust.
    written: its entry's identity as written. secrets: texts that messages must not show.
    """

    name: str
    transport: Transport = "stdio"
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    cwd: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] = ()
    is_disabled: bool = False
    error: str | None = None
    file: str = ""
    line: int | None = None
    source: str = "project"
    shown: str = ""
    written: str = field(default="", repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """64 hex digits over all that decides what runs or is called.

        Environment and headers count as written, so that a new token in `${TOKEN}` is no new server and no digest of a
        secret is kept; command, arguments, folder and URL count filled in as well.
        """
        own = self.written or canonical({"env": dict(self.env), "headers": dict(self.headers)})
        parts = [self.name, self.source, self.transport, self.command, list(self.args), self.cwd, self.url, own]
        return hashlib.sha256(canonical(parts).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """JSON text that is the same for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def load_servers(
    path: Path, directory: Path, *, environ: Mapping[str, str], source: str = "project"
) -> tuple[tuple[ServerSpec, ...], tuple[Finding, ...]]:
    """The servers of one file; none, and an error, when it cannot be read; none when it is not there."""
    try:
        document = Document.of_bytes(str(path), read_bytes(path, MAX_BYTES))
    except UnreadableError as error:
        found = () if error.cause == "missing" else (finding("EG301", str(error), file=path),)
        return (), found
    except DocumentError as error:
        return (), (finding("EG301", error.message, file=path, line=error.line, fix=error.fix),)
    return read_servers(document.text, str(path), directory=directory, environ=environ, source=source)


def read_servers(
    text: str, path: str, *, directory: Path, environ: Mapping[str, str], source: str = "project"
) -> tuple[tuple[ServerSpec, ...], tuple[Finding, ...]]:
    """The servers of a file's text. directory: where their commands start and relative `cwd`s begin."""
    try:
        root = Document(path=path, text=text).parse("json" if path.endswith("json") else None)
    except DocumentError as error:
        return (), (finding("EG301", error.message, file=path, line=error.line, fix=error.fix),)
    servers = root.get("mcpServers") or root.get("servers") or (root if _is_bare(root) else None)
    if root.kind == "map" and not root.items:
        return (), ()
    if servers is None or servers.kind != "map":
        got = root.shown if root.kind != "map" else servers.shown if servers else "no such key"
        message = f"`mcpServers`: expected a mapping of servers by name, got {got}"
        return (), (finding("EG301", message, file=path, line=servers.line if servers else 1),)
    return server_specs(servers, directory=directory, environ=environ, source=source)


def _is_bare(root: Node) -> bool:
    """Whether the file is the mapping of servers itself, as plugins may have it."""
    return bool(root.items) and all(entry.get("command") or entry.get("url") for entry in root.items.values())


def server_specs(
    servers: Node, *, directory: Path, environ: Mapping[str, str], source: str = "project"
) -> tuple[tuple[ServerSpec, ...], tuple[Finding, ...]]:
    """The servers of a `mcpServers` mapping."""
    specs: list[ServerSpec] = []
    findings: list[Finding] = []
    for name, entry in servers.items.items():
        line = servers.key_line(name)
        if (why := refusal(name)) is not None:
            findings.append(finding("EG306", f"the server `{name}` cannot be used: {why}", file=entry.file, line=line))
            continue
        reader = _Entry(name, entry, line, environ)
        specs.append(reader.spec(directory, source))
        findings += reader.findings
    return tuple(specs), tuple(findings)


def merge_servers(*groups: Iterable[ServerSpec]) -> tuple[tuple[ServerSpec, ...], tuple[Finding, ...]]:
    """The servers of all groups; of two with one name (in NFC) the first stays and the second is an error."""
    kept: dict[str, ServerSpec] = {}
    findings: list[Finding] = []
    for spec in (spec for group in groups for spec in group):
        first = kept.setdefault(nfc(spec.name), spec)
        if first is not spec:
            message = f"the server `{spec.name}` ({spec.source}) has the name of one in {first.file} ({first.source})"
            findings.append(finding("EG305", message, file=spec.file or None, line=spec.line))
    return tuple(kept.values()), tuple(findings)


class _Fault(Exception):
    """Why one entry cannot be used."""

    def __init__(self, code: str, message: str, line: int, fix: str = "") -> None:
        super().__init__(message)
        self.code, self.line, self.fix = code, line, fix


class _Entry:
    """Reads one server's entry; what is wrong with it fails this server alone."""

    def __init__(self, name: str, node: Node, line: int, environ: Mapping[str, str]) -> None:
        self.name, self.node, self.line, self.environ = name, node, line, environ
        self.findings: list[Finding] = []
        self.secrets: set[str] = set()
        self.read: list[str] = []

    def spec(self, directory: Path, source: str) -> ServerSpec:
        blank = ServerSpec(name=self.name, file=self.node.file, line=self.line, source=source)
        try:
            return self._read(directory, source)
        except _Fault as fault:
            message = f"the server `{self.name}`: {fault}"
            self.findings.append(finding(fault.code, message, file=self.node.file, line=fault.line, fix=fault.fix))
            return _with(blank, error=one_line(str(fault)), is_disabled=self._is_off())

    def _read(self, directory: Path, source: str) -> ServerSpec:
        if self.node.kind != "map":
            raise self._fault(self.node, "a mapping")
        transport = self._transport()
        is_local = transport == "stdio"
        env, headers = self._texts("env"), self._texts("headers")
        self._check_pairs(env, headers)
        given = {key: self._fill(text, directory) for key, text in (env if is_local else headers).items()}
        self._check_pairs(*((given, {}) if is_local else ({}, given)))
        command, *args = self._command() if is_local else [""]
        cwd = self._fill(self._text("cwd"))
        keys = ("command", "args", "env", "cwd") if is_local else ("url", "headers")
        written = {key: node.value for key in keys if (node := self.node.get(key)) is not None}
        self._note_unused(is_local)
        return ServerSpec(
            name=self.name,
            transport=transport,
            command=self._fill(command),
            args=tuple(map(self._fill, args)),
            env=given if is_local else {},
            cwd=str(directory.absolute() / cwd) if is_local else "",
            url="" if is_local else self._url(),
            headers={} if is_local else given,
            include=self._first_list(_INCLUDES),
            exclude=self._first_list(_EXCLUDES) or (),
            is_disabled=self._is_off(),
            file=self.node.file,
            line=self.line,
            source=source,
            shown=(shlex.join([command, *args]) if is_local else self._text("url")) + self._shown_secrets(),
            written=canonical(written),
            secrets=tuple(sorted(self.secrets | {*env.values(), *headers.values()})),
        )

    def _command(self) -> tuple[str, ...]:
        """The command with its arguments; OpenProgram has all of them in one list."""
        node = self.node.items["command"]
        if node.kind != "list":
            return (self._text("command"), *(self._list("args") or ()))
        words = (*(self._list("command") or ()), *(self._list("args") or ()))
        if not node.children or not words[0]:
            raise self._fault(node, "`command` to be a text, or a list that starts with one")
        return words

    def _transport(self) -> Transport:
        """From `type` or `transport`; else a command is stdio, a URL ending in `/sse` is SSE, any other is HTTP."""
        has_command, has_url = self.node.get("command") is not None, self.node.get("url") is not None
        if has_command == has_url:
            raise _Fault("EG302", f"expected `command` or `url`, got {'both' if has_url else 'neither'}", self.line)
        said = self.node.get("type") or self.node.get("transport")
        if said is None:
            path = self._text("url").partition("?")[0].rstrip("/")
            return "stdio" if has_command else "sse" if path.endswith("/sse") else "http"
        transport = _TRANSPORTS.get(str(said.scalar).lower())
        if transport is None:
            raise self._fault(said, "a transport: stdio, http or sse")
        if (transport == "stdio") != has_command:
            raise self._fault(said, "a transport that goes with " + ("`command`" if has_command else "`url`"))
        return transport

    def _url(self) -> str:
        url = self._fill(self._text("url"))
        try:
            parts = urlsplit(url)
            is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_sound = False
        if not is_sound or any(char.isspace() or not char.isprintable() for char in url):
            raise self._fault(self.node.items["url"], "an address that starts with http:// or https://")
        return url

    def _is_off(self) -> bool:
        """Whether `disabled` or `enabled` turns it off; what is neither true nor false turns it off as well."""
        off = [
            self.node.items[k].scalar is not v
            for k, v in (("disabled", False), ("enabled", True))
            if k in self.node.items
        ]
        return any(off)

    def _text(self, key: str) -> str:
        node = self.node.get(key)
        if node is None:
            return ""
        if not isinstance(node.scalar, str) or not node.scalar or "\0" in node.scalar:
            raise self._fault(node, f"`{key}` to be a text")
        return node.scalar

    def _list(self, key: str) -> tuple[str, ...] | None:
        node = self.node.get(key)
        if node is None:
            return None
        entries = [child.scalar for child in node]
        if node.kind != "list" or not all(isinstance(entry, str) and "\0" not in entry for entry in entries):
            raise self._fault(node, f"`{key}` to be a list of texts")
        return tuple(map(str, entries))

    def _first_list(self, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        found = [entries for key in keys if (entries := self._list(key)) is not None]
        if len(found) > 1:
            raise _Fault("EG302", f"only one of {', '.join(f'`{key}`' for key in keys)} may stand", self.line)
        return found[0] if found else None

    def _texts(self, key: str) -> dict[str, str]:
        """A mapping of texts; whole numbers and booleans are taken as they are spelled in JSON."""
        node = self.node.get(key)
        if node is None:
            return {}
        values = {name: child.scalar for name, child in node.items.items()}
        if node.kind != "map" or any(value is None for value in values.values()):
            raise self._fault(node, f"`{key}` to be a mapping of texts")
        return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items()}

    def _check_pairs(self, env: Mapping[str, str], headers: Mapping[str, str]) -> None:
        for key, pairs, bad in (("env", env, "=\0"), ("headers", headers, ": \r\n\0")):
            for name, value in pairs.items():
                if not name or any(char in name for char in bad) or any(char in value for char in bad.strip("=: ")):
                    raise _Fault(
                        "EG302", f"`{key}` holds a name or value that cannot be sent", self.node.items[key].line
                    )

    def _fill(self, text: str, directory: Path | None = None) -> str:
        """The text with its variables filled in, and its secrets where a directory says that they may stand there."""

        def value(match: re.Match[str]) -> str:
            return self._secret(match[1], directory) if is_secret(match[1]) else self._variable(match)

        return VARIABLE.sub(value, text)

    def _secret(self, name: str, directory: Path | None) -> str:
        if directory is None:  # commands and addresses are shown, and stand in lists of processes
            fix = "put it into `env` or `headers`"
            raise _Fault("EG303", f"`${{{name}}}` cannot stand here", self.line, fix)
        try:
            found = secret(name, directory)
        except NoValueError as error:
            raise _Fault("EG303", str(error), self.line, error.fix) from None
        self.secrets.add(found)
        self.read.append(name)
        return found

    def _shown_secrets(self) -> str:
        """What is read besides, for a question of trust."""
        return f" (is given {', '.join(dict.fromkeys(self.read))})" if self.read else ""

    def _variable(self, match: re.Match[str]) -> str:
        name, has_default, default = match[1].removeprefix("env:").partition(":-")
        if not NAME.fullmatch(name):
            raise _Fault("EG303", f"`{match[0]}` is no variable of the environment", self.line, "write `${NAME}`")
        value = self.environ.get(name)
        if not value and has_default:
            return default
        if value is None:
            raise _Fault("EG303", f"the variable `{name}` is not set", self.line)
        if name not in _OPEN:
            self.secrets.add(value)
        return value

    def _note_unused(self, is_local: bool) -> None:
        other = ("headers",) if is_local else ("args", "env", "cwd")
        known = (_KNOWN - set(other)) | _SILENT | set(_INCLUDES) | set(_EXCLUDES)
        for key in self.node.items:
            if key not in known:
                line = self.node.key_line(key)
                message = f"the server `{self.name}`: `{key}` has no effect here"
                self.findings.append(finding("EG304", message, file=self.node.file, line=line))

    def _fault(self, node: Node, expected: str) -> _Fault:
        return _Fault("EG302", f"expected {expected}, got {node.shown}", node.line)


_OPEN = frozenset({"HOME", "PWD", "USER", "TMPDIR", "CLAUDE_PLUGIN_ROOT"})
"""Variables whose values a message may show."""


def _with(spec: ServerSpec, *, error: str, is_disabled: bool) -> ServerSpec:
    return ServerSpec(
        name=spec.name, file=spec.file, line=spec.line, source=spec.source, error=error, is_disabled=is_disabled
    )
