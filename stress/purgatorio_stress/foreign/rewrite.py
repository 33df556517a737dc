"""Rewrites the source of a module: the new source calls `hooks` at each use of data that threads may share.

Only bodies of functions are changed, because only one thread imports a module. The line numbers do not change, so
tracebacks and tables show the user's own lines.

Not covered: annotations, and statements in the body of a class (expressions there are covered). A `match` reads its
whole value in one step before each case.
"""

import ast
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, TypeVar

_BLIND: Final = frozenset("isinstance issubclass super callable type range id object".split())
"""Builtins that read no contents of their arguments, so a call is no step."""

_OF_CONTAINERS: Final = (ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.BitOr, ast.BitAnd, ast.BitXor)
"""Operators of containers, and `%` of strings, which reads the formatted value."""


_NO_CONTAINER: Final = (ast.Constant, ast.JoinedStr)
"""Expressions whose value gives access to no container."""

_TRUTHS: Final = (ast.Constant, ast.Compare, ast.BoolOp)
"""Expressions whose value is no container, or is tested inside."""

_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEEP: Final = (ast.MatchClass, ast.MatchSequence, ast.MatchMapping)
_CAPTURES: Final = (ast.MatchAs, ast.MatchStar, ast.MatchMapping)
_OWN_SCOPE: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

T = TypeVar("T", bound=ast.AST)


def assigned_names(tree: ast.AST) -> tuple[set[str], bool]:
    """The attributes that this code binds, and whether it may bind any attribute (by `setattr`, `exec`)."""
    names: set[str] = set()
    everything = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.attr)
            everything |= node.attr in ("__dict__", "__setattr__") or (
                node.attr == "__class__" and isinstance(node.ctx, ast.Store)
            )
        elif isinstance(node, ast.Name) and node.id in ("setattr", "vars", "delattr", "exec", "eval"):
            everything = True
        elif isinstance(node, ast.Global):
            names.update(node.names)
        elif isinstance(node, ast.FunctionDef) and any(map(_is_cached, node.decorator_list)):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            # The fields of a dataclass, which its `__init__` binds.
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            names.update(one.id for one in fields if isinstance(one, ast.Name))
        elif isinstance(node, ast.Assign):
            names.update(_slots(node))
    return names, everything


def _is_cached(decorator: ast.expr) -> bool:
    """Whether the decorator is `cached_property`, which binds the attribute at the first read."""
    return "cached_property" in (getattr(decorator, "id", ""), getattr(decorator, "attr", ""))


