"""Which server commands and addresses somebody has approved, kept outside the project that asks for them.

One JSON file: digests of specs by the real path of the workspace. What is approved is exactly what was shown: another
argument, address, folder, name or plugin is another digest. What a command's own file says is not covered.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from extgate.core.extension import Finding
from extgate.discover.codes import finding
from extgate.discover.reading import UnreadableError, is_inside, read_bytes, write_private
from extgate.discover.server_config import ServerSpec
from extgate.errors import DiscoveryError

MAX_BYTES = 8 * 1024 * 1024

_Rows = dict[str, dict[str, str]]
_Kept = dict[str, _Rows]
"""Workspace, then digest, to what was shown; the texts are for people and decide nothing."""


def trust_file(environ: Mapping[str, str]) -> Path:
    """Where the store lies: `$XDG_STATE_HOME/extgate/trust.json`, else below `~/.local/state`.

    Source: XDG Base Directory Specification 0.8 (seen 2026-11-30); a relative value is ignored, as it says.
    """
    state = environ.get("XDG_STATE_HOME", "")
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    return (Path(state) if os.path.isabs(state) else home / ".local" / "state") / "extgate" / "trust.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStore:
    """The approvals for one workspace. A store that cannot be read approves nothing, and `problem` says why."""

    file: Path
    workspace: str
    digests: frozenset[str] = frozenset()
    problem: Finding | None = None

    @staticmethod
    def open(file: Path, workspace: Path) -> TrustStore:
        """Reads the approvals for a workspace. A file that is not there approves nothing."""
        place = os.path.realpath(workspace)
        try:
            kept = _load(file, place)
        except DiscoveryError as error:
            found = finding("EG320", error.message, file=file, fix=error.fix)
            return TrustStore(file=file, workspace=place, problem=found)
        return TrustStore(file=file, workspace=place, digests=frozenset(kept.get(place, {})))

    def is_trusted(self, spec: ServerSpec) -> bool:
        """Whether exactly this server was approved for this workspace."""
        return spec.error is None and spec.digest in self.digests

    def trust(self, specs: Iterable[ServerSpec]) -> TrustStore:
        """The store with these servers approved, written down. One that cannot be started anyway is left out.

        Raises DiscoveryError when the store cannot be read or written.
        """
        rows = {spec.digest: {"server": spec.name, "runs": spec.shown} for spec in specs if spec.error is None}
        return self._change(lambda mine: {**mine, **rows})

    def revoke(self, specs: Iterable[ServerSpec] | None = None) -> TrustStore:
        """The store without these servers, or without any of this workspace, written down.

        Raises DiscoveryError as `trust` does.
        """
        gone = None if specs is None else {spec.digest for spec in specs}
        return self._change(lambda mine: {} if gone is None else {d: row for d, row in mine.items() if d not in gone})

    def _change(self, change: Callable[[_Rows], _Rows]) -> TrustStore:
        """Reads, changes and writes the file while no other process does."""
        try:
            with _locked(self.file):
                kept = _load(self.file, self.workspace)
                kept[self.workspace] = change(kept.get(self.workspace, {}))
                text = json.dumps({"version": 1, "workspaces": kept}, indent=1, sort_keys=True)
                write_private(self.file, text.encode("utf-8", "surrogateescape"))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise DiscoveryError(f"cannot be written ({reason})", file=str(self.file)) from None
        return TrustStore(file=self.file, workspace=self.workspace, digests=frozenset(kept[self.workspace]))


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file.with_name(f".{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _load(file: Path, workspace: str) -> _Kept:
    """All that the file approves. Raises DiscoveryError for a file that must not or cannot be believed."""
    if is_inside(file, Path(workspace)):
        message = "lies inside the workspace, which could then approve itself"
        raise DiscoveryError(message, file=str(file), fix="point XDG_STATE_HOME at a folder outside it")
    try:
        data = json.loads(read_bytes(file, MAX_BYTES).decode("utf-8", "surrogateescape"))
    except UnreadableError as error:
        if error.cause == "missing":
            return {}
        raise DiscoveryError(str(error), file=str(file)) from None
    except (ValueError, RecursionError):
        raise DiscoveryError("is not the JSON of a trust store", file=str(file)) from None
    _refuse_open_to_others(file)
    return _checked(data, file)


def _refuse_open_to_others(file: Path) -> None:
    found = file.stat()
    if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise DiscoveryError("can be written by others", file=str(file), fix=f"chmod 600 {file}")


def _checked(data: object, file: Path) -> _Kept:
    match data:
        case {"version": 1, "workspaces": dict() as kept} if all(_is_approvals(v) for v in kept.values()):
            return kept
    raise DiscoveryError("is not the JSON of a trust store", file=str(file))


def _is_approvals(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(row, dict) for row in value.values())
