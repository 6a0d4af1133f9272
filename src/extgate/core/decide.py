"""decide(): one extension under one profile, with the deciding rule and the trail from the same pass."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from extgate.core.extension import KINDS, Extension
from extgate.core.names import Facet, Naming, loose, refusal, shown_name
from extgate.core.patterns import PatternSet, matches, nfc
from extgate.core.policy import STRICTNESS, ArgTest, Effect, Entry, Policy, Profile, Rule, Test
from extgate.core.uris import lenient_forms, uri_forms

Facets = Mapping[Facet, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One rule that was looked at. outcome: `decides`, `passes` (an allow-list that admits the item), `no match`,
    or `may apply` (a rule on arguments, asked without any)."""

    text: str
    outcome: Literal["decides", "passes", "no match", "may apply"]
    pattern: str | None = None
    file: str | None = None
    line: int | None = None
    effect: Effect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one layer says: no effect is no opinion."""

    effect: Effect | None
    reason: str
    step: Step
    trail: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The answer for one extension: effect, the rule that decided, and the three answers that follow from them.

    rule: the deciding step. trail: the steps before it, in order, of the layer that decided.
    delivery: `request`, or `catalog` when the agent gets it through catalog tools.
    """

    extension: Extension
    effect: Effect
    reason: str
    rule: Step
    trail: tuple[Step, ...]
    visible: bool
    callable: bool
    approval: Literal["auto", "ask"] = "auto"
    delivery: Literal["request", "catalog"] = "request"


class EntryMatcher:
    """Many entries compiled into one look-up: the index of the first that holds."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        exact: dict[tuple[Facet, ...], dict[str, int]] = {}
        globs: dict[tuple[Facet, ...], list[tuple[str, int]]] = {}
        joint: dict[tuple[Facet, ...], list[tuple[str, int]]] = {}
        for index, entry in enumerate(entries):
            key = max(entry.tests, key=_selectivity)
            if len(entry.tests) > 1:
                joint.setdefault(key.facets, []).append((key.pattern, index))
            elif key.is_exact:
                exact.setdefault(key.facets, {}).setdefault(nfc(key.pattern), index)
            else:
                globs.setdefault(key.facets, []).append((key.pattern, index))
        self._exact = tuple(exact.items())
        self._globs = tuple((f, PatternSet([p for p, _ in rows]), [i for _, i in rows]) for f, rows in globs.items())
        self._joint = tuple((f, PatternSet([p for p, _ in rows]), [i for _, i in rows]) for f, rows in joint.items())

    def first(self, facets: Facets) -> int:
        """The lowest index of an entry that holds, or -1."""
        best = len(self._entries)
        for key, table in self._exact:
            best = min([best, *(table[name] for name in _spelled(facets, key) if name in table)])
        for key, patterns, indexes in self._globs:
            found = patterns.first_of(_spelled(facets, key))
            if found >= 0:
                best = min(best, indexes[found])
        for key, patterns, indexes in self._joint:
            best = min(best, self._first_joint(facets, _spelled(facets, key), patterns, indexes, best))
        return best if best < len(self._entries) else -1

    def _first_joint(
        self, facets: Facets, names: Iterable[str], patterns: PatternSet, indexes: list[int], best: int
    ) -> int:
        for found in sorted({hit for name in names for hit in patterns.all(name)}):
            if indexes[found] >= best:
                break
            if all(holds(test, facets) for test in self._entries[indexes[found]].tests):
                return indexes[found]
        return best


def _selectivity(test: Test) -> tuple[bool, int]:
    text = test.pattern
    return (not any(c in text for c in "*?["), len(text) - text.count("*") - text.count("?"))


def _spelled(facets: Facets, key: tuple[Facet, ...]) -> tuple[str, ...]:
    if len(key) == 1:
        return facets.get(key[0], ())
    return tuple(name for facet in key for name in facets.get(facet, ()))


def holds(test: Test, facets: Facets) -> bool:
    """Whether any spelling of the test's facets matches its pattern."""
    names = _spelled(facets, test.facets)
    if test.is_exact:
        return nfc(test.pattern) in names
    return any(matches(name, test.pattern) for name in names)


