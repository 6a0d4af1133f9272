"""`extgate explain AGENT [NAME...]`: every decision with reason, rule, file and line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import replace
from textwrap import fill
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from extgate.as_it_runs import as_it_runs, as_run_dict, as_run_lines
from extgate.cli.options import Opened, complete_agents, print_json, workspace_options
from extgate.cli.tables import console, table
from extgate.core.decide import Decision, Step
from extgate.core.extension import KINDS
from extgate.core.names import show, shown_name
from extgate.errors import WorkspaceError
from extgate.shapes import explanation_dict, finding_line, tokens
from extgate.workspace import Explanation

UNAVAILABLE = 4
DENIED = 2
NOT_INSTALLED = 1


@click.command("explain")
@click.argument("agent", shell_complete=complete_agents)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--args", "args_text", metavar="JSON", help="Ask about one call of one NAME with these arguments.")
@click.option("--as-run", is_flag=True, help="What the runtime's version really does, for agents of its own files.")
@workspace_options
def command(
    opened: Opened, agent: str, names: tuple[str, ...], args_text: str | None, as_run: bool, as_json: bool
) -> None:
    """Explain every decision for AGENT (an id or a profile file), or those for some NAMEs.

    Exit: 0; with NAMEs 2 if any is denied, 1 if one is not installed; 4 when the agent is unavailable.
    """
    args = _arguments(args_text, names)
    subject = opened.workspace.agent(agent)
    inventory = opened.inventory([subject])
    explanation = opened.workspace.explain(subject, inventory, has_approver=args is not None or as_run)
    running = as_it_runs(explanation) if as_run else None
    explanation = running.explanation if running else explanation
    decisions, unknown = _asked(explanation, names, args)
    decisions = running.seen(decisions) if running else decisions
    if as_json:
        more = {"not_installed": unknown} | (as_run_dict(running) if running else {})
        print_json(explanation_dict(explanation, decisions if names or running else None) | more)
    else:
        _print(explanation, decisions, is_whole=not names)
        for line in as_run_lines(running) if running else ():
            click.echo(line)
        for name in unknown:
            near = explanation.decider.nearest(name)
            fix = f"did you mean `{show(near)}`?" if near else "`extgate list` shows what is"
            click.echo(f"extgate: `{show(name)}` is not installed; {fix}", err=True)
    sys.exit(_exit_code(explanation, decisions if names else (), unknown))


def _arguments(text: str | None, names: tuple[str, ...]) -> dict[str, Any] | None:
    if text is None:
        return None
    if len(names) != 1:
        raise WorkspaceError("--args asks about one call of one NAME", fix="name exactly one")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise WorkspaceError(f"--args is not JSON: {error}", fix='pass an object, as {"command": "ls"}') from None
    if not isinstance(value, dict):
        raise WorkspaceError("--args is not an object", fix='pass an object, as {"command": "ls"}')
    return value


def _asked(
    explanation: Explanation, names: Iterable[str], args: dict[str, Any] | None
) -> tuple[list[Decision], list[str]]:
    decider = explanation.decider
    if not names:
        return list(decider.decisions), []
    found: dict[int, Decision] = {}
    unknown = []
    for name in names:
        extensions = decider.named(name)
        found |= {id(ext): decider.decide(ext, args) for ext in extensions}
        unknown += [] if extensions else [name]
    return list(found.values()), unknown


def _exit_code(explanation: Explanation, asked: Iterable[Decision], unknown: list[str]) -> int:
    if not explanation.availability.is_available:
        return UNAVAILABLE
    if unknown:
        return NOT_INSTALLED
    return DENIED if any(decision.effect == "deny" for decision in asked) else 0


def _print(explanation: Explanation, decisions: list[Decision], *, is_whole: bool) -> None:
    out = console()
    agent = explanation.agent
    out.print(f"[bold]{agent.id}[/bold]" if out.is_terminal else agent.id, agent.file, f"({agent.dialect or 'unread'})")
    if explanation.availability.is_available:
        out.print("available")
    else:
        say_unavailable(explanation, out)
    out.print()
    if is_whole:
        _print_groups(decisions, out)
        _print_summary(explanation, decisions, out)
    else:
        for kind in KINDS:
            rows = [_row(d) for d in decisions if d.extension.kind == kind]
            if rows:
                table(kind, ("see", "name", "why", "rule"), rows, out)
        _print_trails(decisions, out)


def _print_groups(decisions: Iterable[Decision], out: Console) -> None:
    """Every decision, those of one rule together: what is seen first, then what is not and why not."""
    for kind in KINDS:
        groups: dict[tuple[str, str, str], list[Decision]] = {}
        for d in decisions:
            if d.extension.kind == kind:
                groups.setdefault(_group(d), []).append(d)
        members = [d for group in groups.values() for d in group]
        if members:
            allowed = sum(d.effect != "deny" for d in members)
            out.print(Text(f"{kind}: {allowed} of {len(members)} allowed", style="bold"))
        for (effect, because, rule), group in sorted(groups.items(), key=lambda item: item[0][0]):
            word, style = _ANSWERS[effect]
            text = Text.assemble((f"  {word:<4}", style), because, (f"  [{rule}]" if rule else "", "dim"))
            out.print(text, soft_wrap=True)
            names = ", ".join(shown_name(d.extension) for d in group)
            width = max(60, min(out.width, 110))
            out.print(Text(_wrapped(names, width)), soft_wrap=True)
        if members:
            out.print()


def _wrapped(text: str, width: int) -> str:
    """Indented lines of this width; names are never broken, so that each can be found."""
    indent = " " * 8
    return fill(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def _group(decision: Decision) -> tuple[str, str, str]:
    """Effect, reason without the name, rule: what decisions that are told together have in common."""
    if decision.effect == "allow":
        step = replace(decision.rule, pattern=None)
        return "allow", "no rule denies" if decision.rule.text.startswith("default") else "admitted by", where(step)
    name = f"'{shown_name(decision.extension)}' "
    return decision.effect, decision.reason.replace(name, "").rstrip("."), where(decision.rule)


_ANSWERS = {"allow": ("yes", "green"), "ask": ("ask", "yellow"), "deny": ("no", "red")}


def _print_trails(decisions: Iterable[Decision], out: Console) -> None:
    for d in decisions:
        for step in d.trail:
            line = f"  before that, {where(step)}: {step.outcome} for {shown_name(d.extension)}"
            out.print(Text(show(line), style="dim"), soft_wrap=True)


def _row(decision: Decision) -> tuple[str, str, str, str]:
    return _ANSWERS[decision.effect][0], shown_name(decision.extension), decision.reason, where(decision.rule)


def where(step: Step) -> str:
    """`list pattern file:line`, as far as each is known."""
    place = f"{step.file}:{step.line}" if step.file and step.line else step.file or ""
    pattern = f"`{step.pattern}`" if step.pattern is not None else ""
    return " ".join(part for part in (step.text, pattern, place) if part)


def say_unavailable(explanation: Explanation, out: Console) -> None:
    """Says why the agent may take no turn."""
    availability = explanation.availability
    out.print("UNAVAILABLE: it takes no turn, and nothing of this is exposed", style="bold red")
    if availability.error:
        out.print(f"  its profile cannot be read: {show(availability.error)}", markup=False)
    for missing in availability.missing:
        needed = missing.requirement
        place = f"{needed.text} `{show(missing.pattern)}` ({needed.file}:{needed.line})"
        out.print(f"  {place}: {missing.state}; {missing.detail}", markup=False)


def _print_summary(explanation: Explanation, decisions: list[Decision], out: Console) -> None:
    allowed = sum(tokens(d.extension) for d in decisions if d.effect != "deny")
    everything = sum(tokens(d.extension) for d in decisions)
    out.print(f"definitions: about {allowed:,} tokens a request, of {everything:,} for all that is installed")
    for finding in explanation.findings:
        out.print(f"{finding.severity} {finding.code}: {finding_line(finding)}", markup=False)
