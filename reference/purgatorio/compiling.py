"""Decorators and types that mypyc reads in the source. The package does not depend on mypyc.

CPython runs the source files directly. For the fast build, mypyc compiles the same files (see CONTRIBUTING.md). A
compiled class can be subclassed in plain Python only if it and its bases have
`mypyc_attr(allow_interpreted_subclasses=True)`. mypyc recognizes the decorator by the module that it is first
imported from, here `mypy_extensions`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*names, **values):
        """No mark: the class as it is."""
        return lambda marked: marked
