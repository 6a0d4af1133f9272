"""The runtimes that can be put under a profile, one row each; `native` ones are under their profile already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extgate.applied import claude_code, codex, gemini, hermes, opencode
from extgate.applied.plan import Ground, Plan

PLANS: Mapping[str, Callable[[Ground], Plan]] = {
    "claude-code": claude_code.plan,
    "codex": codex.plan,
    "opencode": opencode.plan,
    "gemini": gemini.plan,
    "hermes": hermes.plan,
}
USERS_ONLY = ("codex", "hermes")
"""Runtimes that only the user's own files always hold for."""
