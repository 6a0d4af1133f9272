"""What a gateway counts of itself: latencies by server, and what it turned away. Plain numbers, of one thread."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

from extgate.enforce.mcp.call import Call

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
MAX_SERVERS = 1_000
Labels = Mapping[str, str]


class Histogram:
    """Seconds, by how many lie at or below each bound."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.sum_s += seconds


class Figures:
    """latencies: from a call's leaving for its server to its answer. limited: calls that a limit turned away or ended.
    turned_away: requests whose caller was not let in, by status."""

    def __init__(self) -> None:
        self.latencies: dict[str, Histogram] = {}
        self.limited = 0
        self.turned_away: Counter[int] = Counter()

    def took(self, call: Call) -> None:
        """Counts a call that has its answer; one that never left is none."""
        if not call.sent_at:
            return
        found = self.latencies.get(call.server)
        if found is None:
            if len(self.latencies) >= MAX_SERVERS:
                return
            found = self.latencies[call.server] = Histogram()
        found.add(time.monotonic() - call.sent_at)


def family(name: str, kind: str, about: str, rows: Iterable[tuple[Labels, float]]) -> list[str]:
    """One metric in Prometheus' text format 0.0.4, in the order of its labels."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return lines + sorted(f"{name}{_labels(labels)} {value:g}" for labels, value in rows)


def histograms(name: str, about: str, found: Mapping[str, Histogram], label: str) -> list[str]:
    """A histogram for each key."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} histogram"]
    for key, histogram in sorted(found.items()):
        total = 0
        for bound, count in zip((*BOUNDS_S, None), histogram.counts, strict=True):
            total += count
            edge = "+Inf" if bound is None else f"{bound:g}"
            lines.append(f"{name}_bucket{_labels({label: key, 'le': edge})} {total}")
        lines.append(f"{name}_sum{_labels({label: key})} {histogram.sum_s:.6f}")
        lines.append(f"{name}_count{_labels({label: key})} {total}")
    return lines


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")[:200]
