"""A client that is under nothing but the wire: its own files deny nothing, and its base URL is extgate's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from types import ModuleType

from tests.e2e.clients.cases import CHILD, Case
from tests.e2e.clients.gated import EXTGATE, WHOSE, write_workspace
from tests.e2e.clients.intents import CANARY
from tests.e2e.clients.lab import Lab, Ran, stop_group
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.wires import Json, Step, Turn, whatever_is_offered

PROVIDER = {"anthropic": "anthropic", "chat": "openai", "responses": "openai", "gemini": "gemini"}
"""By the wire of a driver, the provider in the address."""

UNTOLD = ("hermes",)
"""Clients whose `User-Agent` does not tell them."""


@contextmanager
def gateway(lab: Lab) -> Iterator[str]:
    """`extgate serve` over the lab's workspace; its address."""
    command = [*EXTGATE, "serve", "-w", str(lab.workspace), "--port", "0"]
    with (lab.root / "serve.err").open("w") as err:
        child = subprocess.Popen(
            command, env=lab.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, text=True,
        )  # fmt: skip
        try:
            assert child.stderr is not None
            address = ""
            for line in child.stderr:
                err.write(line)
                said = re.search(r"listening on (\S+)", line)
                address = said[1] if said else address
                if "ready:" in line:
                    break
            yield address
        finally:
            stop_group(child)


def run(driver: ModuleType, lab: Lab, command: list[str], case: Case, profile: str, after: int = 0) -> tuple[Ran, str]:
    """One turn of a user through the wire; how it ended, and all that the model read.

    after: how many further harmless calls the model makes, of a tool that nothing denies.
    """
    servers = {**case.base.get("servers", {"alpha": lab.server()}), "beta": lab.server("beta", "ping_thing")}
    pieces = {**case.base, "servers": servers}
    with ScriptedModel(script(driver, case, after)) as model:
        write_workspace(lab, profile, servers, WHOSE.get(driver.NAME, ""))
        provider = PROVIDER[driver.WIRE]
        with (lab.workspace / "extgate.yaml").open("a") as file:
            client = f"client: {driver.NAME}, " if driver.NAME in UNTOLD else ""
            file.write(f"wire: {{{client}{provider}: {{url: '{model.url}'}}}}\n")
        with gateway(lab) as address:
            url = f"{address}/agents/probe/wire/{provider}"
            driver.configure(lab, url, pieces)
            ran: Ran = driver.ask(lab, command, url, pieces, False)
        return ran, model.read


def script(driver: ModuleType, case: Case, after: int = 0) -> dict[str, Sequence[Step]]:
    """What the model does: the attack, a harmless call beside each of its turns, and that alone afterwards."""
    canary = _varied(whatever_is_offered(driver.WIRE, "ping_thing"))
    attack = [_beside(canary, step) for step in case.attack]
    return {"": [*attack, *[canary] * (after or not attack)], CHILD: case.child}


def _varied(step: Step) -> Callable[[Json], Turn]:
    """The same calls with other arguments each time: some clients end what looks like a loop."""
    numbers = count(1)

    def turn(body: Json) -> Turn:
        made = step(body) if callable(step) else step
        return made if isinstance(made, str) else [replace(one, arguments={"q": str(next(numbers))}) for one in made]

    return turn


def _beside(canary: Callable[[Json], Turn], step: Step) -> Step:
    """The same turn with a harmless call beside its own: an answer of which every call is stopped ends the turn."""

    def turn(body: Json) -> Turn:
        made = step(body) if callable(step) else step
        also = canary(body)
        return made if isinstance(made, str) or isinstance(also, str) else [*made, *also]

    return turn


def reached(lab: Lab) -> bool:
    """Whether the harmless call arrived."""
    return lab.happened(CANARY, "")
