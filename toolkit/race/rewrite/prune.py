"""What needs no op, as nobody else can have it or nothing changes: decided before anything is rewritten."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite.escape_analysis import private_containers
from gilscope.toolkit.race.rewrite.known_names import INITIALIZERS
from gilscope.toolkit.race.rewrite.scopes.shared import mangle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.race.rewrite.function_summaries import Summary
    from gilscope.toolkit.race.rewrite.scopes.shared import Table, Variable

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LATER = (*_FUNCTIONS, ast.Lambda, ast.ClassDef, ast.GeneratorExp)
_UNDER_CONSTRUCTION = frozenset({"__init__", "__post_init__"})
_NO_CONTAINERS = frozenset({"object", "ABC", "Generic", "Protocol", "Thread", "Exception", "Enum"})


class Pruned:
    """Answers for one module."""

    def __init__(self, module: ast.Module, table: Table, summary: Summary) -> None:
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

    def is_private(self, variable: Variable) -> bool:
        """Return whether the variable is a local container that never escapes."""
        return variable in self.private

    def is_container(self, node: ast.expr) -> bool:
        """Return whether the module uses what the expression names like a container."""
        return self.summary.is_container(node)

    def is_own_self(self, function: ast.Attribute) -> bool:
        """Return whether the receiver is the `self` of a class that is no container."""
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
        """Yield the attributes that a constructor sets, and reads back, before anybody else can know the object."""
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


def _escapes(statement: ast.stmt, first: str, own: list[ast.Attribute]) -> bool:
    """Return whether anything but the object's own attributes is used of it, or by code that runs later."""
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
    """Return the names of classes that surely inherit from no container."""
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
