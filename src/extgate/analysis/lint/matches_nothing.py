"""EG010 to EG012, EG017: an entry that matches nothing installed, with what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from extgate.analysis.lint.context import Context, Spot
from extgate.core.confusables import skeleton
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.core.patterns import is_literal, matches

CODES = ("EG010", "EG011", "EG012", "EG017")


def check(context: Context) -> Iterator[Finding]:
    """One finding for each entry without a match."""
    for spot in context.spots:
        kinds = frozenset().union(*(rule.kinds for rule, _ in spot.rules))
        if context.hits(spot) or not context.inventory.of_kind(*kinds):
            continue
        yield _finding(context, spot, _names(context, spot))


def _names(context: Context, spot: Spot) -> list[str]:
    """What the entry could have named, in the form in which it is compared."""
    spelled = (
        name
        for rule, entry in spot.rules
        for ext in context.inventory.of_kind(*rule.kinds)
        for facet in entry.tests[-1].facets
        for name in context.decider.naming.of(ext).get(facet, ())
    )
    return list(dict.fromkeys(spelled))[:20_000]


def _finding(context: Context, spot: Spot, names: list[str]) -> Finding:
    pattern, where, text = spot.entry.tests[-1].pattern, spot.list, show(spot.entry.text)
    folded = next((n for n in names if n != pattern and matches(n.casefold(), pattern.casefold())), None)
    if folded:
        message = f"{where}: `{text}` matches nothing, but `{show(folded)}` differs only in case"
        return context.warn("EG011", message, at=spot.entry, fix=f"write `{show(folded)}`")
    alike = next((n for n in names if skeleton(n) == skeleton(pattern)), None)
    if alike:
        message = f"{where}: `{text}` matches nothing, but looks like `{show(alike)}`"
        return context.warn("EG012", message, at=spot.entry, fix="type the name again, in one script")
    inside = next((n for n in names if is_literal(pattern) and n.startswith(f"{pattern}/")), None)
    if inside:
        message = f"{where}: `{text}` names a group, and matches nothing by itself"
        return context.warn("EG017", message, at=spot.entry, fix=f"write `{text}/*`")
    near = difflib.get_close_matches(pattern.strip("*"), names[:5000], n=1, cutoff=0.7)
    fix = f"did you mean `{show(near[0])}`?" if near else "remove it, or install what it names"
    return context.warn("EG010", f"{where}: `{text}` matches nothing that is installed", at=spot.entry, fix=fix)
