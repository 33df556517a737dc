"""The decorator `mypyc_attr`, which mypyc reads in the source. The package does not depend on mypyc.

CPython runs the source files directly. For the fast build, mypyc compiles the same files (see CONTRIBUTING.md). A
compiled class can have a subclass in plain Python only if the class and its bases are decorated with
`mypyc_attr(allow_interpreted_subclasses=True)`. mypyc accepts the decorator only from `mypy_extensions`. At run time,
the decorator of this module does nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import mypyc_attr as mypyc_attr
else:

    def mypyc_attr(*names, **values):
        """Without mypy_extensions: returns the class unchanged."""
        return lambda marked: marked
