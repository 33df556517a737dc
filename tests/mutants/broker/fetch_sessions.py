"""Bugs of fetch sessions: what one remembers, forgets and tells."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from mutants.broker.client_visible_mutant import felt
from purgatorio_broker.network.fetch_sessions import FetchSession, FetchSessions, Place
from purgatorio_broker.network.fields import Fields
from purgatorio_stress.mutant.patch import edited, wrapped


class _Roomed(Fields):
    """What is asked of a partition, with the room of an earlier request."""

    def __init__(self, entity: object, room: int) -> None:
        super().__init__(entity)
        self._room = room

    def number(self, name: str, default: int = 0) -> int:
        return self._room if name == "partition_max_bytes" else super().number(name, default)


def _with_first_rooms(
    go_on: Callable[..., FetchSession | ErrorCode],
    self: FetchSessions,
    session_id: int,
    epoch: int,
    wanted: Mapping[Place, Fields],
    forgotten: Iterable[Place],
) -> FetchSession | ErrorCode:
    session = self._sessions.get(session_id)
    had = {} if session is None else session.wanted
    kept = {
        place: _Roomed(asked._entity, had[place].number("partition_max_bytes")) if place in had else asked
        for place, asked in wanted.items()
    }
    return go_on(self, session_id, epoch, kept, forgotten)


MUTANTS: Final = (
    felt("forgotten-partition-fetched", "what is taken out of a fetch session is fetched on", "F1 X4",
         edited(FetchSessions, "go_on", "session.wanted.pop(place, None)", "pass")),
    felt("session-stands-still", "a fetch session goes on from where each partition was added", "M1 F1",
         edited(FetchSessions, "go_on", "session.wanted.update(wanted)",
                "session.wanted = wanted | session.wanted")),
    felt("session-of-any-epoch", "a request of a fetch session that is not its next is taken", "F6",
         edited(FetchSessions, "go_on", "epoch != session.epoch", "False")),
    felt("start-untold", "a fetch session is not told that records were deleted", "F5",
         edited(FetchSession, "news", 'said.get("log_start_offset")', "0")),
    felt("session-error-untold", "a fetch session is told once what is wrong with a partition, and not again",
         "X4 F6",
         edited(FetchSession, "news", 'or said.get("error_code") ', "")),
    felt("one-forgotten", "of what a fetch session is to forget it forgets the first", "F1 F3",
         edited(FetchSessions, "go_on", "for place in forgotten:", "for place in [*forgotten][:1]:")),
    felt("session-healed-untold", "a fetch session is not told that nothing is wrong with a partition any more",
         "X4",
         edited(FetchSession, "news", "self.told[place] = marks",
                'if not said.get("error_code"):\n        self.told[place] = marks')),
    felt("session-forgotten", "a fetch session is forgotten behind its fifth request", "F6",
         edited(FetchSessions, "go_on", "if session is None:", "if session is None or session.epoch > 5:")),
    felt("closed-session-stays", "a fetch session that was closed is there still", "F6",
         edited(FetchSessions, "begin", "self._sessions.pop(session_id, None)",
                "self._sessions.pop(0 if epoch == CLOSES else session_id, None)")),
    felt("former-session-stays", "a fetch session in whose place another was begun is there still", "F6",
         edited(FetchSessions, "begin", "self._sessions.pop(session_id, None)",
                "self._sessions.pop(session_id if epoch == CLOSES else 0, None)")),
    felt("refused-counts", "a request that is not the next one of its fetch session counts as one", "F6",
         edited(FetchSessions, "go_on", "return ErrorCode.invalid_fetch_session_epoch",
                "session.epoch += 1; return ErrorCode.invalid_fetch_session_epoch")),
    felt("first-partition-first", "a fetch session without room for all brings the same partition each time", "F7",
         edited(FetchSessions, "go_on", "if place in session.wanted:", "if False:")),
    felt("deleted-untold-in-a-session", "a fetch session is not told that a topic is deleted for which it waits",
         "F8",
         edited(FetchSession, "news", 'said.get("error_code") or',
                'said.get("error_code", 0) not in (0, 3, 100) or',
                "moved = self", 'moved = not said.get("error_code") and self')),
    felt("first-room-kept", "a partition that is named again in a fetch session keeps the room that it had", "F7",
         wrapped(FetchSessions, "go_on", _with_first_rooms)),
    felt("forgotten-and-known",
         "what a session asks for again is told when it moves, as if it had not been taken out", "X4",
         edited(FetchSessions, "go_on", "session.told.pop(place, None)", "pass")),
)  # fmt: skip