class _Segment:
    """Neighbouring plain rules as one look-up; a rule with `unless` or `when` stands alone."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules = tuple(rules)
        self.flat = [(rule, entry) for rule in rules for entry in rule.entries]
        self.matcher = EntryMatcher([entry for _, entry in self.flat])
        self.stands_alone = rules[0].unless or bool(rules[0].when)

    def hit(self, facets: Facets) -> tuple[Rule, Entry | None]:
        index = self.matcher.first(facets)
        return self.flat[index] if index >= 0 else (self.rules[-1], None)


class CompiledPolicy:
    """A policy made ready for many questions. Immutable; safe to share between threads."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._segments: dict[str, tuple[_Segment, ...]] = {}

    def segments(self, kind: str) -> tuple[_Segment, ...]:
        found = self._segments.get(kind)
        if found is None:
            found = self._segments[kind] = _segments([r for r in self.policy.rules if kind in r.kinds])
        return found

    def verdict(self, ext: Extension, facets: Facets, args: Mapping[str, Any] | None) -> Verdict:
        """What this layer says of the item, or of one call of it when `args` are given."""
        trail: list[Step] = []
        possible: list[Verdict] = []
        for segment in self.segments(ext.kind):
            rule, entry = segment.hit(facets)
            held = (entry is None) if rule.unless else (entry is not None)
            if held and rule.when and args is None:
                step = _step(rule, entry, "may apply")
                possible.append(_verdict(rule.effect, rule, ext, facets, step, trail))
            elif held and _args_hold(rule, args):
                return _lenient(
                    possible, _verdict(rule.effect, rule, ext, facets, _step(rule, entry, "decides"), trail)
                )
            else:
                step = _step(rule, entry, "passes" if rule.unless else "no match")
            trail.append(step)
        return _lenient(possible, self._default(ext, trail))

    def _default(self, ext: Extension, trail: list[Step]) -> Verdict:
        passed = next((step for step in reversed(trail) if step.outcome == "passes"), None)
        effect, name = self.policy.default, shown_name(ext)
        if effect is None:
            step = Step(text="default", outcome="no match", file=self.policy.file)
            return Verdict(effect=None, reason="no rule speaks of it", step=step, trail=tuple(trail))
        if effect == "allow" and passed:
            reason = f"'{name}' is allowed by `{passed.pattern}` in {passed.text}."
            return Verdict(effect=effect, reason=reason, step=passed, trail=tuple(trail))
        step = Step(text=f"default: {effect}", outcome="decides", file=self.policy.file, effect=effect)
        reason = {
            "allow": f"no rule denies '{name}'.",
            "ask": f"no rule speaks of '{name}', and the default is to ask.",
            "deny": f"'{name}' matches no rule that allows it.",
        }[effect]
        return Verdict(effect=effect, reason=reason, step=step, trail=tuple(trail))


def _segments(rules: Sequence[Rule]) -> tuple[_Segment, ...]:
    runs: list[list[Rule]] = []
    for rule in rules:
        alone = rule.unless or bool(rule.when)
        if runs and not alone and not (runs[-1][0].unless or runs[-1][0].when):
            runs[-1].append(rule)
        else:
            runs.append([rule])
    return tuple(_Segment(run) for run in runs)


def _step(rule: Rule, entry: Entry | None, outcome: Literal["decides", "passes", "no match", "may apply"]) -> Step:
    if entry is None:
        return Step(text=rule.text, outcome=outcome, file=rule.file, line=rule.line, effect=rule.effect)
    return Step(
        text=rule.text, outcome=outcome, pattern=entry.text, file=entry.file, line=entry.line, effect=rule.effect
    )


def _verdict(effect: Effect, rule: Rule, ext: Extension, facets: Facets, step: Step, trail: Sequence[Step]) -> Verdict:
    words = {"deny": "is denied by", "ask": "needs an approval by", "allow": "is allowed by"}
    reason = rule.reason or "'{name}' " + f"{words[effect]} `{step.pattern}` in {rule.text}."
    reason = reason.replace("{name}", shown_name(ext)).replace("{category}", (*facets.get("category", ()), "")[0])
    return Verdict(effect=effect, reason=reason, step=step, trail=tuple(trail))


def _lenient(possible: Sequence[Verdict], final: Verdict) -> Verdict:
    """The most lenient answer that some call could get; the first of equals.

    A deny that holds for some arguments only takes nothing from the other calls, so it does not count here; no opinion
    leaves the call to the other layers, which an `ask` for some arguments does not.
    """
    rank: dict[Effect | None, int] = {"allow": 0, None: 1, "ask": 2, "deny": 3}
    return min((final, *(v for v in possible if v.effect != "deny")), key=lambda v: rank[v.effect])


def _args_hold(rule: Rule, args: Mapping[str, Any] | None) -> bool:
    return all(_argument_holds(test, args or {}, in_doubt=rule.effect != "allow") for test in rule.when)


