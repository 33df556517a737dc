"""The source's hints for mypyc, without depending on it.

The same files are run by CPython as they are, and compiled by mypyc for the fast build (see CONTRIBUTING.md). A
compiled class is closed; `mypyc_attr(allow_interpreted_subclasses=True)`, on a class and on its bases, allows
subclasses in plain Python. mypyc recognizes the decorator by the name of its first module.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*names, **values):
        """No mark: the class as it is."""
        return lambda marked: marked
