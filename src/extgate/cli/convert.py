"""`extgate convert SRC --to DIALECT [-o DIR]`: another runtime's configuration, with every loss named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from extgate.cli.options import Opened, print_json, workspace_options
from extgate.conversion import Conversion, Row, convert
from extgate.core.names import show
from extgate.dialects.convert import WRITERS, Converted
from extgate.dialects.outline import Loss
from extgate.discover.builtins import builtin_tools, runtimes
from extgate.errors import WorkspaceError
from extgate.shapes import finding_line
from extgate.workspace import Agent

LOSSES, UNDECIDED = 3, 5


@click.command("convert")
@click.argument("source", metavar="SRC")
@click.option("--to", "target", required=True, type=click.Choice(sorted(WRITERS)), help="The dialect to write.")
@click.option("-o", "--output", metavar="DIR", help="Write the files below DIR; default: print them.")
@click.option("--accept", "accepted", multiple=True, metavar="CODE/NAME", help="A loss that may widen, by its name.")
@workspace_options
def command(
    opened: Opened, source: str, target: str, output: str | None, accepted: tuple[str, ...], as_json: bool
) -> None:
    """Write the policy of SRC (an agent's id or a profile file) in another dialect, and prove that it says the same.

    It never widens unsaid: what the target cannot deny is an error unless each is accepted by name. Exit: 0 lossless
    over all names, 3 with losses, 5 when none was found but something could not be decided, 1 when nothing was written.
    """
    agent = opened.workspace.agent(source)
    conversion = _converted(opened, agent, target)
    open_ = [loss for loss in conversion.errors if loss.key not in accepted]
    if not open_ and output:
        _save(conversion.converted, Path(output))
    if as_json:
        print_json(_dict(agent, target, conversion, open_))
    else:
        _print(conversion, output, open_)
    if open_:
        fix = " ".join(f"--accept '{show(loss.key)}'" for loss in open_[:5])
        message = f"{len(open_)} denies cannot be said in {target}, so nothing was written"
        raise WorkspaceError(message, file=agent.file, fix=f"accept each by name, as {fix}")
    sys.exit(LOSSES if conversion.losses else UNDECIDED if conversion.undecided else 0)


def _converted(opened: Opened, agent: Agent, target: str) -> Conversion:
    if agent.policy is None:
        told = "; ".join(finding_line(error) for error in agent.errors)
        raise WorkspaceError(f"`{show(agent.id)}` has no policy: {told}", file=agent.file)
    tools = builtin_tools(target) if target in runtimes() and target != "openprogram" else ()
    name = agent.id.rpartition("/")[2]
    return convert(agent.policy, target, opened.inventory([agent]), target_tools=tools, name=name)


def _save(converted: Converted, folder: Path) -> None:
    """Writes every file, or raises WorkspaceError where one is there already; nothing is overwritten."""
    paths = {folder / document.path: document.text for document in converted.documents}
    there = [path for path in paths if path.exists()]
    if there:
        fix = "name another folder with -o, or move it away"
        raise WorkspaceError("is there already, and nothing is overwritten", file=str(there[0]), fix=fix)
    for path, text in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _loss_lines(losses: Iterable[Loss]) -> Iterator[str]:
    """One line for each loss, with its first witness; of what servers offer one for all kinds."""
    alike: dict[tuple[object, ...], list[Loss]] = {}
    for loss in losses:
        kind = loss.witness.partition(":")[0].partition("_")[0] or loss.witness
        alike.setdefault((loss.key, loss.is_wider, loss.rule, loss.line, kind), []).append(loss)
    for loss, *more in alike.values():
        at = f"{loss.file}:{loss.line}" if loss.file and loss.line else loss.file or ""
        place = " ".join(part for part in (loss.rule, at) if part)
        place = f" ({place})" if place else ""
        also = [other.witness.partition(":")[0] for other in more if other.witness != loss.witness]
        words = f"{loss.message}; witness {loss.witness}{', also ' * bool(also)}{', '.join(also)}{place}"
        yield show(f"{'wider' if loss.is_wider else 'narrower'} {loss.key}: {words}")


def _print(conversion: Conversion, output: str | None, errors: Iterable[Loss]) -> None:
    for document in conversion.converted.documents if not errors else ():
        if output:
            click.echo(f"wrote {Path(output) / document.path}")
        else:
            click.echo(f"# {document.path}\n{document.text}")
    for line in _loss_lines(conversion.losses):
        click.echo(line, err=True)
    click.echo("\n".join(_proof_lines(conversion.rows)), err=True)


def _proof_lines(rows: Iterable[Row]) -> Iterator[str]:
    """What was proved, for people."""
    equal = [row.kind for row in rows if row.state == "equal"]
    if equal:
        yield f"equal over all names: {', '.join(equal)}"
    for row in rows:
        if row.state == "undecided":
            yield f"undecided: {row.kind}: {show(row.why)}"


def _dict(agent: Agent, target: str, conversion: Conversion, errors: list[Loss]) -> dict[str, object]:
    rows = [
        {
            "accept": loss.key,
            "direction": "wider" if loss.is_wider else "narrower",
            "message": loss.message,
            "witness": loss.witness,
            "rule": {"text": loss.rule, "file": loss.file, "line": loss.line},
            "is_error": loss in errors,
        }
        for loss in conversion.losses
    ]
    files = (
        []
        if errors
        else [{"path": document.path, "text": document.text} for document in conversion.converted.documents]
    )
    proof = [{"kind": row.kind, "state": row.state, "why": row.why or None} for row in conversion.rows]
    return {"agent": agent.id, "to": target, "documents": files, "losses": rows, "proof": proof}
