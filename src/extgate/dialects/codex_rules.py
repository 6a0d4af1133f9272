"""Codex' command rules: `prefix_rule(pattern=[…], decision="…")` in files of Starlark, of which literal calls are read.

Source: openai/codex docs "Execution policy"; 0.171.0 as run; seen 2026-11-30. The strictest rule that matches a command
counts, and the strictest command of a line.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from extgate.core.policy import ArgTest, Effect
from extgate.dialects.commands import Commands, literal
from extgate.dialects.document import Document
from extgate.dialects.node import Node
from extgate.errors import DialectError

_EFFECTS: dict[str, Effect] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
MAX_WAYS = 256


@dataclass(frozen=True, slots=True)
class CommandRule:
    """One rule: the ways in which a command may begin, and what then."""

    prefixes: tuple[str, ...]
    effect: Effect
    node: Node

    def when(self, *, unwraps: bool) -> ArgTest:
        """The condition on `exec_command`'s line."""
        globs = tuple(glob for prefix in self.prefixes for glob in (literal(prefix), f"{literal(prefix)} *"))
        strict = self.effect == "allow"
        reading = Commands(is_strict=strict, unwraps=unwraps)
        return ArgTest(name="cmd", pattern=globs[0], also=globs[1:], every=strict, reading=reading)


def command_rules(document: Document) -> list[CommandRule]:
    """The rules of one file. Raises DialectError at a line that is no literal `prefix_rule`."""
    try:
        tree = ast.parse(document.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = error.lineno if isinstance(error, SyntaxError) else 1
        raise DialectError("is no rules file that can be read", file=document.path, line=line) from None
    found = []
    for statement in tree.body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Constant):
            continue
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "prefix_rule":
            raise _error(document, statement, "only literal `prefix_rule(…)` calls can be read")
        found.append(_rule(document, call))
    return found


def _rule(document: Document, call: ast.Call) -> CommandRule:
    try:
        given = {
            word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg in ("pattern", "decision")
        }
    except ValueError:
        raise _error(document, call, "a pattern or decision is no literal") from None
    effect = _EFFECTS.get(given.get("decision", "allow"))
    prefixes = _prefixes(given.get("pattern"))
    if effect is None or not prefixes or call.args:
        raise _error(document, call, "expected `pattern` as a list of words and `decision` allow, prompt or forbidden")
    node = Node(file=document.path, line=call.lineno, kind="scalar", scalar=prefixes[0], text=prefixes[0])
    return CommandRule(prefixes, effect, node)


def _prefixes(pattern: object) -> tuple[str, ...]:
    if not isinstance(pattern, list) or not pattern:
        return ()
    choices: list[Sequence[object]] = [word if isinstance(word, list) else [word] for word in pattern]
    words = all(isinstance(word, str) and word for choice in choices for word in choice)
    size = 1
    for choice in choices:
        size *= len(choice)
    return tuple(" ".join(map(str, way)) for way in product(*choices)) if words and 0 < size <= MAX_WAYS else ()


def _error(document: Document, at: ast.stmt | ast.expr, message: str) -> DialectError:
    fix = 'write `prefix_rule(pattern=["git", "push"], decision="forbidden")`'
    return DialectError(message, file=document.path, line=at.lineno, fix=fix)
