"""Scopes of a module: the variable that a name means, and the variables that threads may share.

Shared are globals and closure variables that change.  This works on syntax trees, which is all that the rewriter gets
from pytest; `symtable` needs source.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter, defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DECLARING = ("import", "def", "class")   # bindings that make a name a constant by habit
_BUILTIN_NAMES = frozenset(dir(builtins))


class Variable(NamedTuple):
    """Variable that a name means; `place` is "global", "local" (of a function or comprehension) or "class"."""

    place: str
    owner: Scope
    name: str


class Scope:
    """One scope: a module, function, class, comprehension, or the scope of type parameters."""

    def __init__(self, kind: str, node: ast.AST, parent: Scope | None, qualname: str, mangler: str | None) -> None:
        self.kind = kind                    # module, function, class, comprehension, generator, types
        self.node = node
        self.parent = parent
        self.qualname = qualname
        self.mangler = mangler              # the name of the class whose private names are mangled here
        self.bindings: dict[str, set[str]] = defaultdict(set)      # name -> how it is bound
        self.modules: dict[str, set[str]] = defaultdict(set)       # name -> top-level modules it is imported from
        self.origins: dict[str, str] = {}           # imported name -> dotted name of what it means: "subprocess.run"
        self.counts: Counter[str] = Counter()                      # name -> assignments on one path; loops count twice
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        self.loops = 0
        self.star = False

    @property
    def own_frame(self) -> Scope:
        """The scope whose frame runs this one's code, as comprehensions are inlined."""
        scope = self
        while scope.kind in ("comprehension", "types") and scope.parent:
            scope = scope.parent
        return scope


def mangle(name: str, owner: str | None) -> str:
    """Return an identifier as the compiler mangles it in the class `owner`."""
    if owner is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stripped = owner.lstrip("_")
    return f"_{stripped}{name}" if stripped else name


