"""How fast one gate decides which of many patterns is the first to match a name, against what else could.

    python benchmarks/matching.py [--quick] [--json]

Every engine is given the same ordered patterns and must name the first that matches: 60 % exact names, 25 % prefixes,
10 % suffixes or infixes, 5 % classes (`?`, `[..]`). Half of the names that the patterns were made from are installed.
Times are CPU microseconds a name: medians of rounds in which the engines take turns. Read the ratios, not the times.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import json
import os
import platform
import random
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase, translate
from time import process_time

from extgate.core import patterns as matcher
from extgate.core.glob import STAR, tokens
from extgate.core.patterns import NameIndex, PatternSet

Decide = Callable[[str], int]
Build = Callable[[Sequence[str]], Decide]

VERBS = """
add analyze append apply approve archive assign attach build cancel capture check clear clone close comment compare
compile complete configure connect convert copy count create decode delete deploy describe detach diff disable download
drop dump edit enable encode execute explain export extract fetch filter find format generate get grant import index
inspect install invite invoke join kill label launch link list load lock lookup map mark merge monitor move mute navigate
notify open parse patch pause ping plan poll post predict preview promote provision publish pull purge push query read
rebase record refresh register reject release remove rename render replay reply report request reset resolve restart
restore resume retry review revoke rotate run save scale scan schedule scrape search send set share show sign snapshot
sort split start stop store stream submit subscribe summarize sync tag test trace track train transfer translate trigger
undo unlock update upload validate verify watch write
""".split()
THINGS = """
account address agent alarm alert album annotation answer app archive article artifact asset attachment audio audit
backup badge balance bank batch bill block blob board bookmark branch browser bucket budget build cache calendar call
campaign card cart case catalog certificate channel chart chat check class client clip cluster code collection column
command comment commit company config contact container contract coupon credential currency customer dashboard dataset
database deal department deployment device diagram directory discount discussion disk document domain draft driver email
embedding employee endpoint entity entry environment epic error event experiment export expense feature feed field file
filter firewall flag flow folder forecast form function gateway gist graph group guide health history holiday host hook
image incident index ingress inbox instance insight integration interface invoice issue item job journal key label lead
layer layout lease ledger library license link list location lock log machine mail map market meeting member memory
menu merge message metric migration milestone model module monitor namespace network node note notebook notification
object offer order organization package page panel paper partition patch payment permission photo pipeline plan playlist
plugin pod policy pool port portfolio post price printer process product profile project prompt property proposal query
queue quota quote reaction record recording region registry release reminder replica report repository request resource
response review role room route row rule sandbox schedule schema screen screenshot script secret section segment sensor
server service session setting sheet shipment shard signal site skill slide snapshot song source space sprint stack stage
statement status step stock storage story stream subnet subscription summary survey symbol table tag target task team
template tenant term test text thread ticket timeline token topic trace track trade transaction transcript transfer trigger
trip tunnel user variable vault vector vendor version video view volume vote wallet warehouse webhook website widget
window workbook worker workflow workspace zone
""".split()
SERVERS = """
airtable amplitude arxiv asana atlassian auth0 aws azure bigquery bitbucket brave browserbase circleci clickhouse
cloudflare confluence context7 databricks datadog discord docker dropbox duckdb elasticsearch exa fetch figma filesystem
firecrawl gcp gdrive git github gitlab gmail grafana heroku hubspot huggingface intercom jenkins jira k8s kafka linear
mailchimp mapbox memory miro mixpanel mongodb monday mysql neo4j neon netlify notion obsidian okta openapi pagerduty
paypal pinecone playwright postgres posthog puppeteer qdrant quickbooks redis replicate salesforce sentry shopify slack
snowflake spotify sqlite square stripe supabase tavily terraform todoist trello twilio vercel weaviate wikipedia xero
youtube zapier zendesk zoom
""".split()
CATEGORIES = """
analysis backend billing coding compliance data design devops docs finance frontend hiring legal marketing mobile office
operations planning research sales security support testing training travel writing
""".split()


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One way to decide; `package` is what must be installed for it, `note` what the reader must know to be fair."""

    name: str
    build: Build
    package: str | None = None
    note: str = ""
    seconds: float = 0.15  # of CPU to spend on one round, about
    complete: bool = False  # asked every name, however many, and then all of them again


def make_names(count: int, rng: random.Random) -> list[str]:
    """Distinct names of about 31 characters: 70 % `server__tool`, 30 % `category/name`."""
    names: dict[str, None] = {}
    while len(names) < count:
        verb, thing, other = rng.choice(VERBS), rng.choice(THINGS), rng.choice(THINGS)
        if rng.random() < 0.7:
            names[f"{rng.choice(SERVERS)}__{verb}_{thing}_{other}"] = None
        else:
            names[f"{rng.choice(CATEGORIES)}/{thing}-{verb}-{other}"] = None
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


