"""One direction of one kind: is there a thing that one profile answers more leniently than another?"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal

from extgate.analysis.boxes import Found, Search, Words
from extgate.analysis.budget import BudgetSpent, Meter
from extgate.analysis.calls import Way, made, ways
from extgate.analysis.entries import EntryIndex
from extgate.analysis.ground import PLAIN_URIS, Ground, rules_for
from extgate.analysis.regions import Case, Formula, both, cases, negated, part_of, region
from extgate.analysis.spellings import Shape, shapes
from extgate.analysis.suggest import suggestions
from extgate.analysis.witness import Arguments, Direction, Witness
from extgate.analysis.worlds import Values, World
from extgate.core.decide import CompiledPolicy, CompiledProfile, Verdict, holds, judge
from extgate.core.extension import Extension
from extgate.core.names import Naming
from extgate.core.patterns import matches
from extgate.core.policy import STRICTNESS, Effect, Entry, Policy, Profile, Rule

Asked = Literal["all", "things", "calls"]
"""What is asked about: things as they are, their calls where a rule looks at arguments, or both."""

Call = tuple[Way, Mapping[str, str]]

_SHORT = {"server": 20, "item": 30}
"""Names of at most so many characters are cut by no runtime."""
_FEW, _ROUNDS = 50, 6
"""Of so many entries outside or fewer all are brought in at once; of more only those that matter, until round six."""
_TRIED, _TRIAL = 80, 20  # things tried in the plainest world before a search, and what each trial costs
_CALLED = 10  # what one call costs that is tried
_SMALL = 2000  # entries that cost little to merge


class Hunt:
    def __init__(
        self,
        old: Profile,
        new: Profile,
        kind: str,
        direction: Direction,
        meter: Meter,
        ground: Ground,
        *,
        asked: Asked = "all",
        told: Sequence[Rule] = (),
        among: Sequence[Rule] = (),
    ) -> None:
        self.asked, self.told, self.among = asked, tuple(told), tuple(among)
        self.lenient, self.strict = (new, old) if direction == "wider" else (old, new)
        self.kind, self.direction, self.meter, self.ground = kind, direction, meter, ground
        self.before, self.after = CompiledProfile(old), CompiledProfile(new)
        self._told, self._among = (
            CompiledPolicy(Policy(dialect="part", rules=rules, default=None)) for rules in (self.told, self.among)
        )
        self.doubt = ""
        self._found: dict[frozenset[tuple[str, tuple[int, ...]]], Witness] = {}

    def answer(self) -> Witness | None:
        rules = [*rules_for(self.lenient, self.kind), *rules_for(self.strict, self.kind)]
        has_arguments = any(rule.when for rule in rules)
        asked = {"things": (False,), "calls": (True,), "all": (False, True) if has_arguments else (False,)}[self.asked]
        for of_calls in asked:
            rest = part_of(self.told, self.among, of_calls=of_calls)
            for most in _steps(self.lenient, self.strict, rules):
                there = both(rest, region(self.lenient, self.kind, most, of_calls=of_calls))
                here = both(rest, region(self.strict, self.kind, most, of_calls=of_calls))
                witness = self._solved(there, here, of_calls) if there != here else None
                if witness:
                    return witness
        return None

    def _solved(self, there: Formula, here: Formula, of_calls: bool) -> Witness | None:
        """What lies `there` and not `here`; where another kind of the family had the same question, its answer."""
        known = self.ground.answers.get((there, here, of_calls))
        if isinstance(known, BudgetSpent):
            raise known
        if isinstance(known, Witness):
            ext = replace(known.extension, kind=self.kind)
            witness = self._differs(ext, known.beside, known.arguments)
            if witness:
                return witness
        elif isinstance(known, str):
            self.doubt = self.doubt or known
            return None
        before, self.doubt = self.doubt, ""
        try:
            witness = self._hunt(cases(both(there, negated(here))), of_calls)
        except BudgetSpent as error:
            self.ground.answers[there, here, of_calls] = error
            raise
        self.ground.answers[there, here, of_calls] = witness or self.doubt
        self.doubt = before or self.doubt
        return witness

    # ------------------------------------------------------------------------------------------ one formula

    def _hunt(self, found: Sequence[Case], of_calls: bool) -> Witness | None:
        """Cases of one formula, searched world by world."""
        is_small = sum(len(atom.entries or ()) for case in found for atom in case.outside) <= _SMALL
        opened = self._opened(found, EntryIndex.holds if is_small else EntryIndex.covers)
        places = _places(self.kind, opened) if opened else []
        witness = None if of_calls else self._suggested(opened, places)
        if witness:
            return witness
        opened = opened if is_small else self._opened(opened, EntryIndex.holds)
        for world, shape in places:
            witness, is_sure = self._in_world(world, shape, opened, of_calls)
            if witness is None and not is_sure and shape.cuts:
                witness, _ = self._in_world(*_tame(world, shape), opened, of_calls)
            if witness:
                return witness
            if not is_sure:
                self.doubt = f"they may differ, but no {'call' if of_calls else 'thing'} that could be made shows it"
        return None

    def _opened(self, found: Sequence[Case], is_held: Callable[[EntryIndex, Entry], bool]) -> list[Case]:
        """The cases without entries that the lists outside hold anyway, and without those of which nothing is left."""
        opened = []
        for case in found:
            index = self.ground.index(case.outside)
            inside = []
            for atom in case.inside:
                self.meter.spend(1 + len(atom.entries or ()))
                if atom.entries is not None:
                    atom = replace(atom, entries=tuple(e for e in atom.entries if not is_held(index, e)))
                inside.append(atom)
            if all(atom.entries != () for atom in inside):
                opened.append(Case(frozenset(inside), case.outside))
        return opened

    def _suggested(self, opened: Sequence[Case], places: Sequence[tuple[World, Shape]]) -> Witness | None:
        """A witness among the things that the lists themselves speak of."""
        atoms = sorted((atom for case in opened for atom in case.inside), key=lambda atom: len(atom.entries or ()))
        entries = {entry: None for atom in atoms for entry in sorted(atom.entries or (), key=_size)}
        for at, (world, shape) in enumerate(places):
            for values in islice(suggestions(entries, shape, self.ground.alphabet), _TRIED if not at else _TRIED // 4):
                self.meter.spend(_TRIAL)
                witness = self._witness(world, values, None) if _fits(world, values) else None
                if witness:
                    return witness
        return None

    def _in_world(
        self, world: World, shape: Shape, opened: Sequence[Case], of_calls: bool
    ) -> tuple[Witness | None, bool]:
        """The witness of one world, and whether none means that there is none."""
        best, is_sure = None, True
        for case in opened:
            for call in self._calls(case) if of_calls else (None,):
                if best and of_calls:
                    break  # one call is as good as another
                best, is_exact = self._in_case(world, shape, case, call, best)
                is_sure = is_sure and is_exact
        return (self._found[_key(best.words)] if best else None), is_sure

    def _calls(self, case: Case) -> Iterator[Call]:
        """Ways in which the case's conditions on arguments hold, with words for them."""
        for way in ways(case, self.ground.alphabet):
            words = self.ground.speller.spelled(way, self.meter)
            if words is not None:
                yield way, words

    def _in_case(
        self, world: World, shape: Shape, case: Case, call: Call | None, best: Found | None
    ) -> tuple[Found | None, bool]:
        """The best witness so far, or a shorter one of this case; forbidden entries are brought in as they matter."""
        ground = self.ground
        encoder = ground.encoder(shape)
        fixed = [encoder.pattern(text, pattern) for text, pattern in world.never]
        unions = [[encoder.name(text, name) for name in found] for text, found in world.one_of.items()]
        unions += [ground.boxes(atom, shape, self.meter) for atom in case.inside if atom.entries is not None]
        near = ground.near(case)
        used = near if len(near) <= _FEW else {}
        rounds = 0

        def accept(words: Words) -> bool:
            values = self._spelled(words)
            witness = self._witness(world, values, call)
            if witness:
                self._found[_key(words)] = witness
                return True
            missed = self._missed(world, values, case, used)
            if missed:
                raise _Missed(missed)
            return False

        while True:
            self.meter.spend(1 + len(used))
            boxes = [box for entry in used for box in ground.entry_boxes(entry, shape, self.meter)]
            search = Search(shape.texts, [*fixed, *boxes], ground.alphabet, self.meter, accept)
            try:
                return search.find(unions, best), not search.rejected
            except _Missed as error:
                rounds += 1
                used |= dict.fromkeys(error.entries) if rounds != _ROUNDS else near

    def _missed(self, world: World, values: Values, case: Case, used: Container[Entry]) -> list[Entry]:
        """An entry outside that holds the thing and was not looked at, or where there are several of them all."""
        ext, beside = world.build(values)
        facets = Naming((ext, *beside)).of(ext)
        entries, matcher = self.ground.outside(case)
        first = matcher.first(facets)
        if first < 0 or entries[first] not in used:
            return [entries[first]] if first >= 0 else []
        self.meter.spend(len(entries))
        left = (entry for entry in entries if entry not in used)
        return [entry for entry in left if all(holds(test, facets) for test in entry.tests)]

    def _spelled(self, words: Words) -> Values:
        return {name: self.ground.alphabet.spell(word) for name, word in words.items()}

    def _witness(self, world: World, values: Values, call: Call | None) -> Witness | None:
        """The thing that the values describe, or one call of it, when the profiles really differ on it in this
        direction."""
        ext, beside = world.build(values)
        if call is None:
            return self._differs(ext, beside, None)
        for arguments in made(*call):
            self.meter.spend(_CALLED)
            witness = self._differs(ext, beside, arguments)
            if witness:
                return witness
        return None

    def _differs(self, ext: Extension, beside: tuple[Extension, ...], arguments: Arguments | None) -> Witness | None:
        naming = Naming((ext, *beside))
        if self.told and self._told.verdict(ext, naming.of(ext), arguments).effect:
            return None
        if self.among and not self._among.verdict(ext, naming.of(ext), arguments).effect:
            return None
        before, after = (judge(side, naming, ext, arguments) for side in (self.before, self.after))
        gain = _rank(before) - _rank(after)
        if not gain or (gain > 0) != (self.direction == "wider"):
            return None
        return Witness(extension=ext, before=before, after=after, beside=beside, arguments=arguments)


