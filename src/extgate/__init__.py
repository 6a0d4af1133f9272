"""extgate: what may this agent see and use?

    from extgate import gate, match_any, check_required        # the three list helpers
    from extgate import Workspace                              # profiles, inventory and decisions of a directory

Importing this package costs what the standard library costs; each name is loaded when it is first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` would cost a hook, a process per call, more than all it does
if TYPE_CHECKING:
    from typing import Any

    from extgate.core.decide import Decision, decide
    from extgate.core.explain import Decider
    from extgate.core.extension import Extension, Finding, Inventory, Server
    from extgate.core.lists import check_required, gate, match_any
    from extgate.core.policy import ALLOW_ALL, Policy, Profile, Rule, inherit
    from extgate.dialects.document import Document
    from extgate.dialects.registry import read_agent
    from extgate.errors import DialectError, DocumentError, ExtgateError, PatternError, WorkspaceError
    from extgate.workspace import Workspace

__version__ = "0.1.0"

_HOMES = {
    "extgate.core.decide": ("Decision", "decide"),
    "extgate.core.explain": ("Decider",),
    "extgate.core.extension": ("Extension", "Finding", "Inventory", "Server"),
    "extgate.core.lists": ("check_required", "gate", "match_any"),
    "extgate.core.policy": ("ALLOW_ALL", "Policy", "Profile", "Rule", "inherit"),
    "extgate.dialects.document": ("Document",),
    "extgate.dialects.registry": ("read_agent",),
    "extgate.errors": ("DialectError", "DocumentError", "ExtgateError", "PatternError", "WorkspaceError"),
    "extgate.workspace": ("Workspace",),
}
_HOME_BY_NAME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ALLOW_ALL",
    "Decider",
    "Decision",
    "DialectError",
    "Document",
    "DocumentError",
    "Extension",
    "ExtgateError",
    "Finding",
    "Inventory",
    "PatternError",
    "Policy",
    "Profile",
    "Rule",
    "Server",
    "Workspace",
    "WorkspaceError",
    "check_required",
    "decide",
    "gate",
    "inherit",
    "match_any",
    "read_agent",
]


def __getattr__(name: str) -> Any:
    home = _HOME_BY_NAME.get(name)
    if home is None:
        raise AttributeError(f"module 'extgate' has no attribute '{name}'")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
