"""The runtimes that can be put under a profile, one row each; `native` ones are under their profile already."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extgate.applied import claude_code, codex
from extgate.applied.plan import Ground, Plan

PLANS: Mapping[str, Callable[[Ground], Plan]] = {
    "claude-code": claude_code.plan,
    "codex": codex.plan,
}
NATIVE = ("openprogram", "msagent")
"""Runtimes whose own dialects the profiles are written in."""
