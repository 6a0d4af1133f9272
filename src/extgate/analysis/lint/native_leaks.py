"""EG070, EG075, EG077, EG080, EG081, EG084: where a runtime, left to its own files, lets through what they deny.

The policy of a runtime's own agent carries the same policy as the looked-at version runs (`as_run`), and those of
the agents that it can start (`below`). What those let through and the documented policy does not is a leak, told with a
witness.
"""

from __future__ import annotations

from collections.abc import Iterator

from extgate.analysis.leak_sides import Sides
from extgate.analysis.lint.context import Context
from extgate.core.extension import Finding
from extgate.core.names import show, shown_name
from extgate.core.policy import Policy

CODES = ("EG070", "EG075", "EG077", "EG080", "EG081", "EG084")
_HOOK = "put the runtime behind the gate, or write what its version honours; see docs/dialects"
_REPAIRS = {"hermes": "runs the tool whose name is most alike", "opencode": "runs `bash` for `Bash`"}


def check(context: Context) -> Iterator[Finding]:
    """Findings for an agent of a runtime's own files; none for any other."""
    actual = context.policy.facts.get("as_run")
    if not isinstance(actual, Policy):
        return
    sides = Sides(context.policy, context.decider, actual)
    for lost in sides.lost():
        what = ", ".join(f"`{show(name)}`" for name in lost.names[:3]) + (" and more" if len(lost.names) > 3 else "")
        is_read = lost.kind in ("mcp_resource", "mcp_prompt")
        code, verb = ("EG077", "stays readable") if is_read else ("EG070", f"is {lost.effect}")
        message = f"{lost.step.text}: as {sides.version} runs, {what} {verb}" + (" all the same" if is_read else "")
        yield context.warn(code, message, at=lost.place, fix=_HOOK)
    for rule in sides.inert():
        yield context.warn(
            "EG070", f"{rule.text}: {sides.version} does nothing with {sides.shown(rule)}", at=rule, fix=_HOOK
        )
    for rule in sides.listed("skill"):
        message = f"{rule.text}: {sides.version} refuses {sides.shown(rule)} and lists it still"
        yield context.warn("EG080", message, at=rule, fix="hide it as well, as `skillOverrides: off` does")
    if readable := sides.readable_skill():
        message = f"the file of the denied skill `{show(readable[0])}` can be read by `{readable[1]}`"
        yield context.warn("EG081", message, fix="keep its folder from that tool, or from the agent", severity="info")
    for child, ext in sides.wider_children():
        message = f"it can start `{show(child)}`, which may use `{show(shown_name(ext))}`; this agent may not"
        yield context.warn(
            "EG075", message, fix=f"deny the agent `{show(child)}`, or deny the item for the whole session"
        )
    runtime = str(context.policy.facts.get("runtime"))
    if runtime in _REPAIRS and context.policy.id.endswith("/main") and sides.has_denies:
        message = f"{sides.version} repairs a misspelt call: it {_REPAIRS[runtime]}"
        yield context.warn("EG084", message, fix="let the gate judge the name that runs", severity="info")
