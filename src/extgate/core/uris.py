"""The forms of a resource's URI: as written, as decoded, and as lenient servers read it."""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import unquote

_MOST = 32
_SPECIAL = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21", "file": ""}
"""Schemes whose URLs are read leniently, with their default ports. Source: WHATWG URL Standard (seen 2026-11-30)."""


def uri_forms(uri: str) -> tuple[str, ...]:
    """The URI as written, percent-decoded step by step to a fixed point, and each with dot segments removed.

    Each form once. Of more than 32 steps the first 32 and the fixed point are kept.
    """
    forms = [uri]
    last = uri
    while (decoded := unquote(last)) != last:  # every step is shorter than the one before
        last = decoded
        if len(forms) < _MOST:
            forms.append(last)
    return tuple(dict.fromkeys(form for step in (*forms, last) for form in (step, _without_dots(step))))


def lenient_forms(uri: str) -> tuple[str, ...]:
    """What a server that reads URLs as browsers do makes of each form. They only ever deny.

    White space around is dropped, scheme and host are lower-cased, a default port goes, `\\` is `/`, and any number of
    slashes begins the authority; `file://localhost` is `file://`. Whoever asks such a parser for the host alone hears
    of no user, nor of a port where the scheme has no usual one, and full-width letters are plain ones.
    """
    forms = [_lenient(form) for form in uri_forms(uri)]
    forms += [_with_host_alone(form) for form in forms]
    return tuple(dict.fromkeys(form for lenient in forms for form in (lenient, _without_dots(lenient))))


def _lenient(uri: str) -> str:
    text = re.sub(r"[\t\r\n]", "", uri).strip("".join(map(chr, range(0x21))))
    scheme, colon, rest = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme):
        return text
    scheme = scheme.lower()
    if scheme == "file":
        return "file://" + _file_path(rest.replace("\\", "/"))
    if scheme in _SPECIAL:
        host, slash, path = rest.replace("\\", "/").lstrip("/").partition("/")
        return f"{scheme}://{_host(host, _SPECIAL[scheme])}/{path}" if slash or host else f"{scheme}:{rest}"
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        return f"{scheme}://{host.lower()}{slash}{path}"
    return f"{scheme}:{rest}"


def _with_host_alone(uri: str) -> str:
    found = re.match(r"([a-z][a-z0-9+.-]*)://([^/?#]*)", uri)
    if found is None or found[1] == "file":
        return uri
    host = unicodedata.normalize("NFKC", _host(found[2], ""))
    if found[1] not in _SPECIAL and not host.startswith("["):
        host = host.partition(":")[0]
    return f"{found[1]}://{host.lower()}{uri[found.end() :]}"


def _file_path(rest: str) -> str:
    """Host and path of a file URL, as `/path` when the host is this machine."""
    if rest.startswith("//") and not rest.startswith("///"):
        host, _, path = rest[2:].partition("/")
        if host.lower() not in ("", "localhost"):
            return f"{host.lower()}/{path.lstrip('/')}"
        return "/" + path.lstrip("/")
    return "/" + rest.lstrip("/")


def _host(host: str, default_port: str) -> str:
    name = host.lower().rpartition("@")[2]
    bare, colon, port = name.rpartition(":")
    name = bare if colon and port in ("", default_port) else name
    return name.removesuffix(".")


def _without_dots(uri: str) -> str:
    """RFC 3986, 5.2.4, with scheme and authority kept; a backslash counts as a slash, as lenient servers read it."""
    head = re.match(r"(?:[A-Za-z][A-Za-z0-9+.-]*:(?://[^/\\]*)?)?", uri)
    start = head.end() if head else 0
    path = uri[start:].replace("\\", "/") if ".." in uri else uri[start:]
    kept: list[str] = []
    segments = path.split("/")
    for at, segment in enumerate(segments):
        if segment not in (".", ".."):
            kept.append(segment)
            continue
        if segment == ".." and len(kept) > (1 if path.startswith("/") else 0):
            kept.pop()
        if at == len(segments) - 1:
            kept.append("")
    return uri[:start] + "/".join(kept)
