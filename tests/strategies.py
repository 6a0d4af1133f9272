"""What the laws by generation draw from: names, and whole worlds (a profile and an inventory)."""

from __future__ import annotations

from hypothesis import strategies as st

from tests import worlds
from tests.worlds import World

names = st.one_of(st.sampled_from(worlds.PLAIN), st.sampled_from(worlds.HOSTILE), st.text("ab_/.-é*", max_size=4))
server_names = st.sampled_from(worlds.SERVERS)


def profile_worlds() -> st.SearchStrategy[World]:
    """A profile of dialect A, parsed, and an inventory file."""
    return st.randoms(use_true_random=False).map(worlds.profile_world)


def patterns_worlds() -> st.SearchStrategy[World]:
    """A profile of dialect B, parsed, and an inventory file."""
    return st.randoms(use_true_random=False).map(worlds.patterns_world)