def loop(patterns: Sequence[str]) -> Decide:
    """The obvious way."""

    def decide(name: str) -> int:
        for index, pattern in enumerate(patterns):
            if fnmatchcase(name, pattern):
                return index
        return -1

    for pattern in patterns:
        fnmatchcase("", pattern)  # into its cache
    return decide


def alternation(patterns: Sequence[str]) -> Decide:
    """One compiled `re` with a group for each pattern."""
    match = re.compile("|".join(f"({translate(pattern)})" for pattern in patterns)).match

    def decide(name: str) -> int:
        found = match(name)
        return found.lastindex - 1 if found and found.lastindex else -1

    return decide


def pure(patterns: Sequence[str]) -> Decide:
    """extgate as it is without its extra."""
    kept, matcher._aho_corasick = matcher._aho_corasick, lambda: None  # type: ignore[assignment]
    try:
        return PatternSet(patterns).first
    finally:
        matcher._aho_corasick = kept


def fast(patterns: Sequence[str]) -> Decide:
    """extgate with its extra."""
    import ahocorasick_rs  # noqa: F401

    return PatternSet(patterns).first


def wcmatch(patterns: Sequence[str]) -> Decide:
    """One compiled wcmatch pattern after the other."""
    from wcmatch import fnmatch

    compiled = [fnmatch.compile(pattern, flags=fnmatch.CASE) for pattern in patterns]

    def decide(name: str) -> int:
        return next((index for index, pattern in enumerate(compiled) if pattern.match(name)), -1)

    return decide


def regex(pattern: str) -> str:
    """The pattern in the syntax that RE2 and Rust share, without anchors."""
    return "".join("(?s:.*)" if token is STAR else f"(?s:{matcher._regex(token)})" for token in tokens(pattern))


def re2_set(patterns: Sequence[str]) -> Decide:
    """google-re2's Set, which reports all that match."""
    import re2

    options = re2.Options()
    options.max_mem = 1 << 28
    found = re2.Set.FullMatchSet(options)
    for pattern in patterns:
        found.Add(regex(pattern))
    found.Compile()
    return lambda name: min(found.Match(name) or (), default=-1)


def casbin(patterns: Sequence[str]) -> Decide:
    """pycasbin: one policy line a pattern, first by priority, matched by fnmatchcase; asked which line decided."""
    from casbin import Enforcer
    from casbin.model import Model

    model = Model()
    model.load_model_from_text(
        "[request_definition]\nr = name\n[policy_definition]\np = pattern, id, eft\n"
        "[policy_effect]\ne = priority(p.eft) || deny\n[matchers]\nm = fnmatchcase(r.name, p.pattern)"
    )
    enforcer = Enforcer(model)
    enforcer.add_function("fnmatchcase", fnmatchcase)
    enforcer.add_policies([[pattern, str(index), "allow"] for index, pattern in enumerate(patterns)])

    def decide(name: str) -> int:
        _, line = enforcer.enforce_ex(name)
        return int(line[1]) if line else -1

    return decide


def cedar(patterns: Sequence[str]) -> Decide:
    """cedarpy with policies and entities parsed beforehand: one policy a pattern, all deciding ones reported."""
    from cedarpy import Entities, PolicySet, is_authorized

    rules = (f"permit(principal, action, resource) when {{ context.name like {json.dumps(p)} }};" for p in patterns)
    policies, entities = PolicySet.from_str("\n".join(rules)), Entities.from_json_str("[]")
    request = {"principal": 'Agent::"a"', "action": 'Action::"use"', "resource": 'Tool::"t"'}

    def decide(name: str) -> int:
        answer = is_authorized({**request, "context": {"name": name}}, policies, entities)
        return min((int(reason.removeprefix("policy")) for reason in answer.diagnostics.reasons), default=-1)

    return decide


def cel_source(patterns: Sequence[str]) -> str:
    """One expression that yields a list with a boolean for each pattern."""
    calls = (f"name.matches({json.dumps(f'^{regex(pattern)}$')})" for pattern in patterns)
    return f"[{', '.join(calls)}]"


def cel_rust(patterns: Sequence[str]) -> Decide:
    """CEL in Rust."""
    import cel

    program = cel.compile(cel_source(patterns))

    def decide(name: str) -> int:
        answers = program.execute({"name": name})
        return answers.index(True) if True in answers else -1

    return decide


