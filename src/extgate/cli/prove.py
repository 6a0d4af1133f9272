"""`extgate prove`: whether the workspace's `assert:` statements hold, over all names and every road."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click
from rich.console import Console

from extgate.analysis.diff_report import extension_dict, witness_dict
from extgate.analysis.prove import Proof, Prover, Subject
from extgate.analysis.statements import Statement, read_statements
from extgate.cli.options import Opened, print_json, workspace_options
from extgate.cli.tables import console
from extgate.core.names import show, shown_name
from extgate.core.policy import Inherit
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.homes import CONFIG
from extgate.workspace import Agent, Workspace

EXITS = {"proved": 0, "refuted": 3, "undecided": 5}
_STYLES = {"proved": "green", "refuted": "red", "undecided": "yellow"}


@click.command("prove")
@click.option("--never", "never", multiple=True, metavar="KIND:PATTERN", help="Also prove this, as `never` would.")
@click.option("--always", "always", multiple=True, metavar="KIND:PATTERN", help="Also prove this, as `always` would.")
@click.option("--for", "agents", multiple=True, metavar="GLOB", help="The agents these are about; default: all.")
@workspace_options
def command(
    opened: Opened, never: tuple[str, ...], always: tuple[str, ...], agents: tuple[str, ...], as_json: bool
) -> None:
    """Prove the `assert:` statements of extgate.yaml and of profiles.

    Exit: 0 when all are proved, 3 when one is refuted, 5 when one could not be decided.
    """
    workspace = opened.workspace
    given = [{"never": list(never)}] * bool(never) + [{"always": list(always)}] * bool(always)
    rows = [row | {"for": list(agents)} if agents else row for row in given]
    statements = [*_of_workspace(workspace), *read_statements(rows, file="")]
    prover = Prover(_subjects(opened), opened.inventory(workspace.agents))
    proofs = [proof for statement in statements for proof in prover.prove(statement)]
    verdict = next((v for v in ("refuted", "undecided") if any(p.verdict == v for p in proofs)), "proved")
    if as_json:
        print_json({"verdict": verdict, "proofs": [_proof_dict(proof) for proof in proofs]})
    else:
        _print(proofs)
    sys.exit(EXITS[verdict])


def _of_workspace(workspace: Workspace) -> Iterator[Statement]:
    node = workspace.homes.node.get("assert") if workspace.homes.node else None
    if node:
        yield from read_statements(node.value, file=str(workspace.homes.root / CONFIG), lines=_lines(node))
    for agent in workspace.agents:
        found = Document.of_bytes(agent.file, agent.text.encode()).parse().get("assert") if agent.policy else None
        if found:
            yield from read_statements(found.value, file=agent.file, lines=_lines(found), agent=agent.id)


def _lines(node: Node) -> list[int]:
    return [child.line for child in node.children] or [node.line]


def _subjects(opened: Opened) -> dict[str, Subject]:
    workspace = opened.workspace
    ids = [agent.id for agent in workspace.agents]
    default: Inherit = workspace.homes.inherit or "ceiling"  # type: ignore[assignment]
    found = {}
    for agent in workspace.agents:
        mode = agent.policy.facts.get("inherit") if agent.policy else None
        children = _children(agent, ids)
        found[agent.id] = Subject(profile=agent.profile, children=children, mode=mode or default, error=_error(agent))
    for agent in workspace.natives:
        same = tuple(other.id for other in workspace.natives if other.dialect == agent.dialect and other is not agent)
        found[agent.id] = Subject(
            profile=agent.profile,
            children=same,
            mode="own",
            inventory=opened.native_inventory(agent.dialect),
            error=_error(agent),
            name=agent.id.removeprefix(f"{agent.dialect}/"),
            is_guarded=False,
        )
    return found


def _children(agent: Agent, ids: list[str]) -> tuple[str, ...]:
    """The sub-agents that the file lists, else every other agent of the workspace."""
    listed = agent.policy.facts.get("subagents") if agent.policy else None
    names = [str(name) for name in listed] if isinstance(listed, list | tuple) else ids
    return tuple(name for name in names if name in ids and name != agent.id)


def _error(agent: Agent) -> str:
    return "; ".join(error.message for error in agent.errors)


# ---------------------------------------------------------------------------------------------- printing


def _proof_dict(proof: Proof) -> dict[str, object]:
    statement = proof.statement
    return {
        "statement": str(statement),
        "file": statement.file or None,
        "line": statement.line,
        "agent": proof.agent,
        "verdict": proof.verdict,
        "installed": [extension_dict(d.extension) | {"effect": d.effect, "reason": d.reason} for d in proof.installed],
        "witness": witness_dict(proof.witness),
        "roads": [{"state": road.state, "via": list(road.via), "detail": road.detail} for road in proof.roads],
        "undecided": list(proof.undecided),
        "notes": list(proof.notes),
    }


def _print(proofs: list[Proof]) -> None:
    out = console()
    for proof in proofs:
        place = f" ({proof.statement.file}:{proof.statement.line})" if proof.statement.line else ""
        line = f"{proof.verdict}: {show(str(proof.statement))} for {show(proof.agent)}{place}"
        out.print(line, style=_STYLES[proof.verdict], markup=False, soft_wrap=True)
        for text in _details(proof):
            out.print(f"  {show(text)}", markup=False, soft_wrap=True)
    if not proofs:
        out.print("nothing to prove: no `assert:` in extgate.yaml or in a profile; see --never and --always")
    _print_total(proofs, out)


def _print_total(proofs: list[Proof], out: Console) -> None:
    counts = [f"{sum(p.verdict == v for p in proofs)} {v}" for v in EXITS if any(p.verdict == v for p in proofs)]
    if len(proofs) > 1:
        out.print(", ".join(counts))


def _details(proof: Proof) -> Iterator[str]:
    for decision in proof.installed[:10]:
        yield f"{decision.extension.id}: {decision.effect}; {decision.reason}"
    if proof.witness:
        ext, effect = proof.witness.extension, proof.witness.after.effect or "deny"
        facts = f" of category {ext.category}" if ext.category else ""
        yield f"{ext.kind} {shown_name(ext)}{facts} would be answered with {effect}; {proof.witness.after.reason}"
    # A proof that stands though a shell could do the same must not read as if it could not.
    residual = "residual road" + ", left out by `roads: gate`" * (proof.statement.roads == "gate")
    for state, words in (("open", "open road"), ("residual", residual), ("closed", "closed")):
        alike: dict[str, list[str]] = {}
        for road in proof.roads:
            if road.state == state:
                alike.setdefault(road.detail, []).append(" -> ".join(road.via))
        yield from (f"{words}: {', '.join(roads)}: {detail}" for detail, roads in alike.items())
    yield from (f"undecided: {text}" for text in proof.undecided)
    yield from (f"note: {text}" for text in proof.notes)
