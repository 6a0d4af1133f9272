"""Random policies of every dialect, as documents, over one stock; and what a conversion of one must say."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import STRICTNESS, Policy, Profile
from extgate.dialects.convert import WRITERS, Converted, write
from extgate.dialects.document import Document
from extgate.dialects.outline import CLASSES, strict
from extgate.dialects.registry import AGENT_FILES, NATIVE
from extgate.discover.builtins import builtin_tools
from extgate.errors import DocumentError
from tests.dialects.runtime_rows import toml

SERVERS = {"gh": ["list", "get_issue", "delete_repo"], "my.srv": ["do it", "list"], "a_b": ["x", "delete_x"]}
SKILLS = ["deploy", "ops/deploy-prod", "notes"]
AGENTS = ["reviewer", "worker"]
LATER = {"gh": ["delete_all", "new"], "other": ["list", "delete_repo"]}
RUNTIME = {"profile": "openprogram", "patterns": "deepagents"}

item = st.sampled_from(["list", "get_issue", "delete_repo", "delete_*", "x", "do it", "*"])
server = st.sampled_from(list(SERVERS))
skill = st.sampled_from([*("deploy", "deploy-prod", "notes"), "deploy*", "ops*", "*"])
agent = st.sampled_from([*AGENTS, "rev*"])


def tool(dialect: str) -> st.SearchStrategy[str]:
    """Names of the dialect's own tools, and globs of them."""
    names = [e.name for e in builtin_tools(RUNTIME.get(dialect, dialect))][:14]
    return st.sampled_from([*names, *(name[:2] + "*" for name in names[:4])])


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=3)


def profiles() -> st.SearchStrategy[list[Document]]:
    path = st.builds("{}/{}".format, server, item)

    def block(names: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, list[str]]]:
        return st.fixed_dictionaries({}, optional={"disabled": some(names), "allowed": some(names)})

    blocks = {"tools": block(tool("profile")), "skills": block(skill), "mcp": block(path), "subagents": block(agent)}
    return st.fixed_dictionaries({}, optional=blocks).map(
        lambda v: [Document(path="agents/a.json", text=json.dumps({"id": "a", **v}))]
    )


def pattern_files() -> st.SearchStrategy[list[Document]]:
    rows = st.builds("{}impl:*:{}".format, st.sampled_from(["", "", "!"]), tool("patterns")) | st.builds(
        "{}mcp:{}:{}".format, st.sampled_from(["", "", "!"]), server, item
    )
    skills = st.builds("{}*:{}".format, st.sampled_from(["", "!"]), skill)
    value = st.fixed_dictionaries({"tools": some(rows).map(_block), "skills": some(skills).map(_block)})
    return value.map(lambda v: [Document(path=".msagent/agents/a.yml", text=json.dumps(v | {"name": "a"}))])


def _block(rows: list[str]) -> dict[str, list[str]]:
    return {"patterns": rows}


def claude() -> st.SearchStrategy[list[Document]]:
    commands = st.sampled_from(
        ["Bash(git *)", "Bash(rm:*)", "Bash(git push *)", "Edit(src/**)", "WebFetch(domain:x.y)"]
    )
    mcp = st.builds(lambda s, i: f"mcp__{s.replace('.', '_')}__{i.replace(' ', '_')}", server, item)
    names = (
        tool("claude-code")
        | commands
        | mcp
        | st.builds("Skill({})".format, skill)
        | st.builds("Agent({})".format, agent)
    )
    lists = st.fixed_dictionaries({}, optional={key: some(names) for key in ("allow", "ask", "deny")})
    return lists.map(lambda v: [Document(path=".claude/settings.json", text=json.dumps({"permissions": v}))])


def opencode() -> st.SearchStrategy[list[Document]]:
    action = st.sampled_from(["allow", "ask", "deny"])
    keys = tool("opencode").filter(lambda n: n not in ("skill", "task")) | st.builds("{}_{}".format, server, item)
    maps = {"bash": st.sampled_from(["*", "git *", "rm *"]), "skill": skill, "task": agent}
    nested = {key: st.dictionaries(names, action, max_size=3) for key, names in maps.items()}
    flat = st.dictionaries(keys, action, max_size=4)
    value = st.builds(lambda a, b: {**a, **b}, flat, st.fixed_dictionaries({}, optional=nested))
    return value.map(lambda v: [Document(path="opencode.json", text=json.dumps({"permission": v}))])


def hermes() -> st.SearchStrategy[list[Document]]:
    sets = st.sampled_from(["web", "file", "terminal", "skills", "browser", "delegation", "code_execution", "kanban"])
    lists = st.fixed_dictionaries({}, optional={"include": some(item), "exclude": some(item)})
    value = st.fixed_dictionaries(
        {},
        optional={
            "platform_toolsets": st.fixed_dictionaries({"cli": some(sets)}),
            "agent": st.fixed_dictionaries({"disabled_toolsets": some(sets)}),
            "skills": st.fixed_dictionaries({"disabled": some(skill)}),
            "mcp_servers": st.dictionaries(server, st.builds(lambda t: {"tools": t}, lists), max_size=2),
        },
    )
    return value.map(lambda v: [Document(path="config.yaml", text=json.dumps(v))])


