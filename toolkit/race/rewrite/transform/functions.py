"""Functions, classes and modules: what a frame starts with, and what of a class stays as it is."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite.sites import Role, call, statement
from gilscope.toolkit.race.rewrite.transform.statements import Statements
from gilscope.toolkit.race.site import CELLS

if TYPE_CHECKING:
    from collections.abc import Iterable

_STATIC_ATTRIBUTES = sys.version_info >= (3, 13)   # classes list what their methods store on a name `self`


class Rewriter(Statements):
    """Rewrites a module."""

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        """Rewrite a function's body; its decorators and annotations stay."""
        if self.active:
            node.args.defaults = [self.expr(default) for default in node.args.defaults]
            node.args.kw_defaults = [default and self.expr(default) for default in node.args.kw_defaults]
        scope = self.table.scopes[node]
        state = self.enter(scope, self.init_function(node))
        at, opening = node.body[0], self.opening(node)
        static = self.static_attributes(node)
        docstring = 1 if ast.get_docstring(node, clean=False) is not None else 0
        body = self.block(node.body[docstring:])
        node.body = [*node.body[:docstring], *opening, *self.entry(node, at), *static, *body]
        self.leave(state)
        return [node, *self.wrote(node, node.name)]

    visit_AsyncFunctionDef = visit_FunctionDef

    def opening(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module) -> list[ast.stmt]:
        """Return what gives a frame its token."""
        at = node.body[0]
        made: list[ast.stmt] = []
        if self.owns_cells():
            depth = sum(1 for owner in self.tokens if self._within(self.scope, owner))
            self.tokens[self.scope] = name = f"{CELLS}{depth or ''}"
            token = ast.copy_location(ast.Name(name, ast.Store()), at)
            made.append(ast.copy_location(ast.Assign([token], call("token", at=at)), at))
        return made

    def entry(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, at: ast.AST) -> list[ast.stmt]:
        """Return what ends the spans of the frame's predecessor, where the frame has spans."""
        if self.sites.function not in self.sites.acting:
            return []
        return [statement(call("enter", self.sites.add("enter", node, role=Role("enter", node)), at=at))]

    def owns_cells(self) -> bool:
        """Return whether closures share variables of this function that change."""
        return self.watch_cells and any(variable.owner is self.scope for variable in self.table.watched_cells)

    def static_attributes(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        """Return dead code that keeps the class's `__static_attributes__` as they are."""
        if not _STATIC_ATTRIBUTES or self.scope.mangler is None:
            return []
        stored = {one.attr: one for one in _own_nodes(node) if isinstance(one, ast.Attribute)
                  and isinstance(one.ctx, ast.Store) and isinstance(one.value, ast.Name) and one.value.id == "self"}
        if not stored:
            return []
        at = node.body[0]
        targets: list[ast.expr] = [ast.Attribute(ast.Name("self", ast.Load()), name, ast.Store()) for name in stored]
        dead = ast.If(ast.Constant(value=False), [ast.Assign(targets, ast.Constant(None))], [])
        return [_placed(dead, at)]

    def visit_ClassDef(self, node: ast.ClassDef) -> list[ast.stmt]:
        """Rewrite the functions of a class; what runs in its body stays."""
        scope, active, function = self.scope, self.active, self.sites.function
        self.scope, self.active = self.table.scopes[node], False
        node.body = self.block(node.body)
        self.scope, self.active, self.sites.function = scope, active, function
        return [node, *self.wrote(node, node.name)]

    def module(self, node: ast.Module) -> ast.Module:
        """Rewrite a module."""
        start = 1 if ast.get_docstring(node, clean=False) is not None else 0
        while start < len(node.body) and _is_future(node.body[start]):
            start += 1
        if start < len(node.body):
            at, opening = node.body[0], self.opening(node)
            body = self.block(node.body[start:])
            node.body = [*node.body[:start], *opening, *self.entry(node, at), *body]
        return node


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def _own_nodes(node: ast.AST) -> Iterable[ast.AST]:
    """Yield what belongs to a function itself but `x += v`; functions inside take care of their own."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.AugAssign) and child is node.target):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield from _own_nodes(child)


def _placed(node: ast.stmt, at: ast.AST) -> ast.stmt:
    for one in ast.walk(node):
        if isinstance(one, ast.expr | ast.stmt):
            ast.copy_location(one, at)
    return node
