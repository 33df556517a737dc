"""For each timer, bugs and the random programs that find them: a refused task is lost, two drains at once differ
from one, calls from inside a task do not count. (Random programs find no violation in the sound timers:
`test_drawn_programs`.)"""

import pytest

from mutants.kill_matrix.explored import hunt
from mutants.reference.mutant import Mutant
from purgatorio import (
    HashedWheel,
    HeapTimer,
    Purgatory,
    SystemTimer,
)
from purgatorio.timer.hashed_wheel import HashedEntry
from purgatorio.timer.intrusive.timer import TaskNode
from purgatorio.timer.intrusive.wheel import Wheel
from purgatorio_stress.mutant.patch import Patch, edited


def _twin(scenario: str, clauses: str, *patches: Patch, threads: bool = False) -> Mutant:
    return Mutant(0, scenario, "", "", scenario, tuple(clauses.split()), patches, interleaving=threads)


LOCK, POLL = "    with self._gate.write:\n", "    first = bucket = self._queue.poll()\n"
REFUSED = "1.2.0.0:1,3:add.0:refuse.1,step.3:"
AGAIN_BESIDE_CANCEL = "1.3.0.0:2:add.0,pass.2:cancel.0+add.0,drain.0:"
TWINS = (
    _twin(
        f"drawn:intrusive:{AGAIN_BESIDE_CANCEL}",
        "T1 T3",
        Patch(TaskNode, "is_wanted", lambda self: True),
        threads=True,
    ),
    _twin(
        f"drawn:hashed:{AGAIN_BESIDE_CANCEL}",
        "T1 T3",
        Patch(HashedEntry, "cancelled", lambda self: False),
        threads=True,
    ),
    _twin(
        "drawn:system:1.2.0.0:2,6:add.0,add.1:step.2+step.2:",
        "T1 T5",
        edited(SystemTimer, "advance_clock", f"{LOCK}    {POLL}", POLL + LOCK),
        threads=True,
    ),
    _twin(f"drawn:system:{REFUSED}", "T3", Patch(SystemTimer, "_keep", lambda self, refused, half: None)),
    _twin(f"drawn:hashed:{REFUSED}", "T3", Patch(HashedWheel, "_keep", lambda self, entry: None)),
    _twin(f"drawn:heap:{REFUSED}", "T3", edited(HeapTimer, "advance_clock", "self._offer(entry)", "pass")),
    _twin(f"drawn:intrusive:{REFUSED}", "T3", Patch(Wheel, "put_back", lambda self, dues: None)),
    _twin(
        "drawn:hashed:1.3.2.0:2,2,2:add.0,add.1:step.2:run.0=cancel.1,run.0=add.2,run.0=drain.0",
        "P3",
        edited(HashedWheel, "__init__", "sync.rlock", "sync.lock", "super()", "super(HashedWheel, self)"),
    ),
    _twin(
        "drawn:purgatory:1.1000.1.1:0.0.0::shutdown,register.0:",
        "O5 O8",
        edited(Purgatory, "_arm", "if not (self._complete", "if (self._complete"),
    ),
)


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_programs_find_it(twin: Mutant) -> None:
    """Two concurrent drains, an executor that refuses, a cancel during an add, calls from inside a task."""
    assert hunt(twin).killed
