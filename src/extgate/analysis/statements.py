"""What a workspace claims of its agents: the `assert:` statements of `extgate.yaml` and of profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from extgate.core.extension import KINDS
from extgate.core.names import kind_of_block, show
from extgate.core.patterns import clean
from extgate.errors import DialectError, PatternError

Claim = Literal["never", "always", "equal", "subset"]
Roads = Literal["every", "gate"]
Over = Literal["names", "installed"]

CLAIMS: tuple[Claim, ...] = ("never", "always", "equal", "subset")
WORDS: Mapping[str, tuple[str, ...]] = {name: (name,) for name in KINDS} | {
    "mcp": kind_of_block("mcp"),
    "resource": kind_of_block("resources"),
    "prompt": kind_of_block("prompts"),
}
"""What may stand before the `:` of a thing, and the kinds that it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """`word:pattern`: everything of the kinds whose name the pattern matches."""

    word: str
    pattern: str

    @property
    def kinds(self) -> tuple[str, ...]:
        return WORDS[self.word]

    def __str__(self) -> str:
        return f"{self.word}:{self.pattern}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One claim. things: of `never` and `always`. agents: globs of those it is about; of `equal` and `subset` the two.

    roads: `gate` leaves out of a `never` what the gate cannot see. over: `names`, all that could bear the name, or only
    what is `installed`; None: a plain name that is installed means that thing as it is, anything else all names.
    """

    claim: Claim
    things: tuple[Thing, ...] = ()
    agents: tuple[str, ...] = ("*",)
    roads: Roads = "every"
    over: Over | None = None
    file: str = ""
    line: int | None = None

    def __str__(self) -> str:
        if self.claim in ("equal", "subset"):
            return f"{self.claim} [{', '.join(self.agents)}]"
        return f"{self.claim} {', '.join(map(str, self.things))}"


def read_statements(
    value: object, *, file: str = "", lines: Sequence[int] = (), agent: str | None = None
) -> tuple[Statement, ...]:
    """The statements of an `assert` key's plain value. Raises DialectError at the first that has no meaning.

    lines: of each entry, as far as known. agent: whose profile it is, which the statements are about unless they say.
    """
    if not isinstance(value, list):
        fix = 'write `assert: [{never: "skill:prod-deploy"}]`'
        raise DialectError(
            f"assert: expected a list, got {_shown(value)}", file=file, line=next(iter(lines), None), fix=fix
        )
    places = [lines[at] if at < len(lines) else None for at in range(len(value))]
    return tuple(_statement(row, file, line, agent) for row, line in zip(value, places, strict=True))


def _statement(row: object, file: str, line: int | None, agent: str | None) -> Statement:
    def wrong(message: str, fix: str) -> DialectError:
        return DialectError(f"assert: {message}", file=file, line=line, fix=fix)

    if not isinstance(row, dict):
        raise wrong(f"expected a mapping, got {_shown(row)}", 'write `{never: "skill:prod-deploy", for: ["*"]}`')
    claims = [claim for claim in CLAIMS if claim in row]
    if len(claims) != 1:
        raise wrong("a statement has exactly one of never, always, equal and subset", "split it, or add one")
    claim = claims[0]
    for key, value in row.items():
        if key not in (claim, *_BESIDE[claim]):
            fix = f"the keys here are {', '.join((claim, *_BESIDE[claim]))}"
            raise wrong(f"`{show(str(key))}` has no meaning beside `{claim}`", fix)
        if key in _CHOICES and value not in _CHOICES[key]:
            raise wrong(f"{key}: {_shown(value)} is neither", f"write `{_CHOICES[key][0]}` or `{_CHOICES[key][1]}`")
    texts = _texts(row[claim])
    if claim in ("equal", "subset"):
        if texts is None or len(texts) != 2:
            raise wrong(f"{claim}: expected two agents", f"write `{claim}: [one, other]`")
        return Statement(claim=claim, agents=tuple(texts), file=file, line=line)
    agents = _texts(row.get("for", [agent if agent is not None else "*"]))
    if not texts or not agents:
        raise wrong(f"{claim}: expected texts, got {_shown(row[claim])}", f'write `{claim}: "tool:bash"`')
    things = tuple(read_thing(text, file=file, line=line) for text in texts)
    roads, over = row.get("roads", "every"), row.get("over")
    return Statement(claim=claim, things=things, agents=tuple(agents), roads=roads, over=over, file=file, line=line)


_BESIDE: Mapping[Claim, tuple[str, ...]] = {
    "never": ("for", "roads", "over"),
    "always": ("for", "over"),
    "equal": (),
    "subset": (),
}
_CHOICES = {"roads": ("every", "gate"), "over": ("names", "installed")}


def read_thing(text: str, *, file: str = "", line: int | None = None) -> Thing:
    """A thing from `word:pattern`. Raises DialectError for another word, or no pattern."""
    word, colon, pattern = text.strip().partition(":")
    try:
        pattern = clean(pattern)
    except PatternError as error:
        raise DialectError(f"assert: {error.message}", file=file, line=line, fix=error.fix) from None
    if not colon or word not in WORDS or not pattern:
        message = f"assert: `{show(text)[:80]}` is no thing"
        raise DialectError(message, file=file, line=line, fix=f"write `KIND:PATTERN`, KIND one of {', '.join(WORDS)}")
    return Thing(word=word, pattern=pattern)


def _texts(value: Any) -> list[str] | None:
    """The texts of a list, or of one alone; None for anything else."""
    found = value if isinstance(value, list) else [value]
    return found if all(isinstance(text, str) and text for text in found) else None


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"`{show(str(value))[:60]}`"
