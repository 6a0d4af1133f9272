"""Skills in folders: every SKILL.md found is loaded, in error, or reported as passed over, and never silently lost.

A skill's name is its folder's path below the source's root; nothing in the file changes it. Links to folders are never
followed: one inside the root is a further name of what it points at (denies by it count), one that leaves it is
reported. A skill in error still holds its name, so that a broken file never uncovers the one it stood before.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from extgate.core.extension import Extension, Finding
from extgate.core.names import refusal, show
from extgate.core.patterns import nfc
from extgate.discover.codes import finding
from extgate.discover.reading import UnreadableError, is_inside, read_bytes
from extgate.discover.skill_header import Header, HeaderError, body_of, read_header, skill_text
from extgate.errors import DiscoveryError

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 8
"""Folders from a source's root down to a skill's own, at most."""
MAX_FOLDERS = 20_000
"""Folders looked into in one source, vendor folders included."""

VENDOR = frozenset({"node_modules", "bower_components", "site-packages", "dist-packages", "__pycache__", "venv"})
"""Folders of other people's packages; hidden folders (`.git`, `.venv`, ...) are passed over as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillSource:
    """A folder of skills. name: `project`, `user`, `plugin:NAME` or `pulled`."""

    root: Path
    name: str


def find_skills(sources: Sequence[SkillSource]) -> tuple[tuple[Extension, ...], tuple[Finding, ...]]:
    """The skills below each root, and what is wrong with any; an earlier source wins a clash of path names.

    A root that is not there holds nothing. Found = loaded + an error each + a shadowing, nesting, vendor or depth
    report each.
    """
    skills: list[Extension] = []
    problems: list[Finding] = []
    holders: dict[str, _Sighting] = {}
    roots: set[str] = set()
    for source in sources:
        real = os.path.realpath(source.root)
        if real in roots or not os.path.lexists(source.root):
            continue
        roots.add(real)
        walk = _Walk(source=source)
        walk.run()
        problems += walk.problems
        for sighting in sorted(walk.sightings, key=lambda s: (s.file.parent != source.root, s.name)):
            _admit(sighting, walk, holders, skills, problems)
    return tuple(sorted(skills, key=lambda e: e.order)), tuple(problems)


def skill_body(ext: Extension) -> str:
    """What a skill tells a model: its file after the header, read again, line ends as `\\n`.

    Raises DiscoveryError when the file is gone, unreadable, or no longer the one that was judged.
    """
    return body_of(read_skill(ext))


def read_skill(ext: Extension) -> str:
    """A skill's whole file, header included, read again. Raises DiscoveryError as `skill_body` does."""
    if ext.kind != "skill" or ext.file is None:
        raise DiscoveryError(f"`{show(ext.id)}` has no file to read")
    try:
        data = read_bytes(Path(ext.file), MAX_BYTES)
        text = skill_text(data, show(ext.file))
    except UnreadableError as error:
        raise DiscoveryError(str(error), file=show(ext.file)) from None
    except HeaderError as error:
        raise DiscoveryError(error.found.message, file=show(ext.file), line=error.found.line) from None
    if ext.digest is not None and hashlib.sha256(data).hexdigest() != ext.digest:
        raise DiscoveryError("has changed since it was judged", file=show(ext.file), fix="list the skills again")
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sighting:
    """A SKILL.md that is to be loaded."""

    source: SkillSource
    name: str
    file: Path

    @property
    def folder(self) -> str:
        """Dialect B's category: the folder above the skill's own; `default` where that is the root.

        For a SKILL.md in the root itself it is the root's parent, as in msAgent 9eb360f (seen 2026-11-30).
        """
        above = self.file.parent.parent
        return "default" if above == self.source.root else Path(os.path.abspath(above)).name or "default"


