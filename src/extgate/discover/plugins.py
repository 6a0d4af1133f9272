"""Plugins and what they contribute: skills, tools by name, MCP servers, agents; each carries its plugin as its source.

Nothing of a plugin is imported or run. Whatever it names must lie in its own folder. Its servers need trust like any
other, and nothing it says of its own trust counts.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from extgate.core.extension import Extension, Finding
from extgate.core.names import refusal
from extgate.core.patterns import nfc
from extgate.dialects.document import frontmatter
from extgate.dialects.node import Node
from extgate.discover.codes import finding
from extgate.discover.plugin_manifest import Manifest, ManifestError, read_manifest
from extgate.discover.reading import UnreadableError, is_inside, read_bytes
from extgate.discover.server_config import ServerSpec, load_servers, merge_servers, server_specs
from extgate.discover.skill_header import HeaderError, skill_text
from extgate.discover.skills import VENDOR, SkillSource
from extgate.errors import DocumentError

GROUP = "extgate.plugins"
"""The entry-point group by which an installed package names the folder of its plugin."""

MAX_BYTES = 1024 * 1024
MAX_AGENTS = 1_000

_UNGATED = ("commands", "hooks", "lspServers", "outputStyles", "monitors", "providers", "web", "sidebar")
_UNGATED_FOLDERS = ("commands", "hooks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One plugin. skills: folders for `find_skills`; servers: for `probe`; extensions: its tools and sub-agents."""

    name: str
    folder: Path
    file: str
    version: str = ""
    description: str = ""
    skills: tuple[SkillSource, ...] = ()
    servers: tuple[ServerSpec, ...] = ()
    extensions: tuple[Extension, ...] = ()

    @property
    def source(self) -> str:
        """What its contributions carry: `plugin:NAME`."""
        return f"plugin:{self.name}"


def find_plugins(
    roots: Sequence[Path], *, environ: Mapping[str, str], installed: Iterable[EntryPoint] | None = None
) -> tuple[tuple[Plugin, ...], tuple[Finding, ...]]:
    """The plugins in the folders of each root, then those that installed packages name, and what is wrong with any.

    installed: entry points of the group `extgate.plugins`; None reads those of this Python. Of two plugins with one
    name the first stays.
    """
    plugins: dict[str, Plugin] = {}
    findings: list[Finding] = []
    points = entry_points(group=GROUP) if installed is None else installed
    for folder, fallback in (*_folders(roots, findings), *_installed(points, findings)):
        plugin, found = read_plugin(folder, fallback=fallback, environ=environ)
        findings += found
        if plugin is None:
            continue
        first = plugins.setdefault(nfc(plugin.name), plugin)
        if first is not plugin:
            message = f"the plugin `{plugin.name}` has the name of the one in {first.folder}"
            findings.append(finding("EG405", message, file=plugin.file))
    return tuple(plugins.values()), tuple(findings)


def read_plugin(
    folder: Path, *, fallback: str, environ: Mapping[str, str]
) -> tuple[Plugin | None, tuple[Finding, ...]]:
    """The plugin in a folder; None when its manifest or name cannot be used. fallback: its name when it has none."""
    try:
        manifest = read_manifest(folder, fallback)
    except ManifestError as error:
        return None, (error.found,)
    why = refusal(manifest.name) or ("it holds a `/`" if "/" in manifest.name else None)
    if why is not None:
        message = f"the plugin `{manifest.name}` cannot be used: {why}"
        return None, (*manifest.findings, finding("EG406", message, file=manifest.file))
    reader = _Reader(folder=folder, manifest=manifest, environ=environ, findings=list(manifest.findings))
    return reader.plugin(), tuple(reader.findings)


