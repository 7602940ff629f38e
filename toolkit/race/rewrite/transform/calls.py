"""Calls with their ops: getters, methods of containers, builtins that iterate or look at a container."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite import known_names
from gilscope.toolkit.race.rewrite.sites import Role, call
from gilscope.toolkit.race.rewrite.transform.accesses import PLACES, Places
from gilscope.toolkit.race.site import CONTAINER_METHODS, Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.rewrite.scopes.shared import Scope


class Calls(Places):
    """Rewrites calls."""

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

    def is_quiet(self, node: ast.Call) -> bool:
        """Return whether the call waits for nobody, so that what was read before it is still as read."""
        if not isinstance(node.func, ast.Attribute):
            return self.is_builtin(node.func, *known_names.QUIET)
        name = node.func.attr
        if name in self.pruned.summary.methods:
            return False
        looks_up = name == "get" and len(node.args) > 1 and not isinstance(node.args[0], ast.Constant)
        return looks_up or name in known_names.QUIET_METHODS

    def plain_call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call without what spans need."""
        module, called = self.table.library_function(self.scope, node.func)
        if called in known_names.REWRITING.get(module, ()) and node.args and not self.is_plain(node.args[0]):
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
        arguments = known_names.ITEM_METHODS.get(name)
        if arguments == len(node.args) and not node.keywords and not self.is_plain(function.value):
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
        if name in known_names.DYNAMIC and len(node.args) > 1 and not node.keywords:
            return self.dynamic(node)
        if name in known_names.NAMESPACES and not node.args and not node.keywords:
            return call("locals_", node, at=node) if self.has_token() else node
        if name == "next" and node.args and not isinstance(node.args[0], ast.Starred):
            marker = self.sites.add("advance", node, text=node.args[0])
            self.arguments(node)
            node.args[0] = call("advance", node.args[0], marker, at=node.args[0])
            return node
        if name in known_names.SHOWING:
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
        if name in known_names.SNAPSHOTS:
            return isinstance(argument, PLACES) or self.role("size", node) is not None
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
        start = known_names.ITERATING.get(name)
        if start is None or (name in known_names.ONLY_IF_ALONE and len(node.args) != 1):
            return []
        stop = 1 if name in known_names.ONE_ITERABLE or name in known_names.ONLY_IF_ALONE else len(node.args)
        return [argument for argument in node.args[start:stop] if not isinstance(argument, ast.Starred)]

    def iterable(self, node: ast.expr) -> ast.expr:
        """Return what is iterated over, in `iterate` when it may be shared."""
        if self.is_fresh(node):
            return self.expr(node)
        marker = self.sites.add("iterate", node, text=node, role=Role("iterate", node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in known_names.VIEWS:
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
            return (node.func.attr in known_names.FRESH_METHODS or self.is_stdlib(node.func)
                    or (node.func.attr in known_names.VIEWS and self.is_plain(node.func.value)))
        return isinstance(node, ast.Call) and self.is_builtin(node.func, *known_names.FRESH_CALLS)

    def has_token(self) -> bool:
        """Return whether the frame may have a token among its locals."""
        scope: Scope | None = self.scope.own_frame
        return any(self._within(scope, owner) for owner in self.tokens)

    @staticmethod
    def _within(scope: Scope | None, owner: Scope) -> bool:
        while scope is not None and scope is not owner:
            scope = scope.parent
        return scope is owner
