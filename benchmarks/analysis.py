"""How fast it is told whether one set of patterns admits a name that another does not, against what else could tell.

    python benchmarks/analysis.py [--quick] [--cap SECONDS] [--json]

Three questions at 50, 500 and 5,000 patterns a side: `narrow` (each wildcard of A is one of B made narrower; none),
`equal` (A shuffled, doubled and with classes written out; none) and `apart` (other patterns altogether; a witness).
Patterns are those of benchmarks/matching.py. Peers get the same patterns as regular expressions over the same names,
each question in a process of its own with a bound on its CPU time and memory; a peer that gives up counts with the
bound. Answers are compared. Times are CPU seconds with imports left out; read the ratios.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import platform
import random
import re
import resource
import signal
import statistics
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from time import process_time
from typing import Any

from matching import make_names, make_patterns

from extgate.analysis.alphabet import Universe
from extgate.analysis.dead_entries import dead_entries
from extgate.analysis.policies import compare
from extgate.analysis.space import Signed, dead, outside
from extgate.core.extension import Inventory
from extgate.core.glob import STAR, Token, tokens
from extgate.core.policy import Profile
from extgate.dialects.document import Document
from extgate.dialects.registry import read_agent

MEMORY = 8 << 30
Verdict = str  # `none`, `witness`, `unknown`

# ------------------------------------------------------------------------------------------------- questions


def narrowed(pattern: str, rng: random.Random) -> str:
    """A pattern whose names are all names of this one."""
    at = pattern.find("*")
    return pattern if at < 0 else f"{pattern[:at]}{rng.choice(['?', '*_*', 'x*', '*[a-m]'])}{pattern[at:]}"


def rewritten(patterns: Sequence[str], rng: random.Random) -> list[str]:
    """The same names, written otherwise."""
    found = [re.sub(r"(?<=[a-z])([a-z])$", r"[\1]", pattern) if rng.random() < 0.2 else pattern for pattern in patterns]
    found += rng.sample(found, len(found) // 5)
    rng.shuffle(found)
    return found


def questions(size: int, rng: random.Random) -> dict[str, tuple[list[str], list[str]]]:
    names = make_names(4 * size, rng)
    base, other = (make_patterns(size, half, rng) for half in (names[: 2 * size], names[2 * size :]))
    return {
        "narrow": ([narrowed(pattern, rng) for pattern in base], base),
        "equal": (rewritten(base, rng), base),
        "apart": (base, other),
    }


# ------------------------------------------------------------------------------------------------- engines


def ours(a: Sequence[str], b: Sequence[str]) -> Verdict:
    return outside(Signed(allow=tuple(a)), Signed(allow=tuple(b))).verdict


def by_z3(a: Sequence[str], b: Sequence[str]) -> Verdict:
    import z3

    text, sort = z3.String("name"), z3.ReSort(z3.StringSort())
    every = z3.AllChar(sort)

    def union(parts: list[Any]) -> Any:
        return z3.Union(*parts) if len(parts) > 1 else parts[0]

    def part(token: Token) -> Any:
        if token is STAR:
            return z3.Star(every)
        if token.text:
            return z3.Re(token.text)
        if not token.ranges:
            return every if token.negated else z3.Empty(sort)
        chosen = union([z3.Range(low, high) for low, high in token.ranges])
        return z3.Intersect(every, z3.Complement(chosen)) if token.negated else chosen

    def one(pattern: str) -> Any:
        parts = [part(token) for token in tokens(pattern)]
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]

    solver = z3.Solver()
    solver.add(z3.InRe(text, z3.Plus(every)), z3.InRe(text, union([one(p) for p in a])))
    solver.add(z3.Not(z3.InRe(text, union([one(p) for p in b]))))
    answer = solver.check()
    return "witness" if answer == z3.sat else "none" if answer == z3.unsat else "unknown"


def by_cvc5(a: Sequence[str], b: Sequence[str]) -> Verdict:
    import cvc5
    from cvc5 import Kind

    terms = cvc5.TermManager()

    def make(kind: Any, *parts: Any) -> Any:
        return terms.mkTerm(kind, *parts)

    every = make(Kind.REGEXP_ALLCHAR)

    def union(parts: list[Any]) -> Any:
        return make(Kind.REGEXP_UNION, *parts) if len(parts) > 1 else parts[0]

    def part(token: Token) -> Any:
        if token is STAR:
            return make(Kind.REGEXP_STAR, every)
        if token.text:
            return make(Kind.STRING_TO_REGEXP, terms.mkString(token.text))
        if not token.ranges:
            return every if token.negated else make(Kind.REGEXP_NONE)
        ranges = [make(Kind.REGEXP_RANGE, terms.mkString(x), terms.mkString(y)) for x, y in token.ranges]
        return make(Kind.REGEXP_DIFF, every, union(ranges)) if token.negated else union(ranges)

    def one(pattern: str) -> Any:
        parts = [part(token) for token in tokens(pattern)]
        return make(Kind.REGEXP_CONCAT, *parts) if len(parts) > 1 else parts[0]

    solver = cvc5.Solver(terms)
    solver.setLogic("QF_SLIA")
    text = terms.mkConst(terms.getStringSort(), "name")
    solver.assertFormula(make(Kind.STRING_IN_REGEXP, text, make(Kind.REGEXP_PLUS, every)))
    solver.assertFormula(make(Kind.STRING_IN_REGEXP, text, union([one(p) for p in a])))
    solver.assertFormula(make(Kind.NOT, make(Kind.STRING_IN_REGEXP, text, union([one(p) for p in b]))))
    answer = solver.checkSat()
    return "witness" if answer.isSat() else "none" if answer.isUnsat() else "unknown"


def regex(patterns: Sequence[str]) -> str:
    """The patterns as one expression without look-around, for the two automaton libraries."""

    def part(token: Token) -> str:
        if token is STAR:
            return ".*"
        if token.text:
            return re.sub(r"([.^$*+?{}\[\]()|\\])", r"\\\1", token.text)
        if not token.ranges:
            return "."
        inside = "".join(x if x == y else f"{x}-{y}" for x, y in token.ranges)
        return f"[{'^' if token.negated else ''}{inside}]"

    return "|".join("".join(part(token) for token in tokens(pattern)) for pattern in patterns)


def by_greenery(a: Sequence[str], b: Sequence[str]) -> Verdict:
    from greenery import parse

    return "none" if parse(regex(a)).difference(parse(regex(b))).empty() else "witness"


def by_interegular(a: Sequence[str], b: Sequence[str]) -> Verdict:
    from interegular import parse_pattern
    from interegular.fsm import Alphabet

    parsed = [parse_pattern(regex(patterns)) for patterns in (a, b)]
    alphabet = Alphabet.union(*(one.get_alphabet(one_flags()) for one in parsed))[0]
    one, other = (each.to_fsm(alphabet) for each in parsed)
    return "none" if one.difference(other).empty() else "witness"


def one_flags() -> Any:
    from interegular.patterns import REFlags

    return REFlags(0)


PEERS: dict[str, tuple[str, Callable[[Sequence[str], Sequence[str]], Verdict], int]] = {
    "z3": ("z3-solver", by_z3, 500),
    "cvc5": ("cvc5", by_cvc5, 500),
    "greenery": ("greenery", by_greenery, 50),
    "interegular": ("interegular", by_interegular, 50),
}
"""Package, function, and the largest size at which it is asked."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One engine's answer to one question. seconds: of CPU; with `gave_up` the bound, or what it took to fail."""

    engine: str
    size: int
    question: str
    seconds: float
    verdict: Verdict
    gave_up: str = ""


