"""Streams of events: the same frames however the bytes are split, and no frame that parsers read in two ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.enforce.wire.events import Frame, Frames, frame
from extgate.enforce.wire.spans import UnclearError

LINES = st.sampled_from([b"data: a", b"data:b", b"event: x", b": c", b"id: 1", b"", b"data", b"retry: 5"])
ENDS = st.sampled_from([b"\n", b"\r\n"])


def all_at_once(data: bytes) -> list[Frame]:
    frames = Frames(10_000)
    return [*frames.feed(data), *frames.close()]


@given(st.lists(st.tuples(LINES, ENDS), max_size=12), st.lists(st.integers(1, 5), min_size=1, max_size=9))
def test_any_split_gives_the_same_frames_and_loses_no_byte(lines: list[tuple[bytes, bytes]], sizes: list[int]) -> None:
    data = b"".join(line + end for line, end in lines)
    frames, found, at = Frames(10_000), [], 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        found += frames.feed(data[at : at + size])
        at += size
    found += frames.close()
    assert found == all_at_once(data)
    assert b"".join(one.raw for one in found).strip() == data.strip()


def test_an_events_data_is_all_of_its_lines() -> None:
    (found,) = all_at_once(b"event: e\r\ndata: a\r\ndata:  b\r\n\r\n")
    assert (found.kind, found.data) == ("e", b"a\n b")
    assert [(e.kind, e.data) for e in all_at_once(frame("e", found.data))] == [("e", b"a\n b")]


def test_what_is_left_at_the_end_is_a_frame_because_some_parsers_take_it_for_one() -> None:
    assert [one.data for one in all_at_once(b"data: a\n\ndata: b")] == [b"a", b"b"]


@pytest.mark.parametrize("data", [b"data: a\rdata: b\n\n", b"data: a\r\r\n\n", b"data: a\n\rdata: b\n\n"])
def test_a_lone_carriage_return_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearError):
        all_at_once(data)


def test_a_byte_order_mark_at_the_begin_is_refused() -> None:
    with pytest.raises(UnclearError):
        all_at_once(b"\xef\xbb\xbfdata: a\n\n")


@pytest.mark.parametrize("data", [b"data: a\x0bdata: b\n\n", b"data: \x00\n\n", b"data: tool\x80_calls\n\n"])
def test_what_clients_decode_each_in_their_way_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearError):
        all_at_once(data)


@pytest.mark.parametrize("size", [1, 64, 5000])
def test_an_event_without_an_end_is_refused_before_it_fills_the_memory(size: int) -> None:
    frames = Frames(1000)
    for _ in range(1000 // size):
        assert frames.feed(b"x" * size) == []
    with pytest.raises(UnclearError):
        frames.feed(b"x" * size)
