"""The outcomes that the explorer reaches in each scenario: all there are, where it searched completely.

Written from `explored_outcomes`; a test makes it anew. A scenario that is missing was too large to be searched, and
its outcomes are not held against any list.
"""

from collections.abc import Mapping
from typing import Final

__all__ = ["REACHABLE"]

REACHABLE: Final[Mapping[str, frozenset[str]]] = {}
