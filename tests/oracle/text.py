"""What "this pattern matches that text" means, once more and slowly (law 2); used by nothing but the oracle."""

from __future__ import annotations

import fnmatch
import re
import unicodedata
from urllib.parse import unquote

# Not letters anybody can see. `Cf` holds the zero-width characters, bidirectional marks and tags; the line and
# paragraph separators and lone surrogates act like controls. The last seven are letters or marks that print nothing.
INVISIBLE_CATEGORIES = ("Cc", "Cf", "Cs", "Zl", "Zp")
INVISIBLE_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"


def nfc(text: str) -> str:
    """The text in Unicode normal form C."""
    return unicodedata.normalize("NFC", text)


def clean(pattern: str) -> str:
    """A pattern as it is compared: NFC, without white space around it."""
    return nfc(pattern).strip()


def hits(pattern: str, text: str) -> bool:
    """Whether one pattern matches one text: `fnmatchcase`, or equal text."""
    wanted, given = clean(pattern), nfc(text)
    return wanted == given or fnmatch.fnmatchcase(given, wanted)


def any_hits(patterns: list[str], texts: list[str]) -> bool:
    """Whether some pattern matches some text."""
    for pattern in patterns:
        for text in texts:
            if hits(pattern, text):
                return True
    return False


def is_unclosed(pattern: str) -> bool:
    """Whether a `[` is never closed.

    Reading: `[]` and `[!]` are closed to the eye, though `fnmatch` takes them as plain text; they are an empty set (a
    finding), not an unclosed one. The first design's own cases match `[]` against `[]` without complaint.
    """
    text, i = clean(pattern), 0
    while i < len(text):
        if text[i] != "[":
            i += 1
            continue
        start = i + 1
        if text[start : start + 1] == "!":
            start += 1
        if text[start : start + 1] == "]":
            end = text.find("]", start + 1)
            i = i + 1 if end < 0 else end + 1  # an empty set, or a set that holds `]`
            continue
        end = text.find("]", start)
        if end < 0:
            return True
        i = end + 1
    return False


def is_bad_name(name: object) -> bool:
    """Whether an item so named is refused outright: no text, nothing but white space, or characters nobody sees.

    Reading: a name of white space alone is no name; variation selectors print nothing, so they are zero-width too.
    """
    if not isinstance(name, str) or not name.strip():
        return True
    for char in name:
        if unicodedata.category(char) in INVISIBLE_CATEGORIES or char in INVISIBLE_LETTERS:
            return True
        if "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
            return True
    return False


def uri_forms(uri: str) -> list[str]:
    """A resource's URI as written, and as a server may come to read it.

    Percent-decoded until nothing changes, with dot segments removed; and each of the two alone, since a server may do
    only one of them. Reading: the law names the pair together; trying the halves too never widens.
    """
    decoded = uri
    while unquote(decoded) != decoded:
        decoded = unquote(decoded)
    forms = [uri, decoded, without_dot_segments(uri), without_dot_segments(decoded)]
    return list(dict.fromkeys(forms))


def without_dot_segments(uri: str) -> str:
    """The URI with `.` and `..` segments of its path resolved (RFC 3986, 5.2.4); scheme and authority are kept."""
    match = re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:(//[^/]*)?", uri)
    head = match.group(0) if match else ""
    path = uri[len(head) :]
    kept: list[str] = []
    segments = path.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment not in (".", ".."):
            kept.append(segment)
            continue
        if segment == ".." and len(kept) > (1 if path.startswith("/") else 0):
            kept.pop()
        if last:
            kept.append("")
    return head + "/".join(kept)
