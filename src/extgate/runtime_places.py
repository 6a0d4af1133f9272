"""Where a runtime's own files lie that decide what its agents may do, in a project and in the user's home.

Source: the runtimes' documentation and what they open (Claude Code 2.1.332, Codex 0.171.0, opencode 1.18.33, Gemini CLI
0.61.0, Hermes 0.19.0), seen 2026-11-30.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PROJECT_FILES = {
    "claude-code": (".claude/settings.json", ".claude/settings.local.json", ".claude/agents/**/*.md", ".mcp.json"),
    "codex": (".codex/config.toml", ".codex/hooks.json", ".codex/agents/*.toml", ".codex/rules/*"),
    "gemini": (".gemini/settings.json", ".gemini/policies/*.toml", ".gemini/agents/*.md", ".gemini/.env", ".env"),
    "hermes": (".hermes/config.yaml", "hermes/config.yaml", ".hermes/plugins/**/*"),
    "opencode": (
        *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        *(f".opencode/{folder}/**/*" for folder in ("agent", "agents", "mode", "modes", "plugin", "plugins", "tool")),
        ".opencode/tools/**/*",
    ),
}
_USER_FILES = {
    "claude-code": ("settings.json", "settings.local.json", "agents/**/*.md", "plugins/**/*"),
    "codex": ("config.toml", "*.config.toml", "hooks.json", "agents/*.toml", "rules/*", "plugins/**/*"),
    "gemini": ("settings.json", "policies/*.toml", "agents/*.md", "extensions/**/*", "trustedFolders.json", ".env"),
    "hermes": ("config.yaml", "shell-hooks-allowlist.json", "plugins/**/*", ".env"),
    "opencode": (
        *("config.json", "opencode.json", "opencode.jsonc"),
        *(f"{folder}/**/*" for folder in ("agent", "agents", "mode", "modes", "plugin", "plugins", "tool", "tools")),
    ),
}
_SERVER_FILES = {
    "codex": ("config.toml",),
    "gemini": ("settings.json",),
    "hermes": ("config.yaml",),
    "opencode": ("config.json", "opencode.json", "opencode.jsonc"),
}
_RULE_FILES = {**_SERVER_FILES, "claude-code": ("settings.json",), "gemini": ("settings.json", "policies/*.toml")}
_SKILL_FOLDERS = {
    "claude-code": ("skills",),
    "codex": ("skills",),
    "gemini": ("skills",),
    "hermes": ("skills",),
    "opencode": ("skill", "skills"),
}
_VARIABLES = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "hermes": "HERMES_HOME"}
_FOLDERS = {"claude-code": ".claude", "codex": ".codex", "gemini": ".gemini", "hermes": ".hermes"}


def user_folder(runtime: str) -> Path:
    """The folder in which a runtime keeps what is the user's."""
    if given := os.environ.get(_VARIABLES.get(runtime, ""), ""):
        return Path(given).expanduser().absolute()
    if runtime == "opencode":
        config = os.environ.get("XDG_CONFIG_HOME", "")
        return (Path(config) if os.path.isabs(config) else Path.home() / ".config") / "opencode"
    return Path.home() / _FOLDERS[runtime]


def server_files(runtime: str) -> tuple[Path, ...]:
    """The user's own files in which the runtime finds MCP servers, there or not."""
    return tuple(user_folder(runtime) / name for name in _SERVER_FILES.get(runtime, ()))


def claude_state() -> Path:
    """Where Claude Code keeps the servers that are the user's own, beside much else."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR", "")
    return (Path(folder) if folder else Path.home()) / ".claude.json"


def rule_files(runtime: str) -> tuple[Path, ...]:
    """The user's own files, there, that say what the runtime's main agent may use."""
    folder = user_folder(runtime)
    return tuple(path for glob in _RULE_FILES[runtime] for path in sorted(folder.glob(glob)) if path.is_file())


def skill_folders(runtime: str) -> tuple[Path, ...]:
    """The user's own folders in which the runtime finds skills, there or not."""
    return tuple(user_folder(runtime) / name for name in _SKILL_FOLDERS[runtime])


def own_files(runtime: str, project: Path) -> tuple[str, ...]:
    """Absolute globs of the runtime's own files, there or not."""
    folder = user_folder(runtime)
    found = [project.absolute() / glob for glob in PROJECT_FILES[runtime]]
    found += [folder / glob for glob in _USER_FILES[runtime]]
    found += [claude_state()] if runtime == "claude-code" else []
    return tuple(map(str, found))


def installation() -> tuple[Path, ...]:
    """What runs as the hook: extgate's own code, and the virtual environment that it is in."""
    package = Path(__file__).resolve().parent
    return (package, Path(sys.prefix)) if sys.prefix != sys.base_prefix else (package,)
