"""A diff in words that need no knowledge of the tool, as Markdown for a pull request or as plain lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator

from extgate.analysis.diff import AgentDiff, Changed, KindDiff, required
from extgate.analysis.witness import DIRECTIONS, Witness
from extgate.core.decide import Step
from extgate.core.names import show, shown_name
from extgate.core.policy import STRICTNESS, Effect

_Code = Callable[[str], str]
"""How a name is set apart from the words around it."""

MOST_ROWS = 25
"""Rows of one table; the others are counted."""

KINDS = {
    "tool": "tool",
    "skill": "skill",
    "mcp_tool": "MCP tool",
    "mcp_resource": "MCP resource",
    "mcp_prompt": "MCP prompt",
    "subagent": "sub-agent",
}
ANSWERS: dict[Effect, str] = {"allow": "allowed", "ask": "held for approval", "deny": "hidden"}
_HEADINGS = {"wider": "may use more", "narrower": "may use less", "both": "may use more, and less"}

MARK = "<!-- extgate diff -->"
"""The first line of a comment, by which the next run finds it again."""


def markdown(found: Iterable[AgentDiff]) -> str:
    """A pull request's comment. Nothing in it that others named can leave its code span."""
    agents = tuple(found)
    changed = [agent for agent in agents if agent.status != "equal"]
    lines = [MARK, "### What agents may see and use after this change", ""]
    if not changed:
        return "\n".join([*lines, f"Nothing changes for {count(len(agents), 'agent')}.", ""])
    lines += [_opening(changed, len(agents)), ""]
    for agent in changed:
        lines += [*_section(agent), ""]
    lines += _legend()
    return "\n".join(lines)


def _opening(changed: list[AgentDiff], total: int) -> str:
    verb = "changes" if len(changed) == 1 else "change"
    text = f"**{len(changed)} of {count(total, 'agent')} {verb}**"
    more = [_code(agent.agent) for agent in changed if agent.verdict in ("wider", "both")]
    return f"{text}; {_and(more)} may use **more** than before." if more else f"{text}; none may use more than before."


def _section(agent: AgentDiff) -> Iterator[str]:
    yield f"#### {_code(agent.agent)} {headline(agent)}"
    yield ""
    states = [f"- {line}" for line in _states(agent, _code)]
    rows = [] if _is_one_sided(agent) else [row for kind in agent.kinds for row in kind.installed]
    beyond = [f"- {line}" for line in _beyond(agent, _code)]
    yield from (*states, "") if states and (rows or beyond) else states
    if rows:
        yield from ("| what | before | after | why |", "|---|---|---|---|")
        yield from (_row(row) for row in sorted(rows, key=lambda row: not row.is_wider)[:MOST_ROWS])
        if len(rows) > MOST_ROWS:
            yield f"| … and {len(rows) - MOST_ROWS} more | | | |"
    if beyond:
        yield from ("", "And beyond what is installed today:") if rows else ("Nothing that is installed changes, but:",)
        yield from ("", *beyond)


def _is_one_sided(agent: AgentDiff) -> bool:
    return agent.before is None or agent.after is None


def headline(agent: AgentDiff) -> str:
    """What happens to one agent, in a few words."""
    if agent.status == "added":
        return "is new"
    if agent.status == "removed":
        return "is gone"
    if agent.verdict in _HEADINGS:
        return _HEADINGS[agent.verdict]
    return "could not be compared fully" if agent.status == "undecided" else "changes when it is available"


def plain_lines(agent: AgentDiff) -> Iterator[str]:
    """The same for a terminal, without the table of installed things."""
    yield from _states(agent, ticked)
    yield from _beyond(agent, ticked)


def _states(agent: AgentDiff, code: _Code) -> Iterator[str]:
    """What changes in whether the agent runs at all."""
    if _is_one_sided(agent):
        yield _totals(agent)
    for side, name in ((agent.before, "before"), (agent.after, "after")):
        if side and side.error:
            yield f"its profile cannot be read {name}, so everything is hidden: {code(side.error)}"
    if _is_one_sided(agent):
        return
    if agent.has_new_requirements:
        old, new = set(required(agent.before)), set(required(agent.after))
        parts = [f"needs {_and(code(p) for p in sorted(new - old))} now"] if new - old else []
        parts += [f"no longer needs {_and(code(p) for p in sorted(old - new))}"] if old - new else []
        yield f"{' and '.join(parts)}; without a connected server of such a name it takes no turn"
    if agent.has_new_availability:
        for found, name in zip(agent.availability, ("before", "after"), strict=True):
            missing = _and(code(missing.pattern) for missing in found.missing)
            state = "available" if found.is_available else "unavailable" + (f", {missing} missing" if missing else "")
            yield f"{name}: {state}, with the servers of today"


