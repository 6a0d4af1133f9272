"""TOML and YAML under edit, comments and order kept: by tomlkit and ruamel.yaml, each loaded when it is needed."""

from __future__ import annotations

import copy
import io
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Literal, Protocol

from extgate.applied.jsonc_text import MISSING, JsoncText
from extgate.errors import WorkspaceError

Form = Literal["json", "toml", "yaml"]


class Editor(Protocol):
    """A document under edit; `keys` lead to a value from the top."""

    @property
    def text(self) -> str: ...
    def get(self, keys: Sequence[str]) -> Any: ...
    def put(self, keys: Sequence[str], value: object) -> None: ...
    def remove(self, keys: Sequence[str]) -> None: ...
    def append(self, keys: Sequence[str], items: Iterable[object]) -> None: ...
    def drop(self, keys: Sequence[str], items: Iterable[object]) -> None: ...


def edit(text: str, form: Form, file: str) -> Editor:
    """The document of a text. Raises WorkspaceError when it is none, or the library that edits it is not installed."""
    if form == "json":
        return JsoncText(text, file)
    return _Toml(text, file) if form == "toml" else _Yaml(text, file)


class _Tree:
    """Edits a tree of mappings and lists that remembers how it was written."""

    _root: MutableMapping[str, Any]

    def __init__(self, file: str) -> None:
        self._file = file

    def get(self, keys: Sequence[str]) -> Any:
        found: Any = self._root
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                return MISSING
            found = found[key]
        return plain(found)

    def put(self, keys: Sequence[str], value: object) -> None:
        place = self._root
        for depth, key in enumerate(keys[:-1], 1):
            if key not in place:
                place[key] = self._table()
            place = place[key]
            if not isinstance(place, MutableMapping):
                raise WorkspaceError(f"`{'.'.join(keys[:depth])}` is no mapping", file=self._file)
        place[keys[-1]] = self._made(value)

    def remove(self, keys: Sequence[str]) -> None:
        place: Any = self._root
        for key in keys[:-1]:
            place = place.get(key, {}) if isinstance(place, Mapping) else {}
        if isinstance(place, MutableMapping):
            place.pop(keys[-1], None)

    def append(self, keys: Sequence[str], items: Iterable[object]) -> None:
        found = self._list(keys)
        for item in items:
            found.append(self._made(item))

    def drop(self, keys: Sequence[str], items: Iterable[object]) -> None:
        found = self._list(keys)
        for item in items:
            at = [index for index, other in enumerate(found) if plain(other) == item]
            if at:
                del found[at[-1]]

    def _list(self, keys: Sequence[str]) -> Any:
        found: Any = self._root
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, list):
            raise WorkspaceError(f"`{'.'.join(keys)}` is no list", file=self._file)
        return found

    def _table(self) -> MutableMapping[str, Any]:
        return {}

    def _made(self, value: object) -> Any:
        return copy.deepcopy(value)


class _Toml(_Tree):
    def __init__(self, text: str, file: str) -> None:
        super().__init__(file)
        try:
            import tomlkit
        except ImportError:
            raise _no("tomlkit") from None
        self._kit = tomlkit
        try:
            self._root = tomlkit.parse(text)
        except ValueError as error:
            raise WorkspaceError(f"is not TOML ({error})", file=file, fix="mend it first") from None

    @property
    def text(self) -> str:
        return str(self._kit.dumps(self._root))

    def _table(self) -> MutableMapping[str, Any]:
        return self._kit.table(is_super_table=True)

    def _made(self, value: object) -> Any:
        if isinstance(value, Mapping):
            table = self._kit.table()
            for key, item in value.items():
                table[key] = self._made(item)
            return table
        if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            tables = self._kit.aot()
            for item in value:
                tables.append(self._made(item))
            return tables
        return copy.deepcopy(value)


class _Yaml(_Tree):
    def __init__(self, text: str, file: str) -> None:
        super().__init__(file)
        try:
            from ruamel.yaml import YAML
            from ruamel.yaml.error import YAMLError
        except ImportError:
            raise _no("ruamel.yaml") from None
        self._yaml = YAML()
        self._yaml.preserve_quotes = True
        self._yaml.width = 4096
        try:
            found = self._yaml.load(text)
        except YAMLError as error:
            told = str(error).partition("\n")[0]
            raise WorkspaceError(f"is not YAML ({told})", file=file, fix="mend it first") from None
        if found is not None and not isinstance(found, MutableMapping):
            raise WorkspaceError("is no mapping", file=file)
        self._root = found if found is not None else self._yaml.map()

    @property
    def text(self) -> str:
        stream = io.StringIO()
        self._yaml.dump(self._root, stream)
        return stream.getvalue()


def plain(value: Any) -> Any:
    """The value as JSON has it, without what a library keeps beside it."""
    value = value.unwrap() if hasattr(value, "unwrap") else value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _no(package: str) -> WorkspaceError:
    return WorkspaceError(f"the package `{package}` is not installed, which edits this file; install extgate[apply]")
