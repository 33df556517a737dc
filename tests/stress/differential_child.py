"""Runs test modules of CPython in a process of its own, and prints the result of each test. Not a test.

    python differential_child.py plain|rewritten|live MODULE...

`rewritten`: the explorer rewrites the module. `live`: the hooks act as in a run, but no thread is switched.
"""

import importlib
import io
import json
import sys
import unittest
from contextlib import redirect_stdout
from types import ModuleType
from typing import Any

from purgatorio_stress.foreign.load import Loader
from purgatorio_stress.foreign.world import World


class Results(unittest.TestResult):
    """The kind of the result of each test, without its text."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: dict[str, str] = {}

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802  a name of unittest
        super().stopTest(test)
        failed = {str(one) for one, _ in (*self.failures, *self.errors) if str(one).startswith(str(test))}
        self.kinds[test.id()] = ", ".join(sorted(failed)) or "ok"


def nothing(*_: object, **__: object) -> None:
    pass


def rewritten(name: str, *, live: bool) -> ModuleType:
    world = World()
    module = Loader(world, [name], name, sys.path).adapter()
    if live:
        hooks: Any = world
        world.loading, world.run.live = False, True
        for one in ("point", "plain", "synchronise", "enters", "entered", "turn"):
            setattr(hooks, one, nothing)
    return module


def main(how: str, *names: str) -> None:
    found: dict[str, str] = {}
    for name in names:
        module = importlib.import_module(name) if how == "plain" else rewritten(name, live=how == "live")
        results = Results()
        with redirect_stdout(io.StringIO()):
            unittest.defaultTestLoader.loadTestsFromModule(module).run(results)
        found |= results.kinds
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
