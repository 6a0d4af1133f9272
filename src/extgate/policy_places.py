"""Where the things lie that decide what a workspace's agents may do: what is watched, and closed to file tools."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from extgate.dialects.registry import NATIVE
from extgate.enforce.guarded_paths import Closed
from extgate.homes import CONFIG, Homes, user_cache_dir, user_config_dir, user_data_dir
from extgate.settings import read_settings, user_runtime_dir, user_state_dir

LOCK = "extgate.lock"


def policy_files(homes: Homes) -> tuple[str, ...]:
    """Globs of profiles, MCP configuration, `extgate.yaml` and the lock, relative to the workspace."""
    return (*homes.agents, *homes.servers, CONFIG, LOCK)


def native_files() -> tuple[str, ...]:
    """Globs of runtimes' own files, relative to the workspace: the hooks and lists that hold a runtime are in them."""
    globs = (glob for native in NATIVE.values() for glob in native.FILES if "/" in glob or native.NAME == "opencode")
    return tuple(dict.fromkeys(globs))


def skill_roots(homes: Homes) -> tuple[Path, ...]:
    """The project's, the user's and the pulled skills, there or not."""
    own = tuple(homes.root / place for place in homes.skills)
    return (*own, user_config_dir() / "skills", user_data_dir() / "skills")


def closed_places(homes: Homes, *, also: Iterable[Path] = ()) -> Closed:
    """What the file tools of a workspace's agents may not open.

    also: further policy files, as a profile that was given by its path. Raises DialectError for a bad `audit` key.
    """
    further = (*also, read_settings(homes).audit_file)
    return Closed(
        root=homes.root.absolute(),
        files=(*policy_files(homes), *native_files(), *(os.fspath(path.absolute()) for path in further)),
        folders=(user_state_dir(), user_runtime_dir(), user_cache_dir()),
        skills=skill_roots(homes),
        kept=(*(homes.root / place for place in homes.plugins), user_config_dir(), user_data_dir()),
    )
