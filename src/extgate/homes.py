"""Where things lie in a workspace: the conventions, and `extgate.yaml` that overrides them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.errors import DialectError, WorkspaceError

CONFIG = "extgate.yaml"

AGENT_GLOBS = ("agents/*.yaml", "agents/*.yml", "agents/*.json", "agents/*/agent.json")
MSAGENT_GLOBS = (
    ".msagent/agents/*.yml",
    ".msagent/agents/*.yaml",
    ".msagent/subagents/*.yml",
    ".msagent/subagents/*.yaml",
)
SERVER_FILES = (".mcp.json", "mcp.json", ".msagent/config.mcp.json", "mcp_servers.json")
MAX_AGENTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Homes:
    """The places of one workspace. Paths are relative to it unless absolute.

    runtime: whose built-in tools are installed; empty: msAgent's in a msAgent folder, else OpenProgram's.
    inherit: how sub-agents inherit where no profile says so; empty: ceiling.
    """

    root: Path
    agents: tuple[str, ...] = AGENT_GLOBS + MSAGENT_GLOBS
    skills: tuple[str, ...] = ("skills", ".msagent/skills")
    servers: tuple[str, ...] = SERVER_FILES
    plugins: tuple[str, ...] = ("plugins",)
    runtime: str = ""
    inherit: str = ""
    timeout_s: float = 30.0
    node: Node | None = field(default=None, repr=False)

    def agent_files(self) -> Iterator[Path]:
        """The agents' files, sorted, with broken links and the like. Raises WorkspaceError past 10,000 of them."""
        found = sorted({path for pattern in self.agents for path in self.root.glob(pattern) if not path.is_dir()})
        if len(found) > MAX_AGENTS:
            raise WorkspaceError(
                f"holds more than {MAX_AGENTS:,} agents", file=str(self.root), fix="split the workspace"
            )
        yield from found

    def existing(self, places: Sequence[str]) -> list[Path]:
        """The places that exist, in order."""
        return [path for place in places if (path := self.root / place).exists()]

    @property
    def builtin_runtimes(self) -> tuple[str, ...]:
        """Whose tools are installed: msAgent runs on deepagents and adds its catalog tools."""
        home = "msagent" if (self.root / ".msagent").is_dir() else "openprogram" if any(self.agent_files()) else ""
        name = self.runtime or home
        if not name:
            return ()
        return ("deepagents", "msagent") if name == "msagent" else (name,)


def user_config_dir() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "extgate"


def user_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "extgate"


def user_cache_dir() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "extgate"


def find_homes(root: Path) -> Homes:
    """The places of a workspace. Raises WorkspaceError for no directory, DocumentError for a bad `extgate.yaml`."""
    if not root.is_dir():
        raise WorkspaceError("no such directory", file=str(root), fix="pass one with -w DIR")
    homes = Homes(root=root)
    path = root / CONFIG
    if not path.is_file():
        return homes
    node = Document.of_bytes(str(path), path.read_bytes()).parse()
    if node.is_null:
        return homes
    if node.kind != "map":
        raise DialectError(
            f"expected a mapping, got {node.shown}", file=str(path), line=node.line, fix="write `agents: […]`"
        )
    given: dict[str, Any] = {key: _value(node, key, str(path)) for key in node.items if key not in _OTHERS}
    return replace(homes, node=node, **given)


_LISTS = ("agents", "skills", "servers", "plugins")
_WORDS = {"runtime": None, "inherit": ("ceiling", "own", "union")}
_OTHERS = ("assert", "tests", "gateway", "wire", "audit", "reload", "dispatch")
"""Keys that other parts read."""


def _value(node: Node, key: str, file: str) -> object:
    value, line = node.items[key], node.key_line(key)
    if key in _LISTS:
        children = value.children if value.kind == "list" else (value,)
        if all(isinstance(child.scalar, str) for child in children):
            return tuple(str(child.scalar) for child in children)
        raise DialectError(f"{key}: expected a list of paths", file=file, line=line, fix=f"write `{key}: [{key}]`")
    if key in _WORDS and isinstance(value.scalar, str):
        choices = _WORDS[key]
        if choices is None or value.scalar in choices:
            return value.scalar
        raise DialectError(f"{key}: {value.shown} is not one of {', '.join(choices)}", file=file, line=line)
    if key == "timeout_s" and isinstance(value.scalar, int | float) and 0 < value.scalar <= 600:
        return float(value.scalar)
    known = ", ".join((*_LISTS, *_WORDS, "timeout_s", *_OTHERS))
    raise DialectError(f"{key}: no such key or not such a value", file=file, line=line, fix=f"the keys are {known}")
