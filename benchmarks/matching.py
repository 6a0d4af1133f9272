"""How fast the first of many patterns that matches a name is found, against whatever else could find it.

    python benchmarks/matching.py [--quick] [--json]

Every engine is given the same ordered patterns and must name the first that matches: 60 % exact names, 25 % prefixes,
10 % suffixes or infixes, 5 % classes (`?`, `[..]`). Half of the names that the patterns were made from are installed.
Times are CPU microseconds a name, every name new to the engine; medians of rounds in which the engines take turns every
few hundred names, so that a noisy machine treats them alike. Read the ratios, not the times.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from time import process_time

from peers.matching import ENGINES, Decide, Engine, cedar, loop

from extgate.core.patterns import NameIndex, PatternSet

VERBS = """
add analyze append apply approve archive assign attach build cancel capture check clear clone close comment compare
compile complete configure connect convert copy count create decode delete deploy describe detach diff disable
download drop dump edit enable encode execute explain export extract fetch filter find format generate get grant
import index inspect install invite invoke join kill label launch link list load lock lookup map mark merge monitor
move mute navigate notify open parse patch pause ping plan poll post predict preview promote provision publish pull
purge push query read rebase record refresh register reject release remove rename render replay reply report request
reset resolve restart restore resume retry review revoke rotate run save scale scan schedule scrape search send set
share show sign snapshot sort split start stop store stream submit subscribe summarize sync tag test trace track train
transfer translate trigger undo unlock update upload validate verify watch write
"""
THINGS = """
account address agent alarm alert album annotation answer app archive article artifact asset attachment audio audit
backup badge balance bank batch bill block blob board bookmark branch browser bucket budget build cache calendar call
campaign card cart case catalog certificate channel chart chat check class client clip cluster code collection column
command comment commit company config contact container contract coupon credential currency customer dashboard dataset
database deal department deployment device diagram directory discount discussion disk document domain draft driver
email embedding employee endpoint entity entry environment epic error event experiment export expense feature feed
field file filter firewall flag flow folder forecast form function gateway gist graph group guide health history
holiday host hook image incident index ingress inbox instance insight integration interface invoice issue item job
journal key label lead layer layout lease ledger library license link list location lock log machine mail map market
meeting member memory menu merge message metric migration milestone model module monitor namespace network node note
notebook notification object offer order organization package page panel paper partition patch payment permission
photo pipeline plan playlist plugin pod policy pool port portfolio post price printer process product profile project
prompt property proposal query queue quota quote reaction record recording region registry release reminder replica
report repository request resource response review role room route row rule sandbox schedule schema screen screenshot
script secret section segment sensor server service session setting sheet shipment shard signal site skill slide
snapshot song source space sprint stack stage statement status step stock storage story stream subnet subscription
summary survey symbol table tag target task team template tenant term test text thread ticket timeline token topic
trace track trade transaction transcript transfer trigger trip tunnel user variable vault vector vendor version video
view volume vote wallet warehouse webhook website widget window workbook worker workflow workspace zone
"""
SERVERS = """
airtable amplitude arxiv asana atlassian auth0 aws azure bigquery bitbucket brave browserbase circleci clickhouse
cloudflare confluence context7 databricks datadog discord docker dropbox duckdb elasticsearch exa fetch figma
filesystem firecrawl gcp gdrive git github gitlab gmail grafana heroku hubspot huggingface intercom jenkins jira k8s
kafka linear mailchimp mapbox memory miro mixpanel mongodb monday mysql neo4j neon netlify notion obsidian okta
openapi pagerduty paypal pinecone playwright postgres posthog puppeteer qdrant quickbooks redis replicate salesforce
sentry shopify slack snowflake spotify sqlite square stripe supabase tavily terraform todoist trello twilio vercel
weaviate wikipedia xero youtube zapier zendesk zoom
"""
CATEGORIES = """
analysis backend billing coding compliance data design devops docs finance frontend hiring legal marketing mobile
office operations planning research sales security support testing training travel writing
"""


def make_names(count: int, rng: random.Random) -> list[str]:
    """Distinct names of about 29 characters: 70 % `server__tool`, 30 % `category/name`."""
    verbs, things, servers, categories = VERBS.split(), THINGS.split(), SERVERS.split(), CATEGORIES.split()
    names: dict[str, None] = {}
    while len(names) < count:
        verb, thing, other = rng.choice(verbs), rng.choice(things), rng.choice(things)
        if rng.random() < 0.7:
            names[f"{rng.choice(servers)}__{verb}_{thing}_{other}"] = None
        else:
            names[f"{rng.choice(categories)}/{thing}-{verb}-{other}"] = None
    return list(names)


def make_patterns(count: int, pool: Sequence[str], rng: random.Random) -> list[str]:
    """Patterns in random order, each made from one name of the pool."""
    kinds = ["exact"] * 60 + ["prefix"] * 25 + ["suffix"] * 5 + ["infix"] * 5 + ["class"] * 5
    shares = [kinds[(200 * at + 100) // (2 * count)] for at in range(count)]
    made = [make_pattern(kind, rng.choice(pool), rng) for kind in shares]
    rng.shuffle(made)
    return made


def make_pattern(kind: str, name: str, rng: random.Random) -> str:
    """The name as a pattern of that kind."""
    if kind == "prefix":
        return name[: rng.randint(12, max(12, len(name) - 3))] + "*"
    if kind == "suffix":
        return "*" + name[-rng.randint(8, 14) :]
    at = rng.randint(6, len(name) - 9)
    if kind == "infix":
        return f"*{name[at : at + rng.randint(6, 9)]}*"
    if kind == "class":
        return name[:at] + rng.choice(["?", "[a-z]", f"[{name[at]}!]", "[!/]"]) + rng.choice([name[at + 1 :], "*"])
    return name


@dataclass(kw_only=True)
class Entry:
    """One engine in one cell: what it is asked, and a figure a round for what it took.

    compile_ms: milliseconds to build; micros and again: microseconds a name, seen for the first and the second time.
    """

    engine: Engine
    patterns: Sequence[str]
    names: Sequence[str]
    left_out: int = 0
    wrong: int = 0
    compile_ms: list[float] = field(default_factory=list)
    micros: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    built: list[Decide] = field(default_factory=list)

    def begin(self) -> None:
        """Build; in small cells often enough for the clock to see it."""
        copies = max(1, 2_000 // len(self.names)) if self.engine.complete else 1
        gc.collect()
        start = process_time()
        self.built = [self.engine.build(self.patterns) for _ in range(copies)]
        self.compile_ms.append((process_time() - start) / copies * 1e3)
        self.micros.append(0.0)
        self.again.append(0.0)
        self.answers.clear()

    def ask(self, turn: int, turns: int) -> None:
        """Decide one share of the names."""
        names = self.names[len(self.names) * turn // turns : len(self.names) * (turn + 1) // turns]
        share = 1e6 / len(self.names) / len(self.built)
        for decide in self.built:
            start = process_time()
            answers = [decide(name) for name in names]
            self.micros[-1] += (process_time() - start) * share
        if self.engine.twice:
            start = process_time()
            for name in names:
                decide(name)
            self.again[-1] += (process_time() - start) * share * len(self.built)
        self.answers += answers

    def shorten(self) -> None:
        """Keep as many names as fill the engine's time."""
        names, count = self.names, 2
        while count < len(names) and not self.engine.complete:
            self.names = names[:count]
            self.begin()
            self.ask(0, 1)
            seconds = self.micros[-1] * count / 1e6
            if seconds > self.engine.seconds / 10:
                count = max(2, int(count * self.engine.seconds / seconds))
                break
            count *= 8
        self.names = names if self.engine.complete else names[:count]
        for figures in (self.compile_ms, self.micros, self.again):
            figures.clear()


