"""JSON by its places: nothing but what was taken out changes, and what can be read in two ways is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extgate.enforce.wire import spans
from extgate.enforce.wire.spans import Edits, Span, UnclearError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
SPELLINGS = st.sampled_from(
    [{"ensure_ascii": True}, {"ensure_ascii": False}, {"indent": 2}, {"separators": (" ,\t", " :\r\n")}]
)


def spelled(value: Any, how: dict[str, Any]) -> bytes:
    return json.dumps(value, **how).encode("utf-8", "surrogatepass")


@given(st.lists(JSON, max_size=8), st.sets(st.integers(0, 7)), SPELLINGS)
def test_what_is_left_of_a_list_is_the_list_without_the_dropped(
    rows: list[Any], dropped: set[int], how: dict[str, Any]
) -> None:
    data = spelled(rows, how)
    places = spans.rows(data, spans.checked(data))
    assert [json.loads(data[slice(*place)]) for place in places] == rows
    edits = Edits(data)
    edits.drop(places, {at for at in dropped if at < len(rows)})
    left = [row for at, row in enumerate(rows) if at not in dropped]
    assert json.loads(edits.applied()) == left
    assert edits.applied() is data or len(left) < len(rows)


@given(st.dictionaries(st.text(), JSON, max_size=8), st.sets(st.integers(0, 7)), SPELLINGS)
def test_what_is_left_of_an_object_is_the_object_without_the_dropped(
    found: dict[str, Any], dropped: set[int], how: dict[str, Any]
) -> None:
    data = spelled(found, how)
    if len({key.upper().casefold() for key in found}) < len(found):
        with pytest.raises(UnclearError, match="letter case"):
            spans.fields(data, spans.checked(data))
        return
    places = spans.fields(data, spans.checked(data))
    assert {key: json.loads(data[slice(*place.span)]) for key, place in places.items()} == found
    edits = Edits(data)
    edits.drop(list(places.values()), {at for at in dropped if at < len(found)})
    left = {key: value for at, (key, value) in enumerate(found.items()) if at not in dropped}
    assert list(json.loads(edits.applied()).items()) == list(left.items())


@given(st.text(), st.data(), st.booleans())
def test_a_text_loses_what_is_cut_and_keeps_its_spelling(text: str, data: st.DataObject, is_ascii: bool) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    places = places[: len(places) // 2 * 2]
    cuts = [(start, end, "é\n") for start, end in zip(places[::2], places[1::2], strict=True)]
    spelling = json.dumps(text, ensure_ascii=is_ascii).encode()
    made = spans.cut_text(spelling, Span(0, len(spelling)), cuts)
    wanted, at = "", 0
    for start, end, new in cuts:
        wanted, at = wanted + text[at:start] + new, end
    assert json.loads(made) == wanted + text[at:]
    assert cuts or made == spelling


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}', b'{"a":1,"a":2}', b'{"a":12,"a":1}', b'{"a":1,"b":2,"a":1}', b'{"a":1,"a":1,"b":1}',
        b'{"a":1,"\\u0061":1}', b'{"name":1,"Name":1}', b'{"a":1,"a" : 1 }', b'{"a":[],"a":[],"a":[]}',
    ],
)  # fmt: skip
def test_a_key_that_stands_twice_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearError):
        spans.fields(data, spans.checked(data))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"1", b'"a"', b"{", b"{}x", b"{'a':1}", b'{"a":NaN}', b'{"a":01}', b'{"a":1,}', b'{"a":"\x01"}',
        b'{"\\ud800":1}', b'{"a":/**/1}', b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(14),
)  # fmt: skip
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearError):
        spans.fields(data, spans.checked(data))


@pytest.mark.parametrize(
    "data", [b'{"a":"\xff"}', b"\xef\xbb\xbf{}", b'{"a":"\xed\xa0\x80"}', '{"a":1}'.encode("utf-16")]
)
def test_text_that_is_not_plain_utf_8_is_refused(data: bytes) -> None:
    with pytest.raises(UnclearError):
        spans.fields(data, spans.checked(data))


def test_half_a_surrogate_pair_is_refused_where_it_is_read() -> None:
    data = b'{"a":"\\ud800"}'
    with pytest.raises(UnclearError):
        spans.text_of(data, spans.fields(data, spans.checked(data)), "a")


def test_huge_numbers_are_left_as_they_are() -> None:
    data = b'{"a":1e999999,"b":' + b"9" * 5000 + b',"c":0}'
    places = spans.fields(data, spans.checked(data))
    edits = Edits(data)
    edits.drop(list(places.values()), {2})
    assert edits.applied() == data.replace(b',"c":0', b"")


@pytest.mark.parametrize("other", ["TOOLS", "too\u017f", "tool\u017f", "TooLS"])
def test_keys_that_some_parsers_take_for_one_are_refused(other: str) -> None:
    data = json.dumps({"tools": 1, "toos": 2, other: 3}).encode()
    with pytest.raises(UnclearError, match="letter case"):
        spans.fields(data, spans.checked(data))
