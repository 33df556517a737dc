"""Gives each text of a run, such as a thread's name, a number for the whole run."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from purgatorio_spec.trace.coded import Codes


class Texts:
    """A number for each distinct text, from 1. 0 means no text."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._last: pa.StringArray | None = None
        self._mapped: Codes = np.zeros(1, np.int32)

    @classmethod
    def of(cls, names: Iterable[str]) -> Texts:
        texts = cls()
        texts._known = {name: at for at, name in enumerate(names, 1)}
        return texts

    def __len__(self) -> int:
        return len(self._known) + 1

    def numbers(self, texts: pa.StringArray) -> Codes:
        """For each code in a batch, the number of the text. The last element is 0, for the code -1."""
        if self._last is None or not texts.equals(self._last):
            known = self._known
            some = [known.setdefault(text, len(known) + 1) for text in texts.to_pylist() if text is not None]
            self._mapped = np.array([*some, 0], np.int32)
            self._last = texts
        return self._mapped

    def names(self) -> list[str]:
        """The texts in the order of their numbers, from 1."""
        return list(self._known)