def _slots(node: ast.Assign) -> set[str]:
    if not any(isinstance(target, ast.Name) and target.id == "__slots__" for target in node.targets):
        return set()
    return {
        one.value
        for one in ast.walk(node.value)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def _bound(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that these nodes themselves bind."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        else:
            names.add(getattr(node, "name", None) or "")  # a definition, an `except`, a pattern
    return names


def _declared(kind: type[ast.Global | ast.Nonlocal], nodes: Iterable[ast.AST]) -> set[str]:
    return {name for node in nodes if isinstance(node, kind) for name in node.names}


def _of_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function or a module, without the insides of functions and classes in it."""
    left = list(body)
    while left:
        yield (node := left.pop())
        if isinstance(node, _COMPREHENSIONS):
            left += (one for one in ast.walk(node) if isinstance(one, ast.NamedExpr))
        elif not isinstance(node, _OWN_SCOPE):
            left += ast.iter_child_nodes(node)


@dataclass(frozen=True, slots=True)
class _Scope:
    """The variables of a function. `shared`: those that a function inside declares nonlocal. For each call of the
    function, the local variable `call` has an object that owns these."""

    own: set[str]
    globals: set[str]
    shared: set[str]
    call: str = ""
    is_class: bool = False

    @classmethod
    def of(cls, args: ast.arguments, body: list[ast.AST], call: str = "") -> "_Scope":
        nodes = list(_of_scope(body))
        others = _declared(ast.Global, nodes)
        own = _bound((*ast.iter_child_nodes(args), *nodes)) - others - _declared(ast.Nonlocal, nodes)
        inside = _declared(ast.Nonlocal, (node for one in body for node in ast.walk(one)))
        return cls(own, others, own & inside, call)


class Rewriter(ast.NodeTransformer):
    """Rewrites one module. `assigned`: the attributes that any code of the program binds. `everything`: it may bind any
    other attribute too."""

    def __init__(self, module: str, tree: ast.mod, assigned: frozenset[str], everything: bool) -> None:
        self._module = module
        self._assigned = assigned
        self._everything = everything
        self._depth = 0
        """The number of functions around. 0 in the body of a class: the names there are no local variables."""
        self._steps = False
        """Whether a function runs the expression."""
        self._scopes: list[_Scope] = []
        self._classes: list[str] = []
        self._number = 0
        self._bound = _bound(ast.walk(tree))
        # Another module may bind a variable of this module as an attribute.
        variables = _bound(one for one in _of_scope([tree]) if isinstance(one, ast.Name))
        self._globals = _declared(ast.Global, ast.walk(tree)) | (variables & assigned)

    def text(self, tree: ast.mod) -> None:
        """Rewrite the text that a function gives to `exec` or `eval`. It leaves no local names in its namespace."""
        with self._inside(_Scope(set(), set(), set())):
            self.generic_visit(tree)
        if isinstance(tree, ast.Module) and tree.body:
            first = [one for one in tree.body if getattr(one, "module", "") == "__future__"]
            rest = [one for one in tree.body if one not in first]
            clean = ast.Expr(_call("_pg_locals", tree.body[-1]))
            tree.body = [*first, _copied(ast.Try(rest or [ast.Pass()], [], [], [clean]), tree.body[-1])]

    # Definitions and blocks

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.bases = [self._expression(one) for one in node.bases]
        node.keywords = [self.visit(one) for one in node.keywords]
        self._decorate(node, _name("_pg_class"))
        depth, self._depth = self._depth, 0
        self._classes.append(node.name)
        nodes = list(_of_scope(node.body))
        others = _declared(ast.Global, nodes)
        own = _bound(nodes) - others - _declared(ast.Nonlocal, nodes)
        self._scopes.append(_Scope(own, others, set(), is_class=True))
        node.body = self._statements(node.body)
        self._scopes.pop()
        self._classes.pop()
        self._depth = depth
        return node

    def _decorate(
        self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, *before: ast.expr
    ) -> None:
        """Rewrite the decorators. If functions share the name, add one with the step of the binding, after `before`."""
        shared = self._owner(node.name)
        first = node.decorator_list[0] if node.decorator_list else node
        made = [] if shared is None else [_call("_pg_binds", node, shared, ast.Constant(node.name))]
        rest = [self._expression(one) for one in node.decorator_list]
        node.decorator_list = [*(_copied(one, first) for one in (*made, *before)), *rest]

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        self._decorate(node)
        node.args = self.visit(node.args)
        scope = _Scope.of(node.args, [*node.body], self._temporary())
        has_text = ast.get_docstring(node) is not None
        with self._inside(scope):
            node.body = self._statements(node.body)
        if scope.shared:
            made = _call("_pg_scope", node, ast.Constant(f"{self._module}:nonlocal"))
            node.body.insert(has_text, _assign(scope.call, made, node))
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self.visit_FunctionDef(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self.visit(node.args)
        with self._inside(_Scope.of(node.args, [node.body])):
            node.body = self._expression(node.body)
        return node

    @contextmanager
    def _inside(self, scope: _Scope) -> Iterator[None]:
        """The body of a function, which does not see the variables of a class around it."""
        before = self._scopes, self._depth, self._steps
        self._scopes = [*(one for one in self._scopes if not one.is_class), scope]
        self._depth += 1
        self._steps = True
        yield
        self._scopes, self._depth, self._steps = before

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Keep the annotation, which is text after `from __future__ import annotations`."""
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        """Add a case before each case with a deep pattern. Its guard makes the reads of the pattern and is False."""
        node.subject = self._expression(node.subject)
        if not self._depth:
            for case in node.cases:
                case.body = self._statements(case.body)
            return node
        subject = self._temporary()
        cases: list[ast.match_case] = []
        for case in node.cases:
            parts = list(ast.walk(case.pattern))
            names = {name for one in parts if isinstance(one, ast.MatchClass) for name in one.kwd_attrs}
            values = [
                self._expression(deepcopy(one)) for one in parts
                if isinstance(one, ast.Attribute) and self._is_assigned(one.attr)
            ]  # fmt: skip
            if values or any(isinstance(one, _DEEP) for one in parts):
                known = ast.Tuple([ast.Constant(name) for name in sorted(names)], ast.Load())
                no_args = ast.arguments([], [], None, [], [], None, [])
                reads = ast.Lambda(no_args, ast.Tuple(values, ast.Load()))
                asked = _call("_pg_match", node, _name(subject), known, *([reads] if values else []))
                cases.append(ast.match_case(ast.MatchAs(), asked, [ast.Pass()]))
            bound = [bind for one in parts for bind in self._captured(one)]
            if case.guard is not None or bound:
                tested = self._tested(case.guard or ast.Constant(True))
                both = ast.Tuple([*bound, tested], ast.Load())
                last = ast.Subscript(both, ast.Constant(-1), ast.Load())
                case.guard = _copied(last, node) if bound else tested
            case.body = self._statements(case.body)
            cases.append(case)
        node.cases = cases
        kept = _assign(subject, node.subject, node)
        node.subject = _name(subject)
        return [kept, _copied(node, node)]  # type: ignore[return-value]  # as `visit_Assign`

    def _captured(self, pattern: ast.AST) -> Iterator[ast.expr]:
        """The binding of a variable that functions share. The pattern gets a local name in its place."""
        field = "rest" if isinstance(pattern, ast.MatchMapping) else "name"
        name = getattr(pattern, field, None) if isinstance(pattern, _CAPTURES) else None
        if name is not None and self._owner(name):
            local = self._temporary()
            setattr(pattern, field, local)
            yield self._expression(ast.NamedExpr(_name(name, store=True), _copied(_name(local), pattern)))

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        """If functions share the name, bind it and delete it as statements, because these have steps."""
        name = node.name
        if name is not None and self._owner(name):
            node.name = self._temporary()
            none = _assign(name, ast.Constant(None), node)
            ending = [none, ast.Delete([ast.Name(name, ast.Del())])]
            body = ast.Try(node.body, [], [], ending)
            node.body = [_copied(one, node) for one in (_assign(name, _name(node.name), node), body)]
        self.generic_visit(node)
        return node

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        after: list[ast.stmt] = []
        for one in list(node.names):
            bound = one.asname or one.name.partition(".")[0]
            local = self._target(_copied(_name(bound, store=True), node), after)
            if isinstance(local, ast.Name) and local.id != bound:
                if one.asname is None and bound != one.name:
                    node.names.append(ast.alias(one.name, self._temporary()))
                    one.name = bound
                one.asname = local.id
        return [node, *after]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        return self.visit_Import(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> ast.AST:
        return self.visit_With(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.AST:
        """Move the binding of a target that is not a local name into the first statement of the `with` block."""
        for number, item in enumerate(node.items):
            item.context_expr = self._expression(item.context_expr)
            if self._depth and isinstance(node, ast.With):
                item.context_expr = _call("_pg_with", item.context_expr, item.context_expr)
            target = item.optional_vars
            if (
                not self._depth
                or target is None
                or (isinstance(target, ast.Name) and not self._owner(target.id))
            ):
                continue
            local = self._temporary()
            bound = ast.copy_location(ast.Assign([target], _name(local)), target)
            item.optional_vars = ast.copy_location(_name(local, store=True), target)
            rest = node.items[number + 1 :]
            if rest:
                node.body = [_copied(type(node)(rest, node.body), node)]
                del node.items[number + 1 :]
            node.body.insert(0, bound)
            break
        node.body = self._statements(node.body)
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.AST:
        """Add a step before the yield. Until this step, a `next` of another thread finds the generator running."""
        self.generic_visit(node)
        node.value = _call("_pg_yields", node, node.value or ast.Constant(None))
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for one in body:
            result = self.visit(one)
            if isinstance(result, list):
                done += result
            elif result is not None:
                done.append(result)
        return done

    def _expression(self, node: ast.expr) -> ast.expr:
        result: ast.expr = self.visit(node)
        return result

    # Expressions

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """As in the base class. The targets of a comprehension are its own variables."""
        if not isinstance(node, _COMPREHENSIONS):
            return super().generic_visit(node)
        targets = (part for one in node.generators for part in ast.walk(one.target))
        self._scopes.append(_Scope(_bound(targets), set(), set()))
        for one in list(node.generators) if self._steps else ():
            if not isinstance(one.target, ast.Name):
                # An unpacking reads the item: `for a, b in c` becomes `for x in c for a, b in (read(x),)`.
                local, whole = self._temporary(), ast.copy_location(ast.Tuple([], ast.Load()), one.iter)
                whole.elts = [self._unpacked(_copied(_name(local), one.target), [one.target])]
                inner = ast.comprehension(one.target, whole, one.ifs, 0)
                one.target, one.ifs = _copied(_name(local, store=True), one.target), []
                node.generators.insert(node.generators.index(one) + 1, inner)
        super().generic_visit(node)
        self._scopes.pop()
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.value = self._expression(node.value)
        if self._steps and isinstance(node.ctx, ast.Load) and self._is_assigned(node.attr):
            return _call("_pg_load", node, node.value, ast.Constant(self._mangled(node.attr)))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        node.value = self._expression(node.value)
        node.slice = self._expression(node.slice)
        if self._steps and isinstance(node.ctx, ast.Load):
            return _call("_pg_item", node, node.value, _key(node.slice))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        function = node.func
        node.args = [self._expression(one) for one in node.args]
        for keyword in node.keywords:
            value = self._expression(keyword.value)
            keyword.value = value if keyword.arg else self._looked_into(value)  # `**value`
        if not self._steps:
            node.func = self._expression(function)
            return node
        if isinstance(function, ast.Attribute) and not self._is_assigned(function.attr):
            thing = self._expression(function.value)
            name = ast.Constant(self._mangled(function.attr))
            return _call("_pg_call", node, thing, name, *node.args, keywords=node.keywords)
        node.func = self._expression(function)
        if (
            isinstance(function, ast.Name)
            and function.id == "vars"
            and "vars" not in self._bound
            and node.args
        ):
            return _call("_pg_vars", node, *node.args)
        if not (isinstance(function, ast.Name) and function.id in _BLIND and function.id not in self._bound):
            node.func = _call("_pg_callee", function, node.func)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if self._steps and len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            found = _call("_pg_in", node, node.left, node.comparators[0])
            if isinstance(node.ops[0], ast.In):
                return found
            return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)
        # A comparison may read the contents of both sides. With a number, it reads nothing.
        sides = [node.left, *node.comparators]
        read: set[int] = set()
        for at, op in enumerate(node.ops):
            holds = isinstance(op, ast.In | ast.NotIn)
            if holds or not (isinstance(op, ast.Is | ast.IsNot) or _is_number(*sides[at : at + 2])):
                read |= {at, at + 1}
        node.left, *node.comparators = [
            self._looked_into(one, "_pg_deep") if at in read else one for at, one in enumerate(sides)
        ]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        sides = (node.left, node.right)
        if (
            self._steps
            and isinstance(node.op, _OF_CONTAINERS)
            and (isinstance(node.op, ast.Mult) or not _is_number(*sides))
        ):
            hook = "_pg_deep" if isinstance(node.op, ast.Mod) else "_pg_look"
            node.left, node.right = [self._looked_into(one, hook) for one in sides]
        return node

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        node.value = self._looked_into(node.value, "_pg_deep")
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and self._steps:
            node.value = _call("_pg_spread", node.value, node.value)
        return node

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        pairs = zip(node.keys, node.values, strict=True)
        node.values = [self._looked_into(value) if key is None else value for key, value in pairs]
        return node

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        node.value = _call("_pg_yields", node, _call("_pg_from", node, self._expression(node.value)))
        return node

    def _looked_into(self, node: ast.expr, hook: str = "_pg_look") -> ast.expr:
        return _call(hook, node, node) if self._steps and not isinstance(node, _NO_CONTAINER) else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        node.values = [self._tested(one) for one in node.values]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        node.operand = (
            self._tested(node.operand) if isinstance(node.op, ast.Not) else self._expression(node.operand)
        )
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        node.test = self._tested(node.test)
        node.body = self._expression(node.body)
        node.orelse = self._expression(node.orelse)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        node.value = self._written(node.target.id, self._expression(node.value))
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        node.iter = self._expression(node.iter) if node.is_async else self._gone_over(node.iter)
        node.ifs = [self._tested(one) for one in node.ifs]
        after: list[ast.stmt] = []
        if self._steps:
            node.target = self._target(node.target, after)
        # The binding of a target that is no name is a call of a hook that returns None.
        node.ifs[:0] = [ast.UnaryOp(ast.Not(), one.value) for one in after if isinstance(one, ast.Expr)]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        owner = self._owner(node.id)
        if owner is not None and isinstance(node.ctx, ast.Load):
            asked = _call("_pg_read", node, owner, ast.Constant(node.id))
            return ast.copy_location(ast.BoolOp(ast.And(), [asked, node]), node)
        return node

    def _tested(self, node: ast.expr) -> ast.expr:
        done = self._expression(node)
        is_truth = isinstance(node, _TRUTHS) or isinstance(getattr(node, "op", None), ast.Not)
        return _call("_pg_test", node, done) if self._steps and not is_truth else done

    def _gone_over(self, node: ast.expr) -> ast.expr:
        done = self._expression(node)
        return _call("_pg_over", done, done) if self._steps else done

    # Statements

    def visit_If(self, node: ast.If | ast.While) -> ast.AST:
        node.test = self._tested(node.test)
        node.body = self._statements(node.body)
        node.orelse = self._statements(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.visit_If(node)
        if not self._depth:
            return node
        turns = self._temporary()
        node.body.insert(0, ast.copy_location(ast.Expr(_call("_pg_turn", node, _name(turns))), node))
        none = ast.List([ast.Constant(0), ast.Constant(0)], ast.Load())
        return [_assign(turns, none, node), node]  # type: ignore[return-value]  # as `visit_Assign`

    def visit_AsyncFor(self, node: ast.AsyncFor) -> ast.AST:
        return self.visit_For(node)

    def visit_For(self, node: ast.For | ast.AsyncFor) -> ast.AST:
        node.iter = self._gone_over(node.iter) if isinstance(node, ast.For) else self._expression(node.iter)
        first: list[ast.stmt] = []
        if self._depth and not (isinstance(node.target, ast.Name) and not self._owner(node.target.id)):
            local = self._temporary()
            bound = self.visit_Assign(ast.copy_location(ast.Assign([node.target], _name(local)), node.target))
            first = [_copied(one, node.target) for one in (bound if isinstance(bound, list) else [bound])]
            node.target = ast.copy_location(_name(local, store=True), node.target)
        node.body = [*first, *self._statements(node.body)]
        node.orelse = self._statements(node.orelse)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self._tested(node.test)
        if node.msg is not None:
            node.msg = self._expression(node.msg)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        node.value = self._expression(node.value)
        if not self._depth:
            return node
        if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
            node.value = self._unpacked(node.value, node.targets)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            return self._bind(node.targets[0], node.value, node)
        after: list[ast.stmt] = []
        node.targets = [self._target(target, after) for target in node.targets]
        return [node, *after]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self._expression(node.value)
            if self._depth and isinstance(node.target, ast.Attribute | ast.Subscript):
                return self._bind(node.target, node.value, node)
            if self._depth and isinstance(node.target, ast.Name):
                node.value = self._written(node.target.id, node.value)
        else:
            node.target = self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        node.value = self._expression(node.value)
        target = node.target
        if not self._depth:
            return node
        if isinstance(target, ast.Name):
            if not self._owner(target.id):
                return self._changed_in_place(target.id, node)
            now: ast.expr = self._expression(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            value, amount = self._temporary(), self._temporary()
            return [
                _assign(value, now, node),
                _assign(amount, self._looked_into(node.value), node),
                _copied(ast.AugAssign(_name(value, store=True), node.op, _name(amount)), node),
                _assign(target.id, self._written(target.id, ast.copy_location(_name(value), node)), node),
            ]
        thing, key, value, amount = (self._temporary() for _ in range(4))
        of, at, (load, store, _) = self._place(target)
        now = _call(load, node, _name(thing), _name(key))
        stored = _call(store, node, _name(value), _name(thing), _name(key))
        return [
            _assign(thing, of, node),
            _assign(key, at, node),
            _assign(value, now, node),
            _assign(amount, self._looked_into(node.value), node),
            _copied(ast.Expr(_call("_pg_change", node, _name(value))), node),
            _copied(ast.AugAssign(_name(value, store=True), node.op, _name(amount)), node),
            _copied(ast.Expr(stored), node),
        ]

    def _changed_in_place(self, name: str, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        """Rewrite `name += value` of a local variable, because its container may be shared."""
        if _is_number(node.value) and not isinstance(node.op, ast.Mult):
            return node
        amount = self._temporary()
        return [
            _assign(amount, self._looked_into(node.value), node),
            _copied(ast.Expr(_call("_pg_change", node, _name(name))), node),
            _copied(ast.AugAssign(_name(name, store=True), node.op, _name(amount)), node),
        ]

    def _unpacked(self, node: ast.expr, targets: list[ast.expr]) -> ast.expr:
        """Add the read of an unpacked value. The items of a tuple are read only if a nested target unpacks them."""
        parts = (one for target in targets for one in ast.walk(target))
        lists = [one for one in parts if isinstance(one, ast.Tuple | ast.List)]
        if len(lists) > len(targets):
            return self._looked_into(node, "_pg_deep")
        is_new = isinstance(node, ast.Tuple | ast.List) or not lists
        return node if is_new else _call("_pg_spread", node, node)

    def visit_Delete(self, node: ast.Delete) -> ast.AST | list[ast.stmt]:
        if not self._depth:
            return node
        done: list[ast.stmt] = []
        left = node.targets[::-1]
        while left:
            target = left.pop()
            if isinstance(target, ast.Tuple | ast.List):
                left += target.elts[::-1]
            elif isinstance(target, ast.Attribute | ast.Subscript):
                thing, key, (*_, delete) = self._place(target)
                done.append(_copied(ast.Expr(_call(delete, node, thing, key)), node))
            elif isinstance(target, ast.Name):
                if self._owner(target.id):
                    done.append(_copied(ast.Expr(self._written(target.id, ast.Constant(None))), node))
                done.append(_copied(ast.Delete([target]), node))
        return done

    def _bind(self, target: ast.Attribute | ast.Subscript, value: ast.expr, node: ast.stmt) -> ast.stmt:
        thing, key, (_, store, _) = self._place(target)
        return _copied(ast.Expr(_call(store, node, value, thing, key)), node)

    def _place(
        self, target: ast.Attribute | ast.Subscript
    ) -> tuple[ast.expr, ast.expr, tuple[str, str, str]]:
        """The object, the attribute's name or the key, and the hooks that read, bind and delete there."""
        thing = self._expression(target.value)
        if isinstance(target, ast.Attribute):
            return thing, ast.Constant(self._mangled(target.attr)), ("_pg_load", "_pg_store", "_pg_delete")
        return thing, _key(self._expression(target.slice)), ("_pg_item", "_pg_put", "_pg_drop")

    def _target(self, target: ast.expr, after: list[ast.stmt]) -> ast.expr:
        """Replace a shared target by a local name. Append the binding of the shared target to `after`."""
        if isinstance(target, ast.Tuple | ast.List):
            target.elts = [self._target(one, after) for one in target.elts]
        elif isinstance(target, ast.Starred):
            target.value = self._target(target.value, after)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            local = self._temporary()
            after.append(self._bind(target, _name(local), ast.copy_location(ast.Pass(), target)))
            return ast.copy_location(_name(local, store=True), target)
        elif isinstance(target, ast.Name) and self._owner(target.id):
            local = self._temporary()
            after.append(_assign(target.id, self._written(target.id, _copied(_name(local), target)), target))
            return ast.copy_location(_name(local, store=True), target)
        return target

    def _written(self, name: str, value: ast.expr) -> ast.expr:
        """The value that a variable gets. If functions share the variable, with the step of the write."""
        owner = self._owner(name)
        return value if owner is None else _call("_pg_write", value, owner, ast.Constant(name), value)

    def _owner(self, name: str) -> ast.expr | None:
        """The owner of a variable that functions share. None if it is a variable of one function."""
        for scope in reversed(self._scopes) if self._steps else ():
            if name in scope.globals:
                break
            if name in scope.own:
                return _name(scope.call) if name in scope.shared else None
        return ast.Constant(self._module) if self._steps and name in self._globals else None

    def _is_assigned(self, name: str) -> bool:
        return self._everything or name in self._assigned

    def _mangled(self, name: str) -> str:
        if self._classes and name.startswith("__") and not name.endswith("__"):
            return f"_{self._classes[-1].lstrip('_')}{name}"
        return name

    def _temporary(self) -> str:
        self._number += 1
        return f"_pg{self._number}"


def _call(hook: str, node: ast.AST, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.expr:
    made = ast.Call(ast.Name(hook, ast.Load()), list(args), keywords or [])
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _copied(made: T, node: ast.AST) -> T:
    return ast.fix_missing_locations(ast.copy_location(made, node))


def _assign(name: str, value: ast.expr, node: ast.AST) -> ast.stmt:
    return _copied(ast.Assign([_name(name, store=True)], value), node)


def _is_number(*sides: ast.expr) -> bool:
    """Whether one side is a constant other than a string: no container is compared with it or added to it."""
    return any(isinstance(one, ast.Constant) and not isinstance(one.value, str | bytes) for one in sides)


def _name(name: str, *, store: bool = False) -> ast.Name:
    return ast.Name(name, ast.Store() if store else ast.Load())


def _key(node: ast.expr) -> ast.expr:
    """A subscript as an expression. A slice becomes a call of `slice`."""
    if isinstance(node, ast.Slice):
        parts = [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)]
        return _call("_pg_slice", node, *parts)
    if isinstance(node, ast.Tuple):
        node.elts = [_key(one) for one in node.elts]
    return node
