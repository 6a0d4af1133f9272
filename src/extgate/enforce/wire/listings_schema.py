"""What the description and the schema of a tool list that starts skills or agents."""

from __future__ import annotations

from functools import partial

from extgate.enforce.wire import parts, spans
from extgate.enforce.wire.judge import Entry
from extgate.enforce.wire.listings import DESCRIBED, entries_of
from extgate.enforce.wire.listings_tagged import all_sections, quoted
from extgate.enforce.wire.reading import Reading
from extgate.enforce.wire.spans import Fields

_NAMES = ("name", "skill", "skill_name", "subagent_type", "agent_type", "agent_name", "agent")
_SCHEMAS = ("parameters", "parametersJsonSchema", "parameters_json_schema")


def describe(reading: Reading, found: Fields, name: str) -> None:
    """Adds what the tool of this name lists to a reading. found: the tool's keys."""
    kinds = DESCRIBED.get(name)
    if kinds is None:
        return
    properties: Fields = {}
    for key in _SCHEMAS:
        if key in found and spans.is_object(reading.data, found[key].span):
            properties |= parts.inner(reading.data, parts.inner(reading.data, found, key), "properties")
    for key in _NAMES:
        if key in properties and spans.is_object(reading.data, properties[key].span):
            _choices(reading, parts.inner(reading.data, properties, key), kinds)
    text = parts.word(reading.data, found, "description")
    if text:
        listed = all_sections(text) or quoted(text, kinds) or entries_of(text, kinds, properties)
        reading.add_text(found["description"].span, text, listed)


def _choices(reading: Reading, found: Fields, kinds: tuple[str, ...]) -> None:
    """The names that an argument may have; without any left it is not limited, and no name of it can be called."""
    rows = parts.listed(reading.data, found, "enum")
    group = reading.group(rows, partial(reading.drop_keys, found, ("enum",)))
    for at, row in enumerate(rows):
        if spans.is_text(reading.data, row):
            group.add(at, Entry(spans.text(reading.data, row), kinds))
