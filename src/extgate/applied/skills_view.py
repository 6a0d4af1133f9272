"""The skills that an agent may see, in a folder of their own, for runtimes that only know folders.

Copies, so that nothing that is not a visible skill's own file is in it: a link inside a skill that leads out of it is
left out. It lies with extgate's data, which gated file tools may read and not write; the runtime's own skill folder
gets a link to each skill in it. A skill that is denied later is gone from it at the next `refresh`.
"""

from __future__ import annotations

import contextlib
import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from extgate.applied.plan import Ground
from extgate.core.extension import Extension
from extgate.core.names import refusal
from extgate.homes import user_data_dir
from extgate.runtime_places import user_folder

MAX_FILES = 2_000
MAX_BYTES = 64 * 1024 * 1024
"""A skill with more is left out of the view."""
_HOMES = {
    "claude-code": (".claude/skills", "skills"),
    "codex": (".codex/skills", "skills"),
    "gemini": (".gemini/skills", "skills"),
    "hermes": ("", "skills"),
    "opencode": (".opencode/skills", "skills"),
}
"""The runtime's own folder of skills: in a project, and in the user's folder."""


def view_folder(ground: Ground) -> Path:
    """Where the view of this runtime and place lies."""
    return user_data_dir() / "views" / ground.account.folder.name


def visible(ground: Ground) -> dict[str, Path]:
    """The folders of the visible skills that the runtime does not have itself, by the name they get there."""
    own = [os.path.realpath(root) for root in ground.view.skill_roots]
    found: dict[str, Path] = {}
    for ext in ground.skills("allow"):
        folder = os.path.dirname(os.path.realpath(ext.file or ""))
        if _is_plain(ext) and not any(folder == root or folder.startswith(root + os.sep) for root in own):
            found.setdefault(ext.leaf, Path(folder))
    return found


def links(ground: Ground) -> dict[Path, Path]:
    """The runtime's own entries, with what each leads to; where something else stands already there is none."""
    project, user = _HOMES[ground.view.runtime]
    home = ground.view.project / project if ground.scope == "project" else user_folder(ground.view.runtime) / user
    folder = view_folder(ground)
    wanted = {home / name: folder / name for name in visible(ground)}
    return {path: target for path, target in wanted.items() if not os.path.lexists(path) or _leads(path, target)}


def refresh(folder: Path, skills: Mapping[str, Path]) -> tuple[str, ...]:
    """Makes the folder hold exactly these skills; returns the names of those that are too large for it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in sorted(folder.iterdir()):
        if old.name not in skills:
            _remove(old)
    return tuple(name for name, source in skills.items() if not _copied(source, folder / name))


def _copied(source: Path, target: Path) -> bool:
    files = dict(_files(source))
    if len(files) > MAX_FILES or sum(os.path.getsize(path) for path in files.values()) > MAX_BYTES:
        _remove(target)
        return False
    if _is_same(files, target):
        return True
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    for name, path in files.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, made / name)
        shutil.copymode(path, made / name)
    made.chmod(0o755)
    _remove(target)
    made.rename(target)
    return True


def _files(source: Path) -> Iterator[tuple[str, str]]:
    """Every file of a skill by its name in it; what leads out of the skill's folder is left out."""
    root = os.path.realpath(source)
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not os.path.islink(os.path.join(folder, name)))
        for name in sorted(names):
            path = os.path.join(folder, name)
            real = os.path.realpath(path)
            if os.path.isfile(real) and real.startswith(root + os.sep):
                yield os.path.relpath(path, root), real


def _is_same(files: Mapping[str, str], target: Path) -> bool:
    there = dict(_files(target)) if target.is_dir() and not target.is_symlink() else {}
    return there.keys() == files.keys() and all(filecmp.cmp(files[n], there[n], shallow=False) for n in files)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_plain(ext: Extension) -> bool:
    return (
        not refusal(ext.leaf) and ext.leaf not in (".", "..") and "\\" not in ext.leaf and not ext.leaf.startswith(".")
    )


def _leads(path: Path, target: Path) -> bool:
    return path.is_symlink() and os.readlink(path) == os.fspath(target)


def relink(old: Mapping[str, str], new: Mapping[Path, Path]) -> None:
    """Takes away the links that were made and are not wanted any more, and makes those that are. Others' stay."""
    wanted = {os.fspath(path): os.fspath(target) for path, target in new.items()}
    for path, target in old.items():
        if wanted.get(path) != target and _leads(Path(path), Path(target)):
            os.unlink(path)
            with contextlib.suppress(OSError):  # others' skills are in it
                os.rmdir(os.path.dirname(path))
    for path, target in wanted.items():
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(target, path)
