"""Bodies without their compression, in pieces of bounded size: gzip, deflate and zstd. Any other is refused.

The provider is asked for none (`accept-encoding: identity`); programs compress their requests by themselves.
"""

from __future__ import annotations

import sys
import zlib
from typing import Protocol

from extgate.enforce.wire.spans import UnclearError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = 1024 * 1024
MAX_WINDOW = 23
"""Largest window of zstd, as a power of two, in bytes: what every decoder must be able to hold (RFC 9659)."""
ENCODINGS = frozenset({"gzip", "x-gzip", "deflate", "zstd"})


class _Inside(Protocol):
    """One format's own way. Raises ValueError, zlib.error or ZstdError for what it cannot read."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def more(self, data: bytes) -> tuple[bytes, bool]: ...


class _Zlib:
    """gzip, zlib, and what senders of `deflate` send that leave zlib's frame out."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._made = zlib.decompressobj(31) if is_gzip else None

    @property
    def eof(self) -> bool:
        return self._made is not None and self._made.eof

    @property
    def unused_data(self) -> bytes:
        return self._made.unused_data if self._made is not None else b""

    def more(self, data: bytes) -> tuple[bytes, bool]:
        if self._made is None:
            if not data:
                return b"", False
            self._made = zlib.decompressobj(15 if data[0] & 15 == 8 else -15)
        found = self._made.decompress(self._made.unconsumed_tail + data, PIECE)
        return found, bool(self._made.unconsumed_tail) and not self._made.eof


class _Zstd:
    def __init__(self) -> None:
        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW}
        self._made = zstd.ZstdDecompressor(options=options)

    @property
    def eof(self) -> bool:
        return self._made.eof

    @property
    def unused_data(self) -> bytes:
        return self._made.unused_data

    def more(self, data: bytes) -> tuple[bytes, bool]:
        found = self._made.decompress(data, PIECE)
        return found, not self._made.eof and not self._made.needs_input


class Unpacking:
    """One body's. limit: longest that it may become, in bytes. Raises UnclearError."""

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit, self._size = limit, 0
        self._inside: _Inside = _Zstd() if encoding == "zstd" else _Zlib(is_gzip=encoding != "deflate")

    @property
    def is_whole(self) -> bool:
        """Whether the end has come."""
        return self._inside.eof

    def feed(self, data: bytes) -> list[bytes]:
        """What a piece of the body says."""
        found, has_more = list[bytes](), not self._inside.eof
        if not has_more and data:
            raise UnclearError("something follows compressed data")
        while has_more:
            try:
                piece, has_more = self._inside.more(data)
            except (zlib.error, zstd.ZstdError, ValueError):
                raise UnclearError("compressed data cannot be unpacked") from None
            data = b""
            found.append(piece)
            self._size += len(piece)
            if self._size > self._limit:
                raise UnclearError(f"compressed data is longer than {self._limit} bytes")
        if self._inside.unused_data:
            raise UnclearError("something follows compressed data")
        return found


def unpacked(body: bytes, encoding: str, limit: int) -> bytes:
    """A request's body without its compression. Raises UnclearError for another than these, or too much of it."""
    encoding = encoding.strip().lower()
    if encoding in ("", "identity"):
        return body
    if encoding not in ENCODINGS:
        raise UnclearError(
            f"the request is encoded as `{encoding[:40]}`; send it as it is, or with gzip, deflate or zstd"
        )
    inside = Unpacking(encoding, limit)
    found = b"".join(inside.feed(body))
    if not inside.is_whole:
        raise UnclearError("the compressed request breaks off")
    return found