def cel_cpp(patterns: Sequence[str]) -> Decide:
    """CEL in C++."""
    from cel_expr_python import cel

    program = cel.NewEnv(variables={"name": cel.Type.STRING}).compile(cel_source(patterns))

    def decide(name: str) -> int:
        answers = program.eval(data={"name": name}).plain_value()
        return answers.index(True) if True in answers else -1

    return decide


def rego(patterns: Sequence[str]) -> Decide:
    """OPA's language in regorus: the indexes of all patterns that match, from a rule over data."""
    from regorus import Engine as Regorus

    engine = Regorus()
    engine.add_policy(
        "p.rego", "package p\nimport rego.v1\nhits := [i | some i, p in data.patterns; regex.match(p, input.name)]\n"
    )
    engine.add_data_json(json.dumps({"patterns": [f"^{regex(pattern)}$" for pattern in patterns]}))

    def decide(name: str) -> int:
        engine.set_input_json(json.dumps({"name": name}))
        return int(min(engine.eval_rule("data.p.hits"), default=-1))

    return decide


ENGINES = (
    Engine(name="fnmatchcase loop", build=loop, seconds=0.3),
    Engine(name="extgate, pure Python", build=pure, complete=True),
    Engine(name="extgate, with its extra", build=fast, package="ahocorasick_rs", complete=True),
    Engine(name="one re alternation", build=alternation),
    Engine(name="wcmatch", build=wcmatch, package="wcmatch", note="`*` is not the empty text: answers may differ"),
    Engine(
        name="google-re2 Set", build=re2_set, package="google-re2", note="reports all that match; slow at first sight"
    ),
    Engine(name="pycasbin", build=casbin, package="pycasbin", note="a whole access model with roles and domains"),
    Engine(name="cedarpy", build=cedar, package="cedarpy", note="has only `*`; entities, schemas, all reasons"),
    Engine(name="CEL in Rust", build=cel_rust, package="common-expression-language", note="all patterns, as booleans"),
    Engine(name="CEL in C++", build=cel_cpp, package="cel-expr-python", note="all patterns, as booleans"),
    Engine(name="OPA's Rego (regorus)", build=rego, package="celine-regorus", note="all that match, over JSON data"),
)


