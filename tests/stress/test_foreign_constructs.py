"""Each construct of the grammar: a race in it has two outcomes.

The files have small statements. `constructs.txt`: `§VALUE§` reads a shared attribute, in each field of the grammar that
is an expression. `uses.txt`: a shared list is read. `truths.txt`: a list is tested. `writes.txt`: a list is changed.
`binds.txt` and `names.txt`: a shared attribute, item, global or nonlocal variable `T` is bound.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from purgatorio_stress.explorer.dpor import explore_dpor
from purgatorio_stress.explorer.result import Limits
from purgatorio_stress.foreign.explored import _Program, explore_foreign
from purgatorio_stress.foreign.world import World

HERE = Path(__file__).parent

HEAD = """
import bisect, collections, contextlib, copy, functools, heapq, operator, pickle, random, threading
class Thing:
    def __init__(self, **names): self.__dict__.update(names)
    def act(self): pass
class Kind:
    def __init_subclass__(cls, **names): pass
@contextlib.contextmanager
def manager(given=1): yield given
class amanager:
    def __init__(self, given=1): self.given = given
    async def __aenter__(self): return self.given
    async def __aexit__(self, *error): pass
async def acount(given=1): yield given
async def aone(given=1): return given
def call(*args, **named): return args
def shown(value): return value if type(value) in (int, list, tuple) else type(value).__name__
def give(value): return value
def note(seen, read, value):
    seen.append(read)
    return value
def run(done):
    if hasattr(done, "send"):
        try: done.send(None)
        except StopIteration: pass
class Base:
    locked = False
    def __init__(self):
        self.flag, self.box, self.empty, self.seen, self.lock, self.x = 0, [1, 2], [], [], threading.Lock(), 0
        self.kind, self.result = Thing, None
        self.set_up()
    def set_up(self): pass
    def part(self): return self.empty
    def thread_a(self):
        with self.lock if self.locked else contextlib.nullcontext(): self.a()
    def thread_b(self):
        with self.lock if self.locked else contextlib.nullcontext(): self.b()
    def outcome(self): return self.result or self.seen
"""


def _statements(name: str) -> Iterator[tuple[str, str]]:
    """The name and the code of each statement of a file."""
    text = (HERE / "construct" / f"{name}.txt").read_text()
    if name == "constructs":
        for part in text.split("# ")[1:]:
            title, _, code = part.partition("\n")
            yield title, re.sub("§(.*?)§", r"note(seen, one.flag, \1)", code)
    else:
        for line in text.splitlines():
            yield line, line.replace("\\n", "\n")


def _method(head: str, code: str, deep: int) -> str:
    kind = "async def" if re.search(r"\b(await|async (for|with))\b", code) else "def"
    space = "    " * deep
    body = "".join(f"{space}    {line}\n" for line in code.splitlines())
    return f"{space}{kind} {head}:\n{body}"


TARGETS = ("one.x", "one.box[0]", "G", "N")


def _class(name: str, kind: str, code: str, target: str) -> str:
    """The source of the adapter for one statement."""
    acts = {
        "constructs": "self.flag, self.kind = 1, int",
        "uses": "self.box.append(3)",
        "truths": "self.empty.append(1)",
        "writes": "self.result = repr(self.alias)",
    }
    number = name.partition("_")[0]
    text = f"class {name}(Base):\n    def set_up(self):\n        N, self.alias = 0, self.box\n"
    code = re.sub(r"\bT\b", target.replace("G", f"G{number}"), code)
    declared = {"G": f"global G{number}\n", "N": "nonlocal N\n"}.get(target, "")
    text += _method("act(one, seen, box, empty)", f"{declared}x0 = 1\n{code}", 2)
    look = target.replace("G", f"G{number}") or "None"
    text += f"        def look(one):\n            try: return shown({look})\n"
    text += "            except (NameError, AttributeError): return 'gone'\n"
    text += "        self.act, self.look = act, lambda: look(self)\n"
    text += "    def a(self): run(self.act(self, self.seen, self.box, self.empty))\n"
    text += f"    def b(self): {acts.get(kind, 'self.result = self.look()')}\n"
    return f"{text}class {name}__locked({name}): locked = True\nG{number} = 0\n"


def _written(kinds: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """The source of a module with all statements, and the statement of each class."""
    text = HEAD
    classes: dict[str, str] = {}
    for kind in kinds:
        for title, code in _statements(kind):
            targets = {"binds": TARGETS, "names": TARGETS[2:]}.get(kind, ("",))
            for target in targets:
                if target in ("G", "N") and (" for T" in code or ": int" in code):
                    continue
                name = f"C{len(classes)}_{kind}"
                made = _class(name, kind, code, target)
                try:
                    compile(made, name, "exec")
                except SyntaxError:  # of a newer Python
                    continue
                text += made
                classes[name] = f"{title}  T={target}" if target else title
    return text, classes


@pytest.fixture(scope="module")
def source() -> tuple[str, dict[str, str]]:
    return _written(("constructs", "uses", "truths", "writes", "binds", "names"))


def _fields(kind: str) -> set[str]:
    """The fields of `ast` whose type is `kind`, or a list of it, as `Class.field`."""
    return {
        f"{name}.{field}"
        for name, node in vars(ast).items()
        if isinstance(node, type) and issubclass(node, ast.AST) and node._fields
        for field in re.findall(rf"\b{kind}[*?]? (\w+)", node.__doc__ or "")
    }


NOT_RUN = frozenset(
    # Annotations are not covered. The others are not in a module, or are read without a step by a later use.
    "FunctionDef.returns AsyncFunctionDef.returns arg.annotation AnnAssign.annotation Expression.body "
    "FunctionType.argtypes FunctionType.returns Interactive.body Module.body TypeAlias.name TypeVar.bound "
    "TypeVar.default_value ParamSpec.default_value TypeVarTuple.default_value".split()
)
BINDS_NO_VARIABLE = frozenset(
    "Attribute.attr Global.names Nonlocal.names Name.id keyword.arg arg.arg ImportFrom.module MatchClass.kwd_attrs "
    "alias.name TypeVar.name ParamSpec.name TypeVarTuple.name".split()
)


def test_each_field_of_the_grammar_has_a_statement() -> None:
    """Of the running Python, so that a new construct is not forgotten."""
    known = {title.split()[0] for title, _ in _statements("constructs")}
    assert _fields("expr") | _fields("stmt") == (known | NOT_RUN) & (_fields("expr") | _fields("stmt"))
    bound = {
        f"{type(node).__name__}.{field}"
        for _, code in _statements("names")
        for node in ast.walk(ast.parse(code))
        for field, value in ast.iter_fields(node)
        if value == "T"
    }
    assert _fields("identifier") - BINDS_NO_VARIABLE == bound & _fields("identifier") - BINDS_NO_VARIABLE


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.slow), 13], ids=["all", "a sample"])
def test_a_race_through_each_construct_has_two_outcomes(
    source: tuple[str, dict[str, str]], part: int, tmp_path: Path
) -> None:
    text, classes = source
    (tmp_path / "every_construct.py").write_text(text)
    first, *_ = chosen = list(classes)[::part]
    program = _Program(World(), ["every_construct"], f"every_construct:{first}", [str(tmp_path)], False)
    assert wrong_races(program, {name: classes[name] for name in chosen}) == []
    assert len(classes) > 350


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.slow), 71], ids=["all", "a sample"])
def test_a_race_through_each_method_has_two_outcomes(part: int) -> None:
    path = [str(HERE / "foreign_code")]
    program = _Program(World(), ["every_method"], "every_method:list__append__Writes__plain", path, False)
    cases = program.loader.adapter().CASES
    assert wrong_races(program, {name: name for name in list(cases)[::part]}) == []
    assert len(cases) > 4_000


FINALIZED = """
import weakref
class Thing: pass
class Finalized:
    def __init__(self):
        self.thing, self.gone = Thing(), []
        weakref.finalize(self.thing, self.gone.append, 1)
    def thread_a(self): self.thing = None
    def thread_b(self): self.seen = len(self.gone)
    def outcome(self): return self.seen
