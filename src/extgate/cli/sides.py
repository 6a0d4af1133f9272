"""The two sides of a comparison: a profile file, an agent's id, a folder, or either in a git revision."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from extgate.analysis.diff import Side
from extgate.errors import WorkspaceError
from extgate.shapes import finding_line
from extgate.workspace import Agent, Workspace, read_agent_file

MAX_FILES, MAX_BYTES = 20_000, 1 << 20
"""Files of a revision's folder that are looked at, and bytes of one; larger ones are no policies and left out."""


@contextmanager
def both_sides(workspace: Workspace, old: str, new: str) -> Iterator[tuple[dict[str, Side], dict[str, Side]]]:
    """The agents of both sides by id; where each side is one agent, both under one name.

    Raises WorkspaceError for what is neither a file, a folder, an agent, nor `REV:path`.
    """
    with tempfile.TemporaryDirectory(prefix="extgate-") as place:
        found = [_agents(workspace, text, Path(place) / str(at)) for at, text in enumerate((old, new))]
        one, other = ({agent.id: _side(agent) for agent in agents} for agents, _ in found)
        (_, is_one), (_, is_other_one) = found
        if is_one and is_other_one:
            one = dict(zip(other, one.values(), strict=True))
        elif is_one or is_other_one:
            names = one if is_one else other
            one, other = ({name: side for name, side in sides.items() if name in names} for sides in (one, other))
        yield one, other


def _side(agent: Agent) -> Side:
    error = "; ".join(finding_line(error) for error in agent.errors)
    return Side(profile=agent.profile, file=agent.file, error=error)


def _agents(workspace: Workspace, text: str, place: Path) -> tuple[tuple[Agent, ...], bool]:
    """The agents that the text means, and whether it means just one."""
    path = Path(text)
    if path.is_file():
        return (read_agent_file(path, text),), True
    if path.is_dir():
        return _of_folder(path), False
    if any(agent.id == text for agent in (*workspace.agents, *workspace.natives)):
        return (workspace.agent(text),), True
    revision, colon, inside = text.partition(":")
    if not colon or not revision or revision.startswith("-"):
        fix = "name a file, a folder, an agent's id, or `REV:path` of a git revision"
        raise WorkspaceError(f"`{text}` is none of these here", fix=fix)
    return _of_revision(workspace.homes.root, revision, inside, place)


def _of_folder(path: Path) -> tuple[Agent, ...]:
    workspace = Workspace.open(path)
    return (*workspace.agents, *workspace.natives)


def _of_revision(root: Path, revision: str, inside: str, place: Path) -> tuple[tuple[Agent, ...], bool]:
    spec = f"{revision}:{inside}"
    kind = _git(root, "cat-file", "-t", spec).decode().strip()
    place.mkdir()
    if kind == "blob":
        file = place / PurePosixPath(inside).name
        file.write_bytes(_git(root, "cat-file", "blob", spec))
        return (read_agent_file(file, inside),), True
    _check_out(root, spec, place)
    return _of_folder(place), False


def _check_out(root: Path, spec: str, place: Path) -> None:
    """Writes a revision's folder, without links that lead out of it."""
    rows = [row for row in _git(root, "ls-tree", "-r", "-z", "-l", "--full-tree", spec).split(b"\0") if row]
    if len(rows) > MAX_FILES:
        raise WorkspaceError(f"`{spec}` holds more than {MAX_FILES:,} files", fix="name a folder in it")
    files: list[tuple[Path, bytes, bytes]] = []
    for row in rows:
        facts, _, name = row.partition(b"\t")
        mode, kind, digest, size = facts.split()
        if kind == b"blob" and int(size) <= MAX_BYTES:
            files.append((place / os.fsdecode(name), mode, digest))
    bodies = _blobs(root, [digest for _, _, digest in files])
    for (path, mode, _), body in zip(files, bodies, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode != _LINK:
            path.write_bytes(body)
    for (path, mode, _), body in zip(files, bodies, strict=True):
        to = (path.parent / os.fsdecode(body)).resolve() if mode == _LINK else None
        if to and to.exists() and to.is_relative_to(place.resolve()):
            path.symlink_to(to)


_LINK = b"120000"


def _blobs(root: Path, digests: Iterable[bytes]) -> list[bytes]:
    """What these objects hold, in order."""
    wanted = b"".join(digest + b"\n" for digest in digests)
    out, at, bodies = _git(root, "cat-file", "--batch", given=wanted), 0, []
    while at < len(out):
        end = out.index(b"\n", at)
        size = int(out[at:end].split()[2])
        bodies.append(out[end + 1 : end + 1 + size])
        at = end + size + 2
    return bodies


def _git(root: Path, *words: str, given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], input=given, capture_output=True, check=False)
    except OSError as error:
        raise WorkspaceError(f"git cannot be run: {error}", fix="install git, or name files and folders") from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no such revision"]
        raise WorkspaceError(f"git: {lines[-1]}", file=str(root), fix="name a revision and a path, as `HEAD:agents`")
    return done.stdout
