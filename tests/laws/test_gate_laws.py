"""Laws 5 to 10 of the gate, over random profiles and inventories: what every door relies on."""

from __future__ import annotations

import itertools
import json
import threading
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from extgate.core.extension import Extension, Inventory, Server
from extgate.core.policy import Inherit, Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.discover.inventory_file import load_inventory
from extgate.enforce.gate import Gate
from extgate.enforce.sinks import Memory
from extgate.errors import ExtgateError
from tests.doors.policies import layer, profile, rule
from tests.strategies import names, patterns_worlds, profile_worlds, server_names


def items(kind: str, *names: str, server: str | None = None) -> list[Extension]:
    return [Extension(kind=kind, name=name, server=server, source="builtin") for name in names]


POOL = [
    *items("tool", "bash", "read", "x__y", "send", "slack_send", "ba\u200bsh", ""),
    *items("skill", "ops/deploy", "notes", "bash"),
    *items("mcp_tool", "send", "get", "x", "__x", server="slack"),
    *items("mcp_tool", "send", "get", server="slack__evil"),
    *items("mcp_tool", "t_x", server="a"),
    *items("mcp_tool", "x", server="a_t"),
    *items("mcp_resource", "s://1", "s://{any}", server="slack"),
    *items("mcp_prompt", "send", server="slack"),
    *items("subagent", "helper", "bash"),
]
PATTERNS = ["*", "b*", "bash", "builtin/bash", "read", "x__y", "slack", "slack/*", "slack/send", "slack__*", "*send*"]
PATTERNS += [
    "slack_send",
    "a/*",
    "a*",
    "mcp__slack__get",
    "s://*",
    "slack/s://1",
    "ops/*",
    "notes",
    "helper",
    "?*",
    "zz",
]
some = st.lists(st.sampled_from(PATTERNS), max_size=3)


def block(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={"disabled": some, "allowed": some, **more})


required = st.lists(st.sampled_from(["slack", "a", "slack/send", "gone"]), max_size=1)
documents = st.fixed_dictionaries(
    {},
    optional={
        "tools": block(),
        "skills": block(),
        "mcp": st.one_of(block(), block(), block(required=required)),
        "resources": block(),
        "subagents": block(),
    },
)


def profile_of(document: dict[str, Any], id_: str = "agent") -> Profile:
    """The profile of a document; one that cannot be read has no layer."""
    try:
        policy = read_agent(Document(path=f"agents/{id_}.json", text=json.dumps(document)))
    except ExtgateError:
        return Profile(id=id_)
    return Profile(id=id_, layers=(policy,))


profiles = documents.map(profile_of)
stocks = st.sets(st.sampled_from(range(len(POOL))), min_size=4).map(
    lambda picked: Inventory(
        extensions=tuple(POOL[i] for i in picked),
        servers=tuple(Server(name=name) for name in ("slack", "slack__evil", "a", "a_t")),
    )
)
World = tuple[Profile, Inventory]
law = settings(deadline=None)
worlds = st.tuples(profiles, stocks)


def stock_of(rows: dict[str, Any]) -> Inventory:
    try:
        return load_inventory(json.dumps(rows), "inventory.json")
    except ExtgateError:
        assume(False)
        raise


wild = st.one_of(profile_worlds(), patterns_worlds()).map(lambda world: (profile_of(world[0]), stock_of(world[1])))
"""Profiles of both dialects and hostile inventories that they were written for; slow to draw."""

late = st.builds(
    lambda kind, server, name: Extension(
        kind=kind, name=name, server=server if kind.startswith("mcp") else None, source="builtin"
    ),
    st.sampled_from(["tool", "skill", "subagent", "mcp_tool", "mcp_prompt", "mcp_resource"]),
    server_names,
    names,
)


def gate(policy: Profile, stock: Inventory, **more: Any) -> Gate:
    return Gate(policy, stock, door="test", **more)


@law
@given(wild, st.lists(late, max_size=4))
def test_what_is_listed_is_what_runs_for_every_item_early_or_late(world: World, more: list[Extension]) -> None:
    door = gate(*world)
    items = [*world[1].extensions, *more]
    seen = door.see(items)
    assert all(left is right for left, right in zip(seen, [e for e in items if door.is_visible(e)], strict=True))
    for ext in items:
        assert bool(door.use(ext)) == door.is_visible(ext) == door.decide(ext).callable


@law
@given(worlds, names)
def test_a_name_is_as_strict_as_the_strictest_item_that_has_it(world: World, name: str) -> None:
    door = gate(*world)
    spelled = [name, *(e.id for e in world[1].extensions), *(e.name for e in world[1].extensions)]
    for text in spelled:
        owners = door.owners(text)
        expected = bool(owners) and all(door.is_visible(ext) for ext in owners)
        assert bool(door.use_named(text)) == expected
        assert (door.see_named([text]) == (text,)) == expected


