"""What `extgate check` says of what was applied: the rules in order, and accounts that cannot be looked at."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from extgate.applied.account import Account, all_accounts
from extgate.applied.drift import edits, hooks, servers, stale
from extgate.applied.drift.look import Look
from extgate.applied.runtimes import PLANS
from extgate.core.extension import Finding
from extgate.core.names import show
from extgate.errors import UNFORESEEN, ExtgateError
from extgate.homes import Homes

RULES: tuple[Callable[[Look], Iterator[Finding]], ...] = (edits.check, hooks.check, servers.check)
LAST = stale.check
"""Asked only where the others find nothing: another `apply` puts all of it right."""
CODES = ("EG094",)


def drift(homes: Homes) -> tuple[Finding, ...]:
    """Every finding about what this user applied for the agents of a workspace."""
    found = [one for runtime in PLANS for account in all_accounts(runtime) for one in _of(account, homes)]
    return tuple(dict.fromkeys(found))


def _of(account: Account | ExtgateError, homes: Homes) -> Iterator[Finding]:
    if isinstance(account, ExtgateError):
        yield _unknown("what `extgate apply` wrote cannot be told", account, getattr(account, "file", None))
        return
    facts, root = account.facts, os.path.realpath(homes.root)
    if os.path.realpath(str(facts.get("workspace"))) != root or not os.path.isdir(str(facts.get("project"))):
        return
    look = Look(account=account, root=homes.root)
    try:
        found = [finding for rule in RULES for finding in rule(look)]
        yield from found or LAST(look)
    except (ExtgateError, OSError, *UNFORESEEN) as error:
        name = f"what was applied to {look.runtime} for `{show(look.agent)}` cannot be judged"
        yield _unknown(name, error, getattr(error, "file", None), f"mend it, or run `{look.command} --undo`")


def _unknown(what: str, error: Exception, file: str | None, fix: str = "put the files back by hand") -> Finding:
    told = getattr(error, "message", str(error))
    return Finding(code="EG094", message=f"{what}: {show(told)[:500]}", file=file, fix=fix, severity="error")