"""


def test_a_finalizer_runs_at_the_death_of_its_object(tmp_path: Path) -> None:
    (tmp_path / "finalized.py").write_text(FINALIZED)
    explored = explore_foreign(["finalized"], "finalized:Finalized", Limits(200, 30), path=[str(tmp_path)])
    assert set(explored.outcomes) == {"0", "1"}


def test_code_with_builtins_of_its_own_runs_and_is_no_pass(tmp_path: Path) -> None:
    text = "def run(text, names): return eval(compile(source=text, filename='x', mode='eval'), names)\nclass A:\n"
    text += "    def thread_a(self): self.seen = run('x.n + 1', {'__builtins__': {}, 'x': run})\n"
    (tmp_path / "own_builtins.py").write_text(
        f"{text}    def check(self): assert self.seen == 1\nrun.n = 0\n"
    )
    explored = explore_foreign(["own_builtins"], "own_builtins:A", Limits(200, 30), path=[str(tmp_path)])
    assert (explored.verdict.name, explored.uncontrolled) == (
        "UNKNOWN",
        ("eval with __builtins__ of its own",),
    )


def test_a_metaclass_without_a_hash_is_no_pass(tmp_path: Path) -> None:
    text = "class M(type):\n    def __eq__(cls, other): return cls is other\n"
    text += "class K(metaclass=M):\n    __slots__ = ('n',)\n"
    text += "class A:\n    def __init__(self): self.k = K()\n    def thread_a(self): self.k.n = 1\n"
    (tmp_path / "hashless.py").write_text(f"{text}    thread_b = thread_a\n    def check(self): pass\n")
    explored = explore_foreign(["hashless"], "hashless:A", Limits(200, 30), path=[str(tmp_path)])
    assert (explored.verdict.name, explored.uncontrolled) == ("UNKNOWN", ("M, a metaclass without a hash",))


def wrong_races(program: _Program, classes: dict[str, str]) -> list[str]:
    """Those classes whose two threads have one outcome, or fail with the lock."""
    wrong = []
    for name, title in classes.items():
        for made in (name, f"{name}__locked"):
            program._made_by = made
            program.outcomes.clear()
            program.world.forget()
            found = explore_dpor(program, Limits(500, 60)).found
            if (found and made != name) or (len(program.outcomes) < 2 and not found):
                wrong.append(f"{made}: {title}")
    assert not program.world.uncontrolled
    return wrong
