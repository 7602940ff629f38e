"""Loads, calls, comparisons and comprehensions with their ops."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from toolkit.race.rewrite import names
from toolkit.race.rewrite.base import Base
from toolkit.race.rewrite.sites import Role, call
from toolkit.race.site import CONTAINER_METHODS, Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.race.scopes import Scope

_PLACES = (ast.Name, ast.Attribute, ast.Subscript)


class Expressions(Base):
    """Rewrites expressions."""

    # Attributes, items, names.

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Rewrite a load of a watched variable; stores are their statement's business."""
        if isinstance(node.ctx, ast.Load):
            return self.variable_op("read", node, node, node.id, self.test)
        self.forget(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Rewrite a load or a store inside a target."""
        if isinstance(node.ctx, ast.Load):
            role = self.role("call", node)      # a property whose getter is half of a span
            text = self.sites.text.of(node) if role else ""
            loaded = self.load_attribute(node)
            return self.spanned(loaded, node, role, text) if role else loaded
        if not self.needs_op(node):
            node.value = self.expr(node.value)
            return node
        deleted = Flag.DELETE if isinstance(node.ctx, ast.Del) else Flag.NONE
        return self.attribute(node, "attr_write", deleted | self.multi)

    def attribute(self, node: ast.Attribute, op: str, flags: Flag) -> ast.Attribute:
        """Return the attribute of its object after the op."""
        marker = self.sites.add(op, node, self.mangled(node.attr), flags | self.in_init(node.value), text=node)
        self.forget_attribute(self.mangled(node.attr) if isinstance(node.ctx, ast.Store | ast.Del) else None)
        value = self.expr(node.value)
        node.value = call(op, value, marker, at=value)
        return node

    def load_attribute(self, node: ast.Attribute) -> ast.Attribute:
        """Rewrite a load, unless nothing can come of it."""
        if not self.needs_op(node) or self.again(node):
            node.value = self.expr(node.value)
            return node
        return self.attribute(node, "attr_read", self.test)

    def needs_op(self, node: ast.Attribute) -> bool:
        """Return whether the attribute may be shared and may change."""
        name = node.attr
        if self.is_plain(node.value) or node in self.pruned.attributes:
            return False
        return not (name.startswith("__") and name.endswith("__"))

    def again(self, node: ast.Attribute) -> bool:
        """Return whether this stretch of code has read the same attribute before, so that a second op tells nothing."""
        if not isinstance(node.value, ast.Name) or Role("access", node) in self.sites.plan.reads:
            return False
        variable = self.variable(node.value.id)
        if variable.place != "local" or variable in self.table.watched_cells:
            return False
        read = (node.value.id, self.mangled(node.attr))
        if read in self.noted:
            return True
        self.noted.add(read)
        return False

    def forget(self, name: str | None = None) -> None:
        """Forget what was read of one local, or of all: other code may run here."""
        self.noted = {read for read in self.noted if read[0] != name} if name else set()

    def forget_attribute(self, name: str | None) -> None:
        """Forget that an attribute of this name was read: it changes."""
        if name:
            self.noted = {read for read in self.noted if read[1] != name}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Rewrite a load, or a target inside a bigger one."""
        if self.is_plain(node.value) or self.is_type(node.value):
            return self.generic_expr(node)
        if isinstance(node.ctx, ast.Load):
            marker = self.sites.add("item_read", node, "", self.test, text=node)
            container = self.container(node)
            return call("item_read", container, self.key(node.slice), marker, at=node)
        deleted = Flag.DELETE if isinstance(node.ctx, ast.Del) else Flag.NONE
        return self.item_proxy(node, deleted | self.multi)

    def item_proxy(self, node: ast.Subscript, flags: Flag = Flag.NONE) -> ast.Subscript:
        """Return the target on a proxy of its container."""
        marker = self.sites.add("item_proxy", node, "", flags, text=node)
        container = self.container(node)
        node.value = call("item_proxy", container, marker, at=container)
        node.slice = self.expr(node.slice)
        return node

    def container(self, node: ast.Subscript) -> ast.expr:
        """Return the rewritten container of an item, whose size a span may need, too."""
        role = self.role("size", node.value)
        peeks = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        wanted = role or (peeks and self.asked and isinstance(node.ctx, ast.Load))
        text, value = node.value, self.expr(node.value)
        return self.sized(value, text, role) if wanted else value

    def sized(self, value: ast.expr, node: ast.expr, role: Role | None = None, key: str = "") -> ast.expr:
        """Return `size(value, S)`; the key says what looks at the container."""
        role = role or Role("size", node)
        return call("size", value, self.sites.add("size", node, key, self.test, role=role, text=node), at=value)

    def whole(self, node: ast.expr, key: str) -> ast.expr:
        """Return an expression all of whose items are looked at, if it is a container."""
        if not isinstance(node, _PLACES) or self.is_plain(node):
            return self.expr(node)
        shown = self.sites.text.of(node)
        value = self.expr(node)
        marker = self.sites.add("size", node, key, self.test, role=Role("whole", node), text=shown)
        return call("size", value, marker, at=value)

    def is_asked(self, node: ast.expr) -> bool:
        """Return whether a caller may act on the size or the keys of the container."""
        return self.asked and isinstance(node, _PLACES) and not self.is_plain(node)

    def is_type(self, node: ast.expr) -> bool:
        """Return whether the expression is a class, so that brackets make a generic alias."""
        if not isinstance(node, ast.Name):
            return False
        variable = self.variable(node.id)
        return variable.owner.bindings.get(variable.name) in ({"class"}, {"import", "class"})

    def key(self, node: ast.expr) -> ast.expr:
        """Return a subscript's key as an argument: slices become calls."""
        if isinstance(node, ast.Slice):
            parts = [self.expr(part) if part else ast.copy_location(ast.Constant(None), node)
                     for part in (node.lower, node.upper, node.step)]
            return call("slice_", *parts, at=node)
        if isinstance(node, ast.Tuple):
            node.elts = [self.key(element) for element in node.elts]
            return node
        return self.expr(node)

    def generic_expr(self, node: ast.expr) -> ast.expr:
        """Visit the parts only."""
        self.generic_visit(node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """Rewrite an assignment expression."""
        constant = self.constant(node.value)
        value = self.expr(node.value)
        node.value = self.variable_op("write", value, node, node.target.id, constant)
        self.forget(node.target.id)
        return node

    # Calls.

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call by what is called."""
        role = self.role("call", node)
        quiet = self.is_quiet(node)
        rewritten = self.plain_call(node)
        if not quiet:
            self.forget()
        if role is None:
            return rewritten
        return self.spanned(rewritten, node, role, node.func)

    def spanned(self, value: ast.expr, node: ast.expr, role: Role, text: ast.expr | str) -> ast.expr:
        """Return a getter's or setter's call between `begin` and what takes its accesses for one."""
        for op, wanted in (("reads", role in self.sites.plan.reads), ("writes", role in self.sites.plan.acts)):
            if wanted:
                marker = self.sites.add(op, node, "", self.test, role=role, text=text)
                value = call(op, call("begin", at=node), value, marker, at=node)
        return value

    def is_quiet(self, node: ast.Call) -> bool:
        """Return whether the call waits for nobody, so that what was read before it is still as read."""
        if not isinstance(node.func, ast.Attribute):
            return self.is_builtin(node.func, *names.QUIET)
        name = node.func.attr
        if name in self.pruned.summary.methods:
            return False
        looks_up = name == "get" and len(node.args) > 1 and not isinstance(node.args[0], ast.Constant)
        return looks_up or name in names.QUIET_METHODS

    def plain_call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call without what spans need."""
        module, called = self.table.library_function(self.scope, node.func)
        if called in names.REWRITING.get(module, ()) and node.args and not self.is_plain(node.args[0]):
            return self.look(node, called)
        if isinstance(node.func, ast.Attribute):
            node.func = self.method(node, node.func)
        elif self.is_builtin(node.func):
            return self.builtin_call(node, node.func.id)
        else:
            node.func = self.expr(node.func)
        self.arguments(node)
        return node

    def arguments(self, node: ast.Call, iterated: Sequence[ast.expr] = ()) -> None:
        """Rewrite a call's arguments, of which it iterates over some."""
        node.args = [self.iterable(argument) if argument in iterated else self.argument(argument)
                     for argument in node.args]
        for keyword in node.keywords:
            keyword.value = self.expr(keyword.value)

    def argument(self, node: ast.expr) -> ast.expr:
        """Rewrite one argument."""
        if isinstance(node, ast.Starred):
            node.value = self.whole(node.value, "star")
            return node
        key = self.looked_at.pop(node, "")
        return self.whole(node, key) if key else self.expr(node)

    def method(self, node: ast.Call, function: ast.Attribute) -> ast.Attribute:
        """Return the function of a method call: containers tell what happens to them."""
        name = self.mangled(function.attr)
        if names.ITEM_METHODS.get(name) == len(node.args) and not node.keywords and not self.is_plain(function.value):
            marker = self.sites.add("item_proxy", node, "", self.test, text=node)
            value = self.expr(function.value)
            function.value = call("item_proxy", value, marker, at=value)
            return function
        if name == "join" and len(node.args) == 1:
            self.looked_at[node.args[0]] = "join"
        if name in CONTAINER_METHODS and not self.is_plain(function.value) and not self.pruned.is_own_self(function):
            role = Role("method", node)
            marker = self.sites.add("method", node, name, self.test, role=role, text=function.value)
            value = self.expr(function.value)
            function.value = call("method", value, marker, at=value)
            return function
        if name in self.table.stored_attributes and name not in CONTAINER_METHODS:
            return self.load_attribute(function)
        function.value = self.expr(function.value)
        return function

    def builtin_call(self, node: ast.Call, name: str) -> ast.expr:
        """Rewrite a call of a builtin function."""
        if name in names.DYNAMIC and len(node.args) > 1 and not node.keywords:
            return self.dynamic(node)
        if name in names.NAMESPACES and not node.args and not node.keywords:
            return call("locals_", node, at=node) if self.has_token() else node
        if name == "next" and node.args and not isinstance(node.args[0], ast.Starred):
            marker = self.sites.add("advance", node, text=node.args[0])
            self.arguments(node)
            node.args[0] = call("advance", node.args[0], marker, at=node.args[0])
            return node
        if name in names.SHOWING:
            for argument in node.args:
                if self.pruned.is_container(argument):
                    self.looked_at[argument] = name
        elif node.args and self.is_looked_at(node, node.args[0], name):
            return self.look(node, name)
        self.arguments(node, self.iterated(node, name))
        return node

    def is_looked_at(self, node: ast.Call, argument: ast.expr, name: str) -> bool:
        """Return whether the builtin takes the size of its argument, or a copy, and that matters."""
        if isinstance(argument, ast.Starred) or self.is_plain(argument):
            return False
        if name in names.SNAPSHOTS:
            return isinstance(argument, _PLACES) or self.role("size", node) is not None
        return name == "len" and (self.role("size", node) is not None or self.is_asked(argument))

    def look(self, node: ast.Call, name: str) -> ast.expr:
        """Rewrite a call that looks at its first argument as a whole, or changes it in several steps."""
        text = self.sites.text.of(node.args[0])
        self.arguments(node)
        marker = self.sites.add("size", node, name, self.test, role=Role("size", node), text=text)
        node.args[0] = call("size", node.args[0], marker, at=node.args[0])
        return node

    def dynamic(self, node: ast.Call) -> ast.expr:
        """Rewrite getattr and its kin."""
        name = node.args[1]
        key = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
        flags = self.constant(node.args[2]) if len(node.args) > 2 else Flag.NONE   # noqa: PLR2004  setattr's value
        marker = self.sites.add("dynamic", node, key, flags | self.test, text=node)
        self.arguments(node)
        return call("dynamic", node.func, marker, *node.args, at=node)

    @staticmethod
    def iterated(node: ast.Call, name: str) -> list[ast.expr]:
        """Return the arguments that the builtin of this name iterates over."""
        start = names.ITERATING.get(name)
        if start is None or (name in names.ONLY_IF_ALONE and len(node.args) != 1):
            return []
        stop = 1 if name in names.ONE_ITERABLE or name in names.ONLY_IF_ALONE else len(node.args)
        return [argument for argument in node.args[start:stop] if not isinstance(argument, ast.Starred)]

    def iterable(self, node: ast.expr) -> ast.expr:
        """Return what is iterated over, in `iterate` when it may be shared."""
        if self.is_fresh(node):
            return self.expr(node)
        marker = self.sites.add("iterate", node, text=node, role=Role("iterate", node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names.VIEWS:
            self.arguments(node)
            node.func.value = self.expr(node.func.value)   # the view's iteration says it all
            value: ast.expr = node
        else:
            value = self.expr(node)
        return call("iterate", value, marker, at=value)

    def is_fresh(self, node: ast.expr) -> bool:
        """Return whether the expression makes a new object that nobody else has."""
        if self.is_plain(node) or isinstance(node, ast.BinOp):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return (node.func.attr in names.FRESH_METHODS or self.is_stdlib(node.func)
                    or (node.func.attr in names.VIEWS and self.is_plain(node.func.value)))
        return isinstance(node, ast.Call) and self.is_builtin(node.func, *names.FRESH_CALLS)

    def has_token(self) -> bool:
        """Return whether the frame may have a token among its locals."""
        scope: Scope | None = self.scope.own_frame
        return any(self._within(scope, owner) for owner in self.tokens)

    @staticmethod
    def _within(scope: Scope | None, owner: Scope) -> bool:
        while scope is not None and scope is not owner:
            scope = scope.parent
        return scope is owner

    # Tests and comparisons.

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite `in` where it decides something that depends on it."""
        inside = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        container = node.comparators[0]
        wanted = self.role("access", node) or (self.test & Flag.POLL) or self.is_asked(container)
        if not inside or not wanted or isinstance(container, names.LITERALS) or self.is_plain(container):
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
        if role is None and (self.test & Flag.POLL or self.asked) and isinstance(node, _PLACES) \
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

