"""Every decision for one agent over one inventory: what `explain`, the gate and the doors all ask."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from extgate.core.decide import CompiledProfile, Decision, Step, Verdict, judge
from extgate.core.extension import Extension, Inventory
from extgate.core.names import Naming, shown_name
from extgate.core.patterns import matches, nfc
from extgate.core.policy import STRICTNESS, Profile
from extgate.core.require import Availability, availability

MAX_URI = 8192
"""A longer resource URI is refused, in characters."""


_MEMO = 20_000
"""Decisions kept beyond those of the inventory, so that late names cannot fill the memory."""


class Decider:
    """One agent's answers over one inventory. Answers without arguments are computed once each.

    has_approver: whether somebody can answer an `ask`; without, `ask` hides and refuses.
    """

    def __init__(
        self,
        profile: Profile,
        inventory: Inventory,
        *,
        has_approver: bool = False,
        compiled: CompiledProfile | None = None,
    ) -> None:
        self.profile = profile
        self.inventory = inventory
        self.has_approver = has_approver
        self.compiled = compiled or CompiledProfile(profile)
        self.naming = Naming(inventory.extensions)
        self._memo: dict[int, Decision] = {}

    @cached_property
    def availability(self) -> Availability:
        return availability(self.profile, self.inventory)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """One decision for each installed extension, by kind, then id."""
        return tuple(self.decide(ext) for ext in self.inventory.extensions)

    @cached_property
    def _reads_arguments(self) -> bool:
        """Whether what a call is given can make a difference."""
        return any(rule.when for policy in self.profile.policies for rule in policy.rules)

    def decide(self, ext: Extension, args: Mapping[str, Any] | None = None) -> Decision:
        """The answer for one item; for one call of it when `args` are given."""
        found = self._memo.get(id(ext))
        if args is not None:
            if found is not None and found.extension is ext and not self._reads_arguments:
                return found
            return self._decision(ext, judge(self.compiled, self.naming, ext, args))
        if found is None or found.extension is not ext:
            found = self._decision(ext, judge(self.compiled, self.naming, ext))
            if len(self._memo) >= _MEMO + len(self.inventory.extensions):
                self._memo.clear()
            self._memo[id(ext)] = found
        return found

    def decide_uri(self, server: str, uri: str) -> Decision:
        """The answer for reading one resource: every form of the URI must be allowed, any form denied denies.

        A URI that the server neither lists nor covers by a template is refused.
        """
        ext = Extension(kind="mcp_resource", server=server, name=uri)
        owners = [e for e in self.inventory.of_kind("mcp_resource") if e.server == server and covers(e, uri)]
        if len(uri) > MAX_URI or not owners:
            why = "longer than is read" if len(uri) > MAX_URI else "not among the server's resources and templates"
            step = Step(text="resource", outcome="decides", effect="deny")
            reason = f"'{shown_name(ext)[:200]}' is refused: it is {why}."
            return self._decision(ext, Verdict(effect="deny", reason=reason, step=step, trail=()))
        asked = judge(self.compiled, self.naming, ext)
        listed = [judge(self.compiled, self.naming, owner) for owner in owners]
        best = min(listed, key=lambda v: STRICTNESS[v.effect or "deny"])
        return self._decision(ext, max(asked, best, key=lambda v: STRICTNESS[v.effect or "deny"]))

    def named(self, name: str) -> tuple[Extension, ...]:
        """The installed items that a user's NAME means: an id, `server/item`, a name, a leaf, or a wire name."""
        name = nfc(name)
        for facet in ("id", "name", "any"):
            found = tuple(
                e
                for e in self.inventory.extensions
                if name == nfc(e.id)
                or (facet == "name" and (name in self._plain_names(e)))
                or (facet == "any" and name in self.naming.of(e)["any"])
            )
            if found:
                return found
        return ()

    def nearest(self, name: str) -> str | None:
        """The installed name that was probably meant."""
        names = [spelled for e in self.inventory.extensions for spelled in self._plain_names(e)]
        return next(iter(difflib.get_close_matches(nfc(name), names[:20_000], n=1)), None)

    def _plain_names(self, ext: Extension) -> tuple[str, ...]:
        names = self.naming.of(ext)
        return (nfc(ext.name), *names["name"], *names.get("sourced", ()))

    def _decision(self, ext: Extension, verdict: Verdict) -> Decision:
        effect = verdict.effect or "deny"
        may = effect == "allow" or (effect == "ask" and self.has_approver)
        may = may and self.availability.is_available
        catalog = self.profile.policies[0].facts.get("catalog", ()) if self.profile.policies else ()
        return Decision(
            extension=ext,
            effect=effect,
            reason=verdict.reason,
            rule=verdict.step,
            trail=verdict.trail,
            visible=may,
            callable=may,
            approval="ask" if effect == "ask" else "auto",
            delivery="catalog" if ext.kind in catalog and not is_catalog_tool(ext) else "request",
        )


CATALOG_TOOLS = frozenset({"fetch_tools", "get_tool", "run_tool", "fetch_skills", "get_skill"})
"""Tools that list, show or run others; each use is judged by its target. Source: msAgent at 9eb360f."""


def is_catalog_tool(ext: Extension) -> bool:
    """Whether the item itself hands out others, and so is delivered in the request."""
    return ext.kind == "tool" and ext.name in CATALOG_TOOLS


def covers(resource: Extension, uri: str) -> bool:
    """Whether a listed resource is this URI, or its template could give it."""
    if not resource.facts.get("template"):
        return resource.name == uri or nfc(resource.name) == nfc(uri)
    literal = re.sub(r"[*?\[]", lambda m: f"[{m[0]}]", resource.name)
    return matches(uri, re.sub(r"\{[^{}]*\}", "*", literal))