def codex() -> st.SearchStrategy[list[Document]]:
    lists = st.fixed_dictionaries(
        {},
        optional={
            "enabled_tools": some(item),
            "disabled_tools": some(item),
            "enabled": st.booleans(),
            "default_tools_approval_mode": st.sampled_from(["auto", "prompt", "approve"]),
        },
    )
    value = st.fixed_dictionaries(
        {},
        optional={
            "web_search": st.just("disabled"),
            "features": st.dictionaries(
                st.sampled_from(["shell_tool", "multi_agent", "goals"]), st.booleans(), max_size=2
            ),
            "mcp_servers": st.dictionaries(server, lists, max_size=2),
            "skills": some(skill).map(lambda names: {"config": [{"name": n, "enabled": False} for n in names]}),
        },
    )
    rules = some(st.tuples(st.sampled_from(["git", "rm"]), st.sampled_from(["allow", "prompt", "forbidden"]))).map(
        lambda rows: "".join(f'prefix_rule(pattern=["{c}"], decision="{d}")\n' for c, d in rows)
    )
    return st.builds(
        lambda v, r: [
            Document(path=".codex/config.toml", text=toml(v), facts={"scope": "user"}),
            Document(path=".codex/rules/a.rules", text=r),
        ],
        value,
        rules,
    )


def gemini() -> st.SearchStrategy[list[Document]]:
    wire = st.builds("mcp_{}_{}".format, server, item)
    names = tool("gemini-cli") | wire | st.just("run_shell_command(git)")
    value = st.fixed_dictionaries(
        {},
        optional={
            "tools": st.fixed_dictionaries(
                {}, optional={"exclude": some(names), "allowed": some(names), "core": some(names)}
            ),
            "mcp": st.fixed_dictionaries({}, optional={"excluded": some(server), "allowed": some(server)}),
            "skills": st.fixed_dictionaries({"disabled": some(skill)}),
            "agents": st.fixed_dictionaries(
                {"overrides": st.dictionaries(agent, st.just({"enabled": False}), max_size=1)}
            ),
        },
    )
    return value.map(lambda v: [Document(path=".gemini/settings.json", text=json.dumps(v))])


SOURCES = {
    "profile": profiles(),
    "patterns": pattern_files(),
    "claude-code": claude(),
    "opencode": opencode(),
    "hermes": hermes(),
    "codex": codex(),
    "gemini-cli": gemini(),
}
PAIRS = [(source, target) for source in SOURCES for target in WRITERS if source != target]


def tools_of(dialect: str) -> tuple[Extension, ...]:
    return builtin_tools(RUNTIME.get(dialect, dialect))


def stock(dialect: str) -> Inventory:
    """The dialect's own tools, three servers, three skills and two agents."""
    items = [Extension(kind="mcp_tool", server=s, name=n) for s, names in SERVERS.items() for n in names]
    items += [Extension(kind="mcp_resource", server="gh", name="repo://x")]
    items += [Extension(kind="mcp_prompt", server="my.srv", name="ask")]
    skills = [Extension(kind="skill", name=n, source="project", declared_name=n.rpartition("/")[2]) for n in SKILLS]
    agents = [Extension(kind="subagent", name=n, source="project") for n in AGENTS]
    servers = tuple(Server(name=name) for name in SERVERS)
    return Inventory(extensions=(*tools_of(dialect), *items, *skills, *agents), servers=servers)


def converted(policy: Policy, source: str, target: str) -> Converted:
    target_tools = builtin_tools(target) if target in NATIVE else ()
    return write(policy, target, stock(source), target_tools=target_tools)


def read(dialect: str, documents: list[Document]) -> Policy | None:
    """The policy; None for documents that cannot be understood."""
    try:
        return NATIVE[dialect].read(documents) if dialect in NATIVE else AGENT_FILES[dialect](documents)
    except DocumentError:
        return None


def is_said(id_: str, found: Converted) -> bool:
    """Whether a widened thing is among the losses: itself, or what is installed later of its kind or server."""
    kind = id_.partition(":")[0]
    said = {loss.witness for loss in found.errors}
    later = {
        w.partition(":")[0] for loss in found.errors if loss.code in ("pattern", "unknown") for w in [loss.witness]
    }
    return id_ in said or kind in later or (kind == "skill" and any(loss.name == "skill" for loss in found.errors))


def widened(policy: Policy, found: Policy, source: str, target: str) -> list[str]:
    """Ids of everything, known or installed later, that the source denies and the target does not."""
    mine = Decider(Profile(id="a", layers=(strict(policy),)), stock(source), has_approver=True)
    theirs = Decider(Profile(id="b", layers=(found,)), stock(target if target in NATIVE else source), has_approver=True)
    later = [Extension(kind="mcp_tool", server=s, name=n) for s, names in LATER.items() for n in names]
    later += [Extension(kind="skill", name=n, source="project") for n in ("deploy-later", "ops-later", "later")]
    later += [Extension(kind="subagent", name=n, source="project") for n in ("rev-later", "later")]
    known = [e for e in theirs.inventory.extensions if e.kind != "tool"]
    bad = [e.id for e in [*known, *later] if _is_wider(mine, theirs, e)]
    for ext in theirs.inventory.of_kind("tool"):
        alike = next((group for group in CLASSES if ext.name in group), frozenset())
        same = [e for e in mine.inventory.of_kind("tool") if e.name == ext.name]
        members = same or [e for e in mine.inventory.of_kind("tool") if e.name in alike]
        if any(mine.decide(e).effect == "deny" for e in members) and theirs.decide(ext).effect == "allow":
            loose = Decider(Profile(id="c", layers=(policy,)), mine.inventory, has_approver=True)
            if any(loose.decide(e).effect == "deny" for e in members):
                bad.append(ext.id)
    return bad


def _is_wider(mine: Decider, theirs: Decider, ext: Extension) -> bool:
    return STRICTNESS[theirs.decide(ext).effect] < STRICTNESS[mine.decide(ext).effect]
