"""What each real client offers its model is in extgate's tables of built-in tools: a tool that is not is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from extgate.core.names import starts_of
from extgate.discover.builtins import builtin_tools
from tests.e2e.clients.gated import WHOSE
from tests.e2e.clients.install import CLIENTS, NotInstalled, installed, needed_programs
from tests.e2e.clients.lab import Lab
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.observe import runtime

NAMES = ("claude-code", "codex", "opencode", "gemini", "hermes")
SERVER = "ping_thing"
"""The probe server's tool, of which the name is in each of its names."""
PIECES = {"opencode": {"config": {"experimental": {"batch_tool": True}}}}


def known(name: str) -> set[str]:
    """Every name that the table has; a namespace's tool as the model's request has it."""
    rows = builtin_tools(WHOSE[name])
    names = {one for ext in rows for one in (ext.name, *map(str, ext.facts.get("aliases", ())))}
    return names | {one.replace("::", ".") for one in names}


def offered(name: str, place: Path) -> set[str]:
    """The tools that the client offers by itself, in all requests of a turn with a server that has resources."""
    driver, lab = runtime(name), Lab(place, needed_programs(name))
    pieces = {**PIECES.get(name, {}), "servers": {"alpha": lab.server("alpha", SERVER)}}
    with ScriptedModel({"": []}, awaited=SERVER) as model:
        driver.configure(lab, model.url, pieces)
        ran = driver.ask(lab, installed(name), model.url, pieces, False)
        names = {tool for request in model.requests for tool in request.offered}
    assert names, ran
    # What a runtime makes of a server by itself (Hermes: its resources as tools) is the server's.
    return {tool for tool in names if SERVER not in tool and not starts_of(tool, ["alpha"])}


@pytest.mark.e2e
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_every_tool_that_a_client_offers_is_in_its_table(name: str, tmp_path: Path) -> None:
    try:
        installed(name)
    except NotInstalled as error:
        pytest.skip(f"not installed here: {CLIENTS[name].version}: {error}")
    found = offered(name, tmp_path)
    assert len(found) >= 5
    assert not found - known(name)
