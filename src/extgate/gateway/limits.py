"""What `extgate.yaml` says under `gateway.limits`: bounds of the process, and on agents' calls."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from extgate.dialects.node import Node
from extgate.enforce.mcp.options import Limits, Quota
from extgate.gateway.reading import error, mapping, number, patterns, rows

KEY = "gateway.limits"
_WHOLE = {"message_bytes": "message", "answer_bytes": "answer", "page": "page"}
_TIMES = ("call_s", "start_s", "idle_s", "drain_s")
_CALLS = ("agents", "items", "rate", "burst", "at_once", "argument_bytes", "result_bytes", "call_s")
_RATE = re.compile(r"([1-9][0-9]{0,8}) ?/ ?(second|minute|hour|day)")
_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def read_limits(node: Node | None) -> Limits:
    """The bounds, as far as they are given. Raises DialectError at the line of what has no meaning."""
    if node is None:
        return Limits()
    mapping(node, KEY, (*_WHOLE, *_TIMES, "calls"))
    given: dict[str, Any] = {}
    for key, value in node.items.items():
        if key in _WHOLE:
            given[_WHOLE[key]] = number(value, f"{KEY}.{key}", is_whole=True)
        elif key in _TIMES:
            given[key] = number(value, f"{KEY}.{key}")
        else:
            given["quotas"] = tuple(_quota(row) for row in rows(value, f"{KEY}.calls"))
    return replace(Limits(), **given)


def _quota(node: Node) -> Quota:
    key = f"{KEY}.calls"
    mapping(node, key, _CALLS)
    get = node.items.get
    bounds = [name for name in _CALLS[2:] if name != "burst" and name in node.items]
    if not bounds:
        raise error(node, key, "at least one bound")
    rate, burst = _rate(get("rate")), number(get("burst"), f"{key}.burst", is_whole=True)
    if burst is not None and rate is None:
        raise error(node.items["burst"], f"{key}.burst", "a `rate` besides")
    items = patterns(get("items"), f"{key}.items") or ("*",)
    whole = {name: number(get(name), f"{key}.{name}", is_whole=True) for name in _CALLS[4:7]}
    at_once, arguments, result = (int(value) if value is not None else None for value in whole.values())
    said = ", ".join(f"{name} {node.items[name].text or node.items[name].scalar}" for name in bounds)
    return Quota(
        name=f"the limit `{said}` on {', '.join(f'`{item}`' for item in items)}"[:200],
        agents=patterns(get("agents"), f"{key}.agents") or ("*",),
        items=items,
        rate=rate[0] / rate[1] if rate else None,
        burst=int(burst) if burst is not None else rate[0] if rate else 1,
        at_once=at_once,
        arguments=arguments,
        result=result,
        call_s=number(get("call_s"), f"{key}.call_s"),
    )


def _rate(node: Node | None) -> tuple[int, int] | None:
    if node is None:
        return None
    found = _RATE.fullmatch(node.scalar) if isinstance(node.scalar, str) else None
    if found is None:
        raise error(node, f"{KEY}.calls.rate", "such as `60/minute`: a number and second, minute, hour or day")
    return int(found[1]), _SECONDS[found[2]]
