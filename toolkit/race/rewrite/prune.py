"""Accesses that need no op, because no other thread can reach the object or because nothing changes.

Decided for a whole module before anything of it is rewritten.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from gilscope.toolkit.race import effects
from gilscope.toolkit.race.analysis.known_names import INITIALIZERS
from gilscope.toolkit.race.analysis.scopes import mangle
from gilscope.toolkit.race.effects import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.race.analysis.scopes import Scope, ScopeTable, Variable
    from gilscope.toolkit.race.rewrite.function_summaries import ModuleSummary

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_SPLITS = frozenset({"split", "rsplit", "splitlines"})
_EAGER, _LAZY = effects.builtins_with(Fact.EAGER), effects.builtins_with(Fact.LAZY)
_COPYING = effects.methods_with(Fact.COPIES) | {"join"}
_TESTS = (ast.If, ast.While, ast.Assert, ast.IfExp)


def private_containers(table: ScopeTable, summary: ModuleSummary) -> set[Variable]:
    """Return the local variables that only hold containers which never leave their function."""
    parents = _parents(table.module.node)
    mentions: dict[Variable, list[ast.Name]] = defaultdict(list)
    for scope, name in table.mentions:
        mentions[table.resolve(scope, name.id)].append(name)
    judge = _EscapeCheck(table, summary, parents)
    return {variable for variable, names in mentions.items() if judge.is_private(variable, names)}


def _parents(module: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr_context)}


class _EscapeCheck:
    def __init__(self, table: ScopeTable, summary: ModuleSummary, parents: dict[ast.AST, ast.AST]) -> None:
        self.table, self.summary, self.parents = table, summary, parents

    def is_private(self, variable: Variable, names: list[ast.Name]) -> bool:
        owner = variable.owner
        if variable.place != "local" or owner.kind != "function" or variable in self.table.captured:
            return False
        if not owner.bindings[variable.name] <= {"assign", "augment", "del", "annotation"}:
            return False
        return all(self.harmless(name, owner) for name in names)

    def harmless(self, name: ast.Name, scope: Scope) -> bool:
        parent = self.parents[name]
        if isinstance(name.ctx, ast.Load):
            return self.kept_here(name, parent, scope)
        if isinstance(parent, ast.Assign):
            return parent.targets == [name] and self.is_fresh(parent.value, scope)
        if isinstance(parent, ast.AnnAssign):
            return parent.value is None or self.is_fresh(parent.value, scope)
        return isinstance(parent, ast.AugAssign | ast.Delete)

    def is_fresh(self, value: ast.expr, scope: Scope) -> bool:
        """Return True if the expression creates a container."""
        if isinstance(value, ast.BinOp):
            return isinstance(value.left, ast.List) or isinstance(value.right, ast.List)
        if not isinstance(value, ast.Call):
            return isinstance(value, _DISPLAYS)
        function = value.func
        if isinstance(function, ast.Attribute):
            return function.attr in _SPLITS or (function.attr in effects.LIBRARY_MAKERS
                                                and isinstance(function.value, ast.Name)
                                                and self.table.is_stdlib(scope, function.value.id))
        if not isinstance(function, ast.Name):
            return False
        return (function.id in effects.MAKERS and self.table.is_builtin(scope, function.id)) or (
            function.id in effects.LIBRARY_MAKERS and self.table.is_stdlib(scope, function.id))

    def kept_here(self, name: ast.expr, parent: ast.AST, scope: Scope) -> bool:  # noqa: PLR0911  a list of cases
        """Return True if a use of the container does not let it escape."""
        if isinstance(parent, ast.Subscript):
            return parent.value is name
        if isinstance(parent, ast.Attribute):
            return self.is_method(parent)
        if isinstance(parent, ast.Call):
            return name is not parent.func and self.is_copied(parent, scope)
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is name
        if isinstance(parent, ast.Return):
            return not self._is_generator(parent)
        if isinstance(parent, ast.Tuple):
            above = self.parents[parent]
            return isinstance(above, ast.Return) and not self._is_generator(above)
        if isinstance(parent, ast.Assign):
            return all(isinstance(target, ast.Tuple | ast.List) for target in parent.targets)
        if isinstance(parent, ast.keyword):
            return parent.arg is None
        if isinstance(parent, ast.Dict):
            return any(key is None and value is name for key, value in zip(parent.keys, parent.values, strict=True))
        return self.is_tested(name, parent) or isinstance(
            parent, ast.Compare | ast.BinOp | ast.FormattedValue | ast.Starred | ast.Expr | ast.AugAssign)

    def is_tested(self, node: ast.AST, parent: ast.AST) -> bool:
        """Return True if only the truth of the expression is used."""
        if isinstance(parent, ast.UnaryOp):
            return True
        if isinstance(parent, ast.BoolOp):
            return self.is_tested(parent, self.parents[parent])
        return isinstance(parent, _TESTS) and parent.test is node

    def is_method(self, attribute: ast.Attribute) -> bool:
        """Return True if the attribute is a called method whose result does not refer to the container."""
        called = self.parents[attribute]
        if not isinstance(called, ast.Call) or called.func is not attribute or attribute.attr not in effects.METHODS:
            return False
        return attribute.attr not in effects.VIEWS or self.is_used_up(called)

    def is_used_up(self, node: ast.AST) -> bool:
        """Return True if a view or lazy iterator is exhausted immediately."""
        parent = self.parents[node]
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            return parent.func.id in _EAGER or (parent.func.id in _LAZY and self.is_used_up(parent))
        return isinstance(parent, ast.Compare)

    def is_copied(self, node: ast.Call, scope: Scope) -> bool:
        """Return True if a call does not store a reference to the container."""
        function = node.func
        if isinstance(function, ast.Attribute):
            return function.attr in _COPYING and function.attr not in self.summary.methods
        if not isinstance(function, ast.Name) or not self.table.is_builtin(scope, function.id):
            return False
        return function.id in _EAGER or (function.id in _LAZY and self.is_used_up(node))

    def _is_generator(self, node: ast.AST) -> bool:
        while not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            node = self.parents[node]
        return any(isinstance(one, ast.Yield | ast.YieldFrom) for one in ast.walk(node))


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LATER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
_UNDER_CONSTRUCTION = frozenset({"__init__", "__post_init__"})
_NO_CONTAINERS = frozenset({"object", "ABC", "Generic", "Protocol", "Thread", "Exception", "Enum"})


class UnsharedNodes:
    """The nodes and variables of one module that need no op."""

    def __init__(self, module: ast.Module, table: ScopeTable, summary: ModuleSummary) -> None:
        self.summary = summary
        self.private = private_containers(table, summary)
        self.attributes: set[ast.Attribute] = set()    # of objects under construction
        self.restored: set[str] = set()                # attributes stored outside of initializers
        self._own: set[ast.Attribute] = set()          # on the `self` of a class that is no container
        classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
        plain = _plain_classes(classes)
        for node in classes:
            for method in node.body:
                if isinstance(method, _FUNCTIONS):
                    self._look_at(method, plain=node.name in plain)
        self._find_restored(module, None, initializing=False)
        self._library_made = _library_made(module, table)

    def is_library_made(self, node: ast.Attribute | ast.Name) -> bool:
        """Return True if all that the module stores under the name comes from calls of the standard library."""
        return _last_name(node) in self._library_made

    def is_private(self, variable: Variable) -> bool:
        """Return True if the variable is a local container that never escapes."""
        return variable in self.private

    def is_container(self, node: ast.expr) -> bool:
        """Return True if the module uses the named object as a container."""
        return self.summary.is_container(node)

    def is_own_self(self, function: ast.Attribute) -> bool:
        """Return True if the receiver is the `self` of a class that is no container."""
        return function in self._own

    def _look_at(self, method: ast.FunctionDef | ast.AsyncFunctionDef, *, plain: bool) -> None:
        arguments = [*method.args.posonlyargs, *method.args.args]
        if not arguments or _rebinds(method, arguments[0].arg):
            return
        first = arguments[0].arg
        if plain and not any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in method.decorator_list):
            self._own |= set(_attributes_of(method, first))
        if method.name in _UNDER_CONSTRUCTION:
            self.attributes |= set(self._before_escape(method.body, first))

    def _before_escape(self, body: Iterable[ast.stmt], first: str) -> Iterator[ast.Attribute]:
        """Yield the attributes that a constructor sets or reads before other code can reach the object."""
        stored: set[str] = set()
        for statement in body:
            own = list(_attributes_of(statement, first))
            stored |= {one.attr for one in own if isinstance(one.ctx, ast.Store)}
            if _escapes(statement, first, own) or not all(one.attr in stored for one in own):
                return      # what was not stored here may be a method or belong to the class
            yield from own

    def _find_restored(self, node: ast.AST, owner: str | None, *, initializing: bool) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.ClassDef) else owner
            inside = child.name in INITIALIZERS if isinstance(child, _FUNCTIONS) else initializing
            if isinstance(child, ast.Attribute) and not isinstance(child.ctx, ast.Load) and not initializing:
                self.restored.add(mangle(child.attr, owner))
            self._find_restored(child, inner, initializing=inside)


def _library_made(module: ast.Module, table: ScopeTable) -> set[str]:
    """Return the names of variables and attributes in which the module stores only what the library makes."""
    made: set[str] = set()
    other: set[str] = set()
    known: set[ast.expr] = set()       # targets of such stores; a tree is walked from the outside to the inside
    for node in ast.walk(module):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_of_library(node.value.func, table):
                known.update(targets)
        if isinstance(node, ast.Attribute | ast.Name) and not isinstance(node.ctx, ast.Load):
            (made if node in known else other).add(_last_name(node))
        elif isinstance(node, ast.arg):
            other.add(node.arg)
        elif isinstance(node, ast.alias):
            other.add(node.asname or node.name.partition(".")[0])
    return made - other


def _is_of_library(function: ast.expr, table: ScopeTable) -> bool:
    while isinstance(function, ast.Attribute):
        function = function.value
    return isinstance(function, ast.Name) and table.is_stdlib(table.module, function.id)


def _escapes(statement: ast.stmt, first: str, own: list[ast.Attribute]) -> bool:
    """Return True if the statement uses the object itself, or code that runs later uses its attributes."""
    known = {id(one.value) for one in own}
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == first and id(node) not in known:
            return True
        if isinstance(node, _LATER) and any(isinstance(one, ast.Name) and one.id == first for one in ast.walk(node)):
            return True
    return False


def _attributes_of(node: ast.AST, name: str) -> Iterator[ast.Attribute]:
    """Yield the attributes of a variable."""
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == name:
            yield one


def _rebinds(function: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name and not isinstance(one.ctx, ast.Load)
               for one in ast.walk(function))


def _plain_classes(classes: list[ast.ClassDef]) -> set[str]:
    """Return the names of classes that cannot inherit from a container."""
    plain: set[str] = set()
    for _ in classes:
        harmless = _NO_CONTAINERS | plain
        found = {node.name for node in classes if all(_last_name(base) in harmless for base in node.bases)}
        if found == plain:
            break
        plain = found
    names = [node.name for node in classes]
    return {name for name in plain if names.count(name) == 1}


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        node = node.value
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
