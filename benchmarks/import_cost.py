"""What `import extgate` costs above a bare Python, beside pydantic, httpx and the MCP SDK, in one run.

    python benchmarks/import_cost.py [--rounds N]

Processes are started in turn, so that a drift of the machine touches all alike. CPU time (user and system) of each
whole process, in milliseconds; the median of the rounds. Claim: at most 40 ms above bare Python.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

CASES = {
    "bare python": "pass",
    "import extgate": "import extgate",
    "extgate.gate, match_any": "from extgate import gate, match_any; gate(name='a', disabled=['b*'])",
    "usual standard library": "import dataclasses, json, re, pathlib, typing, hashlib",
    "import pydantic": "import pydantic",
    "import httpx": "import httpx",
    "import mcp": "import mcp",
}


def cpu_ms(code: str) -> float | None:
    """CPU milliseconds of one process; None when a package is not installed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used * 1000 if done.returncode == 0 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    samples: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(rounds):
        for name, code in CASES.items():
            used = cpu_ms(code)
            if used is not None:
                samples[name].append(used)
    bare = statistics.median(samples["bare python"])
    print(f"{'case':28} {'median ms':>10} {'above bare':>11}")
    for name, values in samples.items():
        if not values:
            print(f"{name:28} {'not installed: pip install ' + name.split()[-1]:>10}")
            continue
        median = statistics.median(values)
        print(f"{name:28} {median:10.1f} {median - bare:11.1f}")


if __name__ == "__main__":
    main()
