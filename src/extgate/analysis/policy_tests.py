"""Unit tests of a policy, written beside it: given a name, expect an answer; and which rules they exercise.

tests:
  - {given: "tool:bash", expect: deny}
  - {given: ["skill:devops/prod-deploy", "mcp:slack/send_message"], expect: deny}
  - {given: "skill:notes", category: research, expect: allow}
  - {given: "tool:Bash", args: {command: "git push"}, expect: ask}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from extgate.analysis.statements import WORDS
from extgate.core.decide import CompiledProfile, Step, Verdict, judge
from extgate.core.explain import Decider
from extgate.core.extension import KINDS, Extension
from extgate.core.names import Naming, show
from extgate.core.policy import STRICTNESS, Entry, Policy, Profile, Rule
from extgate.errors import ExtgateError

KEYS = ("given", "expect", "category", "source", "declared_name", "args")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyTest:
    """One expectation. number: which row of `tests` it comes from, from 1 on."""

    number: int
    given: str
    ext: Extension
    expect: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A test that does not hold, with the answer that was given; or a row that is no test, with what is wrong.

    file, line: where the row stands, as far as known.
    """

    number: int
    file: str | None = None
    line: int | None = None
    given: str = ""
    expect: str = ""
    verdict: Verdict | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of a policy's tests. untested: entries, and rules without one, that none of them exercises."""

    passed: int = 0
    failures: tuple[Failure, ...] = ()
    untested: tuple[tuple[Rule, Entry | None], ...] = ()
    rules: int = 0


def run_tests(policy: Policy, decider: Decider) -> Report | None:
    """The report on the policy's `tests`; None when it has none."""
    rows = policy.facts.get("tests")
    if rows is None:
        return None
    compiled = CompiledProfile(Profile(id=policy.id, layers=(policy,)))
    failures: list[Failure] = []
    used: set[tuple[str, str | None, int | None]] = set()
    passed = 0
    for found in _read(rows, decider):
        if isinstance(found, Failure):
            failures.append(found)
            continue
        naming = decider.naming if found.ext in decider.inventory.extensions else _with(decider, found.ext)
        verdict = judge(compiled, naming, found.ext, found.args)
        used |= {(step.text, step.pattern, step.line) for step in _exercised(verdict)}
        if (verdict.effect or "deny") == found.expect:
            passed += 1
        else:
            failures.append(Failure(number=found.number, given=found.given, expect=found.expect, verdict=verdict))
    places = [place for rule in policy.rules if rule.file for place in _places(rule)]
    untested = {_key(*place): place for place in places if _key(*place) not in used}
    return Report(
        passed=passed,
        failures=tuple(_placed(failure, policy.facts.get("test_places", ())) for failure in failures),
        untested=tuple(untested.values()),
        rules=len({_key(*place) for place in places}),
    )


def _placed(failure: Failure, places: Sequence[tuple[str, int, int]]) -> Failure:
    """The failure with its row's file and line, and its number there."""
    if failure.number > len(places):
        return failure
    file, line, number = places[failure.number - 1]
    return replace(failure, file=file, line=line, number=number)


def _places(rule: Rule) -> Iterator[tuple[Rule, Entry | None]]:
    yield from ((rule, entry) for entry in rule.entries)
    if rule.unless or not rule.entries:
        yield rule, None


def _key(rule: Rule, entry: Entry | None) -> tuple[str, str | None, int | None]:
    return (rule.text, entry.text, entry.line) if entry else (rule.text, None, rule.line)


def _exercised(verdict: Verdict) -> Iterator[Step]:
    """The steps that mattered: the one that decided, and the lists that let the thing pass."""
    yield verdict.step
    yield from (step for step in verdict.trail if step.outcome in ("passes", "may apply"))


def _with(decider: Decider, ext: Extension) -> Naming:
    return Naming((*decider.inventory.extensions, ext))


# ---------------------------------------------------------------------------------------------- reading


def _read(rows: object, decider: Decider) -> Iterator[PolicyTest | Failure]:
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        yield Failure(number=1, error="`tests` is no list")
        return
    for number, row in enumerate(rows, 1):
        try:
            yield from _row(number, row, decider)
        except ExtgateError as error:
            yield Failure(number=number, error=f"{error.message}; {error.fix}")


def _row(number: int, row: object, decider: Decider) -> Iterator[PolicyTest]:
    if not isinstance(row, dict):
        raise ExtgateError("it is no mapping", fix='write `{given: "tool:bash", expect: deny}`')
    unknown = [str(key) for key in row if key not in KEYS]
    if unknown:
        raise ExtgateError(f"`{show(unknown[0])}` is no key of a test", fix=f"the keys are {', '.join(KEYS)}")
    expect, args = row.get("expect"), row.get("args")
    if expect not in STRICTNESS:
        raise ExtgateError(f"expect: `{show(str(expect))}` is no answer", fix="write allow, ask or deny")
    if args is not None and not isinstance(args, dict):
        raise ExtgateError("args: they are no mapping", fix='write `args: {command: "ls"}`')
    given = row.get("given")
    for text in given if isinstance(given, list) else [given]:
        if not isinstance(text, str):
            raise ExtgateError("given: it is no text", fix='write `given: "tool:bash"`')
        for ext in _things(text, row, decider):
            yield PolicyTest(number=number, given=text, ext=ext, expect=str(expect), args=args)


def _things(text: str, row: Mapping[str, Any], decider: Decider) -> list[Extension]:
    """What a name means: the installed things of that kind that bear it, unless the test gives further facts; else one
    that is made up."""
    word, colon, name = text.strip().partition(":")
    if not colon or word not in WORDS or not name:
        raise ExtgateError(
            f"given: `{show(text)}` is no name", fix=f"write `KIND:NAME`, KIND one of {', '.join(WORDS)}"
        )
    facts = {key: str(row[key]) for key in ("category", "source", "declared_name") if row.get(key) is not None}
    installed = [ext for ext in decider.named(name) if ext.kind in WORDS[word]]
    if installed and not facts:
        return installed
    if not KINDS[WORDS[word][0]].is_mcp:
        base = (
            installed[0] if installed else Extension(kind=word, name=name, source="builtin" if word == "tool" else "")
        )
        return [replace(base, **facts)]  # type: ignore[arg-type]
    server, slash, item = name.partition("/")
    if not slash or not item:
        raise ExtgateError(f"given: `{show(text)}` names no item", fix=f"write `{word}:SERVER/ITEM`")
    return [Extension(kind=WORDS[word][0], server=server, name=item)]
