"""Settings that all tests share."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Machines are shared and noisy: how long one example takes says nothing of the code.
settings.register_profile("extgate", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("extgate")
