"""What a shell line says to rules on commands. Other arguments: arguments.py.

Readings for `ArgTest`. What cannot be told for sure is None, which a deny takes for a match and an allow does not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

MAX_LINE = 16_384
MAX_NESTING = 4
MAX_OPENED = 32
"""Substitutions and groups in one line; a line with more cannot be told."""

_OPENING = re.compile(r"\$\(|<\(|>\(|`")
_BREAK = re.compile(r"&&|\|\||;;|\|&|[;|&\n]")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_SAFE_ASSIGNMENT = re.compile(
    r"(?:LANG|LC_[A-Z]+|TZ|NO_COLOR|FORCE_COLOR|TERM|COLUMNS|LINES|CI|NODE_ENV|DEBUG)=[\w.@:-]*$"
)
_HARMLESS_REDIRECT = re.compile(r"\d*>&\d|&?\d*>{1,2}\s*/dev/null|\d*<\s*/dev/null")
_WRAPPERS = frozenset({"timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob"})
_MORE_WRAPPERS = frozenset(
    {"xargs", "env", "sudo", "doas", "exec", "setsid", "ionice", "chroot", "watch", "!", "{", "("}
)
_UNTOLD = re.compile(r"[$*?\[{~]")
"""In a command's own name: what it runs is told by the shell only."""
_WAYS = (
    *("nice {}", "{} > x", "{} 2>&1", "sudo {}", "X=1 {}", "LANG=C {}", "/bin/{}", "{} $(x)", "{} && x"),
    *("sh -c '{}'", "$({})", "'{}'", "{} ''"),
)
"""How a command may stand in a line, so that one reading sees more of it than another."""
_PAIRS = ("{} $({})", "{} > '{}'", "{} '{}'", "sh -c '{}; {}'", "nice {} && {}")
_PAIRED = 4  # texts of which each pair is tried
_UNTOLD_WAYS = ("{} '", "*{}", "$x {}", "{} `", "[ {}")
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "do", "while", "until", "fi", "done", "case", "esac", "for", "in", "}"}
)
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "fish"})


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a shell line, or of an argument vector.

    With `is_strict` (for allowing) one text for each, harmless wrappers taken off, and nothing when the line holds a
    substitution, a redirection into a file, a group or a here-document. Without it (for denying) every way to spell
    each: as written, unquoted, past assignments and wrappers, and inside `sh -c`, `eval`, substitutions and groups.
    """

    least: ClassVar[int] = 0  # a command may be spelled by nothing but quotes
    is_strict: bool = False
    unwraps: bool = True

    def __call__(self, value: object) -> tuple[str, ...] | None:
        line = shlex.join(value) if _is_argv(value) else value  # type: ignore[arg-type]
        if not isinstance(line, str) or len(line) > MAX_LINE or "\0" in line:
            return None
        parts = strict_commands(line) if self.is_strict else spelled_commands(line, self.unwraps, MAX_NESTING)
        return tuple(dict.fromkeys(parts)) if parts else None

    def written(self, texts: Sequence[str]) -> Iterator[str]:
        """Lines that run these commands, or them and others; at the end some that cannot be told."""
        texts = [text for text in texts if text.strip()]
        yield from texts
        if len(texts) > 1:
            yield " && ".join(texts)
        for text in texts:
            yield from (way.format(text.strip()) for way in _WAYS)
        for text, other in permutations(texts[:_PAIRED], 2):
            yield from (way.format(text, other) for way in _PAIRS)
        yield from (way.format(text) for text in texts or ("x",) for way in _UNTOLD_WAYS)


def _is_argv(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(word, str) for word in value)


def strict_commands(line: str) -> list[str] | None:
    """Each command once, as rules that allow see it; None when the line holds anything but plain commands."""
    line = _HARMLESS_REDIRECT.sub(" ", line)
    pieces = split_line(line)
    if pieces is None:
        return None
    found = []
    for piece in pieces:
        bare = _unquoted(piece)
        if bare is None or re.search(r"[`<>(){}]|\$\(", _outside_single(piece)) or not bare:
            return None
        while bare and _SAFE_ASSIGNMENT.match(bare[0]):
            bare = bare[1:]
        bare = _past_wrappers(bare, _WRAPPERS)
        if not bare or bare[0] in _KEYWORDS or "$" in bare[0]:
            return None
        found.append(" ".join(bare))
    return found


def spelled_commands(line: str, unwraps: bool, depth: int) -> list[str] | None:
    """Every command that the line may run, in every spelling that a deny is held against."""
    if depth == 0:
        return None
    opened = _opened(line)
    pieces = split_line(opened) if opened is not None else None
    if pieces is None:
        return None
    found: list[str] = []
    for piece in pieces:
        words = _unquoted(piece)
        if words is None:
            return None
        spelled = _spellings(piece, words)
        if any(_UNTOLD.search(text.split(" ")[0]) for text in spelled[-1:]):
            return None
        found += spelled
        inner = _inner(_past_everything(words)) if unwraps else None
        if inner is not None:
            nested = spelled_commands(inner, unwraps, depth - 1)
            if nested is None:
                return None
            found += nested
    return found


def _spellings(piece: str, words: list[str]) -> list[str]:
    """As written, unquoted, and with each prefix word that only runs the rest taken off."""
    if not words:
        return []
    found = [piece.strip(), " ".join(words)]
    rest = words
    while rest and (_ASSIGNMENT.match(rest[0]) or rest[0] in _KEYWORDS):
        rest = rest[1:]
    while rest:
        found.append(" ".join(rest))
        if "/" in rest[0]:
            found.append(" ".join([rest[0].rpartition("/")[2], *rest[1:]]))
        if rest[0] in _MORE_WRAPPERS:  # which of its words is the command depends on its options
            found += [" ".join(rest[n:]) for n in range(1, min(len(rest), 8))]
            found += [" ".join([rest[n].rpartition("/")[2], *rest[n + 1 :]]) for n in range(1, min(len(rest), 8))]
        shorter = _past_everything(rest)
        if shorter == rest:
            break
        rest = shorter
    return found


def _past_wrappers(words: list[str], wrappers: frozenset[str]) -> list[str]:
    while words and words[0] in wrappers:
        words = words[1:]
        while words and (words[0].startswith("-") or re.fullmatch(r"[\d.]+[smhd]?", words[0])):
            words = words[1:]
    return words


def _past_everything(words: list[str]) -> list[str]:
    rest = _past_wrappers(words, _WRAPPERS | _MORE_WRAPPERS | _KEYWORDS)
    while rest and _ASSIGNMENT.match(rest[0]):
        rest = rest[1:]
    return rest


def _inner(words: list[str]) -> str | None:
    """The line that the command hands to another shell, if it does."""
    if not words:
        return None
    name = words[0].rpartition("/")[2]
    if name == "eval":
        return " ".join(words[1:])
    if name in _SHELLS:
        for at, word in enumerate(words[1:], 1):
            if word.startswith("-") and "c" in word[1:] and at + 1 < len(words):
                return words[at + 1]
    if name == "find" and any(word.startswith("-exec") for word in words):
        at = next(n for n, word in enumerate(words) if word.startswith("-exec"))
        return " ".join(words[at + 1 :]).rstrip(" ;+{}\\")
    return None


def split_line(line: str) -> list[str] | None:
    """The line cut at `;`, `&&`, `||`, `|`, `&` and line ends outside quotes; None when a quote stays open."""
    pieces, start, at, quote = [], 0, 0, ""
    while at < len(line):
        char = line[at]
        if char == "\\" and quote != "'":
            at += 2
            continue
        if char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        elif char == "#" and not quote and (at == 0 or line[at - 1].isspace()):
            end = line.find("\n", at)
            line = line[:at] + (line[end:] if end >= 0 else "")
            continue
        elif not quote and (found := _BREAK.match(line, at)) and not _is_redirect(line, at):
            pieces.append(line[start:at])
            start = at = found.end()
            continue
        at += 1
    pieces.append(line[start:])
    return None if quote else [piece for piece in pieces if piece.strip()]


def _is_redirect(line: str, at: int) -> bool:
    """Whether an `&` or `|` belongs to a redirection, as in `2>&1`, `&>x`, `>|x`."""
    return line[at] in "&|" and (line[at - 1 : at] in ("<", ">") or line[at + 1 : at + 2] == ">")


def _opened(line: str) -> str | None:
    """The line with substitutions and groups opened, outside single quotes, so that what they run stands alone."""
    if len(_OPENING.findall(line)) > MAX_OPENED:
        return None
    found, quote, at = [], "", 0
    while at < len(line):
        char = line[at]
        if char == "'" and quote != '"':
            quote = "" if quote else "'"
        elif char == '"' and quote != "'":
            quote = "" if quote else '"'
        elif quote != "'" and (opening := _OPENING.match(line, at)):
            inner = _closed(line, opening.end(), opening[0])
            found.append(" _ ")
            found_inner = line[opening.end() : inner]
            line = line[:at] + " " + line[inner + 1 :] + "\n" + found_inner
            continue
        elif not quote and char in "()":
            char = "\n"
        found.append(char)
        at += 1
    return "".join(found)


def _closed(line: str, at: int, opening: str) -> int:
    """Where what was opened closes; the end of the line when it does not."""
    if opening == "`":
        end = line.find("`", at)
        return end if end >= 0 else len(line)
    depth = 1
    for place in range(at, len(line)):
        depth += {"(": 1, ")": -1}.get(line[place], 0)
        if depth == 0:
            return place
    return len(line)


def _outside_single(text: str) -> str:
    return re.sub(r"'[^']*'", "", text)


def _unquoted(piece: str) -> list[str] | None:
    try:
        return shlex.split(piece)
    except ValueError:
        return None


def literal(text: str, *, stars: str = "") -> str:
    """The text as a pattern in which only the wildcards in `stars` (of `*?`) are wild."""
    special = "".join(char for char in "*?[" if char not in stars)
    return re.sub(f"[{re.escape(special)}]", lambda m: f"[{m[0]}]", text)
