"""Runs one cell in one column and says what was seen."""

from __future__ import annotations

import importlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.e2e.clients import wired
from tests.e2e.clients.cases import CHILD, Case, NotThere, merged
from tests.e2e.clients.gated import WHOSE, apply, finding_about, write_workspace
from tests.e2e.clients.install import needed_programs
from tests.e2e.clients.intents import CANARY
from tests.e2e.clients.lab import Lab, Ran
from tests.e2e.clients.model import ScriptedModel
from tests.e2e.clients.wires import whatever_is_offered

COLUMNS = ("control", "native", "open", "after")
"""Without a deny; with the runtime's own; under extgate without a deny; under extgate with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One run. happened: the effect was there. requests: how often the model was asked. note: what went wrong.

    canary: the call that nothing denies arrived. told: the code of extgate's finding, where the intent is about
    silence.
    """

    happened: bool
    requests: int
    code: int | None
    seconds: float
    canary: bool = False
    told: str = ""
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def runtime(name: str) -> ModuleType:
    return importlib.import_module(f"tests.e2e.clients.runtimes.{name.replace('-', '_')}")


def observe(name: str, intent: str, column: str, command: Sequence[str], keep: Path | None = None) -> Seen | NotThere:
    """Runs it in a place of its own, which is kept where `keep` says."""
    driver = runtime(name)
    with tempfile.TemporaryDirectory(prefix="extgate-e2e-", ignore_cleanup_errors=True) as made:
        lab = Lab(keep or Path(made), needed_programs(name))
        is_gated = column in ("open", "after")
        case = driver.cases(lab, is_gated)[intent]
        if isinstance(case, NotThere):
            return case
        if column == "native" and case.native is None:
            return NotThere(why="no words for it")
        started = time.monotonic()
        turns = [*case.attack, whatever_is_offered(driver.WIRE, "ping_thing")]
        awaited = "ping_thing" if is_gated and not driver.IS_HOST else ""
        with ScriptedModel({"": turns, CHILD: case.child}, awaited=awaited) as model:
            ran = _run(driver, lab, command, model, case, column)
            seen = model.read
            if keep:
                (keep / "requests.txt").write_text(seen)
            happened = lab.happened(case.effect, seen)
            return Seen(
                happened=happened,
                canary=lab.happened(CANARY, ""),
                told=finding_about(lab, case.told) if case.told and happened and column == "after" else "",
                requests=len(model.requests),
                code=ran.code,
                seconds=round(time.monotonic() - started, 1),
                note="" if model.requests else f"the model was not asked: {(ran.err or ran.out)[-300:]}",
            )


def _run(driver: ModuleType, lab: Lab, command: Sequence[str], model: ScriptedModel, case: Case, column: str) -> Ran:
    servers = {**case.base.get("servers", {"alpha": lab.server()}), "beta": lab.server("beta", "ping_thing")}
    pieces = {**case.base, "servers": servers}
    if column == "native":
        pieces = merged(pieces, case.native or {})
    driver.configure(lab, model.url, pieces)
    is_gated = column in ("open", "after")
    if is_gated:
        profile = case.profile if column == "after" else ""
        write_workspace(lab, profile, pieces["servers"], WHOSE.get(driver.NAME, ""))
        if not driver.IS_HOST:
            applied = apply(lab, driver.NAME)
            if applied.code != 0:
                return applied
    ran: Ran = driver.ask(lab, command, model.url, pieces, is_gated)
    return ran


def behind_the_wire(name: str, intent: str, command: Sequence[str]) -> Seen:
    """The cell once more, with the deny and behind the model wire instead of hooks and gateway."""
    driver = runtime(name)
    with tempfile.TemporaryDirectory(prefix="extgate-e2e-", ignore_cleanup_errors=True) as made:
        lab = Lab(Path(made), needed_programs(name))
        case = driver.cases(lab, False)[intent]
        started = time.monotonic()
        ran, read = wired.run(driver, lab, list(command), case, case.profile)
        return Seen(
            happened=lab.happened(case.effect, read),
            canary=lab.happened(CANARY, ""),
            requests=len(read.splitlines()),
            code=ran.code,
            seconds=round(time.monotonic() - started, 1),
        )
