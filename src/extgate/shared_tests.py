"""The `tests:` of extgate.yaml, given to the agents that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.core.patterns import matches
from extgate.core.policy import Policy
from extgate.homes import CONFIG, Homes

Place = tuple[str, int, int]
"""File, line, and which row of its `tests` it is, from 1 on."""
Row = tuple[Any, Place]


def rows_of(homes: Homes) -> tuple[Row, ...]:
    """The rows in order, whatever is wrong with them."""
    node = homes.node.get("tests") if homes.node else None
    if node is None:
        return ()
    file = str(homes.root / CONFIG)
    if node.kind != "list":
        return ((node.value, (file, node.line, 1)),)
    return tuple((child.value, (file, child.line, at)) for at, child in enumerate(node.children, 1))


def with_tests(policy: Policy, agent: str, rows: Sequence[Row]) -> Policy:
    """An agent's policy with the rows that are about it behind those of its own file."""
    mine = [(row, place) for row, place in rows if any(matches(agent, glob) for glob in _wanted(row))]
    tests, places = policy.facts.get("tests", []), tuple(policy.facts.get("test_places", ()))
    if not mine or not isinstance(tests, list):  # one that is no list is an error of its own file
        return policy
    bare = [
        {key: value for key, value in row.items() if key != "for"} if isinstance(row, dict) else row for row, _ in mine
    ]
    more = {"tests": [*tests, *bare], "test_places": (*places, *(place for _, place in mine))}
    return replace(policy, facts={**policy.facts, **more})


def stray_tests(rows: Sequence[Row], ids: Iterable[str]) -> Iterator[Finding]:
    """An error for each row that is about nobody."""
    names = tuple(ids)
    for row, (file, line, number) in rows:
        wanted = _wanted(row)
        if not any(matches(name, glob) for name in names for glob in wanted):
            message = f"tests: row {number}: no agent is called {' or '.join(map(show, wanted)) or 'so'}"
            fix = f"the agents are {', '.join(map(show, names[:20]))}; leave `for` out for all"
            yield Finding(code="EG048", message=message, file=file, line=line, fix=fix, severity="error")


def _wanted(row: Any) -> list[str]:
    """The globs of ids after `for`; of a row without it all."""
    found = row.get("for", "*") if isinstance(row, dict) else "*"
    return [text for text in (found if isinstance(found, list) else [found]) if isinstance(text, str)]
