"""The command `purgatorio clause`: explains a clause."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

import purgatorio_wire.clause
from purgatorio_pipeline.command.options import no_clause
from purgatorio_spec.clause.declaration import Clause
from purgatorio_spec.clause.registry import CLAUSES, WORDINGS_BY_PROFILE
from purgatorio_spec.profile import PROFILES
from purgatorio_spec.show.visible import WIDTH
from purgatorio_stress.mutant.own_patches import BadPatches, table_in
from purgatorio_wire.clause.registry import WIRE_CLAUSES, public_clauses
from purgatorio_wire.trace.record import PROFILE

ROOT: Final = Path(__file__).resolve().parents[3]
"""The checkout, if there is one. The command finds the lines of the reference, the tests and the mutants in it."""
MUTANTS: Final = ROOT / "tests" / "mutants"
NOTHING: Final = "none" if (ROOT / "tests").is_dir() else "not known: these lines are in a checkout only"


@click.command()
@click.argument("name", metavar="ID")
def command(name: str) -> None:
    """Explain the clause ID: the rules, the formulas, the judging code, and known bugs that break the clause.

    \b
      purgatorio clause O4
    """
    wordings = {**WORDINGS_BY_PROFILE[PROFILE], **public_clauses()}
    name = name.upper() if name.upper() in wordings else name
    if name not in wordings:
        raise click.UsageError(no_clause(name, wordings))
    title, promise = wordings[name]
    click.echo(_wrapped(f"{name}  {title or promise}", ""))
    if title and name not in CLAUSES:
        click.echo(_wrapped(promise, "    "))
    for title, lines in _story(name) if name in public_clauses() else _wire_story(name):
        click.echo(f"\n{title}")
        for line in lines:
            # A place in a file is not wrapped, so that it can be clicked and copied. The code after it is cut.
            whole = title in ("judged by", "implemented in", "negative controls") or line.startswith("see: ")
            click.echo(
                _cut(f"  {line}")
                if whole
                else _wrapped(line.lstrip(), "     " if line.startswith(" ") else "  ")
            )


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(
        text, WIDTH - 1, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )


def _cut(line: str) -> str:
    """Cuts the code after a place in a file, so that the line fits the terminal."""
    place = re.match(r" *\S+:\d+: ", line)
    if place is None or len(line) <= WIDTH:
        return line
    return f"{line[: max(WIDTH - 3, place.end())].rstrip()}..."


def _story(name: str) -> Iterator[tuple[str, list[str]]]:
    clause = CLAUSES.get(name)
    if clause is not None:
        yield "rules", [line for rule in _numbered(clause) for line in rule]
        if clause.words:
            yield "words of the formula", [f"{word}: {meaning}" for word, meaning in clause.words]
        yield "broken", [clause.example]
        yield "occasion", [f"{clause.occasion}."]
        if clause.unless:
            yield "not judged when", [*clause.unless]
        yield "exact conditions", [*_paragraphs(clause.judges.values())]
        yield "promised by", [", ".join(one for one, p in PROFILES.items() if name in p.clauses)]
        yield "needs", [", ".join((*clause.records, *(f"header {one}" for one in clause.constants)))]
        yield "judged by", [f"{_place(judge)}: {judge.__name__}" for judge in clause.judges.values()]
    kept = [
        re.sub(rf"(:\d+: ).*(?=\[{name}\])", r"\1", line)
        for folder in ("reference", "wire/purgatorio_broker")
        for line in _lines(ROOT / folder, lambda line: f"[{name}]" in line)
    ]
    nothing = [NOTHING]
    yield "implemented in", kept or nothing
    quoted = _tested(name)
    twins = _negative_controls(name, "spec")
    if clause is not None:  # the mutants of our broker name clauses of the wire only
        yield "broken by", _broken(name) or (["no mutant"] if MUTANTS.is_dir() else nothing)
        yield "negative controls", twins or nothing
    naming = [
        *_lines(ROOT / "tests", quoted, "test_*.py"),
        *_lines(ROOT / "tests/wire/days", quoted, "*.txt"),
    ]
    yield "tests", _tests(name, "spec/test_clause_twins.py" if twins else "", naming) or nothing


def _tests(name: str, first: str, naming: Iterable[str]) -> list[str]:
    """The tests of a clause: first that of its judging code, then those that name it, the most lines first."""
    named = Counter(line.partition(":")[0] for line in naming)
    twins = [f"tests/{first} -k {name.lower()}_ (its judging code)"] if first else []
    return [*twins, *(path for path, _ in named.most_common() if path != f"tests/{first}")]


def _numbered(clause: Clause) -> Iterator[list[str]]:
    for number, rule in enumerate(clause.rules, 1):
        yield [f"{number}. {rule}.", *([f" {rule.formula}"] if rule.formula else [])]


def _paragraphs(judges: Iterable[object]) -> Iterator[str]:
    """The paragraphs and list items of the docstrings of judging functions."""
    for judge in judges:
        parts = re.split(r"\n+(?=- )|\n\n", inspect.getdoc(judge) or "")
        yield from (" ".join(part.split()) for part in parts)


def _broken(name: str, *folders: str) -> list[str]:
    """The mutants that break the clause: the place, the name for `--mutant FOLDER:NAME`, and the bug. Before them, the
    command that shows the first."""
    found = []
    for folder in (MUTANTS / one for one in folders or ("reference", "broker")):
        try:
            table = table_in(folder) if folder.is_dir() else []
        except BadPatches as error:
            found.append(str(error))
            continue
        heads = _lines(folder, lambda line: re.match(r"[\w-]+: ", line) is not None, "*.txt")
        places = {line.split(": ")[1]: line.partition(": ")[0] for line in heads}
        for one in table:
            number = str(getattr(one, "number", ""))
            place = places.get(one.name) or places.get(number) or folder.relative_to(ROOT)
            if name in one.clauses:
                bug = f"--mutant {folder.relative_to(ROOT)}:{one.name}"
                scenario = getattr(one, "scenario", "")
                run = f"explore {scenario}/{getattr(one, 'dialect', '')}" if scenario else "broker"
                found += [] if found else [f"see: purgatorio {run} {bug}"]
                found.append(f"{place}: {one.name}: {one.what}")
    return found


def _wire_story(name: str) -> Iterator[tuple[str, list[str]]]:
    yield "basis", [f"{WIRE_CLAUSES[name].basis}; judged by `purgatorio wire HOST:PORT --only {name}`"]
    yield "causes", [WIRE_CLAUSES[name].causes]
    judges = dict(_functions(Path(inspect.getfile(purgatorio_wire.clause)).parent, f'"{name}"'))
    yield "judged by", [*judges]
    yield "exact conditions", list(filter(None, judges.values())) or ["as promised"]
    try:
        from purgatorio_wire.scene.catalogue import SCENES
    except ModuleNotFoundError as missing:
        yield "scenes", [f"{missing.name} is not installed: pip install 'purgatorio[wire]'"]
    else:
        asked = [f"{one.name}: {one.promise}" for one in SCENES.values() if name in one.clauses]
        yield "scenes", asked or ["every scene with an occasion"]
        yield "broken by", _broken(name, "broker") or ["no mutant" if MUTANTS.is_dir() else NOTHING]
    nothing = [NOTHING]
    twins = _negative_controls(name, "wire")
    yield "negative controls", twins or nothing
    files = _lines(ROOT / "tests" / "wire", lambda line: f'"{name}"' in line, "test_*.py")
    yield "tests", _tests(name, "wire/test_wire_clause_twins.py" if twins else "", files) or nothing


def _functions(folder: Path, text: str) -> Iterator[tuple[str, str]]:
    """The places and docstrings of the functions that contain the text, or the name of a constant of their module that
    contains it."""
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else ():
        lines = path.read_text(encoding="utf-8").splitlines()

        def holds(node: ast.stmt, wanted: str, lines: Sequence[str] = lines) -> bool:
            return re.search(wanted, "\n".join(lines[node.lineno - 1 : node.end_lineno])) is not None

        module = ast.parse("\n".join(lines))
        constants = [
            node.target for node in module.body if isinstance(node, ast.AnnAssign) and holds(node, text)
        ]
        wanted = "|".join([text, *(rf"\b{one.id}\b" for one in constants if isinstance(one, ast.Name))])
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and holds(node, wanted):
                place = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
                yield f"{place}:{node.lineno}: {node.name}", " ".join((ast.get_docstring(node) or "").split())


def _negative_controls(name: str, room: str) -> list[str]:
    story = re.compile(rf"{name.lower()}(_| |$)")
    found = _lines(ROOT / "tests" / room / "twins", lambda line: story.match(line) is not None, "*.txt")
    return [line.partition("  ")[0] for line in found]


def _place(judge: object) -> str:
    code = getattr(inspect.unwrap(judge), "__code__", None)  # type: ignore[arg-type]  # every judge is a function
    if code is None:
        return "?"
    path = Path(code.co_filename)
    return f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{code.co_firstlineno}"


BROKER_IDS: Final = re.compile(r"\bB(\d{3})\b(?: to B(\d{3}))?")


def _tested(name: str) -> Callable[[str], bool]:
    """Returns whether a line of a test names the clause: in quotes, or, for a clause B..., by its number or a range."""
    if name[0] != "B":
        return lambda line: f'"{name}"' in line
    number = int(name[1:])
    return lambda line: any(
        int(first) <= number <= int(last or first) for first, last in BROKER_IDS.findall(line)
    )


def _lines(folder: Path, wanted: Callable[[str], bool], names: str = "*.py") -> list[str]:
    found = []
    for path in sorted(folder.rglob(names)) if folder.is_dir() else ():
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if wanted(line):
                found.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return found