@dataclass(kw_only=True)
class _Walk:
    """One source's folders, in name order."""

    source: SkillSource
    sightings: list[_Sighting] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    problems: list[Finding] = field(default_factory=list)
    budget: int = MAX_FOLDERS

    def run(self) -> None:
        todo = [self.source.root]
        while todo and self.budget > 0:
            todo += reversed(self._visit(todo.pop()))
        if self.budget <= 0:
            self._note("EG229", f"holds more than {MAX_FOLDERS:,} folders; the rest was not read", self.source.root)

    def aliases_of(self, sighting: _Sighting) -> tuple[str, ...]:
        """Further path names that links inside the root give a skill."""
        names = []
        for alias, target in self.links:
            if target == ".":
                names.append(f"{alias}/{sighting.name}")
            elif sighting.name == target or sighting.name.startswith(f"{target}/"):
                names.append(alias + sighting.name[len(target) :])
        return tuple(sorted(names))

    def _visit(self, folder: Path) -> list[Path]:
        """Takes a folder's SKILL.md and returns the folders below that are to be visited."""
        entries = self._entries(folder)
        header = next((entry for entry in entries if entry.name == "SKILL.md"), None)
        is_skill = header is not None
        if header is not None and header.is_symlink():
            self._linked_file(Path(header.path))
        elif is_skill:
            self._see(folder)
        for entry in entries:
            if entry.name.casefold() == "skill.md" and entry.name != "SKILL.md" and not is_skill:
                self._note("EG227", f"`{entry.name}` is not read as a skill", Path(entry.path))
        below = [Path(entry.path) for entry in entries if self._is_open(entry)]
        if is_skill and folder != self.source.root:
            self._pass_over("EG223", f"lies inside the skill `{self._name(folder)}` and is not read", below)
            return []
        if len(folder.relative_to(self.source.root).parts) >= MAX_DEPTH:
            self._pass_over("EG224", f"lies deeper than {MAX_DEPTH} folders and is not read", below)
            return []
        return below

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        self.budget -= 1
        try:
            with os.scandir(folder) as found:
                return sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._note("EG228", f"cannot be listed ({(error.strerror or str(error)).lower()})", folder)
            return []

    def _see(self, folder: Path) -> None:
        name = self._name(folder)
        file = folder / "SKILL.md"
        if folder == self.source.root:
            self._note("EG221", f"lies in the root and is read as the skill `{name}`", file)
        self.sightings.append(_Sighting(source=self.source, name=name, file=file))

    def _name(self, folder: Path) -> str:
        path = folder.relative_to(self.source.root).as_posix()
        return Path(os.path.realpath(folder)).name if path == "." else path

    def _is_open(self, entry: os.DirEntry[str]) -> bool:
        """Whether the entry is a folder to look into; links, vendor and hidden folders are reported instead."""
        path = Path(entry.path)
        if entry.is_symlink():
            self._link(path)
            return False
        if not entry.is_dir(follow_symlinks=False):
            return False
        if entry.name in VENDOR or entry.name.startswith("."):
            self._pass_over("EG222", f"lies in `{entry.name}` and is not read", [path])
            return False
        return True

    def _link(self, path: Path) -> None:
        if path.name == "SKILL.md" or not path.is_dir():
            return
        if not is_inside(path, self.source.root):
            self._note("EG225", "is a link that leaves the folder, and is not followed", path)
            return
        target = os.path.relpath(os.path.realpath(path), os.path.realpath(self.source.root))
        self.links.append((path.relative_to(self.source.root).as_posix(), Path(target).as_posix()))

    def _linked_file(self, file: Path) -> None:
        """A SKILL.md that is a link is another name of the skill it leads to, never a skill of its own."""
        target = Path(os.path.realpath(file))
        root = Path(os.path.realpath(self.source.root))
        if target.name != "SKILL.md" or not is_inside(file, self.source.root) or not target.is_file():
            self._note("EG201", "is a link that leads to no skill of this folder, and is not followed", file)
            return
        alias = file.parent.relative_to(self.source.root).as_posix()
        self.links.append((alias, target.parent.relative_to(root).as_posix()))

    def _pass_over(self, code: str, message: str, folders: Sequence[Path]) -> None:
        for folder in folders:
            for file in self._below(folder):
                self._note(code, message, file)

    def _below(self, folder: Path) -> Iterator[Path]:
        """Every SKILL.md below a folder that is not visited, as far as the budget reaches."""
        for at, folders, files in os.walk(folder):
            self.budget -= 1
            if self.budget <= 0:
                return
            folders.sort()
            if "SKILL.md" in files or "SKILL.md" in folders:
                yield Path(at) / "SKILL.md"

    def _note(self, code: str, message: str, path: Path) -> None:
        self.problems.append(finding(code, message, file=path))


def _admit(
    sighting: _Sighting,
    walk: _Walk,
    holders: dict[str, _Sighting],
    skills: list[Extension],
    problems: list[Finding],
) -> None:
    """Loads a sighting, unless another holds its name; either way something is added to one of the lists."""
    holder = holders.setdefault(nfc(sighting.name), sighting)
    if holder is not sighting:
        message = f"`{sighting.name}` ({sighting.source.name}) is hidden by {holder.source.name}'s {holder.file}"
        problems.append(finding("EG220", message, file=sighting.file))
        return
    try:
        data, header = _read(sighting)
    except HeaderError as error:
        problems.append(error.found)
        return
    aliases = walk.aliases_of(sighting)
    problems += header.problems
    problems += _name_problems(sighting, header)
    problems += [finding("EG226", f"`{a}` is another name of `{sighting.name}`", file=sighting.file) for a in aliases]
    skills.append(_extension(sighting, data, header, aliases))


def _read(sighting: _Sighting) -> tuple[bytes, Header]:
    path = show(str(sighting.file))
    if (why := refusal(sighting.name)) is not None:
        raise HeaderError(finding("EG207", f"the folder's name cannot be used: {why}", file=path))
    if not is_inside(sighting.file, sighting.source.root):
        raise HeaderError(finding("EG201", "is a link that leaves the folder", file=path))
    try:
        data = read_bytes(sighting.file, MAX_BYTES)
    except UnreadableError as error:
        code = "EG202" if error.cause == "too_large" else "EG201"
        raise HeaderError(finding(code, str(error), file=path)) from None
    return data, read_header(data, path)


def _name_problems(sighting: _Sighting, header: Header) -> list[Finding]:
    leaf = sighting.name.rpartition("/")[2]
    if header.declared_name is None or nfc(header.declared_name) == nfc(leaf):
        return []
    message = f"declares the name `{header.declared_name}`, but is the skill `{sighting.name}`"
    return [finding("EG213", message, file=sighting.file, line=1)]


def _extension(sighting: _Sighting, data: bytes, header: Header, aliases: tuple[str, ...]) -> Extension:
    facts: dict[str, object] = {
        "allowed_tools": header.allowed_tools,
        "disable_model_invocation": header.disable_model_invocation,
        "folder": sighting.folder,
    }
    if header.disallowed_tools:
        facts["disallowed_tools"] = header.disallowed_tools
    if aliases:
        facts["aliases"] = aliases
    return Extension(
        kind="skill",
        name=sighting.name,
        source=sighting.source.name,
        category=header.category,
        declared_name=header.declared_name,
        description=header.description,
        file=str(sighting.file),
        digest=hashlib.sha256(data).hexdigest(),
        facts=facts,
    )
