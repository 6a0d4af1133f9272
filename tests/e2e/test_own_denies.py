"""What a user denies of a direct server, in the runtime's own words, holds behind the gateway for a real client."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.clients.cases import merged
from tests.e2e.clients.gated import WHOSE, apply, write_workspace
from tests.e2e.clients.install import NotInstalled, installed, needed_programs
from tests.e2e.clients.intents import CANARY
from tests.e2e.clients.lab import Lab
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.observe import runtime
from tests.e2e.clients.wires import whatever_is_offered

NAMES = ("claude-code", "codex", "opencode", "gemini", "hermes")


@pytest.mark.e2e
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("is_denied", [True, False], ids=["denied", "open"])
@pytest.mark.parametrize("name", NAMES)
def test_a_users_own_deny_of_a_direct_server_holds_behind_the_gateway(
    tmp_path: Path, name: str, is_denied: bool
) -> None:
    try:
        command = installed(name)
    except NotInstalled as error:
        pytest.skip(f"not installed here: {error}")
    driver, lab = runtime(name), Lab(tmp_path, needed_programs(name))
    case = driver.cases(lab, True)["mcp-tool"]
    servers = {"alpha": lab.server(), "beta": lab.server("beta", "ping_thing")}
    pieces = merged({"servers": servers}, case.native if is_denied else {})
    turns = [*case.attack, whatever_is_offered(driver.WIRE, "ping_thing")]
    with ScriptedModel({"": turns}, awaited="ping_thing") as model:
        driver.configure(lab, model.url, pieces)
        write_workspace(lab, "", servers, WHOSE[name])
        applied = apply(lab, name)
        assert applied.code == 0, applied
        ran = driver.ask(lab, command, model.url, pieces, True)
    assert lab.happened(CANARY, ""), ran
    assert lab.happened(case.effect, "") is not is_denied