def _totals(agent: AgentDiff) -> str:
    """What a new agent may use of what is installed, or one that is gone could."""
    counts = [
        count(sum(row.is_wider == (agent.before is None) for row in kind.installed), KINDS[kind.kind])
        for kind in agent.kinds
        if kind.installed
    ]
    verb = "may use" if agent.before is None else "could use"
    return f"of what is installed it {verb} {_and(counts) or 'nothing'}"


def _beyond(agent: AgentDiff, code: _Code) -> Iterator[str]:
    """Witnesses that are not installed, one line for kinds that share one, and what could not be decided."""
    shared: dict[tuple[str, str], list[str]] = {}
    for kind in () if _is_one_sided(agent) else agent.kinds:
        for direction, outcome in zip(DIRECTIONS, (kind.names.wider, kind.names.narrower), strict=True):
            for witness in kind.examples.get(direction, ()):
                if not _is_told(kind, direction, witness):
                    shared.setdefault((_example(witness, code), direction), []).append(KINDS[kind.kind])
            if outcome.undecided:
                text = f"could not be decided whether they may use {'more' if direction == 'wider' else 'less'}"
                shared.setdefault((f"{text} ({outcome.undecided})", direction), []).append(KINDS[kind.kind])
    for (text, _), kinds in shared.items():
        yield f"{_and(f'{kind}s' for kind in kinds)} {text}"


def _is_told(kind: KindDiff, direction: str, found: Witness) -> bool:
    """Whether the table already shows a thing of this name."""
    ext = found.extension
    rows = (row.after.extension for row in kind.installed if row.is_wider == (direction == "wider"))
    return any((row.server, row.name) == (ext.server, ext.name) for row in rows)


def _example(found: Witness, code: _Code) -> str:
    before, after = ANSWERS[found.before.effect or "deny"], ANSWERS[found.after.effect or "deny"]
    ext = found.extension
    facts = [f"of category {code(ext.category)}"] if ext.category else []
    facts += [f"that declares itself as {code(ext.declared_name)}"] if ext.declared_name else []
    facts += [f"from {code(ext.source)}"] if ext.source else []
    facts += [f"called with {code(json.dumps(found.arguments))}"] if found.arguments else []
    name = code(shown_name(ext)) if ext.server is None else f"{code(ext.name)} of a server {code(ext.server)}"
    thing = " ".join([name, *facts])
    is_wider = STRICTNESS[found.after.effect or "deny"] < STRICTNESS[found.before.effect or "deny"]
    rule = place((found.before if is_wider else found.after).step, code)
    by = f" by {rule}" if rule else ""
    if is_wider:
        return f"such as {thing} would be {after}, before {before}{by}"
    return f"such as {thing} would be {after}{by}, before {before}"


def _row(row: Changed) -> str:
    thing = f"{KINDS[row.after.extension.kind]} {_code(shown_name(row.after.extension))}"
    before, after = ANSWERS[row.before.effect], ANSWERS[row.after.effect]
    return f"| {thing} | {before} | {f'**{after}**' if row.is_wider else after} | {why(row, _code)} |"


def why(row: Changed, code: _Code) -> str:
    """The rule that makes the stricter of the two answers."""
    strict = row.before if row.is_wider else row.after
    return f"{'no longer ' if row.is_wider else ''}{ANSWERS[strict.effect]} by {place(strict.rule, code)}"


def place(step: Step, code: _Code) -> str:
    """The rule that decides, its pattern, and where it stands."""
    parts = [code(step.text)] if step.text else []
    parts += [code(step.pattern)] if step.pattern else []
    where = f"{step.file}:{step.line}" if step.file and step.line else step.file or ""
    return " ".join([*parts, *([f"in {code(where)}"] if where else [])])


_LEGEND = """
An agent's profile says which tools, skills and MCP servers its model may see and use. This compares what the profiles
decide before and after the change, not their text: rules that are only reordered or written differently do not show.

*Hidden*: the model is not told of it, and a call is refused. *Held for approval*: a person has to approve each call.
The table lists what is installed; `slack/send_message` is what the MCP server `slack` offers under that name. The lines
below it each give one example, as short as it gets, of a name that would be treated differently if something of that
name were installed.
"""


def _legend() -> list[str]:
    return ["<details><summary>How to read this</summary>", *_LEGEND.split("\n"), "</details>", ""]


# ---------------------------------------------------------------------------------------------- words


def ticked(text: str) -> str:
    """The text in backticks, safe for a terminal."""
    return f"`{show(text)}`"


def _code(text: str) -> str:
    """A code span that holds the text whatever is in it, in a table too."""
    shown = " ".join(show(text).split()) or " "
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if "`" in (shown[0], shown[-1]) else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}".replace("|", "\\|")


def count(number: int, noun: str) -> str:
    """The number with its noun, in the plural where it is one."""
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _and(words: Iterable[str]) -> str:
    found = list(words)
    return " and ".join([", ".join(found[:-1]), found[-1]]) if len(found) > 1 else "".join(found)