@dataclass(kw_only=True)
class Entry:
    """One engine in one cell. Times: compile in milliseconds, micros in microseconds a name, one figure a round."""

    engine: Engine
    patterns: Sequence[str]
    names: Sequence[str]
    left_out: int = 0
    compile_ms: list[float] = field(default_factory=list)
    micros: list[float] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    wrong: int = 0

    def turn(self) -> None:
        """Build and ask everything once; small cells often enough to be seen by the clock."""
        repeats = max(1, 2000 // len(self.names)) if self.engine.complete else 1
        built = asked = again = 0.0
        gc.collect()
        for _ in range(repeats):
            start = process_time()
            decide = self.engine.build(self.patterns)
            ready = process_time()
            self.answers = [decide(name) for name in self.names]
            done = process_time()
            if self.engine.complete:
                for name in self.names:
                    decide(name)
                again += process_time() - done
            built, asked = built + ready - start, asked + done - ready
        self.compile_ms.append(built / repeats * 1e3)
        self.micros.append(asked / repeats / len(self.names) * 1e6)
        self.again.append(again / repeats / len(self.names) * 1e6)

    def shorten(self) -> None:
        """Keep as many names as fill the engine's time."""
        names, count = self.names, min(2, len(self.names))
        while not self.engine.complete and count < len(names):
            self.names = names[:count]
            self.turn()
            seconds = self.micros.pop() * count / 1e6
            if seconds > self.engine.seconds / 10:
                count = max(2, min(len(names), int(count * self.engine.seconds / seconds)))
                break
            count = min(len(names), count * 8)
        self.names = names if self.engine.complete else names[:count]
        self.compile_ms.clear()
        self.micros.clear()
        self.again.clear()


def measure(engines: Sequence[Engine], names: Sequence[str], patterns: Sequence[str], rounds: int) -> list[Entry]:
    """All engines on these names and patterns, taking turns; answers counted as wrong where the loop says otherwise."""
    starry = [pattern for pattern in patterns if "?" not in pattern and "[" not in pattern]
    entries = [Entry(engine=e, patterns=starry if e.build is cedar else patterns, names=names) for e in engines]
    for entry in entries:
        entry.left_out = len(patterns) - len(entry.patterns)
        entry.shorten()
    for _ in range(rounds):
        for entry in entries:
            entry.turn()
    checked = entries[0].names
    for entry in entries:
        truth = entries[0].answers if entry.patterns is patterns else list(map(loop(entry.patterns), checked))
        entry.wrong = sum(ours != theirs for ours, theirs in zip(truth, entry.answers, strict=False))
    return entries


def measure_index(names: Sequence[str], patterns: Sequence[str], rounds: int) -> tuple[float, float]:
    """Median microseconds a name to decide the whole inventory by an index over the names, and to build that index."""
    asked, built = [], []
    expected = list(map(PatternSet(patterns).first, names))
    for _ in range(rounds):
        gc.collect()
        start = process_time()
        index = NameIndex(names)
        ready = process_time()
        compiled = PatternSet(patterns)
        middle = process_time()
        answers = index.first(compiled)
        asked.append((process_time() - middle) / len(names) * 1e6)
        built.append((ready - start) / len(names) * 1e6)
        assert answers == expected, "the index over names disagrees"
    return statistics.median(asked), statistics.median(built)


def present(engines: Sequence[Engine]) -> tuple[list[Engine], list[Engine]]:
    """The engines that can run here, and those whose package is missing."""
    there, absent = [], []
    for engine in engines:
        try:
            version = importlib.metadata.version(engine.package) if engine.package else ""
            there.append(replace(engine, name=f"{engine.name} {version}".strip()))
        except importlib.metadata.PackageNotFoundError:
            absent.append(engine)
    return there, absent


def cell_lines(entries: Sequence[Entry], names: int, patterns: int, index: tuple[float, float]) -> Iterator[str]:
    """The table of one cell."""
    loop_micros = statistics.median(entries[0].micros)
    hits = sum(answer >= 0 for answer in entries[1].answers) / names
    yield f"\n{patterns:,} patterns, {names:,} names ({hits:.0%} of the names match one)"
    yield f"  {'engine':34} {'compile ms':>10} {'us a name':>10} {'vs loop':>8} {'asked':>7}  remarks"
    for entry in entries:
        micros = statistics.median(entry.micros)
        remarks = [f"{entry.left_out} patterns it cannot say" if entry.left_out else ""]
        remarks += [
            f"{entry.wrong} of {min(len(entries[0].names), len(entry.names))} answers differ" if entry.wrong else ""
        ]
        yield row(
            entry.engine.name, statistics.median(entry.compile_ms), micros, loop_micros, len(entry.names), remarks
        )
        if entry.engine.complete:
            yield row("  each name asked again", 0, statistics.median(entry.again), loop_micros, names, [])
    yield row("extgate, index over the names", index[1] * names / 1e3, index[0], loop_micros, names, [])


def row(name: str, compile_ms: float, micros: float, loop_micros: float, asked: int, remarks: Sequence[str]) -> str:
    """One line of a table."""
    said = "; ".join(filter(None, remarks))
    return f"  {name:34} {compile_ms:10.1f} {micros:10.3f} {loop_micros / micros:7,.1f}x {asked:7,}  {said}".rstrip()


def record(entry: Entry, names: int, patterns: int) -> dict[str, object]:
    """One entry for --json."""
    return {
        "engine": entry.engine.name,
        "names": names,
        "patterns": patterns,
        "asked": len(entry.names),
        "compile_ms": statistics.median(entry.compile_ms),
        "micros": statistics.median(entry.micros),
        "again_micros": statistics.median(entry.again) if entry.engine.complete else None,
        "left_out": entry.left_out,
        "wrong": entry.wrong,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and fail if extgate ever answers otherwise than the loop."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="10,000 names only, three rounds")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    options = parser.parse_args(argv)
    rounds = 3 if options.quick else 5
    engines, absent = present(ENGINES)
    say = (lambda line: None) if options.json else print
    say(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, {rounds} rounds")
    for engine in absent:
        say(f"absent: {engine.name}; to measure it, pip install {engine.package}")
    for engine in engines:
        say(f"  {engine.name}: {engine.note}") if engine.note else None
    records, wrong = [], 0
    for count in (10_000,) if options.quick else (100, 10_000, 100_000):
        for size in (5, 50, 500, 5_000):
            rng = random.Random(count * size)
            pool = make_names(2 * max(count, size), rng)
            names, patterns = pool[:count], make_patterns(size, pool, rng)
            index = measure_index(names, patterns, rounds)
            entries = measure(engines, names, patterns, rounds)
            for line in cell_lines(entries, count, size, index):
                say(line)
            wrong += sum(entry.wrong for entry in entries if entry.engine.complete)
            records += [record(entry, count, size) for entry in entries]
            records.append({"engine": "index over the names", "names": count, "patterns": size, "micros": index[0]})
    if options.json:
        print(
            json.dumps({"python": platform.python_version(), "absent": [e.package for e in absent], "cells": records})
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
