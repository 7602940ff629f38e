"""Local containers that never leave their function: no other thread can meet them, so nothing of them is reported."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite.known_names import VIEWS
from gilscope.toolkit.race.site import CONTAINER_METHODS

if TYPE_CHECKING:
    from gilscope.toolkit.race.rewrite.function_summaries import Summary
    from gilscope.toolkit.race.rewrite.scopes.shared import Scope, Table, Variable

_DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_MAKERS = frozenset({"list", "dict", "set", "sorted", "bytearray"})
_STDLIB_MAKERS = frozenset({"deque", "Counter", "defaultdict", "OrderedDict"})
_SPLITS = frozenset({"split", "rsplit", "splitlines"})
# Builtins that look at a container and keep nothing of it; the lazy ones do until they are used up.
_EAGER = frozenset({
    "len", "sum", "min", "max", "sorted", "any", "all", "list", "tuple", "set", "dict", "frozenset", "print", "str",
    "repr", "isinstance", "bool", "bytes", "bytearray",
})
_LAZY = frozenset({"enumerate", "zip", "map", "filter", "reversed", "iter"})
_METHODS = CONTAINER_METHODS | {
    "most_common", "elements", "union", "intersection", "difference", "symmetric_difference", "issubset",
    "issuperset", "isdisjoint", "total", "popitem",
}
_COPYING = frozenset({"extend", "update", "extendleft", "join", "union", "difference", "intersection"})
_TESTS = (ast.If, ast.While, ast.Assert, ast.IfExp)


def private_containers(table: Table, summary: Summary) -> set[Variable]:
    """Return the variables of functions that only ever hold a container nobody else has."""
    parents = _parents(table.module.node)
    mentions: dict[Variable, list[ast.Name]] = defaultdict(list)
    for scope, name in table.mentions:
        mentions[table.resolve(scope, name.id)].append(name)
    judge = _Judge(table, summary, parents)
    return {variable for variable, names in mentions.items() if judge.is_private(variable, names)}


def _parents(module: ast.AST) -> dict[ast.AST, ast.AST]:
    return {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr_context)}


class _Judge:
    def __init__(self, table: Table, summary: Summary, parents: dict[ast.AST, ast.AST]) -> None:
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
        """Return whether the expression makes a container."""
        if isinstance(value, ast.BinOp):
            return isinstance(value.left, ast.List) or isinstance(value.right, ast.List)
        if not isinstance(value, ast.Call):
            return isinstance(value, _DISPLAYS)
        function = value.func
        if isinstance(function, ast.Attribute):
            return function.attr in _SPLITS or (function.attr in _STDLIB_MAKERS
                                                and isinstance(function.value, ast.Name)
                                                and self.table.is_stdlib(scope, function.value.id))
        if not isinstance(function, ast.Name):
            return False
        return (function.id in _MAKERS and self.table.is_builtin(scope, function.id)) or (
            function.id in _STDLIB_MAKERS and self.table.is_stdlib(scope, function.id))

    def kept_here(self, name: ast.expr, parent: ast.AST, scope: Scope) -> bool:  # noqa: PLR0911  a list of cases
        """Return whether a use of the container keeps it in the function."""
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
        """Return whether only the truth of the expression is used."""
        if isinstance(parent, ast.UnaryOp):
            return True
        if isinstance(parent, ast.BoolOp):
            return self.is_tested(parent, self.parents[parent])
        return isinstance(parent, _TESTS) and parent.test is node

    def is_method(self, attribute: ast.Attribute) -> bool:
        """Return whether the attribute is a method being called, whose result does not hold the container."""
        called = self.parents[attribute]
        if not isinstance(called, ast.Call) or called.func is not attribute or attribute.attr not in _METHODS:
            return False
        return attribute.attr not in VIEWS or self.is_used_up(called)

    def is_used_up(self, node: ast.AST) -> bool:
        """Return whether a view or lazy iterator is iterated over on the spot."""
        parent = self.parents[node]
        if isinstance(parent, ast.For | ast.comprehension):
            return parent.iter is node
        if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
            return parent.func.id in _EAGER or (parent.func.id in _LAZY and self.is_used_up(parent))
        return isinstance(parent, ast.Compare)

    def is_copied(self, node: ast.Call, scope: Scope) -> bool:
        """Return whether a call that gets the container does not keep it."""
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
