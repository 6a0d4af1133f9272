"""How an agent program is started so that what it does passes extgate: environment, flags and files of one process.

Nothing of the user's is written. Sources, seen 2026-11-30: the programs themselves at the versions in
`discover/builtins/*.toml`, run against a scripted model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from extgate.applied.plan import GATEWAY, HOOK_S
from extgate.applied.trees import edit
from extgate.enforce.wire.front import PROOF
from extgate.errors import WorkspaceError

PROGRAMS = {
    "claude-code": "claude", "codex": "codex", "opencode": "opencode", "gemini": "gemini", "hermes": "hermes",
}  # fmt: skip
"""By runtime what its program is called."""
CLIENTS = {"gemini": "gemini-cli"}
"""By runtime what the wire calls it, where that is something else."""
HELD = "held-by-extgate"
"""Stands where a program insists on a key that it does not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a program is put behind. wire, mcp: addresses. token: proves that it is this agent; empty: nobody asks.

    folder: for files that live as long as the process. hook: the hook's command for a shell. settings: what a program
    reads of its own lists and hooks, in its own form. upstreams: addresses of providers, where files name them.
    holds: providers whose key extgate holds. denied: the gateway's names of tools that the program's own files deny.
    """

    wire: str
    mcp: str
    token: str
    folder: Path
    project: Path
    hook: str
    environ: Mapping[str, str]
    settings: Mapping[str, Any] = field(default_factory=dict)
    upstreams: Mapping[str, str] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    denied: tuple[str, ...] = ()

    @property
    def proof(self) -> str:
        return f"Bearer {self.token}" if self.token else ""

    @property
    def headers(self) -> dict[str, str]:
        """Of a request to the MCP gateway."""
        return {"Authorization": self.proof} if self.token else {}

    @property
    def wire_headers(self) -> dict[str, str]:
        return {PROOF: self.proof} if self.token else {}

    def write(self, name: str, content: Mapping[str, Any]) -> str:
        """A file for this process alone; its path."""
        path = self.folder / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        return str(path)

    def key(self, provider: str, variable: str) -> dict[str, str]:
        """What a program that needs a key finds in the environment when extgate holds it."""
        return {variable: HELD} if provider in self.holds and not self.environ.get(variable) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What is added to the program's environment and stands before its own arguments. walls: which stand then.

    left: what is to be known of it.
    """

    env: Mapping[str, str]
    args: tuple[str, ...] = ()
    walls: tuple[str, ...] = ("wire", "gateway", "hook")
    left: tuple[str, ...] = ()


def claude_code(place: Place) -> Start:
    """Claude Code: the gateway is its only list of servers, whatever files say."""
    server = {"type": "http", "url": place.mcp, "headers": place.headers}
    said = [place.environ.get("ANTHROPIC_CUSTOM_HEADERS", ""), *(f"{k}: {v}" for k, v in place.wire_headers.items())]
    return Start(
        env={
            "ANTHROPIC_BASE_URL": f"{place.wire}/anthropic",
            "ANTHROPIC_CUSTOM_HEADERS": "\n".join(filter(None, said)),
            **place.key("anthropic", "ANTHROPIC_API_KEY"),
        },
        args=(
            "--settings", place.write("settings.json", place.settings),
            "--mcp-config", place.write("mcp.json", {"mcpServers": {GATEWAY: server}}), "--strict-mcp-config",
        ),
    )  # fmt: skip


def codex(place: Place) -> Start:
    """Codex: a provider and a list of servers by `-c`; a hook would have to be trusted in its own files first."""
    provider: dict[str, Any] = {"name": "extgate", "base_url": f"{place.wire}/openai/v1", "wire_api": "responses"}
    has_key = bool(place.environ.get("OPENAI_API_KEY")) or "openai" in place.holds
    provider |= {"env_key": "OPENAI_API_KEY"} if has_key else {"requires_openai_auth": True}
    server: dict[str, Any] = {"url": place.mcp, **({"disabled_tools": list(place.denied)} if place.denied else {})}
    if place.token:
        provider["env_http_headers"] = {PROOF: "EXTGATE_PROOF"}
        server["bearer_token_env_var"] = "EXTGATE_TOKEN"
    said = {
        "model_provider": "extgate", "model_providers.extgate": provider, "mcp_servers": {GATEWAY: server},
    }  # fmt: skip
    env = {"EXTGATE_PROOF": place.proof, "EXTGATE_TOKEN": place.token} if place.token else {}
    return Start(
        env={**env, **place.key("openai", "OPENAI_API_KEY")},
        args=tuple(word for key, value in said.items() for word in ("-c", f"{key}={_toml(value)}")),
        walls=("wire", "gateway"),
        left=("a login with ChatGPT goes to another address than an API key; set OPENAI_API_KEY",)
        if not has_key
        else (),
    )


def opencode(place: Place) -> Start:
    """opencode: what its environment says is laid over its files; servers of theirs are turned off by name."""
    files = [place.project / "opencode.json", place.project / "opencode.jsonc"]
    home = Path(place.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "opencode"
    files += [home / "opencode.json", home / "opencode.jsonc", home / "config.json"]
    own = [_read(file) for file in files]
    headers = {"headers": place.wire_headers} if place.token else {}
    bases = {"anthropic": "anthropic/v1", "openai": "openai/v1", "google": "gemini/v1beta"}
    left = []
    for found in own:
        for name, row in _mapping(found.get("provider")).items():
            url = _mapping(_mapping(row).get("options")).get("baseURL")
            provider = next(
                (p for p, base in place.upstreams.items() if isinstance(url, str) and _is_at(url, base)), ""
            )
            if provider:
                bases[name] = {"anthropic": "anthropic/v1", "openai": "openai/v1"}.get(provider, "gemini/v1beta")
            elif isinstance(url, str) and name not in bases:
                left.append(f"the provider `{name}` at {url} does not pass the wire; name the address under `wire:`")
    providers = {
        name: {"options": {"baseURL": f"{place.wire}/{base}", **headers}} for name, base in bases.items()
    }  # fmt: skip
    others = {name: {"enabled": False} for found in own for name in _mapping(found.get("mcp"))}
    server = {"type": "remote", "url": place.mcp, "headers": place.headers, "enabled": True}
    before = _mapping(_loads(place.environ.get("OPENCODE_CONFIG_CONTENT", "")))
    content: dict[str, Any] = {"provider": providers, "mcp": {**others, GATEWAY: server}}
    if place.denied:
        content["permission"] = _permission(before, own, place.denied)
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps({**before, **content})}
    return Start(env=env, walls=("wire", "gateway"), left=tuple(left))


