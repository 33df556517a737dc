"""The Hypothesis profiles, registered by `register_profiles`: `ci`, `deep` and `nightly`.

`pytest --hypothesis-profile deep` chooses another. `ci` is derandomised: the same examples on every machine, so a red
build is red for its change. `deep` is 20,000 examples a test; `nightly` takes fewer and longer ones, anew each time.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, Phase, settings

_SLOW: Final = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)

CI: Final = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    stateful_step_count=30,
    suppress_health_check=_SLOW,
)
DEEP: Final = settings(
    deadline=None, max_examples=20_000, stateful_step_count=40, suppress_health_check=_SLOW
)
NIGHTLY: Final = settings(
    deadline=None, max_examples=3_000, stateful_step_count=80, suppress_health_check=_SLOW
)
HUNT: Final = settings(CI, phases=[Phase.generate], print_blob=False)
"""As `ci`, but what is found is not shrunk: a kill is a kill. The search ends at the first failure."""


def register_profiles() -> None:
    """Make them known to Hypothesis by name, and load `ci`."""
    settings.register_profile("ci", CI)
    settings.register_profile("deep", DEEP)
    settings.register_profile("nightly", NIGHTLY)
    settings.load_profile("ci")
