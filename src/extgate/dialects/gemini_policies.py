"""Gemini CLI's policy files: `[[rule]]` tables with a priority, the highest first; equal ones in file order.

Source: google-gemini/gemini-cli docs "Policy engine"; 0.61.0 as run; seen 2026-11-30. As run, one ill-shaped rule drops
its whole file; by the documentation it is an error, because nobody knows what the file was to deny.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from extgate.core.policy import ArgTest, Effect, Test
from extgate.dialects.commands import Commands, literal
from extgate.dialects.document import Document
from extgate.dialects.native import NativeNotes, Place, exact
from extgate.dialects.node import Node
from extgate.dialects.regexes import as_globs
from extgate.errors import DocumentError

_DECISIONS: dict[str, Effect] = {"allow": "allow", "deny": "deny", "ask_user": "ask"}
_KEYS = (
    *("toolName", "mcpName", "argsPattern", "commandPrefix", "commandRegex", "toolAnnotations", "subagent", "modes"),
    *("interactive", "allowRedirection", "decision", "priority", "denyMessage", "name", "description"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One rule with its rank. names: of tools as the rule spells them. server: of an MCP item; empty: not told.

    when: conditions on the call. is_scoped: refuses calls and hides nothing. skills: globs of skill names that its
    arguments mean; None when it has no arguments.
    """

    rank: float
    effect: Effect
    place: Place
    names: tuple[str, ...] = ("*",)
    server: str = ""
    when: tuple[ArgTest, ...] = ()
    also: tuple[Test, ...] = ()
    is_scoped: bool = False
    skills: tuple[str, ...] | None = None


def policy_rules(
    document: Document, tier: int, notes: NativeNotes, *, agent: str, mode: str, as_run: bool
) -> list[Ranked]:
    """The rules of one file that apply to the agent in the mode; as run, none when one of them is ill-shaped."""
    try:
        root = document.parse("toml")
    except DocumentError:
        if as_run:
            return []
        raise
    rules = root.get("rule")
    found = []
    for node in rules.children if rules is not None and rules.kind == "list" else ():
        reader = _Rule(node, tier, notes, as_run)
        if (why := reader.fault()) is not None:
            if as_run:
                return []
            notes.at(node).error("EG003", f"rule: {why}", node.line, "see Gemini CLI's documentation of policies")
            continue
        if reader.applies(agent, mode) and (rule := reader.ranked()) is not None:
            found.append(rule)
    if root.get("rules") is not None:
        line = root.key_line("rules")
        notes.at(root).error("EG002", "`rules` is not read by Gemini CLI", line, "write `[[rule]]`")
    return found


class _Rule:
    def __init__(self, node: Node, tier: int, notes: NativeNotes, as_run: bool) -> None:
        self.node, self.tier, self.as_run = node, tier, as_run
        if node.kind == "map":
            notes.unknown_keys(node, _KEYS, "rule")

    def _text(self, key: str) -> str:
        found = self.node.get(key)
        return found.scalar if found is not None and isinstance(found.scalar, str) else ""

    def _texts(self, key: str) -> tuple[str, ...]:
        found = self.node.get(key)
        if found is None:
            return ()
        nodes = found.children if found.kind == "list" else (found,)
        return tuple(node.scalar for node in nodes if isinstance(node.scalar, str))

    def fault(self) -> str | None:
        """What makes it no rule; None when it is one."""
        if self.node.kind != "map":
            return "expected a table"
        priority = self.node.get("priority")
        if not self._texts("toolName"):
            return "`toolName` is missing"
        if self._text("decision") not in _DECISIONS:
            return "`decision` must be allow, deny or ask_user"
        number = priority.scalar if priority else None
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 999:
            return "`priority` must be a number from 0 to 999"
        return None

    def applies(self, agent: str, mode: str) -> bool:
        """Whether it holds for this agent and mode. Who can answer is not known, so `interactive` ends an allow."""
        names, modes = self._texts("subagent"), self._texts("modes")
        if (names and agent not in names) or (modes and mode not in modes):
            return False
        node = self.node.get("interactive")
        return node is None or self._text("decision") != "allow"

    def ranked(self) -> Ranked | None:
        """The rule with its conditions; None for an allow whose conditions cannot be told."""
        effect = _DECISIONS[self._text("decision")]
        when, is_told = self._when(effect)
        if not is_told and (effect == "allow" or self.as_run):
            return None
        hint = self.node.get("toolAnnotations")
        if hint is not None and hint.value != {"readOnlyHint": True}:
            return None if effect == "allow" else self._made(effect, (), ())
        also = (exact("read-only", "hint"),) if hint is not None else ()
        return self._made(effect, when if is_told else (), also)

    def _made(self, effect: Effect, when: tuple[ArgTest, ...], also: tuple[Test, ...]) -> Ranked:
        priority = self.node.items["priority"].scalar
        assert isinstance(priority, int | float)
        names = self._texts("toolName")
        text = ", ".join([*names, *(f"{key}={self._text(key)}" for key in ("mcpName", "subagent") if self._text(key))])
        place = Place("policy", Node(file=self.node.file, line=self.node.line, kind="scalar", scalar=text, text=text))
        return Ranked(
            rank=self.tier + priority / 1000,
            effect=effect,
            place=place,
            names=names,
            server=self._text("mcpName"),
            when=when,
            also=also,
            is_scoped=bool(when) or "subagent" in self.node.items,
            skills=self._skills(effect) if "argsPattern" in self.node.items else None,
        )

    def _when(self, effect: Effect) -> tuple[tuple[ArgTest, ...], bool]:
        """Conditions on the arguments, and whether all of them can be told."""
        found: list[ArgTest] = []
        strict = effect == "allow"
        prefixes = self._texts("commandPrefix")
        if prefixes:
            found.append(command_test(prefixes, strict=strict))
        for key, name, reading in (("commandRegex", "command", Commands(is_strict=strict)), ("argsPattern", "", None)):
            pattern = self._text(key)
            globs = as_globs(f"^{pattern}" if key == "commandRegex" and not pattern.startswith("^") else pattern)
            if key in self.node.items and globs is None:
                return (), False
            if key in self.node.items and globs:
                spelled = [*globs, *(glob.replace('":', '": ').replace('",', '", ') for glob in globs)]
                every = strict and reading is not None
                found.append(
                    ArgTest(name=name, pattern=spelled[0], also=tuple(spelled[1:]), every=every, reading=reading)
                )
        return tuple(found), True

    def _skills(self, effect: Effect) -> tuple[str, ...]:
        """The skills that `"name":"…"` in the arguments of `activate_skill` means."""
        globs = as_globs(self._text("argsPattern"))
        named = [glob.partition('"name":"')[2] for glob in globs or () if '"name":"' in glob]
        if globs is None or len(named) < len(globs):
            return () if effect == "allow" else ("*",)
        return tuple(glob.partition('"')[0] if '"' in glob else glob for glob in named)


def command_test(prefixes: Sequence[str], *, strict: bool) -> ArgTest:
    """Commands that begin with one of these, up to the end of a word."""
    globs = tuple(glob for prefix in prefixes for glob in (literal(prefix), f"{literal(prefix)} *"))
    reading = Commands(is_strict=strict)
    return ArgTest(name="command", pattern=globs[0], also=globs[1:], every=strict, reading=reading)