def _folders(roots: Sequence[Path], findings: list[Finding]) -> Iterator[tuple[Path, str]]:
    for root in roots:
        try:
            entries = sorted(root.iterdir()) if root.is_dir() else []
        except OSError as error:
            findings.append(finding("EG401", f"cannot be listed ({error.strerror})", file=root))
            continue
        for folder in entries:
            if not folder.is_dir() or folder.name.startswith(".") or folder.name in VENDOR:
                continue
            if is_inside(folder, root):
                yield folder, folder.name
            else:
                findings.append(finding("EG403", "is a link that leaves the folder of plugins", file=folder))


def _installed(points: Iterable[EntryPoint], findings: list[Finding]) -> Iterator[tuple[Path, str]]:
    for point in sorted(points, key=lambda p: (p.name, p.value)):
        folder = _package_folder(point)
        if folder is None:
            findings.append(finding("EG411", f"the entry point `{point.name} = {point.value}` names no folder"))
        else:
            yield folder, point.name


def _package_folder(point: EntryPoint) -> Path | None:
    """The folder of the package that an entry point names, found without importing any of it."""
    top, *inner = point.value.partition(":")[0].strip().split(".")
    if point.dist is not None:
        placed = Path(str(point.dist.locate_file(top))).joinpath(*inner)
        if placed.is_dir():
            return placed
    try:
        spec = importlib.util.find_spec(top) if top.isidentifier() else None
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    folder = Path(places[0]).joinpath(*inner) if places else None
    return folder if folder is not None and folder.is_dir() else None


