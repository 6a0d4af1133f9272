"""Which paths an agent's own file tools may open: the gated must not move the gate, nor read past it.

A path is judged in every reading a tool could give it (relative, absolute, `/` as the tool's root, `~`, dots taken away
before or after links are followed), and what it leads to by name and by inode. One reading that is closed closes it.
Names are compared without case and in one Unicode form on every system: whether a folder folds case can't be known.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from extgate.core.names import show
from extgate.core.patterns import matches
from extgate.enforce.above import gates_above, hidden_files, visible
from extgate.enforce.gate import Gate

Action = Literal["read", "write"]
"""`read`: opens, lists or searches. `write`: makes, changes, moves or deletes; also of a folder."""

MAX_PATH = 4096
"""A longer path is refused, in characters; Linux opens none."""

_Key = tuple[str, ...]
"""A resolved path as its folded segments."""
_Inode = tuple[int, int]

_OF_POLICY = "it is part of the policy that gates this agent"
_OF_SKILL = "it belongs to a skill that this agent may not use"
_OF_KEPT = "skills, plugins and settings are changed by people only"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """The places of one workspace that decide what an agent may do.

    root: what relative ones are relative to. files: globs, `**` any number of folders; closed whether they exist or
    not. folders: closed with all below. skills: roots of skills, closed to writing; read by who may use the skill.
    kept: further folders that may be read and not written (plugins).
    """

    root: Path
    files: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillFolders:
    """The folders of the installed skills, as the gate decides them now."""

    visible: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()


def no_skills() -> SkillFolders:
    """No skill is installed, so none is visible."""
    return SkillFolders()


def skill_folders(gate: Gate) -> SkillFolders:
    """Where the installed skills lie, as the gate decides them now; of an unavailable agent none is visible.

    Hidden is also what a gate above it hides.
    """
    installed = [ext for ext in gate.inventory.of_kind("skill") if ext.file]
    shown = visible(gate, installed)
    is_shown = set(map(id, shown))
    files = [ext.file for ext in installed if id(ext) not in is_shown]
    return SkillFolders(
        visible=tuple(Path(ext.file or "").parent for ext in shown),
        hidden=tuple(Path(file or "").parent for file in (*files, *sorted(hidden_files(gates_above())))),
    )


class GuardedPaths:
    """Judges paths for one agent's file tools. `skills` is asked anew for every question, so a new deny binds at once.

    base: the folder that the tools take relative paths, and maybe absolute ones, to be in.
    """

    def __init__(self, closed: Closed, *, base: Path, skills: Callable[[], SkillFolders] = no_skills) -> None:
        self._closed, self._base, self._skills = closed, base, skills

    def refusal(self, path: object, action: Action) -> str | None:
        """Why the agent may not do this, in one sentence for the model; None when it may."""
        return self._look().refusal(path, action)

    def open_ones(self, paths: Iterable[str], action: Action = "read") -> list[str]:
        """Those of many paths that are open, in order: for what a listing or a search found."""
        look = self._look()
        return [path for path in paths if look.refusal(path, action) is None]

    def reaches_closed(self, path: str) -> bool:
        """Whether a search below this folder could show what is closed, so that its findings need `open_ones`."""
        look = self._look()
        return any(look.is_above(real) for real in look.readings(path))

    def _look(self) -> _Look:
        return _Look(self._closed, self._base, self._skills())


class _Look:
    """One moment: what is closed, resolved once for one question or for many."""

    def __init__(self, closed: Closed, base: Path, skills: SkillFolders) -> None:
        self.base = os.path.abspath(base)
        disk = self._disk = _Disk()
        globs = [PathGlob(closed.root, glob) for glob in closed.files]
        self.globs = [(disk.key(glob.folder), tuple(map(_fold, glob.rest))) for glob in globs]
        self.folders = disk.keys(closed.folders)
        self.roots = disk.keys(closed.skills)
        self.kept = disk.keys(closed.kept)
        self.visible, self.hidden = disk.keys(skills.visible), disk.keys(skills.hidden)
        existing = [path for glob in globs for path in glob.existing()]
        self._named = set(disk.keys(existing))
        self._inodes = disk.inodes([*existing, *closed.folders])
        self._hidden_inodes = disk.inodes(skills.hidden)
        self._kept_inodes = disk.inodes([*closed.skills, *closed.kept])
        places = [*self._named, *(prefix for prefix, _ in self.globs), *self.folders, *self.roots, *self.kept]
        self._above = {place[:depth] for place in places for depth in range(len(place) + 1)}
        self._above_inodes = disk.inodes({parent for path in existing for parent in path.parents})

    def refusal(self, path: object, action: Action) -> str | None:
        if not isinstance(path, str) or "\0" in path or len(path) > MAX_PATH:
            return "the path is refused: it is not one that a file can have."
        for real in self.readings(path):
            why = self._why(real, action)
            if why:
                return f"'{show(path[:200])}' is closed to this agent's file tools: {why}."
        return None

    def readings(self, path: str) -> Iterator[str]:
        """Every absolute path that a tool could open when it is given this one, links followed."""
        plain = path.removeprefix("file://").replace("\\", "/")
        full: dict[str, None] = {}
        for text in dict.fromkeys((path, plain, plain.strip(), os.path.expanduser(plain))):
            for joined in (os.path.join(self.base, text), os.path.join(self.base, text.lstrip("/"))):
                full |= dict.fromkeys((joined, os.path.normpath(joined)))
        yield from dict.fromkeys(self._disk.real(form) for form in full)

    def is_above(self, real: str) -> bool:
        """Whether something closed lies below."""
        key = self._disk.key(real)
        return key in self._above or any(_is_in(folder, key) for folder in self.hidden)

    def _why(self, real: str, action: Action) -> str | None:
        key, inodes = self._disk.key(real), self._disk.inodes([real, *Path(real).parents])
        if key in self._named or any(_is_in(key, folder) for folder in self.folders) or inodes & self._inodes:
            return _OF_POLICY
        if any(_is_in(key, prefix) and _fits(key[len(prefix) :], rest) for prefix, rest in self.globs):
            return _OF_POLICY
        if action == "write" and (key in self._above or self._disk.inode(real) in self._above_inodes):
            return _OF_POLICY
        if self._is_hidden_skill(real, key, inodes):
            return _OF_SKILL
        is_kept = any(_is_in(key, folder) for folder in (*self.roots, *self.kept)) or inodes & self._kept_inodes
        return _OF_KEPT if action == "write" and is_kept else None

    def _is_hidden_skill(self, real: str, key: _Key, inodes: set[_Inode]) -> bool:
        """Whether it lies in a skill's folder that no visible skill owns; the skill may be unread or never loaded."""
        # A visible skill below a hidden one: some roots are skills themselves, and close none of those below.
        inner = max((len(folder) for folder in self.visible if _is_in(key, folder)), default=-1)
        hidden = [len(folder) for folder in self.hidden if _is_in(key, folder)]
        if (hidden or inodes & self._hidden_inodes) and inner <= max(hidden, default=-1):
            return True
        owners = [_skill_below(real, key, root) for root in self.roots if _is_in(key, root)]
        return any(owner is not None and owner not in self.visible for owner in owners)


