"""The one way by which these tests ask extgate: the real command, in this process, over two files.

Everything that compares extgate with the law goes through `decide_case` or `decide_text`.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from extgate.cli.main import cli
from extgate.errors import ExtgateError

Json = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What `explain --json` said, or that the profile could not be read."""

    readable: bool
    available: bool
    missing: tuple[str, ...]
    decisions: tuple[Json, ...]
    findings: tuple[Json, ...]
    error: str
    output: str

    @property
    def visible(self) -> list[str]:
        """Ids of all that the model may learn of, sorted."""
        return sorted(d["id"] for d in self.decisions if d["visible"])

    @property
    def callable(self) -> list[str]:
        """Ids of all that would run, sorted."""
        return sorted(d["id"] for d in self.decisions if d["callable"])

    @property
    def allowed(self) -> dict[tuple[str, str], bool]:
        """By (id, source): what the rules say, whether or not the agent is available."""
        return {(d["id"], source_of(d)): d["effect"] == "allow" for d in self.decisions}

    def decision(self, id_: str) -> Json:
        """The one decision of that id."""
        (found,) = [d for d in self.decisions if d["id"] == id_]
        return found

    def codes(self) -> list[str]:
        """Codes of the findings, sorted."""
        return sorted(f["code"] for f in self.findings)


def source_of(decision: Json) -> str:
    """The source that tells two tools or skills of one name apart; MCP items and sub-agents have none here."""
    return str(decision.get("source") or "") if decision["kind"] in ("tool", "skill") else ""


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one `extgate` command."""
    result = CliRunner().invoke(cli, list(arguments))
    if isinstance(result.exception, ExtgateError):  # what `extgate.cli.main.main` prints
        return 1, result.stdout, f"{result.stderr}extgate: {result.exception}\n"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def decide_text(text: str, inventory: Json, suffix: str = ".json") -> Answer:
    """What extgate says of a profile file with this text, over this inventory."""
    with tempfile.TemporaryDirectory() as folder:
        profile, stock = Path(folder, "agent" + suffix), Path(folder, "inventory.json")
        profile.write_text(text, encoding="utf-8")
        stock.write_text(json.dumps(inventory), encoding="utf-8")
        code, out, err = run("explain", str(profile), "--inventory", str(stock), "--json", "-w", folder)
        out, err = out.replace(folder + "/", ""), err.replace(folder + "/", "")
    if code == 1:
        return Answer(False, False, (), (), (), err, out)
    said = json.loads(out)
    assert code == (0 if said["available"] else 4), (code, out, err)
    return Answer(
        readable=not said["error"],
        available=said["available"],
        missing=tuple(said["missing"]),
        decisions=tuple(said["decisions"]),
        findings=tuple(said["findings"]),
        error=said["error"] or err,
        output=out,
    )


def decide_case(profile: Any, inventory: Json) -> Answer:
    """What extgate says of a profile, given as parsed JSON, over this inventory."""
    return decide_text(json.dumps(profile, ensure_ascii=True), inventory)
