from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.core.extension import Extension
from extgate.core.names import MAX_WIRE, Prefix, gateway_names

PARTS = st.text(alphabet="ab_-./é", min_size=1, max_size=6) | st.text(alphabet="x_", min_size=60, max_size=90)
ITEMS = st.lists(st.tuples(PARTS, PARTS), unique=True, max_size=12)


def items(pairs: list[tuple[str, str]]) -> list[Extension]:
    return [Extension(kind="mcp_tool", server=server, name=name) for server, name in pairs]


@given(ITEMS, st.sampled_from(["always", "never", "on-clash"]), st.randoms())
def test_names_are_injective_clean_short_and_a_function_of_the_set(pairs, prefix, random) -> None:  # type: ignore[no-untyped-def]
    found = gateway_names(items(pairs), prefix=prefix)
    assert len(set(found.values())) == len(found)
    assert all(
        0 < len(n) <= MAX_WIRE and n.isascii() and n.replace("_", "a").replace("-", "a").isalnum()
        for n in found.values()
    )
    shuffled = items(pairs)
    random.shuffle(shuffled)
    assert gateway_names(shuffled, prefix=prefix) == found
    if prefix != "never":
        assert set(found) == set(items(pairs))


@given(ITEMS, PARTS, PARTS)
def test_with_the_prefix_an_item_that_comes_changes_no_other_server_s_readable_name(pairs, server, name) -> None:  # type: ignore[no-untyped-def]
    before = gateway_names(items(pairs))
    after = gateway_names(items([*pairs, (server, name)]))
    assert all(after[ext] == wire for ext, wire in before.items() if ext.server != server)


def test_a_tool_cannot_take_the_name_that_a_digest_gave_another() -> None:
    victim = Extension(kind="mcp_tool", server="a.x", name="y")
    taken = gateway_names([victim])[victim]
    thief = Extension(kind="mcp_tool", server="a_x", name=taken.removeprefix("a_x__"))
    found = gateway_names([victim, thief])
    assert found[victim] == taken
    assert found[thief] != taken


def test_never_leaves_out_what_two_servers_call_the_same_and_on_clash_prefixes_it() -> None:
    pair = items([("slack", "send"), ("mail", "send"), ("mail", "find")])
    assert set(gateway_names(pair, prefix="never").values()) == {"find"}
    assert set(gateway_names(pair, prefix="on-clash").values()) == {"find", "slack__send", "mail__send"}


def test_an_alias_that_is_taken_or_cannot_be_sent_is_not_used() -> None:
    pair = items([("slack", "send"), ("mail", "send")])
    for aliases in ({"slack/send": "post", "mail/send": "post"}, {"slack/send": "no way"}, {"slack/send": "x" * 65}):
        assert set(gateway_names(pair, aliases=aliases).values()) == {"slack__send", "mail__send"}
    assert set(gateway_names(pair, aliases={"slack/send": "mail__send"}).values()) >= {"mail__send"}
    assert len(set(gateway_names(pair, aliases={"slack/send": "mail__send"}).values())) == 2


@pytest.mark.parametrize("prefix", ["on-clash", "never"])
def test_a_bare_name_cannot_be_the_one_that_a_digest_or_a_prefix_gives_another(prefix: Prefix) -> None:
    victims = items([("good", "a.b"), ("good", "search"), ("other", "search")])
    taken = [*gateway_names(victims).values()]
    thieves = items([("evil", name) for name in taken])
    found = gateway_names([*victims, *thieves], prefix=prefix)
    assert not {found.get(thief) for thief in thieves}.intersection(taken)
    assert len(set(found.values())) == len(found)
    if prefix == "on-clash":
        assert [found[victim] for victim in victims] == taken


def test_an_alias_cannot_be_the_name_that_a_digest_gives_another() -> None:
    victim, other = items([("good", "a.b"), ("x", "t")])
    (taken,) = gateway_names([victim]).values()
    assert gateway_names([victim, other], aliases={"x/t": taken}) == {victim: taken, other: "x__t"}
