"""`extgate run` with real clients: one command puts a client behind the wire, the gateway and its hook.

.venv/bin/python -m pytest -q -m e2e tests/e2e/test_run.py -k claude
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.clients import wired
from tests.e2e.clients.cases import Case
from tests.e2e.clients.gated import EXTGATE, WHOSE, write_workspace
from tests.e2e.clients.install import needed_programs
from tests.e2e.clients.lab import Lab
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.observe import runtime
from tests.e2e.test_wire_clients import CLIENTS, command_of

INTENTS = ("builtin", "mcp-tool", "child-builtin", "wildcard-skill", "resources", "skill-listed", "skill-read")


HOOKED = ("claude-code", "gemini")


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("intent", INTENTS)
@pytest.mark.parametrize("name", CLIENTS)
def test_one_command_puts_a_client_behind_all_walls(name: str, intent: str, tmp_path: Path) -> None:
    if intent == "skill-read" and name not in HOOKED:
        pytest.skip("a file tool reads a skill's file, and this program is started without the hook (docs/walls.md)")
    program, driver = command_of(name), runtime(name)
    lab = Lab(tmp_path, needed_programs(name))
    case = driver.cases(lab, True)[intent]
    if not isinstance(case, Case):
        pytest.skip(case.why)
    servers = {**case.base.get("servers", {"alpha": lab.server()}), "beta": lab.server("beta", "ping_thing")}
    with ScriptedModel(wired.script(driver, case)) as model:
        write_workspace(lab, case.profile, servers, WHOSE.get(driver.NAME, ""))
        provider = wired.PROVIDER[driver.WIRE]
        with (lab.workspace / "extgate.yaml").open("a") as file:
            file.write(f"wire: {{{provider}: {{url: '{model.url}'}}}}\n")
        driver.configure(lab, model.url, {**case.base, "servers": servers})
        command = [*EXTGATE, "-w", str(lab.workspace), "run", name, "--agent", "probe", "--trust"]
        command += ["--project", str(lab.project), "--program", program[-1], "--"]
        ran = driver.ask(lab, command, model.url, {**case.base, "servers": servers}, True)
        assert ran.code == 0, ran
        assert model.requests, ran
        assert wired.reached(lab), (ran, model.offered)
        assert not lab.happened(case.effect, model.read)
