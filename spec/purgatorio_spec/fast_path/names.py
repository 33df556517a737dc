"""Gives each name of an operation, a thread or a key a number for the whole run.

Names of idle operations are compressed in pages, like the other data of operations (see `paged`). For each compressed
name, a hash of eight bytes stays in memory. If the hash of a searched name is known, the page is decompressed and the
names are compared, so equal hashes cause no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import zstandard

from purgatorio_spec.fast_path import paged
from purgatorio_spec.trace.coded import Codes

_PAGE_BITS: Final = 24
"""The number of the 64 bits of a hash that have the number of the page instead."""
_PAGE: Final = np.uint64((1 << _PAGE_BITS) - 1)

Hashes = npt.NDArray[np.uint64]


class Names:
    """A number for each different name, from 1 on; 0 means no name."""

    def __init__(self) -> None:
        self._bits = paged.PAGE_BITS
        self._count = 1
        self._known: dict[str, int] = {}
        self._open: dict[int, list[str]] = {0: [""]}
        self._packed: dict[int, bytes] = {}
        self._hashed: dict[int, int] = {}
        self._hashes: list[Hashes] = []
        self._last: pa.StringArray | None = None
        self._mapped: Codes = np.zeros(1, np.int32)

    def __len__(self) -> int:
        return self._count

    def numbers(self, texts: pa.StringArray) -> Codes:
        """For each code in a batch, the number of the name. The last element is 0, for the code -1."""
        if self._last is None or not texts.equals(self._last):
            known = self._known
            some = [text for text in texts.to_pylist() if text is not None]
            missing = [text for text in some if text not in known]
            self._open_those_with(missing)
            self._add([text for text in dict.fromkeys(missing) if text not in known])
            self._mapped = np.fromiter(chain(map(known.__getitem__, some), (0,)), np.int32, len(some) + 1)
            self._last = texts
        return self._mapped

    def names(self) -> list[str]:
        """The names in the order of their numbers, from 1."""
        for page in self._packed:
            self._read(page)
        return [text for page in sorted(self._open) for text in self._open[page]][1:]

    def get(self, text: str) -> int:
        self._open_those_with([text])
        return self._known.get(text, 0)

    def close(self, is_open: Callable[[int], bool]) -> None:
        """Pack all pages except those that are open elsewhere."""
        for page in [page for page in self._open if not is_open(page)]:
            self._close(page)

    def packed(self) -> list[bytes]:
        self.close(lambda _: False)
        return [self._packed[page] for page in range(len(self._packed))]

    @classmethod
    def restored(cls, packed: Iterable[bytes]) -> Names:
        names = cls()
        names._open.clear()
        for page, data in enumerate(packed):
            names._packed[page] = data
            some = unpacked(data)
            names._hash(page, some)
            names._count = (page << names._bits) + len(some)
        return names

    def _add(self, texts: Sequence[str]) -> None:
        self._known.update(zip(texts, range(self._count, self._count + len(texts)), strict=True))
        at = 0
        while at < len(texts):
            page = self._count >> self._bits
            self._read(page)
            more = texts[at : at + (page + 1 << self._bits) - self._count]
            self._open[page].extend(more)
            at, self._count = at + len(more), self._count + len(more)

    def _open_those_with(self, texts: Sequence[str]) -> None:
        if not texts or not self._hashes:
            return
        hashes = _hashes(texts, 0)
        for run in self._hashes:
            first, last = np.searchsorted(run, hashes), np.searchsorted(run, hashes | _PAGE, side="right")
            for low, high in zip(first[last > first].tolist(), last[last > first].tolist(), strict=True):
                for page in (run[low:high] & _PAGE).tolist():
                    self._read(page)

    def _read(self, page: int) -> None:
        if page in self._open:
            return
        some = unpacked(self._packed[page]) if page in self._packed else []
        self._open[page] = some
        first = page << self._bits
        self._known.update((text, first + at) for at, text in enumerate(some) if first + at)

    def _close(self, page: int) -> None:
        some = self._open.pop(page)
        if self._hash(page, some):
            self._packed[page] = zstandard.ZstdCompressor(1).compress(orjson.dumps(some))
        for text in some[1 if page == 0 else 0 :]:
            del self._known[text]

    def _hash(self, page: int, some: Sequence[str]) -> bool:
        """Add the missing hashes of a page's names. Return whether a hash was missing."""
        hashed = self._hashed.get(page, 0)
        self._hashed[page] = len(some)
        if len(some) == hashed:
            return False
        run = np.sort(_hashes(some[hashed:], page))
        while self._hashes and len(self._hashes[-1]) <= 2 * len(run):
            run = np.sort(np.concatenate((self._hashes.pop(), run)), kind="stable")
        self._hashes.append(run)
        return True


def unpacked(packed: bytes) -> list[str]:
    """The names of a packed page. The name of number 0 is empty."""
    some: list[str] = orjson.loads(zstandard.ZstdDecompressor().decompress(packed))
    return some


def _hashes(texts: Sequence[str], page: int) -> Hashes:
    """Python's hash, which the writer of a trace cannot predict; its low bits are the page."""
    hashes = np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)
    return (hashes & ~_PAGE) | np.uint64(page)
