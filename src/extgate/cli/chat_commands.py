"""What a person may ask of a chat besides the agent: `/skills`, `/why NAME`, and so on; one row a command."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from extgate.cli.chat_session import Session
from extgate.cli.explain import where
from extgate.core.decide import Decision
from extgate.core.explain import CATALOG_TOOLS
from extgate.core.extension import Extension
from extgate.core.names import shown_name
from extgate.discover.skills import skill_body
from extgate.enforce.dispatch import refusal_line
from extgate.errors import ExtgateError
from extgate.reload import report_lines

MAX_DESCRIPTION = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a command gives: lines to print, a turn to take with this text, or the end of the chat."""

    lines: tuple[str, ...] = ()
    turn: str = ""
    is_end: bool = False


Run = Callable[[Session, str], "Reply | Awaitable[Reply]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. usage: with its argument; about: one line of help."""

    usage: str
    about: str
    run: Run

    @property
    def name(self) -> str:
        """Its word, with the slash."""
        return self.usage.partition(" ")[0]


async def answer(session: Session, line: str) -> Reply:
    """What becomes of a line: `/word` is a command, `//` begins a text with a slash, anything else is the agent's."""
    if not line.startswith("/") or line.startswith("//"):
        return Reply(turn=line[1:] if line.startswith("//") else line)
    word, _, rest = line.partition(" ")
    found = next((command for command in COMMANDS if command.name == word), None)
    if found is None:
        near = difflib.get_close_matches(word, [command.name for command in COMMANDS], n=1)
        hint = f"; do you mean {near[0]}?" if near else "; /help lists the commands"
        return Reply(lines=(f"{word} is no command{hint}",))
    reply = found.run(session, rest.strip())
    return reply if isinstance(reply, Reply) else await reply


# ---------------------------------------------------------------------------------------------- commands


def _skills(session: Session, rest: str) -> Reply:
    return Reply(lines=_listing(session, "skill", session.gate.inventory.of_kind("skill")))


def _tools(session: Session, rest: str) -> Reply:
    has_catalog = session.gate.profile.dialect == "patterns"
    tools = session.gate.inventory.of_kind("tool", "mcp_tool")
    return Reply(lines=_listing(session, "tool", (tool for tool in tools if _is_offered(tool, has_catalog))))


def _is_offered(tool: Extension, has_catalog: bool) -> bool:
    """Whether this host offers the tool at all: no shell, no asynchronous sub-agents, the catalog's own tools."""
    if tool.source == "msagent":
        return tool.name in CATALOG_TOOLS and (has_catalog or tool.name.endswith(("_skills", "_skill")))
    return tool.facts.get("default") is not False


def _listing(session: Session, what: str, items: Iterable[Extension]) -> tuple[str, ...]:
    items = tuple(items)
    visible = [ext for ext in items if session.gate.is_visible(ext)]
    lines = [f"{shown_name(ext)}{_about(ext)}" for ext in visible]
    hidden = len(items) - len(visible)
    note = f" ({hidden} more hidden; /why NAME says why)" if hidden else ""
    return (*lines, f"{len(visible)} {what}{'' if len(visible) == 1 else 's'}{note}")


def _about(ext: Extension) -> str:
    text = " ".join(ext.description.split())
    category = f" [{ext.category}]" if ext.category else ""
    return category + (f": {text[:MAX_DESCRIPTION]}" if text else "")


async def _skill(session: Session, rest: str) -> Reply:
    """Expands a skill's text into a turn; a refused one gives its reason, and its file is not opened."""
    name, _, text = rest.partition(" ")
    if not name:
        return Reply(lines=("usage: /skill NAME [TEXT]; /skills lists them",))
    gate = session.gate
    owners = gate.owners(name, ("skill",))
    allowed = await gate.ause_named(name, kinds=("skill",), action="expand")
    if not allowed:
        return Reply(lines=(allowed.message,))
    if len(owners) > 1:
        several = ", ".join(sorted(shown_name(ext) for ext in owners))
        return Reply(lines=(f"several skills answer to that name: {several}",))
    try:
        body = skill_body(owners[0])
    except ExtgateError as error:
        return Reply(lines=(f"the skill cannot be read: {error}",))
    asked = f"\n\n{text.strip()}" if text.strip() else ""
    return Reply(turn=f"Follow the skill `{shown_name(owners[0])}`:\n\n{body.strip()}{asked}")


async def _mcp(session: Session, rest: str) -> Reply:
    action, _, name = rest.partition(" ")
    servers = session.host.dispatcher.inventory.servers
    if not rest:
        counts = {s.name: sum(e.server == s.name for e in session.gate.inventory.extensions) for s in servers}
        rows = [f"{s.name}: {s.state}, {counts[s.name]} items{f' ({s.error})' if s.error else ''}" for s in servers]
        return Reply(
            lines=(*rows, "/mcp on NAME and /mcp off NAME switch one") if rows else ("no server is configured",)
        )
    if action not in ("on", "off") or not name:
        return Reply(lines=("usage: /mcp [on|off NAME]",))
    try:
        await asyncio.to_thread(session.host.switch, name.strip(), is_on=action == "on")
    except KeyError:
        return Reply(lines=(f"no server `{name.strip()}` is held here; /mcp lists them",))
    server = session.host.dispatcher.inventory.server(name.strip())
    return Reply(lines=(f"{name.strip()}: {server.state if server else 'gone'}",))


def _agents(session: Session, rest: str) -> Reply:
    standings = session.host.dispatcher.standings()
    if not rest:
        rows = [f"{s.agent}: available" if s.is_available else refusal_line(s) for s in standings]
        return Reply(lines=(*rows, f"you talk to {session.agent_id}; /agents NAME turns to another, and starts anew"))
    if rest not in {s.agent for s in standings}:
        return Reply(lines=(f"no agent `{rest}`; /agents lists them",))
    session.turn_to(rest)
    standing = session.standing
    return Reply(lines=(f"you talk to {rest}" if standing.is_available else refusal_line(standing),))


def _why(session: Session, rest: str) -> Reply:
    if not rest:
        return Reply(lines=("usage: /why NAME",))
    gate = session.gate
    owners = gate.owners(rest)
    if not owners:
        known = {shown_name(ext) for ext in gate.inventory.extensions}
        near = difflib.get_close_matches(rest, sorted(known), n=1)
        return Reply(lines=(f"`{rest}` is not installed" + (f"; the nearest is `{near[0]}`" if near else ""),))
    return Reply(lines=tuple(line for ext in owners for line in _explained(gate.decide(ext))))


def _explained(decision: Decision) -> list[str]:
    """One decision: the answer with its reason and rule, and the rules looked at before."""
    answer = {"allow": "yes", "ask": "ask", "deny": "no"}[decision.effect]
    lines = [f"{decision.extension.id}: {answer}. {decision.reason} ({where(decision.rule)})"]
    lines += [f"  before: {where(step)}: {step.outcome}" for step in decision.trail]
    if decision.effect != "deny" and not decision.visible:
        lines.append("  hidden all the same: the agent is unavailable, or nobody can approve it")
    return lines


async def _reload(session: Session, rest: str) -> Reply:
    return Reply(lines=tuple(report_lines(await asyncio.to_thread(session.host.accept))))


def _new(session: Session, rest: str) -> Reply:
    session.forget()
    return Reply(lines=("the conversation starts anew",))


def _help(session: Session, rest: str) -> Reply:
    width = max(len(command.usage) for command in COMMANDS)
    rows = [f"{command.usage.ljust(width)}  {command.about}" for command in COMMANDS]
    return Reply(lines=(*rows, "anything else is said to the agent; begin with // for a text with a slash"))


def _exit(session: Session, rest: str) -> Reply:
    return Reply(is_end=True)


COMMANDS = (
    Command(usage="/skills", about="the skills that the agent sees", run=_skills),
    Command(usage="/skill NAME [TEXT]", about="have the agent follow a skill", run=_skill),
    Command(usage="/tools", about="the tools that the agent sees", run=_tools),
    Command(usage="/mcp [on|off NAME]", about="the MCP servers and their state; switch one", run=_mcp),
    Command(usage="/agents [NAME]", about="the agents and whether each is available; turn to one", run=_agents),
    Command(usage="/why NAME", about="the decision on an item, with the rule that made it", run=_why),
    Command(usage="/reload", about="read the files again, and let what waited take effect", run=_reload),
    Command(usage="/new", about="start the conversation anew", run=_new),
    Command(usage="/help", about="this list", run=_help),
    Command(usage="/exit", about="leave (also Ctrl-D)", run=_exit),
)
"""All commands, in the order of the help."""
