"""Every day of the broker that `days` tells."""

from collections.abc import Callable

import pytest

from wire.broker_days import days, lived, variants

ALL = [(day, name, variant) for day, name in days() for variant in range(variants(day, name))]


@pytest.mark.parametrize(("day", "name", "variant"), ALL, ids=lambda one: getattr(one, "__name__", str(one)))
def test_a_day(day: Callable[[], object], name: str, variant: int) -> None:
    lived(day, name, variant)
