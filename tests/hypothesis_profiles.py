"""The Hypothesis profiles of this tree, registered on import; `ci` is loaded.

`pytest --hypothesis-profile deep` chooses another. `ci` is derandomised: the same examples on every machine, so a red
build is red for its change. `deep` is 20,000 examples a machine; `nightly` takes fewer and longer ones, anew each time.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

settings.register_profile(
    "ci",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=_SLOW,
)
settings.register_profile(
    "deep", deadline=None, max_examples=20_000, stateful_step_count=40, suppress_health_check=_SLOW
)
settings.register_profile(
    "nightly", deadline=None, max_examples=3_000, stateful_step_count=80, suppress_health_check=_SLOW
)
settings.load_profile("ci")
