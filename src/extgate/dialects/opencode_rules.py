"""opencode's flattened rules as rules for tools, skills, agents and MCP items, the one that counts first in front.

Source: packages/opencode/src/permission and util/wildcard.ts as shipped in 1.18.33; seen 2026-11-30.
"""

from __future__ import annotations

from dataclasses import dataclass

from extgate.core.names import Facet
from extgate.core.patterns import matches
from extgate.core.policy import ArgTest, Effect, Test
from extgate.dialects.arguments import Paths
from extgate.dialects.commands import Commands, literal
from extgate.dialects.native import AGENT, MCP, MCP_TOOL, SKILL, TOOL, Place, RuleList, exact, test

_MEMBERS = {
    "edit": ("write", "apply_patch"),
    "read": ("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
}
"""Tools that are judged under another's permission."""
LEGACY = {"write": "edit", "patch": "edit", "multiedit": "edit"}
_ARGUMENTS = {"edit": "filePath", "write": "filePath", "apply_patch": "filePath", "read": "filePath"}
_ARGUMENTS |= {"glob": "pattern", "grep": "pattern", "list": "path", "lsp": "filePath"}


@dataclass(frozen=True, slots=True)
class Row:
    """One flattened rule: a permission's glob, an argument's glob, what to do."""

    key: str
    pattern: str
    action: Effect
    place: Place


class Emitter:
    """Adds rules for rows that are already in the order that decides."""

    def __init__(self, rules: RuleList, root: str, *, as_run: bool) -> None:
        self.rules, self.root, self.as_run = rules, root, as_run

    def emit(self, rows: list[Row]) -> None:
        """Rules from the row that counts first to the one that counts last; `bash` apart, for its lines have parts."""
        self._bash([row for row in rows if matches("bash", _glob(row.key))])
        for row in rows:
            key = _glob(row.key)
            for family, kinds, argument in (("skill", SKILL, "name"), ("task", AGENT, "subagent_type")):
                if matches(family, key):
                    self._family(row, family, kinds, argument)
            self._tools(row, key)
            self._mcp(row, key)

    def _tools(self, row: Row, key: str) -> None:
        if self.as_run and row.key in LEGACY:
            return  # a permission that is never asked for
        members = [name for family, names in _MEMBERS.items() if matches(family, key) for name in names]
        if row.pattern == "*":
            self._custom_ask(row, key)
            self.rules.add(row.action, TOOL, row.place, [test(key)], *([test(name)] for name in members))
            return
        for name in [row.key, *members]:
            if name in _ARGUMENTS:
                self.rules.add(row.action, TOOL, row.place, [test(literal(name))], when=[self._when(name, row.pattern)])

    def _custom_ask(self, row: Row, key: str) -> None:
        """As run, an ask on a tool of the user's own is never asked."""
        if self.as_run and row.action == "ask":
            own: list[Facet] = ["any"]
            self.rules.add("ask", TOOL, row.place, [test(key, *own), exact("deepagents", "module")])
            self.rules.add("allow", TOOL, row.place, [test(key)])

    def _when(self, tool: str, pattern: str) -> ArgTest:
        globs = patterns_of(pattern)
        is_path = _ARGUMENTS[tool] in ("filePath", "path")
        reading = Paths(self.root, is_relative=True) if is_path else None
        return ArgTest(name=_ARGUMENTS[tool], pattern=globs[0], also=globs[1:], reading=reading)

    def _family(self, row: Row, tool: str, kinds: frozenset[str], argument: str) -> None:
        for glob in patterns_of(row.pattern):
            facet: Facet = "any" if row.action == "deny" and not self.as_run else "own" if tool == "skill" else "name"
            way: list[list[Test]] = [] if glob == "*" else [[test(glob, facet)]]
            self.rules.add(row.action, kinds, row.place, *way)
            if glob != "*":
                when = ArgTest(name=argument, pattern=glob)
                self.rules.add(row.action, TOOL, row.place, [test(tool)], when=[when])

    def _mcp(self, row: Row, key: str) -> None:
        if row.pattern != "*" and (self.as_run or row.action == "allow"):
            return  # what an MCP tool is asked with is always `*`
        facet: Facet = "item_any" if row.action != "allow" and not self.as_run else "opencode"
        self.rules.add(row.action, MCP_TOOL, row.place, [test(key, facet)])
        if matches("read", key) and row.pattern == "*":
            self.rules.add(row.action, MCP - MCP_TOOL, row.place)

    def _bash(self, rows: list[Row]) -> None:
        """Every command of a line has its own first rule, and the strictest of them counts for the line."""
        end = next((n for n, row in enumerate(rows) if row.pattern == "*"), len(rows))
        seen: tuple[str, ...] = ()
        found: list[tuple[Row, tuple[str, ...]]] = []
        for row in rows[: end + 1]:
            found.append((row, seen))
            seen += patterns_of(row.pattern)
        for action in ("deny", "ask", "allow"):
            for row, before in found:
                if row.action == action:
                    self._bash_rule(row, before)
        allowed = [row for row, _ in found if row.action == "allow"]
        if allowed:
            self.rules.add("allow", TOOL, allowed[-1].place, [exact("bash")])

    def _bash_rule(self, row: Row, before: tuple[str, ...]) -> None:
        globs = patterns_of(row.pattern)
        if globs == ("*",) and not before:
            self.rules.add(row.action, TOOL, row.place, [exact("bash")])
            return
        when = ArgTest(name="command", pattern=globs[0], also=globs[1:], but=before, every=row.action == "allow",
                       reading=Commands())  # fmt: skip
        self.rules.add(row.action, TOOL, row.place, [exact("bash")], when=[when])


def _glob(text: str) -> str:
    return literal(text.replace("\\", "/"), stars="*?")


def patterns_of(text: str) -> tuple[str, ...]:
    """The globs of one opencode pattern: a tail of a space and a star may be missing."""
    glob = _glob(text)
    return (glob, glob.removesuffix(" *")) if glob.endswith(" *") else (glob,)
