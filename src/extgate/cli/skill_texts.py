"""EG047 for the text of skills, which only a command that may open files can look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from extgate.analysis.mentions import MAX_TEXT, hidden_names, mentioned
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.workspace import Explanation, unsilenced


def skill_text_findings(explanation: Explanation) -> Iterator[Finding]:
    """One finding for each skill that the agent sees and whose text tells it to use what it does not see."""
    names = hidden_names(explanation.decider)
    for decision in explanation.decider.decisions if names else ():
        ext = decision.extension
        if ext.kind == "skill" and ext.file and decision.effect != "deny":
            text = _read(ext.file)
            found = list(mentioned(text, names))
            if found:
                told = ", ".join(f"`{show(name)}`" for _, name, _ in found[:5])
                told += " and more" if len(found) > 5 else ""
                message = f"skill '{show(ext.name)}' speaks of {told}, which `{explanation.agent.id}` may not use"
                fix = "allow it, hide the skill from this agent, or reword the text"
                finding = Finding(code="EG047", message=message, file=ext.file, line=found[0][0], fix=fix)
                yield from unsilenced([finding], {ext.file: text})


def _read(file: str) -> str:
    """The beginning of a file; empty where it cannot be read, which discovery reports."""
    try:
        with Path(file).open(encoding="utf-8-sig", errors="replace") as opened:
            return opened.read(MAX_TEXT)
    except OSError:
        return ""
