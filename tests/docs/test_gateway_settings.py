"""Every setting of the gateway stands in its reference."""

from __future__ import annotations

from pathlib import Path

from extgate import gateway_callers, gateway_limits, gateway_settings, gateway_shared

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "gateway-settings.md").read_text()


def test_every_setting_stands_in_the_reference() -> None:
    keys = (
        *gateway_settings._READERS, *gateway_callers.KEYS, *gateway_callers._ISSUER, *gateway_limits._WHOLE,
        *gateway_limits._TIMES, *gateway_limits._CALLS, *gateway_shared.KEYS, "hosts", "limits", "shared", "proof",
    )  # fmt: skip
    assert [key for key in keys if f"`{key}`" not in PAGE] == []
