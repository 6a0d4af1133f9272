"""One permission rule of Claude Code, `Tool` or `Tool(specifier)`, as tests of names and arguments.

Grammar: Claude Code's docs "Permissions" and 2.1.332 as run; seen 2026-11-30. Where 2.1.332 takes a rule and does
nothing with it, the documented reading holds a deny or an ask, and the reading of the version (`as_run`) leaves it out.
"""

from __future__ import annotations

from dataclasses import dataclass

from extgate.core.names import rule_name, rule_parts
from extgate.core.policy import ArgTest, Effect
from extgate.dialects.arguments import Host, Paths
from extgate.dialects.commands import Commands, literal
from extgate.dialects.native import AGENT, MCP, MCP_TOOL, SKILL, TOOL, Place, RuleList, test

SHELLS = ("Bash", "Monitor", "PowerShell")
EDITORS = ("Edit", "Write", "NotebookEdit")
READERS = ("Read", "Grep", "Glob")
ANY_PATH = ("Read", "Edit", "Write", "NotebookEdit", "Grep", "Glob")
_PATH_ARGUMENT = {"NotebookEdit": "notebook_path", "Grep": "path", "Glob": "path"}
_NEVER_CONSULTED = ("Write", "NotebookEdit", "Glob", "Grep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a rule's file means for its paths. base: what `/x` starts from. as_run: as 2.1.332 really does."""

    base: str = ""
    root: str = ""
    home: str = ""
    as_run: bool = False


def split_rule(text: str) -> tuple[str, str | None]:
    """Tool and specifier; None for none and for `*`."""
    name, opening, rest = text.strip().partition("(")
    spec = rest.removesuffix(")").strip() if opening else None
    name = name.strip()
    return ("Agent" if name == "Task" else name), (None if spec in (None, "*") else spec)


def add_rule(rules: RuleList, effect: Effect, place: Place, scope: Scope) -> None:
    """Appends what one entry of `permissions.deny`, `ask` or `allow` means."""
    name, spec = split_rule(place.node.text if place.node else place.text)
    if rule_parts(name):
        _mcp(rules, effect, place, scope, name, spec)
    elif spec is None:
        _whole(rules, effect, place, scope, name)
    elif name == "Skill":
        _skill(rules, effect, place, scope, spec)
    elif name == "Agent":
        _agent(rules, effect, place, scope, spec)
    elif name in SHELLS:
        _shell(rules, effect, place, spec, scope)
    elif name in ANY_PATH:
        _path(rules, effect, place, scope, name, spec)
    elif name == "WebFetch" and spec.startswith("domain:"):
        when = ArgTest(name="url", pattern=literal(spec[7:].strip().lower(), stars="*"), reading=Host())
        rules.add(effect, TOOL, place, [test("WebFetch")], when=[when])
    else:
        _parameter(rules, effect, place, scope, name, spec)


# ---------------------------------------------------------------------------------------------- whole tools


def _whole(rules: RuleList, effect: Effect, place: Place, scope: Scope, name: str) -> None:
    if effect == "allow" and "*" in name:
        return  # an allow glob needs a literal server before it
    glob = literal(name, stars="*")
    names = [glob, *(["Monitor"] if name == "Bash" else [])]
    rules.add(effect, TOOL, place, *([test(each)] for each in names))
    if "*" in name:
        facets = "claude-code" if scope.as_run else "item_any"
        rules.add(effect, MCP_TOOL if scope.as_run else MCP, place, [test(glob, facets)])  # type: ignore[arg-type]
    for family, kinds in (("Skill", SKILL), ("Agent", AGENT)):
        if name == family or ("*" in name and effect == "deny" and not scope.as_run and _glob_has(name, family)):
            rules.add(effect, kinds, place)


def _glob_has(glob: str, name: str) -> bool:
    head, star, tail = glob.partition("*")
    return bool(star) and name.startswith(head) and name.endswith(tail.rpartition("*")[2])


def _mcp(rules: RuleList, effect: Effect, place: Place, scope: Scope, name: str, spec: str | None) -> None:
    server, item = rule_parts(name) or ("", "")
    is_whole = item in ("", "*")
    glob = literal(name, stars="*")
    globs = [glob] if item else [glob, literal(rule_name(server, "*"), stars="*")]
    if effect == "allow":
        if "*" not in server and spec is None:
            facet = "claude-code" if scope.as_run else "full"
            rules.add(effect, MCP_TOOL, place, *([test(each, facet)] for each in globs))  # type: ignore[arg-type]
        return
    if scope.as_run:
        if spec is None:
            rules.add(effect, MCP_TOOL, place, *([test(each, "claude-code")] for each in globs))
        return
    when = _parameter_test(spec) if spec else None
    kinds = MCP if is_whole and effect == "deny" else MCP_TOOL
    rules.add(effect, kinds, place, *([test(each, "item_any")] for each in globs), when=[when] if when else [])


# ---------------------------------------------------------------------------------------------- specifiers


def _shell(rules: RuleList, effect: Effect, place: Place, spec: str, scope: Scope) -> None:
    patterns = shell_patterns(spec)
    if not patterns:
        if effect != "allow" and not scope.as_run:
            _whole(rules, effect, place, scope, "Bash")  # `Bash(:*)`: a prefix of everything
        return
    strict = effect == "allow"
    when = ArgTest(name="command", pattern=patterns[0], also=patterns[1:], every=strict,
                   reading=Commands(is_strict=strict))  # fmt: skip
    rules.add(effect, TOOL, place, *([test(name)] for name in SHELLS), when=[when])


def shell_patterns(spec: str) -> tuple[str, ...]:
    """The patterns that a command is held against; none for an empty prefix."""
    for tail in (":*", " *"):
        if spec.endswith(tail):
            head = literal(spec.removesuffix(tail).rstrip(), stars="*")
            return (head, f"{head} *") if head else ()
    return (literal(spec, stars="*"),)


def any_of(patterns: list[str]) -> ArgTest:
    """A test that every command of a line matches some of these."""
    return ArgTest(name="command", pattern=patterns[0], also=tuple(patterns[1:]), every=True,
                   reading=Commands(is_strict=True))  # fmt: skip


def _path(rules: RuleList, effect: Effect, place: Place, scope: Scope, name: str, spec: str) -> None:
    if name in _NEVER_CONSULTED and (scope.as_run or effect == "allow"):
        return
    tools = {"Edit": EDITORS, "Read": ANY_PATH if effect == "deny" else READERS}.get(name, (name,))
    patterns = path_patterns(spec, scope, floats=effect != "allow")
    if patterns is None:
        return  # an allow whose glob would reach further here than there
    globs, but = patterns
    for tool in tools:
        argument = _PATH_ARGUMENT.get(tool, "file_path")
        when = ArgTest(name=argument, pattern=globs[0], also=globs[1:], but=but, reading=Paths(scope.root, scope.home))
        rules.add(effect, TOOL, place, [test(tool)], when=[when])


def path_patterns(spec: str, scope: Scope, *, floats: bool) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Globs of a gitignore-style path, and those that reach deeper than it does; None when that cannot be told."""
    paths, spec = Paths(scope.root, scope.home), spec.replace("\\", "/")
    if spec.startswith("//"):
        base, text = "", spec[1:]
    elif spec.startswith("~/"):
        base, text = "", f"{scope.home or '~'}{spec[1:]}"
    elif spec.startswith("/"):
        base, text = scope.base or scope.root, spec
    else:
        base, text = scope.root, "/" + spec.removeprefix("./")
    whole = (
        f"{base.rstrip('/')}{text}" if base else text.removeprefix("/") if not spec.startswith(("//", "~/")) else text
    )
    whole = paths.absolute(whole) if whole else whole
    globs = [_path_glob(whole)]
    if whole.endswith("/**"):
        globs.append(_path_glob(whole.removesuffix("/**"))) if floats else None
    elif floats:
        globs.append(f"{globs[0]}/*")
    if floats:
        is_anchored = spec.startswith(("/", "~/"))
        globs += [] if is_anchored else [f"*/{_path_glob(spec.removeprefix('./'))}", f"*/{_path_glob(spec)}/*"]
        return tuple(dict.fromkeys(globs)), ()
    if "**" not in whole:
        return tuple(globs), (("*/" * (whole.count("/") + 1) + "*",) if "*" in whole else ())
    return None if "*" in whole.partition("**")[0] else (tuple(globs), ())


def _path_glob(text: str) -> str:
    return literal(text.replace("**/", "*").replace("**", "*"), stars="*?")


def _skill(rules: RuleList, effect: Effect, place: Place, scope: Scope, spec: str) -> None:
    prefix = next((spec.removesuffix(tail).rstrip() for tail in (":*", " *") if spec.endswith(tail)), None)
    if prefix is None and "*" in spec and (scope.as_run or effect == "allow"):
        return  # 2.1.332 knows no other wildcard here
    if effect == "ask" and scope.as_run:
        return  # a scoped ask has no effect on a plain skill
    glob = literal(f"{prefix}*" if prefix is not None else spec, stars="*")
    rules.add(effect, SKILL, place, [test(glob, "any" if effect == "deny" else "own")], is_listed=True)
    rules.add(effect, TOOL, place, [test("Skill")], when=[ArgTest(name="skill", pattern=glob)])


def _agent(rules: RuleList, effect: Effect, place: Place, scope: Scope, spec: str) -> None:
    when = _parameter_test(spec)
    if when:
        if effect != "allow":
            rules.add(effect, AGENT, place, when=[when])
            rules.add(effect, TOOL, place, [test("Agent")], when=[when])
        return
    if scope.as_run and ("*" in spec or effect == "ask"):
        return  # neither a glob nor a scoped ask does anything
    if effect == "allow" and "*" in spec:
        return
    glob = literal(spec, stars="*")
    rules.add(effect, AGENT, place, [test(glob)])
    rules.add(effect, TOOL, place, [test("Agent")], when=[ArgTest(name="subagent_type", pattern=glob)])


def _parameter_test(spec: str | None) -> ArgTest | None:
    key, colon, value = (spec or "").partition(":")
    return ArgTest(name=key.strip(), pattern=literal(value.strip(), stars="*")) if colon and key.strip() else None


def _parameter(rules: RuleList, effect: Effect, place: Place, scope: Scope, name: str, spec: str) -> None:
    if effect == "allow":
        return  # only deny and ask take parameters
    when = _parameter_test(spec)
    glob = literal(name, stars="*")
    if when:
        rules.add(effect, TOOL, place, [test(glob)], when=[when])
    elif not scope.as_run:
        rules.add(effect, TOOL, place, [test(glob)])  # what the specifier means cannot be told, so all of the tool
