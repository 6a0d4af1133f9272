"""The first design's three helpers, for whoever gates by plain lists."""

from __future__ import annotations

from collections.abc import Iterable

from extgate.core.names import refusal, show
from extgate.core.patterns import clean, matches, unclosed_bracket
from extgate.errors import PatternError

Patterns = Iterable[str] | str | None


def match_any(name: str | None, patterns: Patterns) -> bool:
    """Whether any pattern matches the name; no patterns match nothing, a string is one pattern.

    A missing name is the empty one, which only `*` and the empty pattern match.
    Raises PatternError (a ValueError) for a pattern that is not a string or holds an unclosed `[`.
    """
    if name is not None and not isinstance(name, str):
        raise PatternError(f"a name must be a string, got {type(name).__name__}", fix="pass its text")
    return any(matches(name or "", pattern) for pattern in _cleaned(patterns))


def gate(
    *,
    name: str | None,
    category: str | None = "",
    disabled: Patterns = (),
    allowed: Patterns = (),
    categories: Patterns = (),
) -> str | None:
    """None when the item passes, else the reason: `disabled` first, then `allowed`, then `categories`.

    Empty lists put no limit. An item without a category passes `categories` only through an empty pattern or `*`.
    Raises PatternError (a ValueError) as `match_any` does.
    """
    denied, admitted, kinds = _cleaned(disabled), _cleaned(allowed), _cleaned(categories)
    if name is not None and not isinstance(name, str):
        raise PatternError(f"a name must be a string, got {type(name).__name__}", fix="pass its text")
    why = refusal(name)
    if why:
        return f"'{show(name or '')}' is refused: {why}."
    if match_any(name, denied):
        return f"'{name}' is disabled for this agent."
    if admitted and not match_any(name, admitted):
        return f"'{name}' is not in this agent's allowed list."
    if kinds and not match_any(category, kinds):
        return f"category '{show(category or '')}' is not permitted (allowed: {', '.join(kinds)})."
    return None


def check_required(installed: Iterable[str | None], required: Patterns) -> list[str]:
    """The required patterns that no installed server meets, each once; items without a name meet nothing.

    Raises PatternError (a ValueError) as `match_any` does.
    """
    names = [name for name in installed if name and not refusal(name)]
    return [p for p in dict.fromkeys(_cleaned(required)) if not any(_meets(name, p) for name in names)]


def _meets(name: str, pattern: str) -> bool:
    """`server/*` means the server; what a single item's pattern needs, a list of servers can't tell."""
    return matches(name, pattern) or (pattern.endswith("/*") and matches(name, pattern[:-2]))


def _cleaned(patterns: Patterns) -> tuple[str, ...]:
    found = (patterns,) if isinstance(patterns, str) else tuple(patterns or ())
    result = tuple(clean(pattern) for pattern in found)
    for pattern in result:
        if unclosed_bracket(pattern):
            raise PatternError(f"malformed pattern `{show(pattern)}`: unclosed [", fix="close it, or write [[]")
    return result
