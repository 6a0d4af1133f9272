"""A policy laid out for writers of other dialects: what it says of each known thing, and of those nobody knows yet.

Everything is taken strictly, so that whoever writes it down cannot widen: a condition on arguments counts against the
whole tool, and an exception to a deny is no exception. What a target cannot say is a `Loss`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from extgate.core.explain import Decider
from extgate.core.extension import Extension, Inventory
from extgate.core.glob import STAR, tokens
from extgate.core.names import rule_parts
from extgate.core.policy import STRICTNESS, ArgTest, Effect, Entry, Policy, Profile, Rule, Test
from extgate.dialects.commands import Commands

UNKNOWN = "zz-new-name-of-tomorrow"
"""Stands for whatever is installed later."""

CLASSES: tuple[frozenset[str], ...] = tuple(
    frozenset(words.split())
    for words in (
        "Read read read_file read_many_files view_image",
        "list ls list_directory",
        "Glob glob",
        "Grep grep grep_search search_files",
        "Edit Write NotebookEdit edit write apply_patch replace write_file patch edit_file delete",
        "Bash Monitor PowerShell bash terminal process execute_code read_terminal close_terminal exec_command"
        " write_stdin shell run_shell_command list_background_processes"
        " read_background_output execute",
        "WebFetch webfetch web_fetch web_extract",
        "WebSearch websearch web_search google_web_search",
        "Agent Workflow task delegate_task invoke_agent multi_agent_v1::spawn_agent multi_agent_v1::send_input"
        " multi_agent_v1::wait_agent multi_agent_v1::resume_agent multi_agent_v1::close_agent",
        "Skill skill skill_view skills_list skill_manage activate_skill",
        "TodoWrite todowrite todo write_todos update_plan",
    )
)
"""Tools of the known runtimes that do the same: what is denied of one must be denied of all."""
SHELL = CLASSES[5]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One thing that the target says otherwise. is_wider: what the source denies could be had there.

    code: `ask`, `arguments`, `order`, `pattern`, `toolset`, `kind`, `required`, `unknown`. rule: as the source has it.
    """

    code: str
    name: str
    message: str
    witness: str = ""
    rule: str = ""
    file: str | None = None
    line: int | None = None
    is_wider: bool = False

    @property
    def key(self) -> str:
        """What `--accept` takes."""
        return f"{self.code}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """One rule of a family: an effect, and a pattern (`server/item` for MCP items); None where it has no such text."""

    effect: Effect
    pattern: str | None
    rule: Rule
    entry: Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a policy says of the things of one kind.

    effects: of each known name. unknown: of a name that no rule could have meant. clauses: its rules with patterns.
    """

    effects: Mapping[str, Effect]
    unknown: Effect
    clauses: tuple[Clause, ...] = ()
    has_one_list: bool = True

    def of(self, effect: Effect) -> list[str]:
        """The known names with this effect, sorted."""
        return sorted(name for name, found in self.effects.items() if found == effect)

    def patterns(self, effect: Effect) -> list[str]:
        """The patterns of its rules with this effect, each once; a lone star is the default and left out."""
        found = (c.pattern for c in self.clauses if c.effect == effect and c.rule.file and c.pattern not in _ALL)
        return list(dict.fromkeys(p for p in found if p is not None))


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A policy over what is installed. shell: effects of command prefixes, in the order deny, ask, allow."""

    policy: Policy
    stock: Inventory
    name: str = "agent"
    target: str = ""
    losses: list[Loss] = field(default_factory=list)

    @cached_property
    def _decider(self) -> Decider:
        policy = strict(self.policy, is_at_home=self.is_at_home)
        return Decider(Profile(id="outline", layers=(policy,)), self.stock, has_approver=True)

    @property
    def is_at_home(self) -> bool:
        """Whether it is written for its own runtime, which has the same defaults."""
        return self.target == self.policy.dialect

    def effect(self, ext: Extension) -> Effect:
        """What the policy says of every call of the item."""
        return self._decider.decide(ext).effect

    @cached_property
    def tools(self) -> Family:
        known = {ext.name: self.effect(ext) for ext in self.stock.of_kind("tool")}
        unknown = self.effect(Extension(kind="tool", name=UNKNOWN, source="plugin"))
        return self._family("tool", known, unknown)

    def tool(self, name: str) -> Effect:
        """What a target's tool may be: itself where the source has it, else the strictest of those that do the same."""
        if name in self.tools.effects:
            return self.tools.effects[name]
        alike = next((group for group in CLASSES if name in group), frozenset())
        found = [self.tools.effects[other] for other in alike if other in self.tools.effects]
        own = self.effect(Extension(kind="tool", name=name, source="builtin"))
        return max(found or [own], key=lambda effect: STRICTNESS[effect])

    @cached_property
    def skills(self) -> Family:
        known = {ext.name: self.effect(ext) for ext in self.stock.of_kind("skill")}
        unknown = self.effect(Extension(kind="skill", name=UNKNOWN, source="project"))
        return self._family("skill", known, unknown)

    @cached_property
    def subagents(self) -> Family:
        known = {ext.name: self.effect(ext) for ext in self.stock.of_kind("subagent")}
        unknown = self.effect(Extension(kind="subagent", name=UNKNOWN, source="project"))
        return self._family("subagent", known, unknown)

    @cached_property
    def mcp(self) -> Family:
        """By `server/item`; `server/*` stands for items of a known server that nobody knows yet."""
        items = self.stock.of_kind("mcp_tool")
        servers = {s.name for s in self.stock.servers} | {e.server for e in items if e.server}
        known = {f"{e.server}/{e.name}": self.effect(e) for e in items}
        known |= {f"{s}/*": self.effect(Extension(kind="mcp_tool", server=s, name=UNKNOWN)) for s in sorted(servers)}
        unknown = self.effect(Extension(kind="mcp_tool", server=UNKNOWN, name=UNKNOWN))
        return self._family("mcp_tool", known, unknown)

    @cached_property
    def servers(self) -> dict[str, dict[str, Effect]]:
        """By server the effects of its items; the item `*` is one that nobody knows yet."""
        found: dict[str, dict[str, Effect]] = {}
        for path, effect in self.mcp.effects.items():
            server = next(s for s in self._server_names if path.startswith(f"{s}/"))
            found.setdefault(server, {})[path.removeprefix(f"{server}/")] = effect
        return found

    @cached_property
    def _server_names(self) -> list[str]:
        names = {s.name for s in self.stock.servers} | {e.server for e in self.stock.of_kind("mcp_tool") if e.server}
        return sorted(names, key=len, reverse=True)

    @cached_property
    def prefixes(self) -> dict[Effect, list[str]]:
        """Shell commands by how they begin, where the policy tells them apart so."""
        found: dict[Effect, list[str]] = {"deny": [], "ask": [], "allow": []}
        for rule in self.policy.rules:
            if rule.when and rule.file and any(t.pattern in SHELL for e in rule.entries for t in e.tests):
                found[rule.effect] += [p for test in rule.when for p in _prefixes(test)]
        return {effect: list(dict.fromkeys(texts)) for effect, texts in found.items()}

    @cached_property
    def has_prefixes_only(self) -> bool:
        """Whether every rule on the arguments of a shell is one on how commands begin."""
        rules = [r for r in self.policy.rules if r.when and any(t.pattern in SHELL for e in r.entries for t in e.tests)]
        return all(_prefixes(test) or not rule.file for rule in rules for test in rule.when)

    def loose_tool(self, name: str) -> Effect:
        """What a shell may run that no rule on commands speaks of."""
        bare = replace(self.policy, rules=tuple(rule for rule in self.policy.rules if not rule.when))
        outline = replace(self, policy=bare, losses=[])
        return outline.tool(name)

    # ------------------------------------------------------------------------------------------ rules

    def _family(self, kind: str, known: Mapping[str, Effect], unknown: Effect) -> Family:
        return Family(effects=known, unknown=unknown, clauses=self._clauses(kind), has_one_list=self._one(kind))

    def _clauses(self, kind: str) -> tuple[Clause, ...]:
        rules = [rule for rule in strict(self.policy).rules if kind in rule.kinds]
        return tuple(
            Clause(
                effect="allow" if rule.unless else rule.effect, pattern=_pattern(kind, entry), rule=rule, entry=entry
            )
            for rule in rules
            for entry in rule.entries
        )

    def _one(self, kind: str) -> bool:
        """Whether what a pattern that admits matches is admitted: one list at most, and nothing before it takes all."""
        rules = [rule for rule in self.policy.rules if kind in rule.kinds]
        lists = sum(rule.unless for rule in rules) + any(rule.effect == "allow" for rule in rules)
        clauses = self._clauses(kind)
        allows = [at for at, clause in enumerate(clauses) if clause.effect == "allow"]
        closed = [at for at, clause in enumerate(clauses) if clause.effect != "allow" and clause.pattern in _ALL]
        return lists <= 1 and not (allows and closed and closed[0] < allows[-1])

    def lose(self, code: str, name: str, message: str, *, is_wider: bool = False, witness: str = "") -> None:
        """Records what the target cannot say."""
        self.losses.append(Loss(code=code, name=name, message=message, witness=witness or name, is_wider=is_wider))


