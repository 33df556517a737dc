"""Columns in pages of operations. The least recently used pages are compressed.

A later event or gauge may need any operation, so the compression is lossless. A compressed operation takes 30 to 55
bytes instead of 350. At most `PAGES` pages are uncompressed, besides those of the current batch.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import numpy as np
import numpy.typing as npt
import zstandard

from purgatorio_spec.trace.coded import Codes, Flags, Ints

PAGE_BITS: Final = 12
PAGES: Final = 96
"""The maximum number of unpacked pages, of 4,096 numbers each: about 130 MB of a fold."""

Numbering = Codes | Ints
_SIZES: Final = (np.int8, np.int16, np.int32)


class Pages:
    """Columns with one value for each number, and one list of small numbers for each number. `empty`: the default value
    of each column. `beside`: for a column, another column with near values, so that the differences pack well. The
    other column is packed first.

    A *slot* is the present place of a number. It is valid from `slots` until the next `close`.
    """

    def __init__(self, empty: Mapping[str, np.generic], beside: Mapping[str, str]) -> None:
        self.count = 0
        """One more than the highest number."""
        self._bits, self._most = PAGE_BITS, PAGES
        self._empty, self._beside = dict(empty), beside
        self._firsts = dict.fromkeys(beside.values())
        self._order = [*self._firsts, *(name for name in empty if name not in self._firsts)]
        self._columns: dict[str, npt.NDArray[np.generic]] = {
            name: np.zeros(0, value.dtype) for name, value in empty.items()
        }
        self._list_from, self._list_size = np.zeros(0, np.int64), np.zeros(0, np.int32)
        self._lists, self._listed, self._left = np.zeros(64, np.int32), 0, 0
        self._frame, self._used = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._changed = np.zeros(0, bool)
        self._free: list[int] = []
        self._packed: dict[int, bytes] = {}
        self._now = 0

    def make_room(self, count: int) -> None:
        self.count = max(self.count, count)
        pages = (self.count - 1 >> self._bits) + 1
        while len(self._frame) < pages:
            frame = self._take()
            of = self._slots_of(frame)
            for name, column in self._columns.items():
                column[of] = self._empty[name]
            self._list_size[of] = 0
            self._frame, self._used = np.append(self._frame, frame), np.append(self._used, self._now)
            self._changed = np.append(self._changed, True)

    def slots(self, numbers: Numbering, *, change: bool = False) -> Ints:
        """The slots of these numbers. Packed pages are unpacked. `change`: the caller will change the values."""
        page = numbers >> self._bits
        there = np.flatnonzero(np.bincount(page, minlength=len(self._frame)))
        self._open(there)
        if change:
            self._changed[there] = True
        moved = self._frame - np.arange(len(self._frame)) << self._bits
        found: Ints = numbers + moved[page]
        return found

    def pages(self, *, used: bool = False) -> Iterator[tuple[int, slice]]:
        """Yield the first number of each page and its slots, which are valid until the next page. `used`: only pages
        that were opened since the columns were restored."""
        for page in np.flatnonzero(self._used >= 0).tolist() if used else range(len(self._frame)):
            self._open(np.array([page]))
            first = int(self._frame[page]) << self._bits
            number = page << self._bits
            yield number, slice(first, first + min(1 << self._bits, self.count - number))
            self.close()

    def close(self) -> None:
        """Pack the least recently used pages above the limit."""
        there = np.flatnonzero(self._frame >= 0)
        many = len(there) - self._most
        if many > 0:
            for page in there[np.argsort(self._used[there], kind="stable")[:many]].tolist():
                self._close(page)

    def is_open(self, page: int) -> bool:
        return page < len(self._frame) and bool(self._frame[page] >= 0)

    def packed(self) -> list[bytes]:
        for page in np.flatnonzero(self._frame >= 0).tolist():
            self._close(page)
        return [self._packed[page] for page in range(len(self._frame))]

    def restore(self, count: int, packed: Sequence[bytes]) -> None:
        self.count = count
        self._packed = dict(enumerate(packed))
        self._frame, self._used = np.full(len(packed), -1), np.full(len(packed), -1)
        self._changed = np.zeros(len(packed), bool)
        self._free = list(range(len(self._list_size) >> self._bits))

    def put_lists(self, slots: Ints, sizes: Ints, numbers: Ints) -> None:
        """Add lists for slots without a list. `numbers` has all lists one after the other."""
        end = self._listed + len(numbers)
        if end > len(self._lists):
            self._lists = np.concatenate((self._lists, np.zeros(max(end, len(self._lists)), np.int32)))
        self._lists[self._listed : end] = numbers
        self._list_from[slots] = self._listed + np.cumsum(sizes) - sizes
        self._list_size[slots] = sizes
        self._listed = end

    def lists(self, slots: Ints) -> tuple[Ints, Ints]:
        """For each number in the lists of these slots, the place of the slot in `slots`, and the number."""
        size = self._list_size[slots].astype(np.int64)
        place = np.repeat(np.arange(len(slots)), size)
        before = np.cumsum(size) - size
        at = np.arange(len(place)) - before[place] + self._list_from[slots][place]
        return place, self._lists[at].astype(np.int64)

    def _slots_of(self, frame: int) -> slice:
        return slice(frame << self._bits, frame + 1 << self._bits)

    def _open(self, pages: Ints) -> None:
        self._now += 1
        self._used[pages] = self._now
        for page in pages[self._frame[pages] < 0].tolist():
            frame = self._take()
            self._unpack(self._packed[page], self._slots_of(frame))
            self._frame[page] = frame

    def _take(self) -> int:
        if not self._free:
            had = len(self._list_size)
            more = max(1 << self._bits, had >> self._bits + 1 << self._bits)
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate((column, np.zeros(more, column.dtype)))
            self._list_from = np.concatenate((self._list_from, np.zeros(more, np.int64)))
            self._list_size = np.concatenate((self._list_size, np.zeros(more, np.int32)))
            self._free.extend(range(had >> self._bits, had + more >> self._bits))
        return self._free.pop()

    def _close(self, page: int) -> None:
        frame = int(self._frame[page])
        of = self._slots_of(frame)
        if self._changed[page]:
            self._packed[page] = self._pack(of)
            self._changed[page] = False
        self._frame[page] = -1
        self._free.append(frame)
        self._left += int(self._list_size[of].sum())
        self._list_size[of] = 0
        if self._left > self._listed // 2 + len(self._list_size):
            size = self._list_size.astype(np.int64)
            _, kept = self.lists(np.arange(len(size)))
            self._lists = np.append(kept, 0).astype(np.int32)
            self._list_from = np.cumsum(size) - size
            self._listed, self._left = len(self._lists) - 1, 0

    def _pack(self, of: slice) -> bytes:
        first: dict[str, Ints] = {}
        parts: list[Ints] = []
        for name in self._order:
            column, empty = self._columns[name][of], self._empty[name]
            numbers = column.astype(np.int64)
            if name in self._firsts:
                first[name] = numbers
                parts.append(np.diff(numbers, prepend=0))
                continue
            none: Flags = column == empty
            if name in self._beside:
                # Beyond 64 bits it wraps around, and back.
                numbers -= first[self._beside[name]]
            numbers[none] = 0
            parts += [none.astype(np.int64), numbers]
        _, numbers = self.lists(np.arange(of.start, of.stop))
        parts += [self._list_size[of].astype(np.int64), numbers]
        sizes, data = zip(*map(_narrow, parts), strict=True)
        return zstandard.ZstdCompressor(1).compress(bytes(sizes) + b"".join(data))

    def _unpack(self, packed: bytes, of: slice) -> None:
        data = zstandard.ZstdDecompressor().decompress(packed)
        at = 2 * len(self._order) - len(self._firsts) + 2
        sizes = iter(data[:at])

        def part(count: int) -> Ints:
            nonlocal at
            size = next(sizes)
            planes = np.frombuffer(data, np.uint8, count * size, at).reshape(size, count)
            at += count * size
            return _wide(planes)

        count = of.stop - of.start
        first: dict[str, Ints] = {}
        for name in self._order:
            if name in self._firsts:
                first[name] = np.cumsum(part(count))
                self._columns[name][of] = first[name]
                continue
            none, numbers = part(count) != 0, part(count)
            if name in self._beside:
                numbers += first[self._beside[name]]
            column = self._columns[name][of]
            column[:] = numbers
            column[none] = self._empty[name]
        size = part(count)
        self.put_lists(np.arange(of.start, of.stop), size, part(int(size.sum())))


def _narrow(numbers: Ints) -> tuple[int, bytes]:
    """In as few bytes each as hold them (none if all are 0), the first byte of all before the second."""
    if not numbers.any():
        return 0, b""
    low, high = int(numbers.min()), int(numbers.max())
    for kind in _SIZES:
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            numbers = cast("Ints", numbers.astype(kind))
            break
    size = numbers.itemsize
    return size, numbers.view(np.uint8).reshape(-1, size).T.tobytes()


def _wide(planes: npt.NDArray[np.uint8]) -> Ints:
    size, count = planes.shape
    if not size:
        return np.zeros(count, np.int64)
    kind = np.dtype(f"i{size}")
    return np.ascontiguousarray(planes.T).view(kind).reshape(count).astype(np.int64)
