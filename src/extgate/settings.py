"""What `extgate.yaml` says of running processes: `reload`, `dispatch` and `audit`; and where they keep their files."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from extgate.dialects.node import Node
from extgate.enforce.dispatch import LIVENESS_S
from extgate.enforce.in_force import Mode
from extgate.errors import DialectError
from extgate.homes import CONFIG, Homes

MAX_LIVENESS_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How changes take effect, how old liveness may be in seconds, and where the record goes."""

    reload: Mode
    liveness_s: float
    audit_file: Path


def read_settings(homes: Homes) -> Settings:
    """The settings of a workspace. Raises DialectError at the line of a value that has no meaning."""
    node, file = homes.node, str(homes.root / CONFIG)
    given = node.items if node is not None else {}
    return Settings(
        reload=_reload(given.get("reload"), file),
        liveness_s=_liveness(given.get("dispatch"), file),
        audit_file=_audit_file(given.get("audit"), homes, file),
    )


def _reload(node: Node | None, file: str) -> Mode:
    if node is None or node.scalar == "auto":
        return "auto"
    if node.scalar == "narrow":
        return "narrow"
    raise DialectError(f"reload: {node.shown} is neither", file=file, line=node.line, fix="write `auto` or `narrow`")


def _liveness(node: Node | None, file: str) -> float:
    if node is None:
        return LIVENESS_S
    value = node.items.get("liveness_s") if node.kind == "map" else None
    if value is None or set(node.items) != {"liveness_s"}:
        message = f"dispatch: expected a mapping with `liveness_s` alone, got {node.shown}"
        raise DialectError(message, file=file, line=node.line, fix=f"write `dispatch: {{liveness_s: {LIVENESS_S:g}}}`")
    seconds = value.scalar
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds <= MAX_LIVENESS_S:
        message = f"dispatch.liveness_s: expected seconds up to {MAX_LIVENESS_S:g}, got {value.shown}"
        raise DialectError(message, file=file, line=value.line, fix=f"write {LIVENESS_S:g}")
    return float(seconds)


def _audit_file(node: Node | None, homes: Homes, file: str) -> Path:
    if node is None:
        return default_audit_file(homes.root)
    if not isinstance(node.scalar, str) or not node.scalar.strip():
        message = f"audit: expected the path of a file, got {node.shown}"
        raise DialectError(message, file=file, line=node.line, fix="write `audit: audit.jsonl`, or remove the key")
    return homes.root / os.path.expanduser(node.scalar.strip())


def default_audit_file(root: Path) -> Path:
    """Where a workspace's record lies unless it says otherwise: one file each, outside the project."""
    real = os.path.realpath(root)
    digest = hashlib.sha256(real.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", Path(real).name)[:40] or "root"
    return user_state_dir() / "audit" / f"{name}-{digest}.jsonl"


def user_state_dir() -> Path:
    """Where trust, audit files and the control sockets of processes without a runtime folder lie."""
    return _xdg("XDG_STATE_HOME") or Path.home() / ".local" / "state" / "extgate"


def user_runtime_dir() -> Path:
    """Where running processes put their control sockets; the state folder where the system gives none."""
    return _xdg("XDG_RUNTIME_DIR") or user_state_dir() / "run"


def _xdg(name: str) -> Path | None:
    """The variable's folder; a relative one is ignored, as the XDG Base Directory Specification 0.8 says."""
    value = os.environ.get(name, "")
    return Path(value) / "extgate" if os.path.isabs(value) else None
