"""The table of intents and runtimes: runs what was not run yet, prints it, and writes its page.

    python -m tests.e2e.table                      all of it; what was seen with the same code is not run again
    python -m tests.e2e.table --runtime codex --intent resources --fresh
    python -m tests.e2e.table --keep               whatever was seen before is kept, also with other code
    python -m tests.e2e.table --state A --runtime codex; … --state B --runtime hermes; … --keep --join A --join B
    python -m tests.e2e.table --write              and writes docs/reference/runtimes.md and runtimes.json

Exit: 0; 3 when a cell leaked under extgate or is broken.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

from tests.e2e.clients import worker
from tests.e2e.clients.cases import Case, NotThere
from tests.e2e.clients.install import CLIENTS, NotInstalled, installed
from tests.e2e.clients.intents import INTENTS
from tests.e2e.clients.lab import Lab
from tests.e2e.clients.observe import COLUMNS, behind_the_wire, observe, runtime
from tests.e2e.clients.page import page
from tests.e2e.clients.record import KEPT, PAGE, STATE, Json, Record, load, stamp
from tests.e2e.clients.verdicts import counts, verdict, verdicts


def run(
    names: Iterable[str],
    intents: Sequence[str],
    *,
    fresh: bool = False,
    keep: bool = False,
    state: Path = STATE,
    jobs: int = 1,
) -> Record:
    """The record with these cells in it; saved after each of them. jobs: runtimes that run side by side."""
    record, saving, is_over = load(state), threading.Lock(), threading.Event()
    record.date = date.today().isoformat()

    def save(name: str, intent: str = "", cell: Json | None = None) -> None:
        with saving:
            record.versions[name] = CLIENTS[name].version
            if cell is not None:
                record.at(name, intent)
                record.cells[name][intent] = cell
            record.save(state)

    def row(name: str) -> None:
        try:
            command = installed(name)
        except NotInstalled as error:
            record.skipped[name] = str(error)
            print(f"{name}: skipped: {error}", flush=True)
            save(name)
            return
        record.skipped.pop(name, None)
        stamps = {column: stamp(column, name) for column in COLUMNS}
        for intent in intents:
            if is_over.is_set():
                return
            with saving:
                before = dict(record.at(name, intent))
            save(name, intent, _cell(before, name, intent, command, stamps, fresh=fresh, keep=keep))

    pool = ThreadPoolExecutor(jobs)
    try:
        for done in [pool.submit(row, name) for name in names]:
            done.result()
    finally:
        is_over.set()
        pool.shutdown(cancel_futures=True)
        worker.stop_all()
    return record


def _cell(
    cell: Json, name: str, intent: str, command: Sequence[str], stamps: dict[str, str], *, fresh: bool, keep: bool
) -> Json:
    """The cell with what was seen now."""
    cell["deny"] = _deny(name, intent)
    started, ran = time.monotonic(), []
    for column in COLUMNS:
        before = cell.get(column)
        if before and not before.get("note") and not fresh and (keep or before.get("stamp") == stamps[column]):
            continue
        seen = observe(name, intent, column, command)
        cell[column] = {"why": seen.why} if isinstance(seen, NotThere) else seen.as_json()
        cell[column]["stamp"] = stamps[column]
        ran.append(column)
    after = cell["after"]
    if after.get("happened") and not after.get("told") and not runtime(name).IS_HOST:
        if "after" in ran or "wire" not in cell:
            cell["wire"] = behind_the_wire(name, intent, command).as_json()
    else:
        cell.pop("wire", None)
    found = verdict(name, intent, cell)
    took = f"{time.monotonic() - started:.0f} s" if ran else "kept"
    print(f"{name:14} {intent:15} {found.native:9} -> {found.after:10} ({took}) {found.why[:200]}", flush=True)
    return cell


def _deny(name: str, intent: str) -> dict[str, object] | None:
    """What was configured, with the lab's own paths left out."""
    place = Lab(Path(tempfile.mkdtemp(prefix="extgate-deny-")))
    try:
        case = runtime(name).cases(place, False)[intent]
        if not isinstance(case, Case):
            return None
        return {"native": _placeless(case.native, str(place.root)), "profile": case.profile}
    finally:
        shutil.rmtree(place.root)


def _placeless(value: object, root: str) -> object:
    if isinstance(value, dict):
        return {k: _placeless(v, root) for k, v in value.items() if k != "command"}
    if isinstance(value, list):
        return [_placeless(one, root) for one in value if not str(one).startswith(("/", root))]
    return value


def main(argv: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runtime", action="append", choices=list(CLIENTS), help="only this one; may be repeated")
    parser.add_argument("--intent", action="append", choices=list(INTENTS), help="only this one; may be repeated")
    parser.add_argument("--show", action="store_true", help="run nothing: show what was seen before")
    parser.add_argument("--fresh", action="store_true", help="run again what was run before")
    parser.add_argument("--keep", action="store_true", help="keep what was seen with other code")
    parser.add_argument("--state", type=Path, default=STATE, metavar="FILE", help="where what was seen is kept")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runtimes that run side by side")
    parser.add_argument("--join", type=Path, action="append", default=[], metavar="FILE", help="take these in as well")
    parser.add_argument("--write", action="store_true", help="write the page and the record of docs/reference")
    parser.add_argument("--because", default="", metavar="WHY", help="with --write: why cells were not run")
    options = parser.parse_args(argv)
    for path in options.join:
        joined = load(options.state)
        joined.join(load(path))
        joined.save(options.state)
    record = run(
        [] if options.show else options.runtime or list(CLIENTS),
        options.intent or list(INTENTS),
        fresh=options.fresh,
        keep=options.keep,
        state=options.state,
        jobs=options.jobs,
    )
    rows = verdicts(record)
    unrun = {row.runtime for row in rows if "not run" in (row.native, row.after)}
    record.unfinished = {name: options.because for name in CLIENTS if name in unrun}
    said = page(record)
    print(f"\n{said.partition('## The denies')[0]}")
    if options.write and unrun and not options.because:
        print(f"not written: cells of {', '.join(sorted(unrun))} were not run; --because says why")
        return 3
    if options.write:
        record.save(KEPT)
        PAGE.write_text(page(load(KEPT)))  # as it is kept, whose keys are sorted
        print(f"written: {PAGE}, {KEPT}")
    found = counts(rows)
    return 3 if found.get("after leaked") or found.get("after broken") or found.get("native broken") else 0


if __name__ == "__main__":
    sys.exit(main())
