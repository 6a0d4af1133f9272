"""A policy written for another runtime, and everything that this one says otherwise: nothing is ever widened unsaid.

What was written is read back and asked about every known thing, about one of tomorrow for each kind, server and
pattern, and about calls of shell commands; each answer that came out otherwise is a loss with its witness.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from extgate.core.decide import Decision
from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.names import cleaned, rule_parts
from extgate.core.policy import STRICTNESS, Policy, Profile
from extgate.dialects import write_claude, write_codex, write_gemini, write_hermes, write_opencode
from extgate.dialects.document import Document
from extgate.dialects.native import MAIN
from extgate.dialects.outline import CLASSES, UNKNOWN, Clause, Loss, Outline, example
from extgate.dialects.registry import AGENT_FILES, NATIVE
from extgate.dialects.write_lists import write_patterns, write_profile

Writer = Callable[[Outline, tuple[str, ...]], list[Document]]

WRITERS: dict[str, Writer] = {
    "profile": lambda outline, tools: write_profile(outline),
    "patterns": lambda outline, tools: write_patterns(outline),
    "claude-code": write_claude.write,
    "opencode": write_opencode.write,
    "hermes": write_hermes.write,
    "codex": write_codex.write,
    "gemini-cli": write_gemini.write,
}
"""Writers by the dialect's name."""

