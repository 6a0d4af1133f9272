"""Built-in tools of the known runtimes, from one data file each, which names its source, version and date."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from extgate.core.extension import Extension
from extgate.errors import DiscoveryError

_DATA = files("extgate.discover") / "builtins"


def runtimes() -> tuple[str, ...]:
    """The runtimes whose tools are known, sorted."""
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in _DATA.iterdir() if entry.name.endswith(".toml")))


def builtin_tools(runtime: str) -> tuple[Extension, ...]:
    """The tools that a runtime brings by itself, each with the runtime as its source.

    facts: `builtin` (True), `group` (`shell`, `file`, `web`, ...), `read_only`, `default` (False: only with an option,
    a model or a mode, which `note` names), and `aliases` where it has other names. Raises DiscoveryError for an
    unknown runtime.
    """
    return _tools(runtime)


def builtin_source(runtime: str) -> Mapping[str, str]:
    """Where a runtime's tools were seen: `source`, `version`, `seen`. Raises DiscoveryError as `builtin_tools` does."""
    data = _load(runtime)
    return {key: str(data[key]) for key in ("source", "version", "seen")}


@cache
def _tools(runtime: str) -> tuple[Extension, ...]:
    return tuple(_tool(runtime, row) for row in _load(runtime)["tool"])


def _tool(runtime: str, row: Mapping[str, Any]) -> Extension:
    facts: dict[str, Any] = {
        "builtin": True,
        "group": row["group"],
        "read_only": row["read_only"],
        "default": row["default"],
    }
    facts |= {key: row[key] for key in ("note",) if key in row}
    facts |= {key: tuple(row[key]) for key in ("aliases", "toolsets") if key in row}
    return Extension(kind="tool", name=row["name"], source=runtime, facts=facts)


def _load(runtime: str) -> Mapping[str, Any]:
    if runtime not in runtimes():
        known = ", ".join(runtimes())
        raise DiscoveryError(f"no built-in tools are known of the runtime `{runtime}`", fix=f"known are {known}")
    return tomllib.loads((_DATA / f"{runtime}.toml").read_text(encoding="utf-8"))
