"""An adapter that imports its timer when it is made."""

import importlib


class ByName:
    def __new__(cls) -> object:  # type: ignore[misc]  # the timer itself is the adapter
        return importlib.import_module("own_clock_timers").Sound()