@law
@given(worlds, worlds)
def test_after_a_swap_every_answer_is_that_of_a_fresh_gate(old: World, new: World) -> None:
    (first, before), (second, after) = old, new
    door = gate(first, before)
    for ext in (*before.extensions, *after.extensions):
        door.use(ext)
    seen_before = {(d.extension.id, d.extension.source): d.visible for d in door.decisions}
    changed = door.swap(profile=second, inventory=after)
    fresh = gate(second, after)
    for ext in (*before.extensions, *after.extensions):
        assert bool(door.use(ext)) == bool(fresh.use(ext))
        assert door.owners(ext.name) == fresh.owners(ext.name)
    reported = {(d.extension.id, d.extension.source): d.visible for d in changed}
    really = {(d.extension.id, d.extension.source): d.visible for d in fresh.decisions}
    assert reported == {k: v for k, v in really.items() if seen_before.get(k, False) != v}


@law
@given(worlds, st.lists(st.none() | profiles, min_size=3, max_size=3), profiles)
def test_no_descendant_has_what_its_ancestor_is_denied_now_or_after_a_swap(
    world: World, below: list[Profile | None], later: Profile
) -> None:
    top, stock = world
    line = [gate(top, stock)]
    for own in below:
        line.append(line[-1].child(own, agent="child"))
    for _ in range(2):
        for parent, child in itertools.pairwise(line):
            for ext in stock.extensions:
                assert not child.use(ext) or parent.use(ext)
        line[0].swap(profile=later)


@law
@given(worlds, st.lists(st.tuples(st.sampled_from(["ceiling", "own", "union"]), profiles), min_size=2, max_size=2))
def test_a_ceiling_holds_below_it_whatever_mode_comes_after(world: World, below: list[tuple[Inherit, Profile]]) -> None:
    top = gate(*world)
    capped = top.child(agent="capped")
    (mode, own), (next_mode, next_own) = below
    grandchild = capped.child(own, mode=mode)
    deepest = grandchild.child(next_own, mode=next_mode)
    for ext in world[1].extensions:
        for door in (grandchild, deepest):
            assert not door.use(ext) or top.use(ext)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@law
@given(worlds, st.dictionaries(st.text(max_size=6), values, max_size=4))
def test_every_use_leaves_exactly_one_event_which_tells_its_outcome_and_no_value(
    world: World, args: dict[str, Any]
) -> None:
    policy, stock = world
    memory = Memory()
    door = gate(policy, stock, sink=memory)
    secret = "\u2603secret"
    for ext in stock.extensions:
        before = len(memory.events)
        answer = door.use(ext, args | {"extra": secret, "more": [{"x": secret}]})
        (event,) = memory.events[before:]
        assert event.outcome == ("allowed" if answer else "refused")
        assert event.reason == answer.decision.reason
        assert event.policy_version == policy.version
        assert set(event.arguments) == {*args, "extra", "more"}
        assert secret not in json.dumps(event.as_dict(), ensure_ascii=False)


@law
@given(worlds)
def test_a_record_that_cannot_be_written_shows_and_runs_nothing(world: World) -> None:
    policy, stock = world

    def full(event: object) -> None:
        raise OSError("disk full")

    door = gate(policy, stock, sink=full)
    hidden = [e for e in stock.extensions if not door.is_visible(e)]
    assert not any(door.use(ext) for ext in stock.extensions)
    assert not hidden or door.see(stock.extensions) == ()


@law
@given(worlds, st.sampled_from([None, True, False, 1, "yes", RuntimeError("away")]))
def test_what_must_be_asked_for_runs_on_a_plain_yes_only_and_is_hidden_without_anybody(
    world: World, said: object
) -> None:
    base, stock = world

    class Approver:
        name = "ann"

        def __call__(self, decision: object, args: object) -> Any:
            if isinstance(said, Exception):
                raise said
            return said

    asking = Profile(id="agent", layers=(*base.layers, layer(rule("ask", "*"), rule("ask", "*", kind="mcp_tool"))))
    alone, asked, free = (
        gate(asking, stock), gate(asking, stock, approver=Approver()), gate(base, stock)
    )  # fmt: skip
    for ext in stock.of_kind("tool", "mcp_tool"):
        asks = asked.decide(ext).effect == "ask"
        assert not (asks and (alone.use(ext) or alone.is_visible(ext)))
        assert bool(asked.use(ext)) == (bool(free.use(ext)) and (not asks or said is True))


def test_no_answer_from_before_a_swap_is_given_after_it_returned_by_any_of_many_threads() -> None:
    bash = Extension(kind="tool", name="bash", source="builtin")
    stock = Inventory(extensions=(bash,), servers=(Server(name="s"),))
    generations = [profile("tools: {disabled: [bash]}", id_=f"g{i}") for i in range(200)]
    version = {p.version: i for i, p in enumerate(generations)}
    memory = Memory()
    door = gate(generations[0], stock, sink=memory)
    child = door.child(agent="child")
    done, stop = [0], threading.Event()
    stale: list[tuple[int, int]] = []

    def ask() -> None:
        while not stop.is_set():
            for one in (door, child):
                in_force = done[0]
                file = one.use(bash).decision.rule.file
                answered = int(str(file).removeprefix("agents/g").removesuffix(".yaml"))
                if answered < in_force:
                    stale.append((in_force, answered))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for i, policy in enumerate(generations[1:], 1):
        door.swap(profile=policy)
        done[0] = i
    stop.set()
    for thread in threads:
        thread.join()
    assert stale == []
    uses = [e for e in memory.events if e.question == "use" and e.agent == "agent"]
    assert all(version[e.policy_version] == int(e.rule["file"][8:-5]) for e in uses if e.policy_version in version)
    assert done[0] == 199
