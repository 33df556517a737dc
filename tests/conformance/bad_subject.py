"""A subject that misbehaves in the one way that its argument names; run by the tests of the protocol's driver.

Without an argument it is a correct timer of virtual time: the twin of all the others. It imports nothing of ours: it
starts in half the time without.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
WAYS = (HERE / "misbehaviours.txt").read_text(encoding="utf-8")


def words(way: str) -> Iterator[tuple[str, str]]:
    """What stands in the program once, with what stands there instead."""
    told = re.search(rf"^{way}: .*\n((?:  .*\n)+)", WAYS, re.MULTILINE)
    assert told is not None, way
    if before := re.match(r"  after (\S+)\n", told[1]):
        yield from words(before[1])
    for parts in re.findall(r"((?:^  -.*\n)+)((?:^  \+.*\n)+)", told[1], re.MULTILINE):
        old, new = ("\n".join(line[4:] for line in part.splitlines()) for part in parts)
        yield old, new


program = (HERE / "timer_subject.py").read_text(encoding="utf-8")
for old, new in words(sys.argv[1]) if len(sys.argv) > 1 else ():
    assert program.count(old) == 1, old
    program = program.replace(old, new)
exec(compile(program, "timer_subject.py", "exec"))
