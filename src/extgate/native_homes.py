"""Where runtimes keep their own files: in a workspace, in the user's home, and where an administrator put them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from extgate.core.extension import Finding
from extgate.dialects.document import MAX_CHARS, Document
from extgate.dialects.registry import NATIVE, Native
from extgate.discover.everything import Sources
from extgate.errors import DocumentError
from extgate.homes import Homes

MAX_FILES = 2_000
"""Files of one runtime that are read; more are an error."""
_BARE = ("config.yaml", "config.toml", "settings.json")
"""Names at a workspace's root that other programs use as well; a key must tell whose they are."""
SYSTEM = Path("/")
"""Where administrators' absolute places begin."""
_SHARED = (".mcp.json",)
"""Files that do not tell by themselves that a runtime is used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeFiles:
    """One runtime's files of all scopes. file: the first of them, for messages. errors: why they cannot be read."""

    runtime: str
    documents: tuple[Document, ...]
    errors: tuple[Finding, ...] = ()

    @property
    def file(self) -> str:
        return self.documents[0].path if self.documents else self.runtime


def find_natives(root: Path, home: Path) -> tuple[NativeFiles, ...]:
    """The runtimes whose files lie in the workspace, each with its files of every scope.

    A runtime without a file in the workspace is left out.
    """
    return tuple(found for native in NATIVE.values() if (found := _files_of(native, root, home, SYSTEM)) is not None)


def files_in_force(runtime: str, root: Path | None, user: Iterable[Path]) -> NativeFiles:
    """One runtime's files, whether or not a project has any. root: None: no project's. user: the user's own."""
    native = NATIVE[runtime]
    own = _own(native, root) if root else []
    return _read(native, root or SYSTEM, Path.home(), SYSTEM, own, user)


def _files_of(native: Native, root: Path, home: Path, system: Path) -> NativeFiles | None:
    own = _own(native, root)
    if not any(path.name not in _SHARED for path in own):
        return None
    below_home = [p for g in native.USER_FILES for p in _matching(home, g.removeprefix("~/"))]
    return _read(native, root, home, system, own, below_home)


def _own(native: Native, root: Path) -> list[Path]:
    return [path for glob in native.FILES for path in _matching(root, glob) if _is_its(native, root, path)]


def _read(native: Native, root: Path, home: Path, system: Path, own: list[Path], user: Iterable[Path]) -> NativeFiles:
    places = [(path, "local" if ".local." in path.name else "project", str(path.relative_to(root))) for path in own]
    places += [(path, "user", str(path)) for path in user if path not in own]
    places += [(p, "managed", str(p)) for g in native.MANAGED_FILES for p in _matching(system, g.lstrip("/"))]
    documents: list[Document] = []
    errors: list[Finding] = []
    if len(places) > MAX_FILES:
        errors.append(Finding(code="EG001", message=f"more than {MAX_FILES:,} files", file=str(root), severity="error"))
    for path, scope, shown in places[:MAX_FILES]:
        try:
            documents.append(_document(path, scope, shown, root, home))
        except (OSError, DocumentError) as error:
            message = error.message if isinstance(error, DocumentError) else f"cannot be read: {error}"
            errors.append(Finding(code="EG001", message=message, file=shown, severity="error"))
    return NativeFiles(runtime=native.NAME, documents=tuple(documents), errors=tuple(errors))


def _matching(folder: Path, glob: str) -> list[Path]:
    return sorted(path for path in folder.glob(glob) if path.is_file())


def _is_its(native: Native, root: Path, path: Path) -> bool:
    if path.parent != root or path.name not in _BARE:
        return True
    try:
        node = _bounded(path, str(path)).parse()
    except (OSError, DocumentError):
        return False  # nobody knows whose it is; a runtime's own folder would say so
    return any(mark in node.items for mark in native.MARKS)


def _document(path: Path, scope: str, shown: str, root: Path, home: Path) -> Document:
    found = _bounded(path, shown)
    base = path.parent.parent if path.parent.name.startswith(".") and scope != "user" else path.parent
    facts = {"scope": scope, "root": str(root.absolute()), "home": str(home), "base": str(base.absolute())}
    return Document(path=found.path, text=found.text, facts=facts)


def _bounded(path: Path, shown: str) -> Document:
    with path.open("rb") as file:
        return Document.of_bytes(shown, file.read(MAX_CHARS + 1))


def native_sources(files: NativeFiles, homes: Homes, cache: Path) -> Sources:
    """Where discovery looks for what the agents of a runtime have installed."""
    native, home = NATIVE[files.runtime], Path.home()
    servers = tuple(
        path for path in _places(native.SERVER_FILES, homes.root, home) if _is_its(native, homes.root, path)
    )
    skills = [
        (path, "user" if place.startswith("~/") else "project")
        for place in native.SKILLS
        for path in _places((place,), homes.root, home)
    ]
    return Sources(
        root=homes.root,
        skills=tuple(skills),
        server_files=servers,
        server_runtime=files.runtime,
        runtimes=(files.runtime,),
        subagents=tuple(sorted({*native.spawned(files.documents), *native.SUBAGENTS})),
        timeout_s=homes.timeout_s,
        cache=cache,
    )


def _places(places: Iterable[str], root: Path, home: Path) -> Iterator[Path]:
    for place in places:
        path = home / place.removeprefix("~/") if place.startswith("~/") else root / place
        if path.exists():
            yield path
