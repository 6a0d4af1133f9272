"""A new extension kind is one row and a discoverer: here `commands`, through reading, deciding, files and the gate."""

from __future__ import annotations

import json

import pytest

from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Extension, Inventory, Kind
from extgate.core.policy import Profile
from extgate.dialects import reading
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent
from extgate.discover.inventory_file import dump_inventory, load_inventory
from extgate.enforce.gate import Gate

PROFILE = "commands:\n  disabled: ['deploy*']\n"


def discover_commands(names: list[str]) -> Inventory:
    """The discoverer of the new kind, as small as one can be."""
    return Inventory(extensions=tuple(Extension(kind="command", name=name, source="project") for name in names))


@pytest.fixture
def _with_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one row."""
    monkeypatch.setitem(KINDS, "command", Kind(name="command", block="commands", key="commands"))
    monkeypatch.setattr("extgate.dialects.profile.BLOCKS", (*reading.BLOCKS, "commands"))


def test_without_its_row_the_block_is_the_agents_own_key() -> None:
    assert read_agent(Document(path="a.yaml", text=PROFILE)).rules == ()


@pytest.mark.usefixtures("_with_commands")
def test_one_row_and_a_discoverer_gate_a_new_kind_everywhere() -> None:
    inventory = discover_commands(["deploy-now", "help"])
    profile = Profile(id="a", layers=(read_agent(Document(path="a.yaml", text=PROFILE)),))

    decisions = {d.extension.name: d for d in Decider(profile, inventory).decisions}
    assert (decisions["deploy-now"].visible, decisions["help"].visible) == (False, True)
    assert (decisions["deploy-now"].rule.text, decisions["deploy-now"].rule.line) == ("commands.disabled", 2)

    assert load_inventory(json.dumps(dump_inventory(inventory)), "i.json") == inventory

    gate = Gate(profile, inventory, door="test")
    assert [e.name for e in gate.see(inventory.extensions)] == ["help"]
    assert not gate.use_named("deploy-now", kinds=("command",))
    assert gate.use_named("help", kinds=("command",))


@pytest.mark.usefixtures("_with_commands")
def test_a_misspelt_block_of_the_new_kind_is_an_error_too() -> None:
    with pytest.raises(Exception, match="looks like `commands`"):
        read_agent(Document(path="a.yaml", text="command:\n  disabled: [x]\n"))
