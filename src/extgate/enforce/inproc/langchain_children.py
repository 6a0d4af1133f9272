"""Sub-agent specs for `create_deep_agent`, each with the gate that the inheritance law gives it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deepagents.middleware.subagents import GENERAL_PURPOSE_SUBAGENT

from extgate.core.policy import Inherit, Profile
from extgate.enforce.gate import Gate
from extgate.enforce.guarded_paths import GuardedPaths
from extgate.enforce.inproc.langchain import GateMiddleware
from extgate.enforce.inproc.langchain_identity import Registry
from extgate.enforce.inproc.langchain_subagents import GENERAL, Spawns

_NODE = f"{GateMiddleware.__name__}.before_agent"
_NO_GATE = "'{name}' runs behind no gate."
_ELSEWHERE = "'{name}' runs on another server, which this agent's gate does not reach; `inherit: own` would allow it."


def inheritance(gate: Gate, default: Inherit = "ceiling") -> Inherit:
    """How sub-agents inherit where their parent's own file says so. default: what `extgate.yaml` says."""
    said = [policy.facts.get("inherit") for policy in gate.profile.policies[:1]]
    return said[0] if said and said[0] in ("ceiling", "own", "union") else default


def gated_subagents(
    gate: Gate,
    specs: Sequence[Mapping[str, Any]] = (),
    *,
    profiles: Mapping[str, Profile] | None = None,
    mode: Inherit | None = None,
    registry: Registry | None = None,
    paths: Callable[[Gate], GuardedPaths] | None = None,
) -> tuple[list[dict[str, Any]], Spawns]:
    """The specs to hand to `create_deep_agent(subagents=…)`, and what `GateMiddleware(spawns=…)` has to know of them.

    `general-purpose` is among them, so that deepagents adds none of its own. profiles: the sub-agents' own, by name;
    one without is under its parent's. mode: None: as the parent's file says. A compiled sub-agent must hold a
    `GateMiddleware`, and is held to its parent's gate as well; else it is there and refused. So is a remote one, unless
    it has a profile and runs under that alone.
    """
    spawns, mode, own = Spawns(gate), mode or inheritance(gate), profiles or {}
    made: list[dict[str, Any]] = []
    names = [str(spec["name"]) for spec in specs]
    for spec in (*specs, *([] if GENERAL in names else [dict(GENERAL_PURPOSE_SUBAGENT)])):
        name, spec = str(spec["name"]), {**spec, "description": " ".join(str(spec["description"]).split())}  # one entry
        if "graph_id" in spec or "runnable" in spec:
            made.append(dict(spec))
            _register_foreign(spawns, spec, own.get(name), mode)
            continue
        child = gate.child(own.get(name), agent=f"{gate.agent}/{name}", mode=mode)
        spawns.add(name, child)
        wall = GateMiddleware(child, registry=registry, paths=paths(child) if paths else None)
        made.append({**spec, "middleware": [*spec.get("middleware", ()), wall]})
    return made, spawns


def _register_foreign(spawns: Spawns, spec: Mapping[str, Any], profile: Profile | None, mode: Inherit) -> None:
    """Takes in a sub-agent that was built elsewhere."""
    name = str(spec["name"])
    if "graph_id" in spec:
        if profile is None or mode != "own":
            spawns.close(name, _ELSEWHERE)
        else:
            spawns.add(name, spawns.gate.child(profile, agent=f"{spawns.gate.agent}/{name}", mode=mode))
        return
    found = gate_inside(spec["runnable"])
    if found is None:
        spawns.close(name, _NO_GATE)
    else:
        spawns.add(name, found, is_child=False)


def gate_inside(runnable: Any) -> Gate | None:
    """The gate that an agent made by `create_agent` or `create_deep_agent` runs behind; None when there is none."""
    graph = getattr(runnable, "bound", runnable)
    node = (getattr(graph, "nodes", None) or {}).get(_NODE)
    owner = getattr(getattr(getattr(node, "bound", None), "func", None), "__self__", None)
    return owner.gate if isinstance(owner, GateMiddleware) else None
