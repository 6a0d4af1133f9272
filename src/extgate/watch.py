"""Watches what decides: profiles, `extgate.yaml`, MCP configuration, skills and plugins, by the digest of their text.

`watchfiles` tells when to look; without it, or where the system can watch no more folders, the files are looked at once
a second, which is said. Events are never trusted: a change is another digest, seen twice, so that editors which replace
a file, write it in steps or leave temporary files beside it give one change or none.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from extgate.enforce.guarded_paths import PathGlob
from extgate.errors import UNFORESEEN, ExtgateError
from extgate.homes import Homes
from extgate.policy_places import policy_files, skill_roots

POLL_S = 1.0
"""How often files are looked at where nothing tells of changes."""
RECHECK_S = 5.0
"""How often they are looked at although something tells, because a system may lose events."""
SETTLE_S = 0.05
"""Two looks this far apart must agree."""
MAX_BYTES = 4 * 1024 * 1024
"""Of a longer file only size and time are compared."""
MAX_FOLDERS = 20_000

Snapshot = dict[str, str]
"""Digest by path."""


def snapshot(homes: Homes, also: Iterable[Path] = (), known: dict[str, tuple[object, str]] | None = None) -> Snapshot:
    """What decides, as it is on disk now.

    also: further files. known: a memo of digests by size, time and inode, kept by the caller.
    """
    memo = {} if known is None else known
    return {os.fspath(path): digest for path in (*also, *_files(homes)) if (digest := _digest(path, memo))}


def _files(homes: Homes) -> Iterator[Path]:
    for glob in policy_files(homes):
        yield from PathGlob(homes.root, glob).existing()
    for root in skill_roots(homes):
        yield from _below(root, lambda name: name.lower() == "skill.md")
    for place in homes.plugins:
        yield from _below(homes.root / place, lambda name: name.lower().endswith(_MANIFESTS))


_MANIFESTS = (".json", ".toml", ".yaml", ".yml", ".md")


def _below(root: Path, is_wanted: Callable[[str], bool]) -> Iterator[Path]:
    """The wanted files below a folder, and every link, whose target decides where it leads."""
    for count, (folder, folders, files) in enumerate(os.walk(root)):
        if count >= MAX_FOLDERS:
            return
        here = Path(folder)
        yield from (here / name for name in folders if (here / name).is_symlink())
        yield from (here / name for name in files if is_wanted(name) or (here / name).is_symlink())


def _digest(path: Path, memo: dict[str, tuple[object, str]]) -> str:
    """Empty for what is gone meanwhile."""
    try:
        link = os.readlink(path) if path.is_symlink() else ""
        if not path.is_file():
            return f"link {link}" if link else ""
        found = path.stat()
        mark = (link, found.st_size, found.st_mtime_ns, found.st_ino, found.st_ctime_ns)
        kept = memo.get(os.fspath(path))
        if kept and kept[0] == mark:
            return kept[1]
        digest = f"{mark}" if found.st_size > MAX_BYTES else hashlib.sha256(path.read_bytes()).hexdigest() + link
    except OSError as error:
        return f"unreadable {error.errno}" if path.is_symlink() or path.exists() else ""
    memo[os.fspath(path)] = (mark, digest)
    return digest


def folders_to_watch(homes: Homes, also: Iterable[Path] = ()) -> tuple[frozenset[str], frozenset[str]]:
    """The folders that exist and in which a change can matter: those watched alone, and those with all below."""
    globs = [PathGlob(homes.root, glob) for glob in policy_files(homes)]
    deep = [*skill_roots(homes), *(homes.root / place for place in homes.plugins)]
    deep += [glob.folder for glob in globs if len(glob.rest) > 1 and glob.folder != homes.root]
    also = tuple(also)
    flat = [homes.root, *(glob.folder for glob in globs), *(path.parent for path in also)]
    found = (*also, *(path for glob in globs for path in glob.existing()))
    flat += [Path(os.path.realpath(path)).parent for path in found]
    # Where a folder is not there yet, the nearest one above tells of its making.
    flat += [_nearest(folder) for folder in (*deep, *flat) if not folder.is_dir()]
    existing = frozenset(os.path.realpath(folder) for folder in deep if folder.is_dir())
    return frozenset(os.path.realpath(folder) for folder in flat if folder.is_dir()) - existing, existing


def _nearest(folder: Path) -> Path:
    return next((above for above in folder.absolute().parents if above.is_dir()), Path("/"))


class Watcher:
    """Calls `on_change` with the paths whose text became another, from a thread of its own, while it is entered.

    homes: asked anew after every change, because `extgate.yaml` moves them. also: further files. own: a file that this
    process writes itself, whose growing is no news. say: takes a line for people. The files are read when it is made,
    so make it before what it watches is read.
    """

    def __init__(
        self,
        homes: Callable[[], Homes],
        on_change: Callable[[tuple[str, ...]], None],
        *,
        say: Callable[[str], None],
        also: tuple[Path, ...] = (),
        own: Path | None = None,
        poll_s: float = POLL_S,
        is_polling: bool = False,
    ) -> None:
        self._also = also
        self._homes, self._on_change, self._say, self._poll_s = homes, on_change, say, poll_s
        self._memo: dict[str, tuple[object, str]] = {}
        self._last = self._snapshot()
        self._wake, self._is_over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="extgate-watch", daemon=True)
        written = os.path.realpath(own) if own is not None else ""
        self._feeds = (
            None if is_polling else _feeds(self._wake, say, lambda path: path == written and path not in self._last)
        )

    def __enter__(self) -> Watcher:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._is_over.set()
        self._wake.set()
        self._thread.join()

    @property
    def is_polling(self) -> bool:
        """Whether files are looked at by the clock, because nothing tells of changes."""
        return self._feeds is None or self._feeds.has_failed

    def look(self) -> None:
        """Looks now and not when something tells."""
        self._wake.set()

    def _run(self) -> None:
        try:
            while not self._is_over.is_set():
                if self._feeds:
                    self._feeds.follow(*folders_to_watch(self._homes(), self._also))
                try:
                    self._compare()
                except (ExtgateError, OSError, *UNFORESEEN) as error:
                    # One look that fails must not be the last: what is in force stays, and the next look follows.
                    self._say(f"an edit could not be taken ({type(error).__name__}: {error}); what was in force stays")
                self._wake.wait(self._poll_s if self.is_polling else RECHECK_S)
                self._wake.clear()
        finally:
            if self._feeds:
                self._feeds.close()
            if not self._is_over.is_set():
                self._say("watching has stopped: edits no longer take effect; restart this process")

    def _compare(self) -> None:
        settled = self._settled()
        changed = {path for path in {*settled, *self._last} if settled.get(path) != self._last.get(path)}
        self._last = settled
        if changed and not self._is_over.is_set():
            self._on_change(tuple(sorted(changed)))

    def _snapshot(self) -> Snapshot:
        return snapshot(self._homes(), self._also, self._memo)

    def _settled(self) -> Snapshot:
        """What two looks in a row have seen; what never settles is taken as it stands after five seconds."""
        found = self._snapshot()
        for _ in range(100):
            if found == self._last or self._is_over.wait(SETTLE_S):
                return found
            again = self._snapshot()
            if again == found:
                return found
            found = again
        return found


def _feeds(wake: threading.Event, say: Callable[[str], None], is_own: Callable[[str], bool]) -> _Feeds | None:
    try:
        module = importlib.import_module("watchfiles")
    except ImportError:
        say(f"watchfiles is not installed: files are looked at every {POLL_S:g} s; install extgate[chat]")
        return None
    return _Feeds(module, wake, say, is_own)


class _Feeds:
    """Two threads of `watchfiles`, for folders alone and with all below, that wake the watcher."""

    def __init__(
        self, watchfiles: Any, wake: threading.Event, say: Callable[[str], None], is_own: Callable[[str], bool]
    ) -> None:
        self._watchfiles, self._wake, self._say, self._is_own = watchfiles, wake, say, is_own
        self._following: tuple[frozenset[str], frozenset[str]] | None = None
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.has_failed = False

    def follow(self, flat: frozenset[str], deep: frozenset[str]) -> None:
        """Watches these folders, and no longer those of before."""
        if self._following == (flat, deep) or self.has_failed:
            return
        self.close()
        self._following, self._stop = (flat, deep), threading.Event()
        for folders, is_deep in ((flat, False), (deep, True)):
            if folders:
                args = (sorted(folders), is_deep, self._stop)
                self._threads.append(threading.Thread(target=self._feed, args=args, name="extgate-feed", daemon=True))
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends the threads."""
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def _feed(self, folders: Iterable[str], is_deep: bool, stop: threading.Event) -> None:
        watch = self._watchfiles.watch
        news = watch(
            *folders, watch_filter=None, step=10, debounce=50, stop_event=stop, recursive=is_deep, rust_timeout=200,
            yield_on_timeout=True,
        )  # fmt: skip
        try:
            # The first answer, with or without news, shows that watching has begun: what came before it was not seen.
            for count, changes in enumerate(news):
                # A gateway's record may lie in the workspace and grow with every call.
                if count == 0 or not all(self._is_own(path) for _, path in changes):
                    self._wake.set()
        except (OSError, RuntimeError) as error:  # no more folders can be watched, or one went away meanwhile
            if not stop.is_set():
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.has_failed = True
        self._say(f"the system cannot watch these folders ({error}): files are looked at every {POLL_S:g} s")
        self._wake.set()
