"""EG048, EG049: a profile's own `tests` that do not hold, and rules that none of them exercises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from extgate.analysis.lint.context import Context
from extgate.analysis.policy_tests import Failure, run_tests
from extgate.core.extension import Finding
from extgate.core.names import show

CODES = ("EG048", "EG049")


def check(context: Context) -> Iterator[Finding]:
    """An error for each test that fails, and a note on what no test exercises; nothing for a profile without tests."""
    report = run_tests(context.policy, context.decider)
    if report is None:
        return
    for failure in report.failures:
        row = context.warn("EG048", _message(failure), fix="mend the rule, or the test", severity="error")
        place = f" of {context.policy.id or 'this agent'}" if failure.file not in (None, row.file) else ""
        message = row.message.replace("tests:", f"tests{place}:", 1)
        yield replace(row, message=message, file=failure.file or row.file, line=failure.line)
    if report.untested:
        rule, entry = report.untested[0]
        names = [f"{r.text} `{show(e.text)}`" if e else f"{r.text} (what it does not list)" for r, e in report.untested]
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        message = f"tests: {report.rules - len(names)} of {report.rules} rules are exercised; not {shown}"
        yield context.warn("EG049", message, at=entry or rule, fix="add a test for each", severity="info")


def _message(failure: Failure) -> str:
    if failure.verdict is None:
        return f"tests: row {failure.number}: {failure.error}"
    answer = failure.verdict.effect or "deny"
    where = f"tests: row {failure.number}: `{show(failure.given)}`"
    return f"{where}: expected {failure.expect}, got {answer}: {failure.verdict.reason}"