_ALL = (None, "*", "*/*")


def strict(policy: Policy, *, is_at_home: bool = False) -> Policy:
    """The policy without conditions on arguments: a deny or ask with one holds for every call, an allow for none.

    is_at_home: a runtime's own defaults on arguments are left out.
    """
    kept = [r for r in policy.rules if not (r.when and (r.effect == "allow" or (is_at_home and not r.file)))]
    rules = [replace(r, when=()) for r in kept]
    return replace(policy, rules=tuple(rules))


def _pattern(kind: str, entry: Entry) -> str | None:
    tests = [t for t in entry.tests if not (t.is_exact and t.facets == ("server",) and len(entry.tests) > 1)]
    if len(tests) != 1:
        return None
    (test,) = tests
    if test.facets == ("type",):
        return "*/*" if kind.startswith("mcp") else "*"
    return _mcp_pattern(test) if kind.startswith("mcp") else _plain_pattern(test)


def _plain_pattern(test: Test) -> str | None:
    return test.pattern if set(test.facets) <= {"any", "name", "own"} else None


def _mcp_pattern(test: Test) -> str | None:
    facets, pattern = set(test.facets), test.pattern
    if facets == {"server"}:
        return f"{pattern}/*"
    if facets <= {"name", "item", "item_any", "any"} and "/" in pattern:
        return pattern
    parts = rule_parts(pattern)
    if parts and (parts[0] == "*" or ("*" not in parts[0] and "?" not in parts[0])):
        return f"{parts[0]}/{parts[1] or '*'}"
    return "*/*" if pattern == "*" else None


def _prefixes(test: ArgTest) -> Sequence[str]:
    """How commands begin that the test holds for; none for a test of another kind."""
    patterns = (test.pattern, *test.also)
    if not isinstance(test.reading, Commands) or test.but:
        return ()
    plain = [p for p in patterns if not any(c in p for c in "*?[")]
    return plain if len(plain) * 2 == len(patterns) and all(f"{p} *" in patterns for p in plain) else ()


def example(pattern: str, star: str = "zz9") -> str:
    """A name that the pattern matches: a word for each star, a letter for each question mark."""
    found = []
    for token in tokens(pattern):
        if token is STAR:
            found.append(star)
        elif token.text:
            found.append(token.text)
        else:
            found.append(next((c for c in f"z9{token.ranges[0][0] if token.ranges else ''}_Q" if token.admits(c)), ""))
    return "".join(found)
