"""What stands around a request's body by which a provider could take it for another than the one that was judged."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_plus

from extgate.core.names import show
from extgate.enforce.wire.spans import UnclearError

_OTHER = ("x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url")
"""Headers that some servers take for the method or the path."""
_SYSTEM = frozenset({"$alt", "$fields", "$prettyprint", "$.xgafv"})
"""Parameters of Google's APIs that leave a request what it is; others bring a method, headers or a body of their own.

Source: cloud.google.com/apis/docs/system-parameters (2026-11-30).
"""


def check(headers: Mapping[str, str], query: str, *, is_json: bool) -> None:
    """Raises UnclearError for what could make another request of it. is_json: the body is read as JSON in UTF-8."""
    for name in _OTHER:
        if name in headers:
            raise UnclearError(f"the header `{name}` could make another request of it")
    for part in query.split("&"):
        key = unquote_plus(part.partition("=")[0])
        if key.startswith("$") and key.lower() not in _SYSTEM:
            raise UnclearError(f"the parameter `{show(key)[:60]}` could make another request of it")
    if is_json:
        _check_type(headers.get("content-type", ""))


def _check_type(said: str) -> None:
    kind, *more = (part.strip().lower() for part in said.split(";"))
    if kind not in ("", "application/json") and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnclearError(f"the request is of the type `{show(kind)[:60]}`; send application/json")
    for part in more:
        name, _, value = part.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8"):
            raise UnclearError(f"the request is written in `{show(value)[:40]}`; send UTF-8")