def _skill_below(real: str, key: _Key, root: _Key) -> _Key | None:
    """The folder of the skill that a path below a root lies in, the outermost; None when it lies in none."""
    parts = Path(real).parts
    for depth in range(len(root) + 1, len(parts) + 1):
        if os.path.lexists(os.path.join(*parts[:depth], "SKILL.md")):
            return key[:depth]
    has_own = len(key) > len(root) and os.path.lexists(os.path.join(*parts[: len(root)], "SKILL.md"))
    return root if has_own else None


class PathGlob:
    """A glob of files: its folder as far as it is plain, and the patterns of the segments below."""

    def __init__(self, root: Path, glob: str) -> None:
        parts = Path(glob).parts
        plain = next((i for i, part in enumerate(parts) if any(c in part for c in "*?[")), len(parts) - 1)
        self.folder = root.joinpath(*parts[:plain])
        self.rest = parts[plain:]

    def existing(self) -> Iterator[Path]:
        """What it names now, with what links among that lead to."""
        pattern = "/".join(self.rest)
        for path in self.folder.glob(pattern) if pattern and self.folder.is_dir() else ():
            yield path
            if path.is_symlink():
                yield Path(os.path.realpath(path))


def _fits(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        return any(_fits(parts[i:], patterns[1:]) for i in range(len(parts) + 1))
    return bool(parts) and matches(parts[0], patterns[0]) and _fits(parts[1:], patterns[1:])


class _Disk:
    """What paths lead to, looked up once each: for one moment's questions, which name the same folders again."""

    def __init__(self) -> None:
        self._reals: dict[str, str] = {}
        self._keys: dict[str, _Key] = {}
        self._inodes: dict[str, _Inode | None] = {}

    def real(self, path: str | Path) -> str:
        """The path with every link followed, as `os.path.realpath` has it."""
        text = os.fspath(path)
        found = self._reals.get(text)
        if found is None:
            found = self._reals[text] = self._resolved(text)
        return found

    def _resolved(self, path: str) -> str:
        head, tail = os.path.split(path.rstrip("/"))
        if not head or head == path or not tail or tail in (".", "..") or os.path.islink(path):
            return os.path.realpath(path)
        return os.path.join(self.real(head), tail)

    def key(self, path: str | Path) -> _Key:
        """The segments of the resolved path, folded for comparing."""
        real = self.real(path)
        found = self._keys.get(real)
        if found is None:
            found = self._keys[real] = tuple(map(_fold, Path(real).parts))
        return found

    def keys(self, paths: Iterable[Path]) -> tuple[_Key, ...]:
        """Their keys, each once."""
        return tuple(dict.fromkeys(map(self.key, paths)))

    def inode(self, path: str | Path) -> _Inode | None:
        """Device and inode that the path leads to; None when there is nothing."""
        text = os.fspath(path)
        if text not in self._inodes:
            try:
                found = os.stat(text)
                self._inodes[text] = (found.st_dev, found.st_ino)
            except (OSError, ValueError):
                self._inodes[text] = None
        return self._inodes[text]

    def inodes(self, paths: Iterable[str | Path]) -> set[_Inode]:
        """The inodes of those that are there."""
        return {inode for path in paths if (inode := self.inode(path))}


def _fold(part: str) -> str:
    """A segment as the most forgiving file system reads it: no case, no invisible characters, no dots at its end."""
    if part.isascii() and part.isprintable():
        return part.lower().rstrip(". ") or part
    visible = "".join(c for c in part if unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold()).rstrip(". ") or part


def _is_in(key: _Key, folder: _Key) -> bool:
    return key[: len(folder)] == folder
