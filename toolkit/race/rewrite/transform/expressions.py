"""Tests, comparisons, comprehensions and lambdas with their ops."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.rewrite import known_names
from gilscope.toolkit.race.rewrite.sites import Role, call
from gilscope.toolkit.race.rewrite.transform.accesses import PLACES
from gilscope.toolkit.race.rewrite.transform.calls import Calls
from gilscope.toolkit.race.site import Flag

if TYPE_CHECKING:
    from gilscope.toolkit.race.rewrite.scopes.shared import Scope


class Expressions(Calls):
    """Rewrites expressions."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite `in` where it decides something that depends on it."""
        inside = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        container = node.comparators[0]
        wanted = self.role("access", node) or (self.test & Flag.POLL) or self.is_asked(container)
        if not inside or not wanted or isinstance(container, known_names.LITERALS) or self.is_plain(container):
            return self.generic_expr(node)
        marker = self.sites.add("contains", node, "", self.test, text=node)
        found = call("contains", self.expr(node.left), self.expr(container), marker, at=node)
        if isinstance(node.ops[0], ast.In):
            return found
        return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)

    def truth(self, node: ast.expr, flag: Flag) -> ast.expr:
        """Return a test, with the size of containers in it where a span or a loop asks for it."""
        before, self.test = self.test, flag
        try:
            return self._truth(node)
        finally:
            self.test = before

    def _truth(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.BoolOp):
            node.values = [self._branch(value) if index else self._truth(value)
                           for index, value in enumerate(node.values)]
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            node.operand = self._truth(node.operand)
            return node
        role = self.role("size", node)
        if role is None and (self.test & Flag.POLL or self.asked) and isinstance(node, PLACES) \
                and self.pruned.is_container(node):
            role = Role("size", node)
        if role is None or self.is_plain(node) or (isinstance(node, ast.Call) and self.is_builtin(node.func)):
            return self.expr(node)
        return self.sized(self.expr(node), node, role)

    def _branch(self, node: ast.expr) -> ast.expr:
        before = set(self.noted)
        value = self._truth(node)
        self.noted &= before
        return value

    def maybe(self, node: ast.expr) -> ast.expr:
        """Return an expression that may not be evaluated: what it notes does not count afterwards."""
        before = set(self.noted)
        value = self.expr(node)
        self.noted &= before
        return value

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Rewrite `not`, which asks for a size."""
        return self._truth(node) if isinstance(node.op, ast.Not) else self.generic_expr(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """Rewrite what an f-string shows."""
        node.value = self.whole(node.value, "format") if self.pruned.is_container(node.value) else self.expr(node.value)
        node.format_spec = node.format_spec and self.expr(node.format_spec)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """Rewrite what is unpacked into a display, or a target."""
        node.value = self.whole(node.value, "star") if isinstance(node.ctx, ast.Load) else self.expr(node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Rewrite `and`, `or`."""
        if self.asked or any(self.role("size", value) for value in node.values):
            return self._truth(node)
        node.values = [self.maybe(value) if index else self.expr(value) for index, value in enumerate(node.values)]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Rewrite a conditional expression."""
        node.test = self.truth(node.test, Flag.TEST)
        node.body, node.orelse = self.maybe(node.body), self.maybe(node.orelse)
        return node

    # Frames of their own, and places where other code runs.

    def visit_Await(self, node: ast.expr) -> ast.expr:
        """Let other code run."""
        self.generic_visit(node)
        self.forget()
        return node

    visit_Yield = visit_YieldFrom = visit_Await

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """Rewrite a lambda's body."""
        if self.active:
            node.args.defaults = [self.expr(default) for default in node.args.defaults]
            node.args.kw_defaults = [default and self.expr(default) for default in node.args.kw_defaults]
        state = self.enter(self.table.scopes[node], first=None)
        node.body = self.expr(node.body)
        self.leave(state)
        return node

    def visit_comprehension_of(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.expr:
        """Rewrite a comprehension: its first iterable outside, the rest in its own scope."""
        first = node.generators[0]
        first.iter = self.iterable(first.iter) if not first.is_async else self.expr(first.iter)
        scope, test, self.test = self.scope, self.test, Flag.NONE
        self.forget()
        self.scope = self.table.scopes[node]
        function = self.sites.function
        if isinstance(node, ast.GeneratorExp):
            self.sites.function = self.scope.qualname
        for clause in node.generators:
            if clause is not first:
                clause.iter = self.iterable(clause.iter) if not clause.is_async else self.expr(clause.iter)
            clause.target = self.expr(clause.target)
            clause.ifs = [self.truth(one, Flag.TEST) for one in clause.ifs]
        for part in ("key", "value", "elt"):
            if getattr(node, part, None) is not None:
                setattr(node, part, self.expr(getattr(node, part)))
        self.scope, self.test, self.sites.function = scope, test, function
        self.forget()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_comprehension_of

    def enter(self, scope: Scope, first: str | None) -> tuple[Any, ...]:
        """Go into a function; return what `leave` needs."""
        state = (self.scope, self.active, self.test, self.first, self.noted, self.asked,
                 self.sites.function, self.sites.lines)
        self.scope, self.active, self.test, self.first, self.noted = scope, True, Flag.NONE, first, set()
        self.asked = getattr(scope.node, "name", "") in self.getters
        self.sites.function = scope.qualname
        return state

    def leave(self, state: tuple[Any, ...]) -> None:
        """Go back to where `enter` was called."""
        (self.scope, self.active, self.test, self.first, self.noted, self.asked,
         self.sites.function, self.sites.lines) = state

