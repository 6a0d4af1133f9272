"""Every setting of the gateway stands in its reference."""

from __future__ import annotations

from pathlib import Path

from extgate.gateway import callers, limits, settings, shared

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "gateway-settings.md").read_text()


def test_every_setting_stands_in_the_reference() -> None:
    keys = (
        *settings._READERS, *callers.KEYS, *callers._ISSUER, *limits._WHOLE,
        *limits._TIMES, *limits._CALLS, *shared.KEYS, "hosts", "limits", "shared", "proof",
    )  # fmt: skip
    assert [key for key in keys if f"`{key}`" not in PAGE] == []
