"""extgate against the law read a second time: every decision, every availability, over random worlds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import strategies
from tests.dialects.adapter import decide_case
from tests.oracle.law import Unreadable, judge
from tests.worlds import World

DATA = Path(__file__).parent.parent / "data"
SERVED = {
    file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted((DATA / "inventories").glob("*.json"))
}
ROUNDS = settings(
    max_examples=600,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def assert_agrees(profile: Any, inventory: dict[str, Any]) -> None:
    """extgate and the oracle say the same of this profile over this inventory."""
    law, answer = judge(profile, inventory), decide_case(profile, inventory)
    if isinstance(law, Unreadable):
        assert not answer.readable, sorted(law.reasons)
        assert answer.visible == []
        return
    assert answer.readable, answer.error
    assert answer.allowed == law.allowed
    assert (answer.available, list(answer.missing)) == (law.available, law.missing)
    expected = sorted(key[0] for key, allowed in law.allowed.items() if allowed and law.available)
    assert answer.visible == answer.callable == expected


@ROUNDS
@given(world=strategies.profile_worlds())
def test_dialect_a_decides_what_the_oracle_decides(world: World) -> None:
    assert_agrees(*world)


@ROUNDS
@given(world=strategies.patterns_worlds())
def test_dialect_b_decides_what_the_oracle_decides(world: World) -> None:
    assert_agrees(*world)


@pytest.mark.parametrize("name", sorted(SERVED))
@settings(max_examples=8, deadline=None, derandomize=True)
@given(data=st.data())
def test_real_servers_are_decided_as_the_oracle_decides(name: str, data: st.DataObject) -> None:
    inventory = SERVED[name]
    words = [w for s in inventory["mcp"] for w in (s["server"], *(f"{s['server']}/{t['name']}" for t in s["tools"]))]
    pattern = st.sampled_from(words or ["x"]).flatmap(
        lambda w: st.sampled_from([w, w.replace("/", "__"), w[:-2] + "*", "*" + w[-4:], w.replace("/", "_")])
    )
    lists = st.lists(pattern, max_size=3)
    mcp = st.fixed_dictionaries({}, optional={"disabled": lists, "allowed": lists, "required": lists})
    tools = st.fixed_dictionaries({}, optional={"disabled": lists, "allowed": lists})
    assert_agrees(data.draw(st.fixed_dictionaries({}, optional={"mcp": mcp, "tools": tools})), inventory)


SAMPLES = [
    *sorted((DATA / "dialect-samples" / "openprogram").glob("*.json")),
    *sorted((DATA / "dialect-samples" / "msagent").glob("*.yml")),
]


@pytest.mark.parametrize("file", SAMPLES, ids=lambda f: f.name)
def test_sample_profiles_are_decided_as_the_oracle_decides(file: Path) -> None:
    profile = yaml.safe_load(file.read_text(encoding="utf-8"))
    merged = {
        "tools": [
            {"name": n, "source": "builtin"}
            for n in ("bash", "read", "grep", "execute", "ls", "read_file", "write", "execute_code")
        ]
    }
    merged["skills"] = [
        {"name": n, "source": "project"} for n in ("pdf", "ops/deploy", "devops/x", "trace-cpu", "trace-upload")
    ]
    merged["mcp"] = [row for inventory in SERVED.values() for row in inventory["mcp"]]
    for name in ("slack", "github", "perf-tools", "arxiv-x"):
        merged["mcp"].append(
            {"server": name, "tools": [{"name": t} for t in ("send", "delete_repo", "load", "x_debug")]}
        )
    assert_agrees(profile, merged)
