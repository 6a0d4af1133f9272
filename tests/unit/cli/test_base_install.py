"""What `pip install extgate` alone is enough for."""

from __future__ import annotations

import subprocess
import sys

EXTRAS = ("httptools", "h2", "mcp", "httpx", "jwt", "cryptography", "redis", "langchain", "deepagents", "fastmcp")
VERBS = ("list", "explain", "check", "diff", "prove", "convert")


def test_judging_a_folder_needs_nothing_of_any_extra() -> None:
    imports = "; ".join(f"import extgate.cli.{verb}" for verb in VERBS)
    code = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r})); {imports}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
