"""The ways to find the first of many patterns that matches a name, which benchmarks/matching.py compares."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate

from extgate.core import patterns as matcher
from extgate.core.glob import STAR, tokens
from extgate.core.patterns import PatternSet

Decide = Callable[[str], int]
Build = Callable[[Sequence[str]], Decide]


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One way to decide; `package` is what must be installed for it, `note` what the reader must know to be fair."""

    name: str
    build: Build
    package: str | None = None
    note: str = ""
    seconds: float = 0.15  # of CPU to spend on one round, about
    complete: bool = False  # asked every name, however many
    twice: bool = False  # asked every name a second time, because it remembers


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


def cel_sources(patterns: Sequence[str]) -> Iterator[str]:
    """Expressions that yield a boolean for each pattern, a thousand in one: CEL in C++ takes 100,000 bytes at most."""
    for at in range(0, len(patterns), 1_000):
        calls = (f"name.matches({json.dumps(f'^{regex(pattern)}$')})" for pattern in patterns[at : at + 1_000])
        yield f"[{', '.join(calls)}]"


def first_true(answers: Iterable[Sequence[bool]]) -> int:
    """Where the first true one is, or -1; nothing is asked beyond it."""
    return next((part * 1_000 + found.index(True) for part, found in enumerate(answers) if True in found), -1)


def cel_rust(patterns: Sequence[str]) -> Decide:
    """CEL in Rust."""
    import cel

    programs = [cel.compile(source) for source in cel_sources(patterns)]
    return lambda name: first_true(program.execute({"name": name}) for program in programs)


def cel_cpp(patterns: Sequence[str]) -> Decide:
    """CEL in C++."""
    from cel_expr_python import cel

    env = cel.NewEnv(variables={"name": cel.Type.STRING})
    programs = [env.compile(source) for source in cel_sources(patterns)]
    return lambda name: first_true(program.eval(data={"name": name}).plain_value() for program in programs)


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
    Engine(name="extgate, pure Python", build=pure, complete=True, twice=True),
    Engine(name="extgate + ahocorasick_rs", build=fast, package="ahocorasick_rs", complete=True, twice=True),
    Engine(name="one re alternation", build=alternation),
    Engine(name="wcmatch", build=wcmatch, package="wcmatch", note="`*` is not the empty text: answers may differ"),
    Engine(
        name="google-re2 Set",
        build=re2_set,
        package="google-re2",
        twice=True,
        note="reports all that match; slow at first sight",
    ),
    Engine(name="pycasbin", build=casbin, package="pycasbin", note="a whole access model with roles and domains"),
    Engine(name="cedarpy", build=cedar, package="cedarpy", note="has only `*`; entities, schemas, all reasons"),
    Engine(name="CEL in Rust", build=cel_rust, package="common-expression-language", note="all patterns, as booleans"),
    Engine(name="CEL in C++", build=cel_cpp, package="cel-expr-python", note="all patterns, as booleans"),
    Engine(name="OPA's Rego (regorus)", build=rego, package="celine-regorus", note="all that match, over JSON data"),
)