def _permission(before: Mapping[str, Any], own: Sequence[Mapping[str, Any]], denied: Iterable[str]) -> dict[str, Any]:
    """opencode's permissions with these tools denied last. A text holds for everything, and would be lost below it."""
    said: object = next((found["permission"] for found in (before, *own) if "permission" in found), {})
    kept = {"*": said} if isinstance(said, str) else _mapping(before.get("permission"))
    return {**kept, **{f"{GATEWAY}_{name}": "deny" for name in denied}}


def gemini(place: Place) -> Start:
    """Gemini CLI: settings of the system's place, over those that are there."""
    variable = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
    before = _read(Path(place.environ.get(variable) or "/etc/gemini-cli/settings.json"))
    hook = {"name": "extgate", "type": "command", "command": place.hook, "timeout": HOOK_S * 1000}
    hooks = _mapping(before.get("hooks"))
    less = {"excludeTools": list(place.denied)} if place.denied else {}
    settings = {
        **before,
        "mcpServers": {GATEWAY: {"httpUrl": place.mcp, "headers": place.headers, **less}},
        "mcp": {**_mapping(before.get("mcp")), "allowed": [GATEWAY]},
        "hooksConfig": {**_mapping(before.get("hooksConfig")), "enabled": True},
        "hooks": {**hooks, "BeforeTool": [*hooks.get("BeforeTool", []), {"matcher": ".*", "hooks": [hook]}]},
    }
    said = [place.environ.get("GEMINI_CLI_CUSTOM_HEADERS", ""), *(f"{k}: {v}" for k, v in place.wire_headers.items())]
    env = {
        variable: place.write("gemini.json", settings),
        "GOOGLE_GEMINI_BASE_URL": f"{place.wire}/gemini",
        "GEMINI_CLI_CUSTOM_HEADERS": ", ".join(filter(None, said)),
    }
    return Start(env={**env, **place.key("gemini", "GEMINI_API_KEY")})


def hermes(place: Place) -> Start:
    """Hermes: a home that is the user's but for its `config.yaml`. It has no header for a proof of its own."""
    home = Path(place.environ.get("HERMES_HOME") or Path.home() / ".hermes")
    made = place.folder / "hermes"
    made.mkdir()
    for entry in home.iterdir() if home.is_dir() else ():
        if entry.name != "config.yaml":
            (made / entry.name).symlink_to(entry)
    config = _mapping(_yaml(home / "config.yaml"))
    model = _mapping(config.get("model"))
    model |= {"provider": "custom", "base_url": f"{place.wire}/openai/v1"}
    model |= {"api_key": place.environ.get("OPENAI_API_KEY", HELD)} if not model.get("api_key") else {}
    less = {"tools": {"exclude": list(place.denied)}} if place.denied else {}
    server = {"url": place.mcp, "headers": place.headers, **less}
    (made / "config.yaml").write_text(json.dumps({**config, "model": model, "mcp_servers": {GATEWAY: server}}))
    return Start(env={"HERMES_HOME": str(made)}, walls=("wire", "gateway"))


WALLS = {
    "wire": "its model is not behind the wire", "gateway": "its servers are not behind the gateway",
    "hook": "its own calls pass no hook, so what it runs without a call of its model is not refused; `extgate apply "
    "{runtime} {agent}` sets one",
}  # fmt: skip
"""By wall what is so without it."""


def missing(runtime: str, agent: str, start: Start) -> list[str]:
    """What is to be said of the walls that do not stand."""
    return [text.format(runtime=runtime, agent=agent) for wall, text in WALLS.items() if wall not in start.walls]


STARTS: Mapping[str, Callable[[Place], Start]] = {
    "claude-code": claude_code, "codex": codex, "opencode": opencode, "gemini": gemini, "hermes": hermes,
}  # fmt: skip
NO_PROOF = frozenset({"hermes"})
"""Programs that can send no header of ours to a provider."""


def _toml(value: Any) -> str:
    """A value as TOML in one line."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(k)}={_toml(v)}" for k, v in value.items()) + "}"
    return json.dumps(value)


def _read(path: Path) -> Mapping[str, Any]:
    """The mapping in a JSON file with comments; empty when there is none. Raises WorkspaceError, OSError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeError:
        raise WorkspaceError("is not UTF-8", file=str(path)) from None
    return _mapping(edit(text, "json", str(path)).get(())) if text.strip() else {}


def _yaml(path: Path) -> Any:
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (yaml.YAMLError, UnicodeError) as error:
        raise WorkspaceError(f"cannot be read: {type(error).__name__}", file=str(path)) from None


def _loads(text: str) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return {}


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _is_at(url: str, base: str) -> bool:
    """Whether a program's address of a provider is one below an upstream's."""
    return bool(base) and (url.rstrip("/") == base or url.startswith(base.rstrip("/") + "/"))
