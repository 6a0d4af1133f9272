"""What discovery can find wrong: one row a code, from which problems, docs pages and their test are made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from extgate.core.extension import Finding
from extgate.core.names import show

Severity = Literal["error", "warning", "info"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One kind of finding: what it means and the way out. `error`: what it is about was not loaded."""

    code: str
    severity: Severity
    meaning: str
    fix: str


def _row(code: str, severity: Severity, meaning: str, fix: str) -> Code:
    return Code(code=code, severity=severity, meaning=meaning, fix=fix)


CODES: tuple[Code, ...] = (
    # Skills
    _row("EG201", "error", "a SKILL.md cannot be opened", "make it a regular file that this user can read"),
    _row("EG202", "error", "a SKILL.md is larger than 1 MiB", "move long material into files beside it"),
    _row("EG203", "error", "a SKILL.md is not UTF-8 text", "save it as UTF-8"),
    _row("EG204", "error", "a skill's header cannot be read", "mend the YAML between the `---` lines"),
    _row("EG205", "error", "a key of a skill's header has a value that cannot be used", "write what the message names"),
    _row("EG206", "error", "a limit stands in a skill's text, but its header would lose it", "put it into the header"),
    _row("EG207", "error", "a skill folder's name cannot be used", "rename the folder with visible characters"),
    _row("EG210", "warning", "a colon in `name` or `description` was read as text", "put the value in quotes"),
    _row("EG211", "warning", "a skill has no header", "start the file with `---`, `name:`, `description:`, `---`"),
    _row("EG212", "warning", "a skill's header has no `name`", "add `name:` with the folder's name"),
    _row("EG213", "warning", "a skill's declared name differs from its folder", "make the two equal"),
    _row("EG214", "warning", "a skill has no description", "add `description:`, by which a model picks it"),
    _row("EG215", "warning", "a header key is written in another way", "write the key as the message names it"),
    _row("EG220", "warning", "a skill is shadowed by a source before it", "rename one of the two, or remove it"),
    _row("EG221", "warning", "a SKILL.md lies directly in the root of a source", "give it a folder of its own"),
    _row("EG222", "warning", "skills in a vendor or hidden folder were skipped", "move wanted ones out of it"),
    _row("EG223", "warning", "a SKILL.md lies inside another skill's folder", "move it beside that folder"),
    _row("EG224", "warning", "skills lie deeper than is read", "move them up"),
    _row("EG225", "warning", "a link that leaves the source's folder was not followed", "copy what it names"),
    _row("EG226", "info", "a link inside a source is another name for a skill", "remove the link if it is not wanted"),
    _row("EG227", "warning", "a file is named almost like SKILL.md", "name it `SKILL.md`"),
    _row("EG228", "error", "a folder of a skill source cannot be listed", "let this user read it"),
    _row("EG229", "error", "a skill source holds more than is read", "point the source at a smaller folder"),
    # MCP servers
    _row("EG301", "error", "a file of MCP servers cannot be read", "mend the file"),
    _row("EG302", "error", "a server's entry cannot be used", "write what the message names"),
    _row("EG303", "error", "a server's entry names a variable that is not set", "set it, or write `${NAME:-default}`"),
    _row("EG304", "warning", "a key of a server's entry has no effect here", "remove it, or write it as a rule"),
    _row("EG305", "error", "two servers have one name", "rename the second"),
    _row("EG306", "error", "a server's name cannot be used", "rename it with visible characters"),
    _row("EG310", "warning", "a server did not start, or did not answer as it must", "see the message"),
    _row("EG311", "warning", "a server works, but one of its lists failed", "see the server's own log"),
    _row("EG312", "warning", "a server lists an item twice; the first is kept", "tell the server's author"),
    _row("EG313", "warning", "a server prints text that is no message", "let it log to stderr"),
    _row("EG314", "info", "a server's entry leaves out some of its tools", "edit `include` or `exclude`"),
    _row("EG315", "warning", "an entry of `include` or `exclude` names no tool", "write the tool's own name"),
    _row("EG316", "warning", "a server is not started before somebody trusts it", "run `extgate trust`"),
    _row("EG317", "warning", "a server lists an item that is malformed; it is left out", "tell the server's author"),
    _row("EG320", "error", "the trust store cannot be used, so nothing is trusted", "mend or remove the file"),
    # Plugins
    _row("EG401", "error", "a plugin's manifest cannot be read", "mend the file"),
    _row("EG402", "error", "a key of a plugin's manifest has a value that cannot be used", "see the message"),
    _row("EG403", "error", "a plugin names a path outside its folder", "keep all that it contributes inside"),
    _row("EG404", "warning", "a plugin asks for trust by itself", "remove the key; only a person grants trust"),
    _row("EG405", "error", "two plugins have one name", "rename or remove the second"),
    _row("EG406", "error", "a plugin's name cannot be used", "rename it with visible characters and no `/`"),
    _row("EG407", "warning", "a plugin folder contributes nothing", "add a manifest, or remove the folder"),
    _row("EG408", "info", "a plugin contributes what extgate does not gate", "review it by hand"),
    _row("EG409", "warning", "a plugin names a path that is not there", "mend the path"),
    _row("EG410", "error", "a plugin's agent file cannot be read", "mend its header"),
    _row("EG411", "error", "an entry point names no plugin folder", "let it name a package that holds a manifest"),
    _row("EG412", "warning", "a plugin has several manifests; the first form counts", "keep one"),
)
"""All findings of discovery, by code."""

BY_CODE: dict[str, Code] = {row.code: row for row in CODES}


def finding(
    code: str,
    message: str,
    *,
    file: object = None,
    line: int | None = None,
    fix: str = "",
    severity: Severity | None = None,
) -> Finding:
    """A problem of that code; fix and severity are the code's own unless given."""
    row = BY_CODE[code]
    return Finding(
        code=code,
        message=show(message),
        file=None if file is None else show(str(file)),
        line=line,
        fix=fix or row.fix,
        severity=severity or row.severity,
    )
