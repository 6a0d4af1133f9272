"""The runtimes whose hooks are answered, one row each."""

from __future__ import annotations

from extgate.enforce.hooks import claude_code, codex, gemini, hermes, opencode
from extgate.enforce.hooks.call import Hook

HOOKS: dict[str, Hook] = {
    "claude-code": claude_code,
    "codex": codex,
    "gemini": gemini,
    "hermes": hermes,
    "opencode": opencode,
}
"""By the name that the command line has for the runtime."""
