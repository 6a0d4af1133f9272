"""Gemini CLI's ranked rules as rules for tools, skills, agents and MCP items, and its defaults.

Source: packages/core/src/policy of gemini-cli-core 0.61.0; seen 2026-11-30.
"""

from __future__ import annotations

from extgate.core.names import Facet
from extgate.core.policy import Test
from extgate.dialects.commands import literal
from extgate.dialects.gemini_policies import Ranked
from extgate.dialects.native import AGENT, MCP_TOOL, SKILL, TOOL, Place, RuleList, exact, test

_WRITES = ("write_file", "replace")
_ASKS = (*_WRITES, "run_shell_command", "web_fetch", "activate_skill", "save_memory")


class Emitter:
    """Adds rules that come the highest rank first."""

    def __init__(self, rules: RuleList, *, as_run: bool) -> None:
        self.rules, self.as_run = rules, as_run

    def emit(self, rule: Ranked) -> None:
        """One ranked rule for tools, MCP items, skills and agents, whichever its names can mean."""
        for name in rule.names:
            if not rule.server:
                self._plain(rule, name)
            self._items(rule, name)

    def _plain(self, rule: Ranked, name: str) -> None:
        stars = "*" if not self.as_run or name == "*" else ""
        glob = literal(name, stars=stars)
        self.rules.add(
            rule.effect, TOOL, rule.place, [test(glob), *rule.also], when=rule.when, is_listed=rule.is_scoped
        )
        for tool, kinds in (("activate_skill", SKILL), ("invoke_agent", AGENT)):
            if name not in (tool, "*"):
                continue
            globs = rule.skills if tool == "activate_skill" and rule.skills is not None else ("*",)
            if rule.when and rule.skills is None and rule.effect == "allow":
                continue
            for each in globs:
                self.rules.add(rule.effect, kinds, rule.place, *([[test(each)]] if each != "*" else []),
                               is_listed=rule.is_scoped)  # fmt: skip
        if name != "*":
            self.rules.add(rule.effect, AGENT, rule.place, [test(glob), *rule.also], when=rule.when, is_listed=True)

    def _items(self, rule: Ranked, name: str) -> None:
        """MCP tools by server and item, or by the name on the wire; denies by the bare item as well."""
        own = [exact(rule.server, "server")] if rule.server and rule.server != "*" else []
        if rule.server:
            if rule.server == "*" and (self.as_run or rule.effect == "allow"):
                return
            glob = literal(name, stars="*" if name == "*" or not self.as_run else "")
            head = literal(rule.server, stars="*" if rule.server == "*" else "")
            way: list[Test] = [test(f"{head}/{glob}", "name"), *own, *rule.also]
            self.rules.add(rule.effect, MCP_TOOL, rule.place, way, when=rule.when, is_listed=rule.is_scoped)
            return
        stars = "*" if name == "*" or (name.startswith("mcp_") and name.endswith("*") and name.count("*") == 1) else ""
        facets: tuple[Facet, ...] = ("gemini-cli",)
        if rule.effect == "deny":
            facets = ("gemini-cli", "own") if self.as_run else ("item_any", "own")
            stars = stars if self.as_run else "*"
        self.rules.add(rule.effect, MCP_TOOL, rule.place, [test(literal(name, stars=stars), *facets), *rule.also],
                       when=rule.when, is_listed=rule.is_scoped)  # fmt: skip

    def defaults(self, mode: str) -> None:
        """What no rule of the user's speaks of, by mode."""
        place = Place(f"mode {mode}")
        if mode == "yolo":
            return
        if mode == "plan":
            self.rules.add("deny", TOOL, place, *([exact(name)] for name in (*_WRITES, "run_shell_command")))
            self.rules.add("deny", MCP_TOOL, place, [exact("may write", "hint")])
        if mode == "autoEdit":
            self.rules.add("allow", TOOL, place, *([exact(name)] for name in _WRITES))
        default = Place("asked by default")
        self.rules.add("ask", TOOL, default, *([exact(name)] for name in _ASKS))
        self.rules.add("ask", SKILL | MCP_TOOL, default)
