"""Compressed bodies are read in every format that clients send, and none of them becomes more than its limit."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.enforce.wire.packed import PIECE, Unpacking, unpacked
from extgate.enforce.wire.spans import UnclearError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


def raw(data: bytes) -> bytes:
    """Deflate without zlib's frame, as some senders understand `deflate`."""
    made = zlib.compressobj(wbits=-15)
    return made.compress(data) + made.flush()


PACKERS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gzip", gzip.compress), ("deflate", zlib.compress), ("deflate", raw), ("zstd", zstd.compress),
]  # fmt: skip


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
@given(data=st.binary(max_size=300), at=st.integers(0, 400))
def test_a_body_is_the_same_at_any_split(encoding: str, pack: Callable[[bytes], bytes], data: bytes, at: int) -> None:
    packed, inside = pack(data), Unpacking(encoding, 1000)
    found = [*inside.feed(packed[:at]), *inside.feed(packed[at:])]
    assert (b"".join(found), inside.is_whole) == (data, True)


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
def test_a_body_that_would_become_too_long_is_refused_before_it_is(
    encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(bytes(64 * PIECE))
    assert len(packed) < PIECE // 8
    with pytest.raises(UnclearError, match="longer than"):
        unpacked(packed, encoding, 2 * PIECE)
    assert all(len(piece) <= PIECE for piece in Unpacking(encoding, 64 * PIECE).feed(packed))


@pytest.mark.parametrize(("encoding", "pack"), PACKERS)
def test_what_breaks_off_or_goes_on_is_refused(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(b"what was said, " * 9)
    for wrong in (packed[:-1], packed[:1], packed + b"x", packed + packed, b"\xff" + packed, b""):
        with pytest.raises(UnclearError):
            unpacked(wrong, encoding, 1000)


def test_a_window_that_few_can_hold_is_refused() -> None:
    options = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.enable_long_distance_matching: 1}
    made = zstd.ZstdCompressor(options=options)
    packed = made.compress(b"x" * 100_000) + made.flush()
    with pytest.raises(UnclearError, match="cannot be unpacked"):
        unpacked(packed, "zstd", 2**20)


@pytest.mark.parametrize("encoding", ["br", "gzip, zstd", "compress", "aws-chunked"])
def test_another_encoding_is_refused_by_name(encoding: str) -> None:
    with pytest.raises(UnclearError, match=f"`{encoding}`"):
        unpacked(b"{}", encoding, 1000)


def test_names_of_encodings_have_no_case() -> None:
    assert unpacked(gzip.compress(b"{}"), " GZip ", 10) == unpacked(b"{}", "Identity", 10) == b"{}"
