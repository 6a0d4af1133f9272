"""The account of what was written where: kept outside of projects, so that it can be taken back to the byte.

One folder for each runtime and place, 0700, with `account.json` and a copy of each file as it was before. Where a file
is as it was left, its copy comes back; where somebody edited it since, only what was put in is taken out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from extgate.applied.puts import Done, Put, put_all, take_back
from extgate.applied.trees import Form, edit
from extgate.errors import WorkspaceError
from extgate.settings import user_state_dir

FORMAT = 1
MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePlan:
    """What one file shall hold: further values, or all of its text."""

    path: Path
    form: Form = "json"
    puts: tuple[Put, ...] = ()
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file as it was left. before: its text then; None when it was not there. text: written as a whole."""

    path: Path
    form: Form
    before: str | None
    digest: str
    done: tuple[Done, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file as it is and as it will be; None: not there. kept: what somebody changed since, and is left to them."""

    path: Path
    now: str | None
    then: str | None
    entry: Entry | None
    kept: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        return self.now != self.then


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Everything that was written for one runtime at one place. facts: what the caller wants to know again."""

    folder: Path
    entries: tuple[Entry, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return (self.folder / "account.json").exists()


def account_of(runtime: str, place: Path) -> Account:
    """The account of a runtime at a place (a project, or the runtime's folder in a home). Raises WorkspaceError."""
    key = hashlib.sha256(f"{runtime}\0{os.path.realpath(place)}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return _opened(user_state_dir() / "applied" / f"{runtime}-{key}")


def _opened(folder: Path) -> Account:
    file = folder / "account.json"
    if not file.exists():
        return Account(folder=folder)
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        entries = tuple(_entry(folder, row) for row in data["entries"])
        return Account(folder=folder, entries=entries, facts=data["facts"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        fix = "put the files back by hand from the copies beside it"
        raise WorkspaceError(f"cannot be read ({error})", file=str(file), fix=fix) from None


def without_ours(account: Account, path: Path) -> str:
    """A file's text as if nothing had been written there; empty when there is no file. Raises WorkspaceError."""
    real = Path(os.path.realpath(path))
    entry = next((entry for entry in account.entries if entry.path == real), None)
    return _without(entry, text_of(real))[0] or ""


def accounts_of(runtime: str) -> list[Account]:
    """Every open account of a runtime, by this user; one that cannot be read is left out."""
    return [found for found in all_accounts(runtime) if isinstance(found, Account)]


def all_accounts(runtime: str) -> Iterator[Account | WorkspaceError]:
    """The same with the reason for each that cannot be read."""
    for file in sorted((user_state_dir() / "applied").glob(f"{runtime}-*/account.json")):
        try:
            yield _opened(file.parent)
        except WorkspaceError as error:
            yield error


def changes(account: Account, plans: Iterable[FilePlan]) -> list[Change]:
    """What has to be written so that the files hold the plans, and nothing that was written before. Writes nothing."""
    planned = {Path(os.path.realpath(plan.path)): plan for plan in plans}
    known = {entry.path: entry for entry in account.entries}
    found = []
    for path in dict.fromkeys((*known, *planned)):
        now = text_of(path)
        base, kept = _without(known.get(path), now)
        plan = planned.get(path)
        then, entry = (base, None) if plan is None else _with(path, plan, base)
        found.append(Change(path=path, now=now, then=then, entry=entry, kept=kept))
    return found


def carry_out(account: Account, made: Iterable[Change], facts: Mapping[str, Any] | None) -> None:
    """Writes the changes and the account of them. facts: None closes the account. Raises OSError."""
    made = list(made)
    if facts is not None:
        _save(replace(account, entries=tuple(change.entry for change in made if change.entry), facts=facts))
    for change in made:
        if not change.is_one:
            continue
        if change.then is None:
            change.path.unlink(missing_ok=True)
        else:
            write(change.path, change.then)
    if facts is None:
        shutil.rmtree(account.folder, ignore_errors=True)


def write(path: Path, text: str) -> None:
    """Replaces a file whole, with the mode that it had."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8", "surrogateescape"))
    if path.exists():
        shutil.copymode(path, name)
    else:
        os.chmod(name, 0o644 & ~_umask())
    os.replace(name, path)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def text_of(path: Path) -> str | None:
    """The text, to the byte; None when there is no file. Raises WorkspaceError for what is no file of text."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise WorkspaceError(f"cannot be read ({error.strerror})", file=str(path)) from None
    if len(data) > MAX_BYTES:
        raise WorkspaceError(f"is larger than {MAX_BYTES:,} bytes", file=str(path))
    return data.decode("utf-8", "surrogateescape")


def digest(text: str | None) -> str:
    return "" if text is None else hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _without(entry: Entry | None, now: str | None) -> tuple[str | None, tuple[str, ...]]:
    """The file's text as if nothing had been written there, and what cannot be taken out because it was edited."""
    if entry is None:
        return now, ()
    if now is None or digest(now) == entry.digest:
        return (None if now is None and entry.is_whole else entry.before if now is not None else None), ()
    if entry.is_whole:
        return entry.before, ("what was edited in it",)
    editor = edit(now, entry.form, str(entry.path))
    kept = take_back(editor, entry.done)
    is_gone = entry.before is None and editor.get(()) == {}
    return (None if is_gone else editor.text), tuple(kept)


def _with(path: Path, plan: FilePlan, base: str | None) -> tuple[str | None, Entry | None]:
    if plan.text is not None:
        entry = Entry(path=path, form=plan.form, before=base, digest=digest(plan.text), is_whole=True)
        return plan.text, entry
    editor = edit(base or "", plan.form, str(path))
    try:
        done = put_all(editor, plan.puts)
    except WorkspaceError as error:
        raise WorkspaceError(error.message, file=str(path), fix=error.fix) from None
    if not done:
        return base, None
    text = editor.text
    return text, Entry(path=path, form=plan.form, before=base, digest=digest(text), done=tuple(done))


def _entry(folder: Path, row: Mapping[str, Any]) -> Entry:
    copy = row["copy"]
    before = None if copy is None else (folder / copy).read_bytes().decode("utf-8", "surrogateescape")
    if before is not None and digest(before) != row["copy_digest"]:
        raise ValueError(f"the copy {copy} was changed")
    done = tuple(Done.of(one) for one in row["done"])
    return Entry(
        path=Path(row["path"]), form=row["form"], before=before, digest=row["digest"], done=done,
        is_whole=row["is_whole"],
    )  # fmt: skip


def _save(account: Account) -> None:
    folder = account.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(folder, 0o700)
    rows = []
    for number, entry in enumerate(account.entries):
        copy = None if entry.before is None else f"{number}-{digest(entry.before)[:12]}-{entry.path.name}"
        if copy is not None and entry.before is not None:
            _private(folder / copy, entry.before.encode("utf-8", "surrogateescape"))
        rows.append({
            "path": str(entry.path), "form": entry.form, "copy": copy, "copy_digest": digest(entry.before),
            "digest": entry.digest, "done": [one.as_dict() for one in entry.done], "is_whole": entry.is_whole,
        })  # fmt: skip
    data = {"format": FORMAT, "facts": dict(account.facts), "entries": rows}
    _private(folder / "account.json", json.dumps(data, indent=1).encode())
    wanted = {row["copy"] for row in rows} | {"account.json"}
    for old in _files(folder):
        if old.name not in wanted:
            with contextlib.suppress(OSError):
                old.unlink()


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.iterdir()) if path.is_file())


def _private(path: Path, data: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(name, path)
