"""How a gateway does: as JSON for people and the console, as text for Prometheus. Names that clients make up are in
neither; what is counted by agent and server is bounded by the workspace's files."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from extgate import __version__
from extgate.enforce.dispatch import Standing
from extgate.enforce.mcp.figures import Labels, family, histograms
from extgate.enforce.mcp.front_http import Front
from extgate.gateway.running import Gateway
from extgate.shapes import missing_dict

STATES = ("configured", "untrusted", "connected", "failed", "disabled")
MAX_ROWS = 2_000
OTHERS = "(others)"


def state_dict(gateway: Gateway, front: Front) -> dict[str, Any]:
    """What `/api/state` answers."""
    return {
        "version": __version__,
        "ready": not (front.is_draining or front.not_ready()),
        "draining": front.is_draining,
        "reason": front.not_ready() or None,
        "agents": [_agent(gateway, standing) for standing in gateway.host.dispatcher.standings()],
        "servers": servers(gateway),
    }


def _agent(gateway: Gateway, standing: Standing) -> dict[str, Any]:
    gate = gateway.host.dispatcher.seats[standing.agent].gate
    mine = [session for session in gateway.hub.clients if session.door.gate.agent == standing.agent]
    return {
        "agent": standing.agent,
        "available": standing.is_available,
        "missing": [missing.pattern for missing in standing.missing],
        "missing_details": [missing_dict(missing) for missing in standing.missing],
        "error": standing.error or None,
        "policy_version": gate.profile.version,
        "inventory_version": gate.inventory.version,
        "sessions": len(mine),
        "in_flight": sum(len(session.in_flight) for session in mine),
    }


def servers(gateway: Gateway) -> list[dict[str, Any]]:
    """Every wanted server, by name."""
    rows = []
    for held in gateway.host.servers.held:
        base = gateway.hub.bases.get(held.server.name)
        rows.append(
            {
                "server": held.server.name,
                "state": held.server.state,
                "error": held.server.error,
                "transport": held.server.facts.get("transport"),
                "protocol": (base.version if base is not None else "") or None,
                "restarts": base.restarts if base is not None else 0,
                "in_flight": len(base.link.pending) if base is not None else 0,
                "items": len(held.extensions),
            }
        )
    return rows


def state_page(gateway: Gateway, front: Front) -> tuple[str, bytes]:
    return "application/json", json.dumps(state_dict(gateway, front), indent=1).encode()


def metrics_page(gateway: Gateway, front: Front) -> tuple[str, bytes]:
    """Prometheus' text format 0.0.4."""
    lines = [*_of_agents(gateway), *_of_servers(gateway), *_of_process(gateway, front)]
    return "text/plain; version=0.0.4; charset=utf-8", ("\n".join(lines) + "\n").encode()


def _of_agents(gateway: Gateway) -> list[str]:
    hub = gateway.hub
    calls = [
        ({"agent": agent, "server": server, "decision": "allowed" if is_allowed else "refused"}, count)
        for agent, door in hub.doors.items()
        for (server, is_allowed), count in tuple(door.counts.items())
    ]
    sessions: Counter[str] = Counter(session.door.gate.agent for session in hub.clients)
    running = [({"agent": s.door.gate.agent}, len(s.in_flight)) for s in hub.clients if s.in_flight]
    up = [({"agent": agent}, float(not door.why_unavailable())) for agent, door in hub.doors.items()]
    about = "Uses that were judged, by what came of it."
    return [
        *family("extgate_calls_total", "counter", about, _bounded(calls)),
        *family("extgate_sessions", "gauge", "Sessions that are open.", _bounded(_by_agent(sessions))),
        *family("extgate_calls_in_flight", "gauge", "Calls that wait for their answer.", _bounded(running)),
        *family("extgate_agent_available", "gauge", "Whether the agent may take a turn.", up[:MAX_ROWS]),
    ]


def _by_agent(counts: Counter[str]) -> list[tuple[Labels, float]]:
    return [({"agent": agent}, count) for agent, count in counts.items()]


def _of_servers(gateway: Gateway) -> list[str]:
    rows = servers(gateway)[:MAX_ROWS]
    states = [
        ({"server": row["server"], "state": state}, float(row["state"] == state)) for row in rows for state in STATES
    ]
    restarts = [({"server": row["server"]}, row["restarts"]) for row in rows]
    return [
        *family("extgate_server_state", "gauge", "1 for the state that a server is in.", states),
        *family("extgate_server_restarts_total", "counter", "Times that a server was started again.", restarts),
        *histograms(
            "extgate_call_seconds", "From a call's leaving for its server to its answer.",
            gateway.hub.figures.latencies, "server",
        ),
    ]  # fmt: skip


def _of_process(gateway: Gateway, front: Front) -> list[str]:
    figures = gateway.hub.figures
    turned_away = [({"status": str(status)}, count) for status, count in figures.turned_away.items()]
    about = "Calls that a limit turned away or ended."
    return [
        *family("extgate_limited_total", "counter", about, [({}, figures.limited)]),
        *family("extgate_turned_away_total", "counter", "Requests whose caller was not let in.", turned_away),
        *family("extgate_ready", "gauge", "Whether it takes clients.", [({}, float(not front.is_draining))]),
        *family("extgate_build_info", "gauge", "What runs here.", [({"version": __version__}, 1)]),
    ]


def _bounded(rows: Iterable[tuple[Labels, float]]) -> list[tuple[Labels, float]]:
    """The rows, added up where their labels are the same; those past the bound under one name of an agent."""
    found: dict[tuple[tuple[str, str], ...], float] = {}
    for labels, value in rows:
        key = tuple(labels.items())
        if key not in found and len(found) >= MAX_ROWS:
            key = tuple((name, OTHERS if name != "decision" else text) for name, text in key)
        found[key] = found.get(key, 0.0) + value
    return [(dict(key), value) for key, value in found.items()]
