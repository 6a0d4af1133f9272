"""Where the things lie that decide what a workspace's agents may do: what is watched, and closed to file tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from extgate.enforce.guarded_paths import Closed
from extgate.homes import CONFIG, Homes, user_cache_dir, user_config_dir, user_data_dir

LOCK = "extgate.lock"


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


def policy_files(homes: Homes) -> tuple[str, ...]:
    """Globs of profiles, MCP configuration, `extgate.yaml` and the lock, relative to the workspace."""
    return (*homes.agents, *homes.servers, CONFIG, LOCK)


def skill_roots(homes: Homes) -> tuple[Path, ...]:
    """The project's, the user's and the pulled skills, there or not."""
    own = tuple(homes.root / place for place in homes.skills)
    return (*own, user_config_dir() / "skills", user_data_dir() / "skills")


def closed_places(homes: Homes, *, also: Iterable[Path] = ()) -> Closed:
    """What the file tools of a workspace's agents may not open.

    also: further policy files, as a profile that was given by its path.
    """
    return Closed(
        root=homes.root.absolute(),
        files=(*policy_files(homes), *(os.fspath(path.absolute()) for path in also)),
        folders=(user_state_dir(), user_runtime_dir(), user_cache_dir()),
        skills=skill_roots(homes),
        kept=(*(homes.root / place for place in homes.plugins), user_config_dir(), user_data_dir()),
    )
