"""Rows of `tests/data/dialects.jsonl` as documents of a runtime, an inventory, and the question they ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Profile
from extgate.dialects.as_run import is_listed
from extgate.dialects.document import Document
from extgate.dialects.registry import NATIVE
from extgate.discover.builtins import builtin_tools
from extgate.errors import DocumentError

Row = dict[str, Any]
VERSIONS = {
    "claude-code": "2.1.332",
    "opencode": "1.18.33",
    "hermes": "0.19.0",
    "codex": "0.171.0",
    "gemini-cli": "0.61.0",
}


@dataclass
class Question:
    """What a row asks: which agent of which documents, and one item with the arguments of a call."""

    runtime: str
    documents: list[Document] = field(default_factory=list)
    agent: str = "main"
    servers: dict[str, list[str]] = field(default_factory=dict)
    skills: dict[str, dict[str, Any]] = field(default_factory=dict)
    subagents: tuple[str, ...] = ("worker", "other", "general", "explore", "codebase_investigator", "g", "ro")
    tools: tuple[str, ...] = ()
    read_only: frozenset[str] = frozenset()
    failed: tuple[str, ...] = ()
    has_approver: bool = True

    def add(self, path: str, value: object, **facts: str) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.documents.append(Document(path=path, text=text, facts=facts))


def header(value: Row, body: str = "x") -> str:
    """A Markdown file with this frontmatter; JSON is YAML."""
    return "---\n" + json.dumps(value) + f"\n---\n{body}\n"


# ---------------------------------------------------------------------------------------------- Claude Code


def claude(row: Row, asked: Question) -> None:
    config = row["config"]
    for key, scope in (("settings", "flags"), ("user_settings", "user"), ("project_settings", "project")):
        if key in config:
            asked.add(f"{scope}/settings.json", config[key], scope=scope)
    if args := config.get("args"):
        asked.add("flags.json", claude_flags(args), scope="flags")
    if agent := config.get("agent_file"):
        facts = {"main": "yes"} if config.get("run_as") == "main" else {}
        asked.add(f".claude/agents/{agent['name']}.md", header(agent), **facts)
        asked.agent = agent["name"]
        for entry in agent.get("mcpServers", []):
            asked.servers |= {name: ["t"] for name in entry} if isinstance(entry, dict) else {}
    if servers := config.get("mcp_json"):
        asked.add(".mcp.json", {"mcpServers": {name: {"command": "python3", "args": [name]} for name in servers}})
    asked.servers |= config.get("mcp_servers", {}) | config.get("mcp_json", {})
    for name, text in config.get("skills", {}).items():
        off = "disable-model-invocation: true" in text
        asked.skills[name] = {"declared_name": name, "facts": {"disable_model_invocation": off}}
    subject = row["subject"]
    if subject["type"] == "mcp_tool" and subject["server"] == "my_server":
        subject |= {"server": "my server", "name": "do.it"}


def claude_flags(args: list[str]) -> Row:
    found: Row = {}
    for name, value in zip(args, [*args[1:], ""], strict=True):
        if name == "--permission-mode":
            found.setdefault("permissions", {})["defaultMode"] = value
        elif name == "--tools":
            found["tools"] = value.split(",")
        elif name == "--allowedTools":
            found.setdefault("permissions", {})["allow"] = [value]
        elif name == "--disable-slash-commands":
            found["disableSlashCommands"] = True
    return found


CLAUDE_ARGUMENT = {"Bash": "command", "Write": "file_path", "Edit": "file_path", "Read": "file_path"}

# ---------------------------------------------------------------------------------------------- opencode


def opencode(row: Row, asked: Question) -> None:
    config = dict(row["config"])
    asked.agent = config.pop("run_agent", "main")
    config.pop("spawned_by", None)
    asked.tools = tuple(config.pop("custom_tools", ()))
    if raw := config.pop("agent_file_raw", None):
        asked.add(f".opencode/agent/{asked.agent}.md", raw)
    for number, layer in enumerate(config.pop("layers", [])):
        asked.add(f"{layer['scope']}/opencode.json", {"permission": layer["permission"]}, order=str(number))
    if config:
        asked.add("opencode.json", config)
    subject = row["subject"]
    if subject["type"] == "mcp_tool":
        asked.servers[subject["server"]] = [subject["name"]]


OPENCODE_ARGUMENT = {"bash": "command", "read": "filePath", "edit": "filePath", "write": "filePath"}

# ---------------------------------------------------------------------------------------------- Hermes


def hermes(row: Row, asked: Question) -> None:
    config = dict(row["config"])
    platform = config.pop("platform")
    asked.agent = "main" if platform == "cli" else platform
    asked.add("config.yaml", config)
    asked.servers = {name: ["create_issue", "list_issues", "query"] for name in config.get("mcp_servers", {})}
    asked.skills = {
        "devops/deploy": {"declared_name": "deploy"},
        "devops/deploy-staging": {"declared_name": "deploy-staging"},
    }


# ---------------------------------------------------------------------------------------------- Codex


def codex(row: Row, asked: Question) -> None:
    config = json.loads(json.dumps(row["config"]))
    asked.agent = config.pop("run_agent", "main")
    args = config.pop("args", [])
    config.pop("note", None)
    for key in [k for k in config if k.endswith((".toml", ".rules"))]:
        value = config.pop(key)
        if key.startswith("agents/"):
            asked.add(
                f".codex/{key}",
                toml({"name": "ro", "description": "d", "developer_instructions": "i"} | value),
                scope="user",
            )
        else:
            asked.add(
                f".codex/{key}",
                value if isinstance(value, str) else toml(value),
                scope="profile" if key.endswith(".toml") else "user",
            )
    if asked.agent != "main":  # agents were run with approvals bypassed
        asked.add("flags.toml", toml({"sandbox_mode": "danger-full-access", "approval_policy": "never"}), scope="flags")
    if args:
        asked.add("flags.toml", toml({"profile": args[1]}), scope="flags")
    for key, facts in (
        ("project_untrusted", {"scope": "project", "trusted": "no"}),
        ("project_trusted", {"scope": "project"}),
    ):
        if key in config:
            asked.add(f"{key}/.codex/config.toml", toml(offered(config.pop(key), asked)), **facts)
    user = config.pop("user", config)
    if user:
        asked.add(".codex/config.toml", toml(offered(user, asked)), scope="user")
    asked.servers.setdefault("gh", ["create_issue"])
    asked.skills = {"deploy": {"declared_name": "deploy", "file": "<home>/.codex/skills/deploy/SKILL.md"}}
    if "nope" in asked.servers:
        asked.failed = ("nope",)


def offered(config: Row, asked: Question) -> Row:
    """The configuration without what only the case says: the tools that a server offers."""
    for name, server in config.get("mcp_servers", {}).items():
        offers = server.pop("tools_offered", [])
        names = [text.partition("(")[0] for text in offers]
        asked.servers[name] = names or asked.servers.get(name, [])
        asked.read_only |= {text.partition("(")[0] for text in offers if "readOnly" in text}
    return config


def toml(value: Row, prefix: str = "") -> str:
    """TOML text of a mapping; lists of mappings are inline."""
    flat = {k: v for k, v in value.items() if not isinstance(v, dict)}
    lines = [f"{json.dumps(k)} = {inline(v)}" for k, v in flat.items()]
    for key, table in value.items():
        if isinstance(table, dict):
            path = f"{prefix}{json.dumps(key)}"
            lines += [f"[{path}]", toml(table, f"{path}.")]
    return "\n".join(lines) + "\n"


def inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


# ---------------------------------------------------------------------------------------------- Gemini CLI


def gemini(row: Row, asked: Question) -> None:
    config = dict(row["config"])
    if "settings_raw" in config:
        asked.add(".gemini/settings.json", config["settings_raw"], scope="project")
    for key, scope in (("user_settings", "user"), ("settings", "project")):
        if key in config:
            asked.add(f"{scope}/settings.json", config[key], scope=scope)
            asked.servers |= {name: [] for name in config[key].get("mcpServers", {})}
    if servers := config.get("mcp_servers"):
        asked.add("project/settings.json", {"mcpServers": servers}, scope="project")
    if text := config.get("policy_toml"):
        asked.add("policies/team.toml", text, scope="user")
    mode = config.get("approval_mode") or ("yolo" if "yolo" in row["source_file"] else "")
    if mode:
        asked.add("flags.json", {"approvalMode": mode}, scope="flags")
    if agent := config.get("agent_file"):
        asked.add(
            f".gemini/agents/{agent['name']}.md", header({"kind": "local", "description": "d"} | agent), scope="user"
        )
    asked.agent = config.get("run_agent", "main") if row["subject"]["type"] != "subagent" else "main"
    asked.has_approver = config.get("interactive", True)
    asked.servers |= {"gh": ["list", "list_issues", "create_issue", "delete_repo", "make"], "db": ["query"]}
    asked.read_only = frozenset({"list"})
    asked.skills = {"deploy": {"declared_name": "deploy"}, "deploy-staging": {"declared_name": "deploy-staging"}}
    if 'subagent = "helper"' in config.get("policy_toml", ""):
        asked.agent = "helper"
        asked.add(
            ".gemini/agents/helper.md", header({"name": "helper", "kind": "local", "description": "d"}), scope="user"
        )


BUILD: dict[str, Callable[[Row, Question], None]] = {
    "claude-code": claude,
    "opencode": opencode,
    "hermes": hermes,
    "codex": codex,
    "gemini-cli": gemini,
}
ARGUMENT = CLAUDE_ARGUMENT | OPENCODE_ARGUMENT | {"run_shell_command": "command", "exec_command": "cmd"}


def question(row: Row) -> tuple[Question, Extension, Row | None]:
    """The documents, the item and the arguments of a row."""
    row = json.loads(json.dumps(row))
    asked = Question(runtime=row["runtime"])
    BUILD[row["runtime"]](row, asked)
    subject = row["subject"]
    said = subject.get("input")
    args = said if isinstance(said, dict) or said is None else {ARGUMENT[subject["name"]]: said}
    return asked, item(subject, asked), args


def item(subject: Row, asked: Question) -> Extension:
    kind, name = subject["type"], subject["name"]
    if kind == "skill":
        known = {path.rpartition("/")[2]: path for path in asked.skills}
        path = known.get(name, name)
        return Extension(kind="skill", name=path, source="project", **asked.skills.get(path, {"declared_name": name}))
    if kind == "mcp_tool":
        facts = {"annotations": {"readOnlyHint": name in asked.read_only}}
        return Extension(kind=kind, server=subject["server"], name=name, facts=facts)
    if kind == "tool":
        known_tools = {e.name: e for e in builtin_tools(asked.runtime)}
        return known_tools.get(name) or Extension(kind="tool", name=name, source="custom")
    return Extension(kind=kind, name=name, source="project")


def inventory(asked: Question, subject: Extension) -> Inventory:
    found = {(e.kind, e.server, e.name): e for e in builtin_tools(asked.runtime)}
    for server, names in asked.servers.items():
        for name in names:
            facts = {"annotations": {"readOnlyHint": name in asked.read_only}}
            found["mcp_tool", server, name] = Extension(kind="mcp_tool", server=server, name=name, facts=facts)
    for name, parts in asked.skills.items():
        found["skill", None, name] = Extension(kind="skill", name=name, source="project", **parts)
    for name in asked.subagents:
        found["subagent", None, name] = Extension(kind="subagent", name=name, source="project")
    found[subject.kind, subject.server, subject.name] = subject
    servers = tuple(Server(name=n, state="failed" if n in asked.failed else "connected") for n in asked.servers)
    return Inventory(extensions=tuple(found.values()), servers=servers)


@dataclass(frozen=True)
class Said:
    """The two answers of a row."""

    visible: bool
    callable: str


def answer(row: Row, *, as_run: bool) -> Said:
    """What extgate says of a row: by the documentation, or as the version it was seen with runs."""
    asked, subject, args = question(row)
    stock = inventory(asked, subject)
    version = VERSIONS[asked.runtime] if as_run else ""
    try:
        policy = NATIVE[asked.runtime].read(asked.documents, asked.agent, version=version)
    except DocumentError:
        return Said(False, "deny")
    decider = Decider(Profile(id="x", layers=(policy,)), stock, has_approver=asked.has_approver)
    seen = decider.decide(subject)
    asked_of = decider.decide(subject, args or {})
    visible = is_listed(policy, decider, seen) if as_run else seen.visible
    return Said(visible, effect_of(asked_of if args is not None else seen))


def effect_of(decision: Decision) -> str:
    """The effect, and a deny where nobody could be asked or the agent is unavailable."""
    return decision.effect if decision.callable else "deny"