class ScopeWalk(ast.NodeVisitor):
    """Visitor that collects scopes, bindings and uses of names."""

    def __init__(self, module: ast.Module) -> None:
        self.scopes: dict[ast.AST, Scope] = {}
        self.scope = self.module = Scope("module", module, None, "", None)
        self.scopes[module] = self.module
        self.uses: list[tuple[Scope, str]] = []
        self.mentions: list[tuple[Scope, ast.Name]] = []      # every name but those of annotations
        self.outer_writes: list[tuple[Scope, str]] = []
        self.stored_attributes: set[str] = set()
        self.visit_body(module.body)

    def visit_body(self, body: Iterable[ast.stmt]) -> None:
        """Visit statements one after another."""
        for statement in body:
            self.visit(statement)

    def _name(self, name: str) -> str:
        return mangle(name, self.scope.mangler)

    def _bind(self, name: str, kind: str, scope: Scope | None = None) -> None:
        scope = scope or self.scope
        name = mangle(name, scope.mangler)
        if name in scope.globals or name in scope.nonlocals:
            self.outer_writes.append((scope, name))
            return
        scope.bindings[name].add(kind)
        if kind not in DECLARING:
            scope.counts[name] += 2 if scope.loops or kind == "augment" else 1

    @contextmanager
    def _inside(self, kind: str, node: ast.AST, name: str, mangler: str | None = None) -> Iterator[Scope]:
        outer = self.scope
        prefix = outer.qualname
        if prefix and outer.own_frame.kind != "class":
            prefix += ".<locals>"
        qualname = f"{prefix}.{name}" if prefix and name else name or outer.qualname
        self.scope = Scope(kind, node, outer, qualname, mangler or outer.mangler)
        self.scopes[node] = self.scope
        try:
            yield self.scope
        finally:
            self.scope = outer

    @contextmanager
    def _looping(self) -> Iterator[None]:
        scope = self.scope
        scope.loops += 1
        yield
        scope.loops -= 1

    def _either(self, *branches: Sequence[ast.AST]) -> None:
        """Visit branches of which one runs: an assignment in each counts once."""
        before = self.scope.counts
        most: Counter[str] = Counter()
        for branch in branches:
            self.scope.counts = Counter()
            for node in branch:
                self.visit(node)
            most |= self.scope.counts
        self.scope.counts = before + most

    def visit_Name(self, node: ast.Name) -> None:
        """Record a use or a binding."""
        self.mentions.append((self.scope, node))
        if isinstance(node.ctx, ast.Load):
            self.uses.append((self.scope, self._name(node.id)))
        else:
            self._bind(node.id, "del" if isinstance(node.ctx, ast.Del) else "assign")

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Record the names of stored attributes."""
        if not isinstance(node.ctx, ast.Load):
            self.stored_attributes.add(self._name(node.attr))
        self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Record that the target is read and written."""
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            self.mentions.append((self.scope, node.target))
            self.uses.append((self.scope, self._name(node.target.id)))
            self._bind(node.target.id, "augment")
        else:
            self.visit(node.target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Record the binding; a bare annotation makes a local as well."""
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)
        elif isinstance(node.target, ast.Name) and node.simple:
            name = self._name(node.target.id)
            if self.scope.kind != "module" and name not in self.scope.globals | self.scope.nonlocals:
                self.scope.bindings[name].add("annotation")
        else:
            self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Bind in the nearest scope other than a comprehension."""
        self.mentions.append((self.scope, node.target))
        self.visit(node.value)
        scope = self.scope
        while scope.kind in ("comprehension", "generator") and scope.parent:
            scope = scope.parent
        if scope is self.scope:
            self._bind(node.target.id, "assign")
        else:
            name = mangle(node.target.id, scope.mangler)
            self._bind(node.target.id, "assign", scope)
            self._bind(node.target.id, "assign", scope)     # comprehensions are loops
            if scope.kind == "function" and self.scope.own_frame is not scope:
                self.outer_writes.append((self.scope, name))

    def visit_Global(self, node: ast.Global) -> None:
        """Declare names as global."""
        if self.scope.kind != "module":
            self.scope.globals.update(map(self._name, node.names))

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        """Declare names as nonlocal."""
        self.scope.nonlocals.update(map(self._name, node.names))

    def visit_Import(self, node: ast.Import) -> None:
        """Bind modules."""
        for alias in node.names:
            top = alias.name.partition(".")[0]
            self._imported(alias.asname or top, top, alias.name if alias.asname else top)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Bind names imported from a module."""
        top = "." if node.level else (node.module or "").partition(".")[0]
        for alias in node.names:
            if alias.name == "*":
                self.scope.star = True
            else:
                self._imported(alias.asname or alias.name, top, f"{node.module}.{alias.name}" if not node.level else "")

    def _imported(self, name: str, module: str, origin: str) -> None:
        self._bind(name, "import")
        self.scope.modules[self._name(name)].add(module)
        self.scope.origins[self._name(name)] = origin

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        """Bind the exception's name."""
        if node.type:
            self.visit(node.type)
        if node.name:
            self._bind(node.name, "assign")
        self.visit_body(node.body)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        """Bind a capture."""
        if node.name:
            self._bind(node.name, "assign")
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        """Bind the rest."""
        if node.rest:
            self._bind(node.rest, "assign")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Visit one of two branches."""
        self.visit(node.test)
        self._either(node.body, node.orelse)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        """Visit the body or a handler."""
        self._either([*node.body, *node.orelse], *([handler] for handler in node.handlers))
        self.visit_body(node.finalbody)

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        """Visit one of the cases."""
        self.visit(node.subject)
        self._either(*([case] for case in node.cases))

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        """Visit a loop, whose assignments are repeated."""
        self.visit(node.iter)
        with self._looping():
            self.visit(node.target)
            self.visit_body(node.body)
        self.visit_body(node.orelse)

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> None:
        """Visit a loop, whose assignments are repeated."""
        with self._looping():
            self.visit(node.test)
            self.visit_body(node.body)
        self.visit_body(node.orelse)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Enter a function."""
        self._bind(node.name, "def")
        self._function(node, node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Enter a lambda."""
        self._function(node, "<lambda>")

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> None:
        arguments = node.args
        parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs,
                      *filter(None, (arguments.vararg, arguments.kwarg))]
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults), *decorators):
            self.visit(default)
        with self._type_parameters(node):
            for annotation in filter(None, [*(one.annotation for one in parameters), getattr(node, "returns", None)]):
                self.visit(annotation)
            with self._inside("function", node, name):
                for one in parameters:
                    self._bind(one.arg, "param")
                for part in node.body if isinstance(node.body, list) else [node.body]:
                    self.visit(part)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Enter a class."""
        self._bind(node.name, "class")
        for decorator in node.decorator_list:
            self.visit(decorator)
        with self._type_parameters(node):
            for base in (*node.bases, *node.keywords):
                self.visit(base)
            with self._inside("class", node, node.name, node.name):
                self.visit_body(node.body)

    def visit_TypeAlias(self, node: ast.TypeAlias) -> None:
        """Bind an alias; its value is a scope that is not rewritten."""
        self._bind(node.name.id, "def")
        with self._type_parameters(node):
            self.visit(node.value)

    @contextmanager
    def _type_parameters(self, node: ast.AST) -> Iterator[None]:
        parameters: list[ast.AST] = getattr(node, "type_params", [])
        if not parameters:
            yield
            return
        with self._inside("types", parameters[0], ""):
            for parameter in parameters:
                self._bind(parameter.name, "def")   # type: ignore[attr-defined]  # each kind of parameter has one
                self.generic_visit(parameter)
            yield

    def visit_GeneratorExp(self, node: ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) -> None:
        """Enter a comprehension; its first iterable belongs to the enclosing scope."""
        self.visit(node.generators[0].iter)
        generator = isinstance(node, ast.GeneratorExp)
        kind, name = ("generator", "<genexpr>") if generator else ("comprehension", "")
        with self._inside(kind, node, name), self._looping():
            for index, clause in enumerate(node.generators):
                if index:
                    self.visit(clause.iter)
                self.visit(clause.target)
                for test in clause.ifs:
                    self.visit(test)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                if part is not None:    # {**mapping for ...} of 3.15 has no value
                    self.visit(part)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp


class ScopeTable(ScopeWalk):
    """Table of all scopes of a module."""

    def __init__(self, module: ast.Module) -> None:
        super().__init__(module)
        self._settle()

    def resolve(self, scope: Scope, name: str) -> Variable:
        """Return the variable that the (mangled) name means in the scope."""
        if name in scope.globals:
            return Variable("global", self.module, name)
        here: Scope | None = scope.parent if name in scope.nonlocals else scope
        first = True
        while here is not None and here.kind != "module":
            if name in here.globals:
                break
            visible = here.kind != "class" or (first and here is scope)
            if visible and name in here.bindings and name not in here.nonlocals:
                return Variable("class" if here.kind == "class" else "local", here, name)
            first = False
            here = here.parent
        return Variable("global", self.module, name)

    def is_builtin(self, scope: Scope, name: str) -> bool:
        """Return True if the name means the builtin of that name."""
        return (name in _BUILTIN_NAMES and not self.module.star and name not in self.module.bindings
                and name not in self._globals_written and self.resolve(scope, name).place == "global")

    def is_stdlib(self, scope: Scope, name: str) -> bool:
        """Return True if only imports from the standard library bind the name."""
        owner = self.resolve(scope, name).owner
        return owner.bindings.get(name) == {"import"} and owner.modules[name] <= sys.stdlib_module_names

    def library_function(self, scope: Scope, function: ast.expr) -> tuple[str, str]:
        """Return module and name of a called function of the standard library, "" for other functions."""
        name = function.value if isinstance(function, ast.Attribute) else function
        if not isinstance(name, ast.Name) or not self.is_stdlib(scope, name.id):
            return "", ""
        owner = self.resolve(scope, name.id).owner
        called = function.attr if isinstance(function, ast.Attribute) else owner.origins[name.id].rpartition(".")[2]
        return min(owner.modules[name.id]), called

    def is_declared(self, scope: Scope, name: str) -> bool:
        """Return True if only imports, functions and classes bind the name."""
        kinds = self.resolve(scope, name).owner.bindings.get(name)
        return bool(kinds) and kinds <= set(DECLARING)   # type: ignore[operator]  # bool() of it excludes None

    def qualified_name(self, scope: Scope, node: ast.expr) -> str:
        """Return the dotted name of what an expression means by its imports, a builtin's name, or ""."""
        first, dot, rest = ast.unparse(node).partition(".")
        variable = self.resolve(scope, first)
        if origin := variable.owner.origins.get(first):
            return f"{origin}{dot}{rest}"
        builtin = not dot and first in _BUILTIN_NAMES and first not in self.module.bindings
        return first if builtin and variable.place == "global" else ""

    # Watched variables.

    def _settle(self) -> None:
        self._globals_written: set[str] = set()
        nonlocal_written: set[Variable] = set()
        for scope, name in self.outer_writes:
            variable = self.resolve(scope, name)
            if variable.place == "global":
                self._globals_written.add(name)
            else:
                nonlocal_written.add(variable)
        read_in_functions, captured = set(), set()
        for scope, name in self.uses:
            variable, frame = self.resolve(scope, name), scope.own_frame
            if variable.place == "global" and frame.kind in ("function", "generator"):
                read_in_functions.add(name)
            elif variable.place == "local" and variable.owner.kind == "function" and frame is not variable.owner:
                captured.add(variable)
        counts = self.module.counts
        self.watched_globals = self._globals_written | {
            name for name in read_in_functions if counts[name] > 1}
        self.captured = captured | nonlocal_written
        self.watched_cells = {variable for variable in captured | nonlocal_written if variable.owner.kind == "function"
                              and (variable in nonlocal_written or variable.owner.counts[variable.name] > 1)}
