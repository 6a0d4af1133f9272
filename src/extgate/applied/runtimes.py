"""The runtimes that can be put under a profile, one row each; `native` ones are under their profile already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extgate.applied import claude_code, codex, gemini, hermes, opencode
from extgate.applied.plan import Ground, Plan, Scope

PLANS: Mapping[str, Callable[[Ground], Plan]] = {
    "claude-code": claude_code.plan,
    "codex": codex.plan,
    "opencode": opencode.plan,
    "gemini": gemini.plan,
    "hermes": hermes.plan,
}
SCOPES: Mapping[str, tuple[Scope, ...]] = {
    "claude-code": ("project", "user"),
    "opencode": ("project", "user"),
    "gemini": ("user", "project"),
    "codex": ("user",),
    "hermes": ("user",),
}
"""Whose files a runtime always reads, the first by default: Codex and Gemini CLI leave out those of a folder that they
do not trust, Hermes has no others."""
