"""Whether any of many files is another than it was: what somebody has to know who keeps what was read from them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_BELOW = 20_000
"""Files and folders below watched folders; with more nothing is taken for unchanged."""
_FRESH_NS = 100_000_000
"""A file that changed so shortly before it was looked at may change again within one tick of its clock."""
_SUFFIXES = (".md", ".json", ".jsonc", ".toml", ".yaml", ".yml")

Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """Watched places. globs: (folder, glob) pairs, expanded anew each time. below: what was found under folders.

    is_whole: whether everything below the folders is in it.
    """

    globs: tuple[tuple[Path, str], ...]
    below: tuple[str, ...]
    is_whole: bool

    @classmethod
    def of(cls, globs: Iterable[tuple[Path, str]], folders: Iterable[Path]) -> Stamps:
        """The places as they are. folders: watched with everything below that could be a setting."""
        found: list[str] = []
        for path in _all_below(dict.fromkeys(map(os.path.realpath, folders))):
            found.append(path)
            if len(found) > MAX_BELOW:
                break
        return cls(globs=tuple(dict.fromkeys(globs)), below=tuple(found), is_whole=len(found) <= MAX_BELOW)

    def now(self) -> Stamp:
        """A stamp of each file that is there, and of each place where none is."""
        paths = [path for folder, glob in self.globs for path in _expanded(folder, glob)]
        return tuple(_stat(path) for path in (*paths, *self.below))

    def still(self, stamp: Stamp | None) -> bool:
        """Whether nothing can have changed since that stamp was taken."""
        return stamp is not None and self.is_whole and self.now() == stamp


def settled(stamp: Stamp) -> Stamp | None:
    """The stamp, taken just now; None when one of its files changed so lately that a further edit could not be told."""
    newest = max((row[1] for row in stamp), default=0)
    return None if newest > time.time_ns() - _FRESH_NS else stamp


def _expanded(folder: Path, glob: str) -> list[str]:
    if not any(c in glob for c in "*?["):
        return [os.path.join(folder, glob)]
    return [str(folder), *sorted(map(str, folder.glob(glob)))] if folder.is_dir() else [str(folder)]


def _all_below(roots: Iterable[str]) -> Iterator[str]:
    for root in roots:
        yield root
        for folder, folders, files in os.walk(root):
            folders.sort()
            for name in (*folders, *sorted(file for file in files if file.endswith(_SUFFIXES))):
                yield os.path.join(folder, name)


def _stat(path: str) -> tuple[str, int, int, int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return (path, 0, 0, 0, 0)
    return (path, max(found.st_mtime_ns, found.st_ctime_ns), found.st_size, found.st_ino, found.st_dev)
