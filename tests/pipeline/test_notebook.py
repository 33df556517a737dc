"""The example notebook runs from top to bottom, and what its cells show is markup that cannot be injected into."""

import ast
import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from pipeline.test_report_page import ELEMENTS, Reader
from purgatorio_pipeline.judging import Judged
from purgatorio_pipeline.notebook import ShownCheck, history
from purgatorio_spec.show.counterexample import operation_rows
from purgatorio_spec.show.event_words import broken_here
from spec.shown_trace import lost_with_a_flag

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def shown(value: object) -> Reader:
    """The HTML that a notebook displays for a value. Only the elements of the page are allowed."""
    text: str = value._repr_html_()  # type: ignore[attr-defined]  # as Jupyter calls it: on anything that has it
    read = Reader(text)
    assert read.elements <= ELEMENTS - {"script", "html", "body"}
    assert not any(name.startswith("on") or name in {"src", "style"} for name, _ in read.attributes)
    return read


def cells() -> list[dict[str, Any]]:
    document = json.loads((EXAMPLES / "notebook.ipynb").read_text(encoding="utf-8"))
    assert (document["nbformat"], document["nbformat_minor"]) == (4, 5)
    found: list[dict[str, Any]] = document["cells"]
    assert len({cell["id"] for cell in found}) == len(found)
    return found


def run(source: str, names: dict[str, object]) -> object:
    """Runs a cell like a notebook: returns the value of a last expression."""
    tree = ast.parse(source)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "cell", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_the_example_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell after cell in its own folder: the verdicts it speaks of, one drawing each, and no stored output."""
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, object] = {}
    values, printed = [], io.StringIO()
    with redirect_stdout(printed):
        for cell in cells():
            if cell["cell_type"] == "code":
                assert (cell["outputs"], cell["execution_count"]) == ([], None)
                values.append(run("".join(cell["source"]), names))
    clean, buggy, operation, late = [value for value in values if value is not None]
    assert "✓ PASS" in shown(clean).text
    read = shown(buggy)
    assert f"✗ {broken_here('O4')}" in read.text
    assert "1,367 operations" in "".join(read.text)
    assert "svg" in shown(operation).elements
    assert "kafka-buggy-no-recheck VIOLATED ['O4']" in printed.getvalue()
    assert "O4  A ready operation does not wait" in printed.getvalue()
    assert "tasks fired" in str(late)


def test_the_style_stays_inside() -> None:
    """Every rule is inside the one class, so that the rest of the notebook does not change."""
    made = lost_with_a_flag()
    style = (
        ShownCheck(Judged(made.result(), made.examples(), []))
        ._repr_html_()
        .split("<style>")[1]
        .split("</style>")[0]
    )
    assert style.startswith(".purgatorio {")
    assert style.rstrip().endswith("}")
    depth = 0
    for at, sign in enumerate(style.strip()):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth > 0 or at < len(".purgatorio ") or at == len(style.strip()) - 1
    assert ":root" not in style


def test_a_history_is_one_operation() -> None:
    """Its events alone, nested; an operation that is not there is a KeyError that names it."""
    made = lost_with_a_flag()
    rows = operation_rows(made.table(), "op-116")
    assert [row.i for row in rows] == [event.i for event in made.events if event.id == "op-116"]
    assert rows[1].depth == 1
    with pytest.raises(KeyError, match="no-such"):
        history(EXAMPLES / "traces" / "kafka-clean-1k.parquet", "no-such")