def bounded(name: str, size: int, question: str, sides: tuple[list[str], list[str]], cap: int) -> Row:
    """One peer on one question, in a process of its own."""
    near, far = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(far, name, sides, cap))
    child.start()
    far.close()
    try:
        seconds, verdict, why = near.recv() if near.poll(cap * 6 + 30) else (float(cap), "unknown", "no answer")
    except EOFError:
        seconds, verdict, why = float(cap), "unknown", f"stopped at {cap} s or {MEMORY >> 30} GiB"
    child.join(1)
    if child.is_alive():
        child.kill()
    return Row(engine=name, size=size, question=question, seconds=seconds, verdict=verdict, gave_up=why)


def _child(pipe: Connection, name: str, sides: tuple[list[str], list[str]], cap: int) -> None:
    _, ask, _ = PEERS[name]
    sys.setrecursionlimit(100_000)
    ask(["a"], ["a*"])  # imports, and whatever the first question costs
    start = process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start) + cap + 1, int(start) + cap + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGXCPU, lambda *_: os._exit(1))
    try:
        verdict, why = ask(*sides), ""
    except (MemoryError, RecursionError, RuntimeError, ValueError) as error:  # a peer's own failure is its result here
        verdict, why = "unknown", f"{type(error).__name__}: {error!s:.60}"
    pipe.send((process_time() - start, verdict, why))


