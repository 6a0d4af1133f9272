"""Two short questions for the law tests: what does an agent see, and is a profile refused."""

from __future__ import annotations

from typing import Any

from tests.build import Inventory
from tests.dialects.adapter import Answer, decide_case, decide_text


def sees(profile: Any, inventory: Inventory) -> list[str]:
    """Ids an available agent sees; in dialects A and B the same as those it may call (law 6)."""
    answer = decide_case(profile, inventory)
    assert answer.readable, answer.error
    assert answer.available, answer.missing
    assert answer.visible == answer.callable
    return answer.visible


def refused(profile: Any, inventory: Inventory | None = None) -> Answer:
    """The answer for a profile that must not be read: an error said out loud, and nothing shown."""
    answer = decide_case(profile, inventory or {"tools": [{"name": "bash", "source": "builtin"}]})
    assert_refused(answer)
    return answer


def refused_text(text: str, suffix: str = ".yaml") -> Answer:
    """The same for the text of a file."""
    answer = decide_text(text, {"tools": [{"name": "bash", "source": "builtin"}]}, suffix)
    assert_refused(answer)
    return answer


def assert_refused(answer: Answer) -> None:
    """Nothing is shown, and the reason is on the error stream with its file."""
    assert not answer.readable
    assert answer.visible == []
    assert '"visible": true' not in answer.output
    assert "agent." in answer.error, "the error names the file"