class _Missed(Exception):
    """A thing was offered as a witness that these entries hold, which nobody had looked at yet."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        super().__init__()
        self.entries = entries


def _key(words: Words) -> frozenset[tuple[str, tuple[int, ...]]]:
    return frozenset(words.items())


def _size(entry: Entry) -> int:
    return sum(len(test.pattern) for test in entry.tests)


def _fits(world: World, values: Values) -> bool:
    """Whether there is such a thing in the world."""
    return not any(matches(values[text], pattern) for text, pattern in world.never) and all(
        values[text] in names for text, names in world.one_of.items()
    )


def _places(kind: str, opened: Sequence[Case]) -> list[tuple[World, Shape]]:
    """The worlds that differ in what the lists of these cases look at, the plainest first."""
    entries = (entry for case in opened for atom in (*case.inside, *case.outside) for entry in atom.entries or ())
    facets = sorted({facet for entry in entries for test in entry.tests for facet in test.facets})
    found: dict[object, tuple[World, Shape]] = {}
    for world, shape in shapes(kind) if facets else islice(shapes(kind), 1):
        key = (shape.texts, tuple(shape.forms.get(facet) for facet in facets), world.never, tuple(world.one_of))
        found.setdefault(key, (world, shape))
    return list(found.values())


def _tame(world: World, shape: Shape) -> tuple[World, Shape]:
    """The world over names that no runtime cuts, and URIs that are written in one way."""
    texts = tuple(replace(text, max_length=_SHORT[text.name]) for text in shape.texts if text.name in _SHORT)
    return replace(world, never=(*world.never, *PLAIN_URIS)), replace(shape, texts=texts, cuts={})


def _rank(verdict: Verdict) -> int:
    return STRICTNESS[verdict.effect or "deny"]


def _steps(one: Profile, other: Profile, rules: Sequence[Rule]) -> tuple[Effect, ...]:
    effects = {rule.effect for rule in rules} | {policy.default for side in (one, other) for policy in side.policies}
    return ("allow", "ask") if "ask" in effects else ("allow",)
