"""deepagents' files behind the gate: what a skill's folder or a policy file holds is neither opened, listed nor found.

The file tools, the skills middleware and whatever else deepagents reads go through a backend; a copy of it, of a class
made from its own, asks first. Backends on a disk only: others hold no file of the workspace. A shell (`execute`) reads
the disk by itself, and is not closed by this.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import deepagents.backends.protocol as protocol
from deepagents.backends import CompositeBackend, FilesystemBackend

from extgate.enforce.guarded_paths import Action, GuardedPaths

_PATHS = "_extgate_paths"
_WRITING = ("write", "edit", "delete", "upload_files")
_FINDING = ("ls", "glob", "grep", "ls_info", "glob_info", "grep_raw")
_MANY = ("upload_files", "download_files")
_ONE = (*_FINDING, "read", "write", "edit", "delete")
"""A backend's operations, of deepagents 0.4.8 (`*_info`, `*_raw`) to 0.7.32; each has an asynchronous form `a…`."""
_RESULTS = {"ls": "LsResult", "glob": "GlobResult", "grep": "GrepResult", "read": "ReadResult"}
_RESULTS |= {"write": "WriteResult", "edit": "EditResult", "delete": "DeleteResult"}


def gated_backend(backend: Any, guard: Callable[[Path], GuardedPaths]) -> Any:
    """The backend behind guarded paths. guard: from the folder that a backend's paths are in."""
    if isinstance(backend, CompositeBackend):
        gated = copy.copy(backend)
        gated.default = gated_backend(backend.default, guard)
        gated.routes = {prefix: gated_backend(route, guard) for prefix, route in backend.routes.items()}
        gated.sorted_routes = sorted(gated.routes.items(), key=lambda row: len(row[0]), reverse=True)
        return gated
    if isinstance(backend, FilesystemBackend):
        guarded: Any = copy.copy(backend)
        guarded.__dict__[_PATHS] = guard(backend.cwd)
        guarded.__class__ = _guarded_class(type(backend))
        return guarded
    if callable(backend) and not isinstance(backend, protocol.BackendProtocol):
        return lambda runtime: gated_backend(backend(runtime), guard)
    return backend


@cache
def _guarded_class(made_from: type) -> type:
    names: dict[str, Any] = {"__module__": made_from.__module__, "__qualname__": made_from.__qualname__}
    for operation in (*_ONE, *_MANY):
        wrap = _many if operation in _MANY else _one
        for name in (operation, f"a{operation}"):
            if method := getattr(made_from, name, None):
                names[name] = wrap(method, operation)
    return type(made_from.__name__, (made_from,), names)


def _one(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    """An operation on one path, or one that finds paths."""
    signature = inspect.signature(method)
    action: Action = "write" if operation in _WRITING else "read"

    def refusal(backend: Any, args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
        given = signature.bind(backend, *args, **options).arguments
        paths = [given.get("file_path"), given.get("path"), given.get("pattern") if "glob" in operation else None]
        guarded: GuardedPaths = getattr(backend, _PATHS)
        return next((why for p in paths if p is not None and (why := guarded.refusal(p, action))), None)

    def open_part(backend: Any, result: Any) -> Any:
        return _open_part(result, getattr(backend, _PATHS)) if operation in _FINDING else result

    if inspect.iscoroutinefunction(method):

        @functools.wraps(method)
        async def asynchronous(self: Any, *args: Any, **options: Any) -> Any:
            why = refusal(self, args, options)
            return _refused(operation, why) if why else open_part(self, await method(self, *args, **options))

        return asynchronous

    @functools.wraps(method)
    def synchronous(self: Any, *args: Any, **options: Any) -> Any:
        why = refusal(self, args, options)
        return _refused(operation, why) if why else open_part(self, method(self, *args, **options))

    return synchronous


def _many(method: Callable[..., Any], operation: str) -> Callable[..., Any]:
    """An operation on a list of paths, or of (path, content); the answers keep their order."""
    action: Action = "write" if operation in _WRITING else "read"
    answer = protocol.FileUploadResponse if operation == "upload_files" else protocol.FileDownloadResponse

    def split(backend: Any, files: list[Any]) -> tuple[list[Any], dict[int, Any]]:
        guarded: GuardedPaths = getattr(backend, _PATHS)
        paths = [file if isinstance(file, str) else file[0] for file in files]
        closed = {
            at: answer(path=p, error="permission_denied") for at, p in enumerate(paths) if guarded.refusal(p, action)
        }
        return [file for at, file in enumerate(files) if at not in closed], closed

    def merged(files: list[Any], closed: dict[int, Any], answers: list[Any]) -> list[Any]:
        left = iter(answers)
        return [closed[at] if at in closed else next(left) for at in range(len(files))]

    if inspect.iscoroutinefunction(method):

        async def asynchronous(self: Any, files: list[Any]) -> Any:
            is_open, closed = split(self, files)
            return merged(files, closed, await method(self, is_open) if is_open else [])

        return asynchronous

    def synchronous(self: Any, files: list[Any]) -> Any:
        is_open, closed = split(self, files)
        return merged(files, closed, method(self, is_open) if is_open else [])

    return synchronous


def _open_part(result: Any, guarded: GuardedPaths) -> Any:
    """What was found, without what lies in closed places."""
    if isinstance(result, list):
        is_open = set(guarded.open_ones({str(row["path"]) for row in result}))
        return [row for row in result if str(row["path"]) in is_open]
    for name in ("entries", "matches"):
        rows = getattr(result, name, None)
        if isinstance(rows, list) and is_dataclass(result) and not isinstance(result, type):
            result = replace(result, **{name: _open_part(rows, guarded)})
    return result


def _refused(operation: str, why: str) -> Any:
    """A refusal in the form of the operation's own errors."""
    kinds: Mapping[str, Any] = vars(protocol)
    result = kinds.get(_RESULTS.get(operation, ""))
    if result is not None:
        return result(error=why)
    return [] if operation in ("ls_info", "glob_info") else why if operation == "grep_raw" else f"Error: {why}"
