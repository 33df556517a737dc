"""Hypothesis settings for results that must be equal on every machine."""

from typing import Final

from hypothesis import HealthCheck, Phase, settings

SLOW: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

CI: Final = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=SLOW,
)
HUNT: Final = settings(CI, phases=[Phase.generate], print_blob=False)
"""The same as `CI`, without shrinking. The search ends at the first failure."""
