"""What exists: one tool, skill, MCP item or sub-agent each, and the inventory of them all."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

ServerState = Literal["connected", "configured", "untrusted", "failed", "disabled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One row of the table of kinds. A new kind is a row here and a discoverer, nothing else.

    block: the top-level key that gates it in a profile; key: its key in an inventory file.
    """

    name: str
    block: str
    key: str
    is_mcp: bool = False


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(name="tool", block="tools", key="tools"),
        Kind(name="skill", block="skills", key="skills"),
        Kind(name="mcp_tool", block="mcp", key="tools", is_mcp=True),
        Kind(name="mcp_resource", block="resources", key="resources", is_mcp=True),
        Kind(name="mcp_prompt", block="prompts", key="prompts", is_mcp=True),
        Kind(name="subagent", block="subagents", key="subagents"),
    )
}
"""Kinds by name, in the order in which they are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """One thing that a model can see or use, normalised where it was discovered.

    name: a skill's folder path below its root (`/`-separated), a resource's URI or template, else the bare name.
    server: the configured name of the MCP server, for MCP kinds only.
    source: where it is registered: a runtime or `builtin`, a plugin's name, or a skill source (`project`, `user`).
    category: what a skill's frontmatter says (None: nothing), never its folder.
    facts: JSON-like extras (`schema`, `annotations`, `allowed_tools`, `template`, `title`, `plugin`, `aliases`).
    """

    kind: str
    name: str
    server: str | None = None
    source: str = ""
    category: str | None = None
    declared_name: str | None = None
    description: str = ""
    file: str | None = None
    digest: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """`kind:name`, or `kind:server/name` for the MCP kinds."""
        return f"{self.kind}:{self.server}/{self.name}" if self.server is not None else f"{self.kind}:{self.name}"

    @property
    def leaf(self) -> str:
        """The last segment of a path name."""
        return self.name.rpartition("/")[2]

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key: by kind as in KINDS, then id, then source."""
        return (list(KINDS).index(self.kind) if self.kind in KINDS else len(KINDS), self.id, self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One MCP server and what is known of it. Only `connected` counts as installed.

    error: why it is `failed`, in one line. instructions: what it would put into a prompt.
    facts: JSON-like extras (`transport`, `file`, `line`, `version`, `protocol`, `seconds`).
    """

    name: str
    state: ServerState = "connected"
    error: str | None = None
    instructions: str = ""
    source: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a user should know of a file, a rule or an installed thing: never silent.

    code: stable (`EG…`), one page each in docs/findings. fix: the way out, in one line.
    """

    code: str
    message: str
    file: str | None = None
    line: int | None = None
    fix: str = ""
    severity: Literal["error", "warning", "info"] = "warning"


Problem = Finding


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """All that is installed, sorted; equal sets give equal inventories whatever the order of arrival."""

    extensions: tuple[Extension, ...] = ()
    servers: tuple[Server, ...] = ()
    problems: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "extensions", tuple(sorted(self.extensions, key=lambda e: e.order)))
        object.__setattr__(self, "servers", tuple(sorted(self.servers, key=lambda s: s.name)))

    def of_kind(self, *kinds: str) -> tuple[Extension, ...]:
        """The extensions of these kinds, in order."""
        return tuple(e for e in self.extensions if e.kind in kinds)

    def server(self, name: str) -> Server | None:
        """The server of that configured name, if there is one."""
        return next((s for s in self.servers if s.name == name), None)

    @cached_property
    def version(self) -> str:
        """16 hex digits over everything a decision can depend on; liveness included."""
        rows: list[object] = [
            [e.kind, e.server, e.name, e.source, e.category, e.declared_name, e.digest] for e in self.extensions
        ]
        rows += [[s.name, s.state] for s in self.servers]
        return hashlib.sha256(json.dumps(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]