def _argument_holds(test: ArgTest, args: Mapping[str, Any], *, in_doubt: bool) -> bool:
    value: Any = args
    for part in test.name.split(".") if test.name else ():
        if isinstance(value, Mapping) and any(key != part and loose(str(key)) == loose(part) for key in value):
            return in_doubt  # whoever runs it may take that for the argument
        value = value.get(part) if isinstance(value, Mapping) else None
    if test.reading:
        texts = None if value is None else test.reading(value)
        if not texts:
            return in_doubt
    elif value is None:
        return False
    else:
        texts = (value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False),)
    patterns = (test.pattern, *test.also)
    found = (_any_matches(text, patterns) and not _any_matches(text, test.but) for text in texts)
    return all(found) if test.every else any(found)


def _any_matches(text: str, patterns: Iterable[str]) -> bool:
    return any(matches(text, pattern) for pattern in patterns)


class CompiledProfile:
    """A profile made ready: each layer compiled once."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._layers = tuple(
            CompiledPolicy(layer)
            if isinstance(layer, Policy)
            else (CompiledProfile(layer.first), CompiledProfile(layer.second))
            for layer in profile.layers
        )

    def verdict(self, ext: Extension, facets: Facets, args: Mapping[str, Any] | None = None) -> Verdict:
        """The strictest layer's answer. A name that is refused, or no opinion anywhere, is a deny."""
        name = ext.name if ext.server is None or ext.server else ""
        why = refusal(name) or (refusal(ext.server) if ext.server is not None else None)
        why = why or (refusal(ext.declared_name) if ext.declared_name else None)
        why = why or (None if ext.kind in KINDS else f"`{ext.kind}` is no kind of extension")
        why = why or ("it is an MCP item of no server" if ext.server is None and KINDS[ext.kind].is_mcp else None)
        if why:
            step = Step(text="name", outcome="decides", effect="deny")
            return Verdict(effect="deny", reason=f"'{shown_name(ext)}' is refused: {why}.", step=step, trail=())
        worst: Verdict | None = None
        for layer in self._layers:
            found = _either(layer, ext, facets, args) if isinstance(layer, tuple) else layer.verdict(ext, facets, args)
            if found.effect is not None and (worst is None or _rank(found) > _rank(worst)):
                worst = found
        if worst is None:
            step = Step(text="default: deny", outcome="decides", effect="deny")
            reason = f"no policy has an opinion on '{shown_name(ext)}'."
            return Verdict(effect="deny", reason=reason, step=step, trail=())
        return worst


def _either(
    pair: tuple[CompiledProfile, CompiledProfile], ext: Extension, facets: Facets, args: Mapping[str, Any] | None
) -> Verdict:
    first, second = (side.verdict(ext, facets, args) for side in pair)
    return first if _rank(first) <= _rank(second) else second


def _rank(verdict: Verdict) -> int:
    return STRICTNESS[verdict.effect] if verdict.effect else -1


def judge(compiled: CompiledProfile, naming: Naming, ext: Extension, args: Mapping[str, Any] | None = None) -> Verdict:
    """The answer for an item under every form of its name: a resource's URI has several, and the strictest counts."""
    if ext.kind != "mcp_resource":
        return compiled.verdict(ext, naming.of(ext), args)
    own = compiled.verdict(ext, naming.of(ext), args)
    worst = own
    forms, lenient = uri_forms(ext.name), lenient_forms(ext.name)
    for form in dict.fromkeys((*forms, *lenient)):
        item = replace(ext, name=form)
        found = compiled.verdict(item, naming.of(item), args)
        # Beyond the forms that the law names, what a lenient server might make of it can only hit a deny.
        is_deny = found.effect == "deny" and found.step.pattern is not None
        if _rank(found) > _rank(worst) and (form in forms or is_deny):
            worst = found
    if worst is own:
        return own
    return replace(worst, reason=f"{worst.reason} (read as another form of '{shown_name(ext)}')")


def decide(
    profile: Profile, ext: Extension, installed: Iterable[Extension] = (), *, args: Mapping[str, Any] | None = None
) -> Verdict:
    """The answer for one extension; `Decider` in `explain.py` is the quicker way to ask for many.

    installed: the other extensions that exist, because some spellings depend on them.
    """
    extensions = tuple(installed)
    naming = Naming(extensions if ext in extensions else (*extensions, ext))
    return judge(CompiledProfile(profile), naming, ext, args)