def median_of(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = process_time()
        work()
        times.append(process_time() - start)
    return statistics.median(times)


# ------------------------------------------------------------------------------------------------- runs


def run_questions(sizes: Sequence[int], cap: int, rounds: int) -> list[Row]:
    rows = []
    for size in sizes:
        for question, sides in questions(size, random.Random(size)).items():
            verdict = ours(*sides)
            seconds = median_of(lambda sides=sides: ours(*sides), rounds if size < 5000 else 3)
            mine = Row(engine="extgate", size=size, question=question, seconds=seconds, verdict=verdict)
            rows.append(mine)
            show(mine, mine)
            for name, (package, _, largest) in PEERS.items():
                if size <= largest and _is_installed(package):
                    row = bounded(name, size, question, sides, cap)
                    rows.append(row)
                    show(row, mine)
    return rows


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def show(row: Row, mine: Row) -> None:
    ratio = "" if row is mine else f"{'>' if row.gave_up else ''}{row.seconds / mine.seconds:,.0f}x"
    wrong = "  DISAGREES" if row.verdict not in ("unknown", mine.verdict) else ""
    words = f"{row.size:>5} {row.question:7} {row.engine:12} {row.seconds:9.4f} s {ratio:>9}  {row.verdict}{wrong}"
    print(f"{words}  {row.gave_up}".rstrip(), flush=True)


def run_dead(sizes: Sequence[int], rounds: int) -> dict[str, float]:
    print("\ndead entries of one list (seconds; how many are dead)")
    found = {}
    for size in sizes:
        rng = random.Random(size)
        patterns = make_patterns(size, make_names(2 * size, rng), rng)
        count = len(dead(patterns))
        seconds = median_of(lambda patterns=patterns: dead(patterns), rounds)
        policy = _profile({"tools": {"disabled": patterns}}).policies[0]
        whole = median_of(lambda policy=policy: dead_entries(policy, Inventory()), 1)
        print(f"{size:>5} {seconds:9.4f} s over patterns, {whole:9.4f} s over a profile's tools  {count} dead")
        found[str(size)] = seconds
    return found


def _profile(document: dict[str, Any]) -> Profile:
    policy = read_agent(Document.of_bytes("agents/a.json", json.dumps(document).encode()))
    return Profile(id="a", layers=(policy,))


def run_profiles(sizes: Sequence[int]) -> dict[str, float]:
    print("\ntwo profiles, every kind, both directions (tools, skills and servers with so many patterns each)")
    found = {}
    for size in sizes:
        rng = random.Random(size)
        base = {kind: make_patterns(size, make_names(2 * size, rng), rng) for kind in ("tools", "skills", "mcp")}
        mixed = {kind: rewritten(patterns, rng) for kind, patterns in base.items()}
        edited = {kind: [*patterns[1:], "zoo*"] for kind, patterns in mixed.items()}
        sides = [_profile({k: {"disabled": patterns} for k, patterns in one.items()}) for one in (base, mixed, edited)]
        for name, other in (("rewritten", sides[1]), ("edited", sides[2])):
            start = process_time()
            verdicts = [row.verdict for row in compare(sides[0], other)]
            found[f"{size} {name}"] = process_time() - start
            print(f"{size:>5} {name:9} {process_time() - start:9.4f} s  {', '.join(verdicts)}", flush=True)
    return found


def run_hard() -> None:
    print("\nadversarial: `*` against `*a?^k b*` and `*b?^k a*` over two letters, short names denied; budget 1,000,000")
    for depth in (4, 6, 8, 12, 16):
        short = tuple("?" * length for length in range(1, 2 * depth + 4))
        deny = (f"*a{'?' * depth}b*", f"*b{'?' * depth}a*", *short)
        sides = Signed(allow=("*",), deny=deny), Signed()
        universe = Universe(characters="ab", max_length=64)
        seconds = median_of(lambda sides=sides, universe=universe: outside(*sides, universe=universe), 1)
        tracemalloc.start()
        answer = outside(*sides, universe=universe)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(
            f"   k={depth:<3} {answer.verdict:9} {answer.spent:>9,} units {seconds:7.2f} s, {peak / 1e6:.1f} MB at most"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 a side only, and no peer beyond 5 s")
    parser.add_argument("--cap", type=int, default=20, help="CPU seconds that a peer gets for one question")
    parser.add_argument("--json", action="store_true", help="also print the figures as JSON")
    options = parser.parse_args()
    sizes, cap = ((50,), min(options.cap, 5)) if options.quick else ((50, 500, 5000), options.cap)
    versions = [f"{n} {importlib.metadata.version(p)}" for n, (p, _, _) in PEERS.items() if _is_installed(p)]
    place = f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    print(f"{place}; {', '.join(versions)}")
    print("is there a name that A admits and B does not? (CPU seconds; ratio to extgate; verdict)")
    rows = run_questions(sizes, cap, rounds=7)
    at_50 = {name: [r.seconds for r in rows if r.size == 50 and r.engine == name] for name in ("extgate", *PEERS)}
    for name, times in at_50.items():
        if times and name != "extgate":
            ratios = [theirs / mine for theirs, mine in zip(times, at_50["extgate"], strict=True)]
            print(f"at 50 a side extgate is at least {min(ratios):,.0f} times as fast as {name}")
    figures = {
        "questions": [asdict(row) for row in rows],
        "dead": run_dead(sizes, 3),
        "profiles": run_profiles(sizes[:2]),
    }
    run_hard()
    if options.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
