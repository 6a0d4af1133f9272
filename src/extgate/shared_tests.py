"""The `tests:` of extgate.yaml, given to the agents that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.core.patterns import matches
from extgate.homes import CONFIG, Homes

if TYPE_CHECKING:
    from extgate.workspace import Agent

Place = tuple[str, int, int]
"""File, line, and which row of its `tests` it is, from 1 on."""


def with_tests(agents: Sequence[Agent], homes: Homes) -> tuple[Agent, ...]:
    """The agents with the rows that are about them behind those of their own files."""
    rows = tuple(_rows(homes))
    return tuple(_given(agent, rows) for agent in agents) if rows else tuple(agents)


def stray_tests(homes: Homes, ids: Iterable[str]) -> Iterator[Finding]:
    """An error for each row that is about nobody."""
    names = tuple(ids)
    for row, (file, line, number) in _rows(homes):
        wanted = _wanted(row)
        if not any(matches(name, glob) for name in names for glob in wanted):
            message = f"tests: row {number}: no agent is called {' or '.join(map(show, wanted)) or 'so'}"
            fix = f"the agents are {', '.join(map(show, names[:20]))}; leave `for` out for all"
            yield Finding(code="EG048", message=message, file=file, line=line, fix=fix, severity="error")


def _rows(homes: Homes) -> Iterator[tuple[Any, Place]]:
    node = homes.node.get("tests") if homes.node else None
    if node is None:
        return
    file = str(homes.root / CONFIG)
    if node.kind != "list":
        yield node.value, (file, node.line, 1)
    for number, child in enumerate(node.children, 1):
        yield child.value, (file, child.line, number)


def _wanted(row: Any) -> list[str]:
    """The globs of ids after `for`; of a row without it all."""
    found = row.get("for", "*") if isinstance(row, dict) else "*"
    return [text for text in (found if isinstance(found, list) else [found]) if isinstance(text, str)]


def _given(agent: Agent, rows: Sequence[tuple[Any, Place]]) -> Agent:
    mine = [(row, place) for row, place in rows if any(matches(agent.id, glob) for glob in _wanted(row))]
    if agent.policy is None or not mine:
        return agent
    facts = agent.policy.facts
    tests, places = facts.get("tests", []), tuple(facts.get("test_places", ()))
    if not isinstance(tests, list):
        return agent  # it is an error of its own file
    bare = [
        {key: value for key, value in row.items() if key != "for"} if isinstance(row, dict) else row for row, _ in mine
    ]
    more = {"tests": [*tests, *bare], "test_places": (*places, *(place for _, place in mine))}
    return replace(agent, policy=replace(agent.policy, facts={**facts, **more}))


def _without_for(row: Any) -> Any:
    return {key: value for key, value in row.items() if key != "for"} if isinstance(row, dict) else row