def measure(engines: Sequence[Engine], names: Sequence[str], patterns: Sequence[str], rounds: int) -> list[Entry]:
    """All engines on these names and patterns, taking turns; what they answer otherwise than the loop is counted."""
    starry = [pattern for pattern in patterns if "?" not in pattern and "[" not in pattern]
    entries = [Entry(engine=e, patterns=starry if e.build is cedar else patterns, names=names) for e in engines]
    for entry in entries:
        entry.left_out = len(patterns) - len(entry.patterns)
        entry.shorten()
    turns = max(1, len(names) // 500)
    for _ in range(rounds):
        for entry in entries:
            entry.begin()
        for turn in range(turns):
            for entry in entries:
                entry.ask(turn, turns)
        for entry in entries:
            entry.built.clear()
    for entry in entries:
        truth = entries[0].answers if entry.patterns is patterns else list(map(loop(starry), entry.names))
        entry.wrong = sum(ours != theirs for ours, theirs in zip(entry.answers, truth, strict=False))
    return entries


def measure_index(names: Sequence[str], patterns: Sequence[str], rounds: int) -> tuple[float, float]:
    """Median microseconds a name to decide all by an index over the names, and milliseconds to build it."""
    asked, built = [], []
    expected = list(map(PatternSet(patterns).first, names))
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        index = NameIndex(names)
        built.append((process_time() - start) * 1e3)
        compiled = PatternSet(patterns)
        start = process_time()
        answers = index.first(compiled)
        asked.append((process_time() - start) / len(names) * 1e6)
        if answers != expected:
            raise SystemExit("the index over names disagrees with the patterns asked one name at a time")
    return statistics.median(asked), statistics.median(built)


def present(engines: Sequence[Engine]) -> tuple[list[Engine], list[Engine]]:
    """The engines that can run here, with their versions, and those whose package is missing."""
    there, absent = [], []
    for engine in engines:
        try:
            version = importlib.metadata.version(engine.package) if engine.package else ""
            there.append(replace(engine, name=f"{engine.name} {version[:12]}".strip()))
        except importlib.metadata.PackageNotFoundError:
            absent.append(engine)
    return there, absent


def ratio(entry: Entry, base: Entry) -> float:
    """How many times as fast as the base, in the median round."""
    return statistics.median(theirs / ours for ours, theirs in zip(entry.micros, base.micros, strict=True))


def cell_lines(entries: Sequence[Entry], index: tuple[float, float]) -> Iterator[str]:
    """The table of one cell."""
    base, names, patterns = entries[0], len(entries[1].names), len(entries[0].patterns)
    hits = sum(answer >= 0 for answer in entries[1].answers) / names
    yield f"\n{patterns:,} patterns, {names:,} names ({hits:.0%} of the names match one)"
    yield f"  {'engine':34} {'compile ms':>10} {'us a name':>11} {'to the loop':>11} {'asked':>8}  remarks"
    for entry in entries:
        said = [f"{entry.left_out} patterns it cannot say"] if entry.left_out else []
        compared = min(len(entry.answers), len(base.answers))
        said += [f"{entry.wrong} of {compared} answers differ"] if entry.wrong else []
        yield line(
            entry.engine.name, entry.compile_ms, entry.micros, ratio(entry, base), len(entry.names), "; ".join(said)
        )
        if entry.engine.twice:
            again = statistics.median(entry.again)
            yield line("  each name asked again", [], [again], statistics.median(base.micros) / again, len(entry.names))
    yield line(
        "extgate, index over the names", [index[1]], [index[0]], statistics.median(base.micros) / index[0], names
    )


def line(
    name: str, compile_ms: Sequence[float], micros: Sequence[float], times: float, asked: int, said: str = ""
) -> str:
    """One line of a table."""
    compiled = f"{statistics.median(compile_ms):10.1f}" if compile_ms else " " * 10
    times_text = f"{times:,.1f}x" if times >= 0.1 else f"{times:.4f}x"
    return f"  {name:34} {compiled} {statistics.median(micros):11,.3f} {times_text:>11} {asked:8,}  {said}".rstrip()


def record(entry: Entry, base: Entry) -> dict[str, object]:
    """One entry for --json."""
    return {
        "engine": entry.engine.name,
        "asked": len(entry.names),
        "compile_ms": statistics.median(entry.compile_ms),
        "micros": statistics.median(entry.micros),
        "again_micros": statistics.median(entry.again) if entry.engine.twice else None,
        "times_the_loop": ratio(entry, base),
        "left_out": entry.left_out,
        "wrong": entry.wrong,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; fails if extgate anywhere answers otherwise than the loop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 names only, three rounds")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    options = parser.parse_args(argv)
    rounds = 3 if options.quick else 5
    engines, absent = present(ENGINES)
    out = sys.stderr if options.json else sys.stdout
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, {rounds} rounds", file=out
    )
    for engine in absent:
        print(f"absent: {engine.name}; to measure it: pip install {engine.package}", file=out)
    for engine in engines:
        if engine.note:
            print(f"  {engine.name}: {engine.note}", file=out)
    print("Slow engines are asked only as many of the names as stand under `asked`.", file=out)
    cells: list[dict[str, object]] = []
    wrong = 0
    for count in (10_000,) if options.quick else (100, 10_000, 100_000):
        for size in (5, 50, 500, 5_000):
            rng = random.Random(count * size)
            pool = make_names(2 * max(count, size), rng)
            names, patterns = pool[:count], make_patterns(size, pool, rng)
            index = measure_index(names, patterns, rounds)
            entries = measure(engines, names, patterns, rounds)
            print("\n".join(cell_lines(entries, index)), file=out, flush=True)
            wrong += sum(entry.wrong for entry in entries if entry.engine.complete)
            figures = [record(entry, entries[0]) for entry in entries]
            cells.append({"names": count, "patterns": size, "engines": figures, "index_micros": index[0]})
    if options.json:
        print(json.dumps({"python": platform.python_version(), "absent": [e.package for e in absent], "cells": cells}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
