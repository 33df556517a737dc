"""The layer `contracts`: the mutant's own arithmetic under the contracts of `purgatorio.arithmetic`, with CrossHair.

Where a patch replaces a function of the arithmetic kernel, its body is put into a copy of that one module, in the place
of the right one and under its `pre:` and `post:` lines, and CrossHair searches for integers that break them.
"""

import ast
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from mutants.kill_matrix.row import Kill
from mutants.reference.mutant import Mutant
from purgatorio_spec.proof.contracts import CONTRACTS, kernel_file, search_source
from purgatorio_spec.verdict import Verdict
from purgatorio_stress.mutant.patch import Patch

_BUDGET_S: Final = 5.0
_NOT_ARITHMETIC: Final = "no function with a contract is changed"
_FUNCTIONS: Final = frozenset(contract.function for contract in CONTRACTS)


def contract_kill(mutant: Mutant) -> Kill:
    """Searches the contracts of the functions that the mutant changes, with at most 5 s of CPU time for each
    condition."""
    patches = [patch for patch in mutant.patches if _is_arithmetic(patch)]
    if not patches:
        return Kill(False, reason=_NOT_ARITHMETIC)
    if find_spec("crosshair") is None:
        return Kill(False, reason="CrossHair is not installed")
    start = time.perf_counter()
    broken = [
        patch.attribute
        for patch in patches
        if (source := _with_body(patch)) is not None
        and search_source(source, patch.attribute, _BUDGET_S).verdict is Verdict.VIOLATED
    ]
    return Kill(bool(broken), ", ".join(f"X-{name}" for name in broken), seconds=time.perf_counter() - start)


def _is_arithmetic(patch: Patch) -> bool:
    return isinstance(patch.owner, ModuleType) and patch.attribute in _FUNCTIONS


def _with_body(patch: Patch) -> str | None:
    """The kernel's source with the patch's body; None where its parameters are named otherwise."""
    node = _parsed(patch)
    tree = ast.parse(kernel_file().read_text(encoding="utf-8"))
    place = next(one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name == patch.attribute)
    if node is None or [one.arg for one in node.args.args] != [one.arg for one in place.args.args]:
        return None
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    place.body = [place.body[0], *body]
    return ast.unparse(ast.fix_missing_locations(tree))


def _parsed(patch: Patch) -> ast.FunctionDef | ast.Lambda | None:
    """The new code. For a lambda, the expression, which must be the only one that starts in its line."""
    function = patch.replacement
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    tree, line = _tree(Path(code.co_filename)), code.co_firstlineno
    if patch.source:
        tree, line = ast.parse(patch.source), 1
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.Lambda)
        and node.lineno == line
        and getattr(node, "name", "<lambda>") == code.co_name
    ]
    return found[0] if len(found) == 1 else None


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))