_COMMAND = {"Bash": "command", "bash": "command", "exec_command": "cmd", "run_shell_command": "command"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Documents of the target, and its losses: first those that would widen."""

    documents: tuple[Document, ...]
    losses: tuple[Loss, ...]

    @property
    def errors(self) -> tuple[Loss, ...]:
        return tuple(loss for loss in self.losses if loss.is_wider)


def write(
    policy: Policy, target: str, stock: Inventory, *, target_tools: Sequence[Extension] = (), name: str = "agent"
) -> Converted:
    """The policy in the target's dialect, over what is installed where it comes from.

    target_tools: the target runtime's own tools; none for the dialects that name tools as they are.
    """
    outline = Outline(policy=policy, stock=stock, name=name, target=target)
    tools = tuple(ext.name for ext in target_tools)
    documents = WRITERS[target](outline, tools)
    found = read_back(target, documents)
    losses = [*outline.losses, *_compared(outline, found, target_tools)]
    order = sorted(dict.fromkeys(losses), key=lambda loss: (not loss.is_wider, loss.code, loss.name))
    return Converted(documents=tuple(documents), losses=tuple(order))


def read_back(target: str, documents: Sequence[Document]) -> Policy:
    """The main agent's policy in what was written."""
    if target in NATIVE:
        return NATIVE[target].read(documents, MAIN)
    return AGENT_FILES[target](documents)


def _compared(outline: Outline, found: Policy, target_tools: Sequence[Extension]) -> Iterator[Loss]:
    """Each thing about which the two policies differ; of alike tools the stricter counts on the source's side."""
    stock = replace(
        outline.stock, extensions=(*_others(outline.stock), *(target_tools or outline.stock.of_kind("tool")))
    )
    loose = Decider(Profile(id="a", layers=(outline.policy,)), outline.stock, has_approver=True)
    theirs = Decider(Profile(id="b", layers=(found,)), stock, has_approver=True)
    for ext in [*stock.extensions, *_tomorrow(outline)]:
        before, after = tool_of_source(outline, loose, ext, bool(target_tools)), theirs.decide(ext)
        yield from _difference(before, after, ext)
    for clause, ext in _meant(outline):
        yield from _difference(loose.decide(ext), theirs.decide(ext), ext, clause=clause)
    yield from _commands(outline, loose, theirs, target_tools)


def _meant(outline: Outline) -> Iterator[tuple[Clause, Extension]]:
    """For each pattern that denies or asks, a thing of tomorrow that it means."""
    families = {"tool": outline.tools, "skill": outline.skills, "subagent": outline.subagents, "mcp_tool": outline.mcp}
    for kind, family in families.items():
        for clause in family.clauses:
            for name in _examples(clause) if clause.effect != "allow" else ():
                if kind == "mcp_tool":
                    for server, item in _split(name, outline):
                        yield clause, Extension(kind=kind, server=server, name=item)
                elif name not in family.effects:
                    yield clause, Extension(kind=kind, name=name, source="plugin" if kind == "tool" else "project")


def _examples(clause: Clause) -> list[str]:
    patterns = [clause.pattern] if clause.pattern else [test.pattern for test in clause.entry.tests]
    return [name for pattern in patterns for name in dict.fromkeys((example(pattern), example(pattern, "")))]


def _split(name: str, outline: Outline) -> list[tuple[str, str]]:
    """Servers and items that a path, or the name on some wire, could be."""
    server, slash, item = name.partition("/")
    parts = rule_parts(name)
    found = [(server, item)] if slash and server and item else [parts] if parts and parts[1] else []
    if not slash and not parts:
        heads = [(s, f"{before}{cleaned(s)}_") for s in outline.servers for before in ("", "mcp_")]
        found = [(s, name.removeprefix(head)) for s, head in heads if name.startswith(head) and name != head]
    return [(s, i) for s, i in found if f"{s}/{i}" not in outline.mcp.effects]


def _others(stock: Inventory) -> tuple[Extension, ...]:
    return tuple(ext for ext in stock.extensions if ext.kind != "tool")


def tool_of_source(outline: Outline, loose: Decider, ext: Extension, is_mapped: bool = True) -> Decision:
    """The source's decision on the thing that the target's one stands for."""
    if ext.kind != "tool" or not is_mapped or ext.name in outline.tools.effects:
        own = next((e for e in outline.stock.of_kind(ext.kind) if e.id == ext.id), ext)
        return loose.decide(own)
    alike = next((group for group in CLASSES if ext.name in group), frozenset())
    members = [e for e in outline.stock.of_kind("tool") if e.name in alike]
    decisions = [loose.decide(e) for e in members] or [loose.decide(replace(ext, source="builtin"))]
    return max(decisions, key=lambda decision: STRICTNESS[decision.effect])


def _tomorrow(outline: Outline) -> Iterator[Extension]:
    yield Extension(kind="tool", name=UNKNOWN, source="plugin")
    yield Extension(kind="skill", name=UNKNOWN, source="project")
    yield Extension(kind="subagent", name=UNKNOWN, source="project")
    for server in [*outline.servers, UNKNOWN]:
        yield Extension(kind="mcp_tool", server=server, name=UNKNOWN)


def _difference(
    before: Decision, after: Decision, ext: Extension, command: str = "", clause: Clause | None = None
) -> Iterator[Loss]:
    if before.effect == after.effect:
        return
    is_wider = STRICTNESS[after.effect] < STRICTNESS[before.effect]
    is_new = UNKNOWN in (ext.name, ext.server)
    code = "ask" if "ask" in (before.effect, after.effect) else "kind"
    code = "arguments" if command else "pattern" if clause else "unknown" if is_new else code
    name = command or (clause.entry.text if clause else ext.id.replace(UNKNOWN, "*"))
    message = f"{before.effect} here, {after.effect} there"
    rule = before.rule
    yield Loss(code=code, name=name, message=message, witness=command or ext.id, rule=rule.text, file=rule.file,
               line=rule.line, is_wider=is_wider)  # fmt: skip


def _commands(outline: Outline, loose: Decider, theirs: Decider, target_tools: Sequence[Extension]) -> Iterator[Loss]:
    """Calls of the shell: each prefix that some rule names, and a command that none does."""
    samples = [text for texts in outline.prefixes.values() for p in texts for text in (p, f"{p} x")]
    own = next((e for e in outline.stock.of_kind("tool") if e.name in _COMMAND), None)
    other = next((e for e in target_tools or outline.stock.of_kind("tool") if e.name in _COMMAND), None)
    if own is None or other is None or not samples:
        return
    for text in [*dict.fromkeys(samples), "zz-new-command"]:
        before = loose.decide(own, {_COMMAND[own.name]: text})
        after = theirs.decide(other, {_COMMAND[other.name]: text})
        yield from _difference(before, after, other, f"{other.name}({text})")
