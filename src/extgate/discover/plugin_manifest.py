"""A plugin's manifest in any of its forms; what it says of itself, and where.

Forms, first found counts: `.claude-plugin/plugin.json` and `plugin.json` (Claude Code's docs "Plugins reference", seen
2026-11-30), `[tool.openprogram.plugin]` in `pyproject.toml`, the `openprogram` field of `package.json` (OpenProgram
f27be0ee2, whose contributions may also stand under `entrypoints`). A Claude Code plugin needs no manifest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from extgate.core.extension import Finding
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.discover.codes import finding
from extgate.discover.reading import UnreadableError, is_inside, read_bytes
from extgate.errors import DocumentError

MAX_BYTES = 1024 * 1024

_FORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (".claude-plugin/plugin.json", ()),
    ("plugin.json", ()),
    ("pyproject.toml", ("tool", "openprogram", "plugin")),
    ("package.json", ("openprogram",)),
)
"""File, and the keys that lead to the manifest in it."""

_FALLBACKS: dict[str, tuple[str, ...]] = {"pyproject.toml": ("project",), "package.json": ()}
"""Where a file that is not the plugin's alone has the name, version and description that the manifest leaves out."""


class ManifestError(Exception):
    """A manifest that cannot be read; nothing of its plugin is."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a plugin says. sections: the mappings that may name contributions; empty when it has no manifest.

    has_defaults: whether the folders of a Claude Code plugin count without being named.
    """

    name: str
    file: str
    version: str = ""
    description: str = ""
    sections: tuple[Node, ...] = ()
    has_defaults: bool = True
    findings: tuple[Finding, ...] = ()


def read_manifest(folder: Path, fallback: str) -> Manifest:
    """The manifest of a plugin folder. fallback: its name when nothing names it. Raises ManifestError."""
    found = [(form, path, node) for form, path in _FORMS if (node := _section(folder, form, path)) is not None]
    if not found:
        return Manifest(name=fallback, file=str(folder))
    form, _, node = found[0]
    file = str(folder / form)
    findings = [finding("EG412", f"`{form}` counts, `{other}` does not", file=file) for other, _, _ in found[1:]]
    sections = (node, *_entrypoints(node, file))
    for section in sections:
        if "trust" in section.items:
            line = section.key_line("trust")
            findings.append(finding("EG404", "`trust` has no effect in a plugin's own manifest", file=file, line=line))
    rest = _fallback(folder, form)
    return Manifest(
        name=_text(node, rest, "name", file) or fallback,
        file=file,
        version=_text(node, rest, "version", file),
        description=_text(node, rest, "description", file),
        sections=sections,
        has_defaults=form.endswith("plugin.json"),
        findings=tuple(findings),
    )


def _section(folder: Path, form: str, keys: tuple[str, ...]) -> Node | None:
    """The manifest in a file; None when there is no such file, or it has no such part."""
    node = _document(folder, form)
    for key in keys:
        node = node.get(key) if node is not None and node.kind == "map" else None
    if node is not None and node.kind != "map":
        what = ".".join(keys) or "the manifest"
        message = f"`{what}`: expected a mapping, got {node.shown}"
        raise ManifestError(finding("EG401", message, file=folder / form, line=node.line))
    return node


def _document(folder: Path, form: str) -> Node | None:
    path = folder / form
    try:
        if path.exists() and not is_inside(path, folder):
            raise ManifestError(finding("EG403", "is a link that leaves the plugin's folder", file=path))
        return Document.of_bytes(str(path), read_bytes(path, MAX_BYTES)).parse()
    except UnreadableError as error:
        if error.cause == "missing":
            return None
        raise ManifestError(finding("EG401", str(error), file=path)) from None
    except DocumentError as error:
        raise ManifestError(finding("EG401", error.message, file=path, line=error.line, fix=error.fix)) from None


def _entrypoints(node: Node, file: str) -> tuple[Node, ...]:
    inner = node.get("entrypoints")
    if inner is not None and inner.kind != "map":
        message = f"`entrypoints`: expected a mapping, got {inner.shown}"
        raise ManifestError(finding("EG401", message, file=file, line=inner.line))
    return () if inner is None else (inner,)


def _fallback(folder: Path, form: str) -> Node | None:
    keys = _FALLBACKS.get(form)
    return None if keys is None else _section(folder, form, keys)


def _text(node: Node, rest: Node | None, key: str, file: str) -> str:
    found = node.get(key) or (rest.get(key) if rest is not None else None)
    if found is None:
        return ""
    if not isinstance(found.scalar, str):
        message = f"`{key}`: expected a text, got {found.shown}"
        raise ManifestError(finding("EG401", message, file=file, line=found.line))
    return found.scalar.strip()