@dataclass(kw_only=True)
class _Reader:
    """Collects what one plugin contributes."""

    folder: Path
    manifest: Manifest
    environ: Mapping[str, str]
    findings: list[Finding] = field(default_factory=list)

    @property
    def source(self) -> str:
        return f"plugin:{self.manifest.name}"

    def plugin(self) -> Plugin:
        skills = tuple(SkillSource(root=root, name=self.source) for root in self._paths("skills", "skills"))
        servers, extensions = self._servers(), self._once((*self._tools(), *self._agents()))
        ungated = self._ungated()
        if ungated:
            self._note("EG408", f"contributes {', '.join(f'`{key}`' for key in ungated)}, which extgate does not gate")
        if not (skills or servers or extensions or ungated):
            self._note("EG407", "contributes nothing that was found")
        return Plugin(
            name=self.manifest.name,
            folder=self.folder,
            file=self.manifest.file,
            version=self.manifest.version,
            description=self.manifest.description,
            skills=skills,
            servers=servers,
            extensions=extensions,
        )

    def _once(self, extensions: Iterable[Extension]) -> tuple[Extension, ...]:
        kept: dict[str, Extension] = {}
        for ext in extensions:
            if kept.setdefault(ext.id, ext) is not ext:
                self._note("EG402", f"contributes the {ext.kind} `{ext.name}` twice; the first is kept")
        return tuple(kept.values())

    def _values(self, key: str) -> Iterator[Node]:
        """What the manifest's sections say under a key."""
        for section in self.manifest.sections:
            node = section.get(key)
            if node is not None:
                yield node

    def _paths(self, key: str, default: str) -> list[Path]:
        """The files and folders that a key names, each inside the plugin, and the default folder where it is there."""
        found = [path for node in self._values(key) if node.kind != "map" for path in self._named(node, key)]
        usual = self.folder / default
        if self.manifest.has_defaults and usual.exists() and usual not in found:
            if is_inside(usual, self.folder):
                found.insert(0, usual)
            else:
                self._note("EG403", f"`{default}` is a link that leaves the plugin's folder")
        return found

    def _named(self, node: Node, key: str) -> Iterator[Path]:
        for entry in node.children if node.kind == "list" else (node,):
            if not isinstance(entry.scalar, str) or "\0" in entry.scalar:
                self._note("EG402", f"`{key}`: expected a path or a list of paths, got {entry.shown}", entry)
                continue
            path = self.folder / entry.scalar.removeprefix("${CLAUDE_PLUGIN_ROOT}/")
            if not is_inside(path, self.folder):
                self._note("EG403", f"`{key}`: {entry.shown} lies outside the plugin's folder", entry)
            elif not path.exists():
                self._note("EG409", f"`{key}`: {entry.shown} is not there", entry)
            else:
                yield path

    def _servers(self) -> tuple[ServerSpec, ...]:
        environ = {**self.environ, "CLAUDE_PLUGIN_ROOT": str(self.folder.absolute())}
        groups: list[tuple[ServerSpec, ...]] = []
        for path in self._paths("mcpServers", ".mcp.json"):
            specs, found = load_servers(path, self.folder, environ=environ, source=self.source)
            groups.append(specs)
            self.findings += found
        for node in self._values("mcpServers"):
            if node.kind == "map":
                specs, found = server_specs(node, directory=self.folder, environ=environ, source=self.source)
                groups.append(specs)
                self.findings += found
        merged, found = merge_servers(*groups)
        self.findings += found
        return merged

    def _tools(self) -> Iterator[Extension]:
        """Tools by name: `["a"]`, `[{"name": "a", "description": "…"}]` or `{"a": {"description": "…"}}`."""
        for node in self._values("tools"):
            rows = node.items.items() if node.kind == "map" else [("", child) for child in node.children]
            if node.kind == "scalar":
                self._note("EG402", f"`tools`: expected a list of names, got {node.shown}", node)
            for key, row in rows:
                name = key or _text(row.get("name") if row.kind == "map" else row)
                if not name:
                    self._note("EG402", f"`tools`: expected a name, got {row.shown}", row)
                    continue
                yield self._extension("tool", name, description=_text(row.get("description")))

    def _agents(self) -> Iterator[Extension]:
        for path in self._paths("agents", "agents"):
            files = sorted(path.rglob("*.md"))[:MAX_AGENTS] if path.is_dir() else [path]
            for file in files:
                agent = self._agent(file)
                if agent is not None:
                    yield agent
        for node in self._values("agents"):
            if node.kind == "map":
                for name, row in node.items.items():
                    yield self._extension("subagent", name, description=_text(row.get("description")))

    def _agent(self, file: Path) -> Extension | None:
        """The sub-agent of a Markdown file: named by its header, else by the file."""
        try:
            if not is_inside(file, self.folder):
                raise UnreadableError("unreadable", "is a link that leaves the plugin's folder")
            data = read_bytes(file, MAX_BYTES)
            header, _ = frontmatter(skill_text(data, str(file)), str(file))
        except (UnreadableError, DocumentError) as error:
            line = error.line if isinstance(error, DocumentError) else None
            message = error.message if isinstance(error, DocumentError) else str(error)
            self.findings.append(finding("EG410", message, file=file, line=line))
            return None
        except HeaderError as error:
            self.findings.append(finding("EG410", error.found.message, file=file, line=error.found.line))
            return None
        name = _text(header.get("name") if header is not None else None) or file.stem
        description = _text(header.get("description") if header is not None else None)
        digest = hashlib.sha256(data).hexdigest()
        return self._extension("subagent", name, description=description, file=str(file), digest=digest)

    def _extension(
        self, kind: str, name: str, *, description: str, file: str | None = None, digest: str | None = None
    ) -> Extension:
        return Extension(
            kind=kind,
            name=name,
            source=self.source,
            description=description,
            file=file or self.manifest.file,
            digest=digest,
            facts={"plugin": self.manifest.name},
        )

    def _ungated(self) -> list[str]:
        named = {key for key in _UNGATED for _ in self._values(key)}
        return sorted(named | {name for name in _UNGATED_FOLDERS if (self.folder / name).is_dir()})

    def _note(self, code: str, message: str, node: Node | None = None) -> None:
        line = node.line if node is not None else None
        text = f"the plugin `{self.manifest.name}`: {message}"
        self.findings.append(finding(code, text, file=self.manifest.file, line=line))


def _text(node: Node | None) -> str:
    """A scalar as it is written; empty for anything else."""
    if node is None or node.kind != "scalar" or node.is_null:
        return ""
    return (node.scalar if isinstance(node.scalar, str) else node.text).strip()
