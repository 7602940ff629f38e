"""Add ops to calls, tests, comparisons, comprehensions and lambdas."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race import effects
from gilscope.toolkit.race.analysis import known_names
from gilscope.toolkit.race.rewrite.partners import tested_attribute
from gilscope.toolkit.race.rewrite.site_collector import Role, call
from gilscope.toolkit.race.rewrite.transform_accesses import PLACES, AccessRewriter
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.analysis.scopes import Scope

_QUIET = effects.builtins_with(effects.Fact.QUIET)
_LOCK_METHODS = effects.LOCK_PAIRS.keys() | effects.LOCK_PAIRS.values()


class CallRewriter(AccessRewriter):
    """Transformer of calls."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call."""
        role = self.role("call", node)
        quiet = self.is_nonblocking(node)
        rewritten = self.plain_call(node)
        if not quiet:
            self.forget()
        if role is None:
            return rewritten
        return self.spanned(rewritten, node, role, node.func)

    def is_nonblocking(self, node: ast.Call) -> bool:
        """Return True if the call waits for no other thread, so that earlier reads need not be repeated."""
        if not isinstance(node.func, ast.Attribute):
            return self.is_builtin(node.func, *_QUIET)
        name = node.func.attr
        if name in self.pruned.summary.methods:
            return False
        looks_up = name == "get" and len(node.args) > 1 and not isinstance(node.args[0], ast.Constant)
        return looks_up or name in known_names.QUIET_METHODS

    def plain_call(self, node: ast.Call) -> ast.expr:
        """Rewrite a call without the ops of spans."""
        module, called = self.table.library_function(self.scope, node.func)
        library = effects.library_function(module, called)
        if library.effect and node.args and not self.is_plain(node.args[0]):
            return self.whole_call(node, called)
        if isinstance(node.func, ast.Attribute):
            node.func = self.method(node, node.func)
        elif self.is_builtin(node.func):
            return self.builtin_call(node, node.func.id)
        else:
            node.func = self.expr(node.func)
        self.arguments(node, self.iterated(node, library))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "enter_context" and len(node.args) == 1:
            node.args[0] = self.locking(node.args[0])
        return node

    def locking(self, node: ast.expr, method: str = "") -> ast.expr:
        """Return the rewritten expression with the op for locks, of which a method is called, else `with` enters it."""
        if isinstance(node, ast.Starred):
            return node
        return call("locking", node, *([ast.Constant(method)] if method else []), at=node)

    def is_library_made(self, node: ast.expr) -> bool:
        """Return True if only builtins and the standard library make the object, so that it is no foreign lock."""
        if isinstance(node, ast.Call):
            return self.is_builtin(node.func) or self.is_stdlib(node.func)
        return self.is_plain(node) or (isinstance(node, ast.Attribute | ast.Name) and self.pruned.is_library_made(node))

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
        key = self.read_whole.pop(node, "")
        return self.whole(node, key) if key else self.expr(node)

    def method(self, node: ast.Call, function: ast.Attribute) -> ast.Attribute:
        """Return the function of a method call, with an op for the container."""
        name = self.mangled(function.attr)
        arguments = known_names.ITEM_METHODS.get(name)
        if arguments == len(node.args) and not node.keywords and not self.is_plain(function.value):
            marker = self.sites.add("item_proxy", node, "", self.test, text=node)
            value = self.expr(function.value)
            function.value = call("item_proxy", value, marker, at=value)
            return function
        if name == "join" and len(node.args) == 1:
            self.read_whole[node.args[0]] = "join"
        own_self = self.pruned.is_own_self(function)
        if name in effects.CONTAINER_METHODS and not own_self and not self.is_plain(function.value):
            role = Role("method", node)
            marker = self.sites.add("method", node, name, self.test, role=role, text=function.value)
            value = self.expr(function.value)
            function.value = call("method", value, marker, at=value)
            return function
        if name in _LOCK_METHODS and not self.is_library_made(function.value):
            function.value = self.locking(self.expr(function.value), name)
            return function
        if name in self.table.stored_attributes and name not in effects.CONTAINER_METHODS:
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
        function = effects.BUILTINS.get(name, effects.Function())
        if function.effect == "show":
            for argument in node.args:
                if self.pruned.is_container(argument):
                    self.read_whole[argument] = name
        elif node.args and self.reads_whole(node, node.args[0], name):
            return self.whole_call(node, name)
        self.arguments(node, self.iterated(node, function))
        return node

    def reads_whole(self, node: ast.Call, argument: ast.expr, name: str) -> bool:
        """Return True if the builtin reads the size of its argument, or copies it, and needs an op."""
        if isinstance(argument, ast.Starred) or self.is_plain(argument):
            return False
        if name in effects.SNAPSHOTS:
            return isinstance(argument, PLACES) or self.role("size", node) is not None
        return name == "len" and (self.role("size", node) is not None or self.may_be_tested_by_caller(argument))

    def whole_call(self, node: ast.Call, name: str) -> ast.expr:
        """Rewrite a call that reads its first argument as a whole, or changes it in several steps."""
        text = self.sites.text.of(node.args[0])
        self.arguments(node)
        marker = self.sites.add("size", node, name, self.test, role=Role("size", node), text=text)
        node.args[0] = call("size", node.args[0], marker, at=node.args[0])
        return node

    def dynamic(self, node: ast.Call) -> ast.expr:
        """Rewrite getattr, setattr, delattr and hasattr."""
        name = node.args[1]
        key = name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""
        flags = Flag.NONE
        if len(node.args) > 2:    # setattr's value
            flags = self.constant(node.args[2])
            self.sites.store([node], node.args[2])
        marker = self.sites.add("dynamic", node, key, flags | self.test, text=node)
        self.arguments(node)
        return call("dynamic", node.func, marker, *node.args, at=node)

    @staticmethod
    def iterated(node: ast.Call, called: effects.Function) -> list[ast.expr]:
        """Return the arguments that a function iterates over."""
        if not called.iterates or (called.iterates == "only" and len(node.args) != 1):
            return []
        start = 1 if called.iterates == "rest" else 0
        stop = 1 if called.iterates in ("first", "only") else len(node.args)
        return [argument for argument in node.args[start:stop] if not isinstance(argument, ast.Starred)]

    def iterable(self, node: ast.expr) -> ast.expr:
        """Return the iterable, with the op `iterate` if it may be shared."""
        if self.is_fresh(node):
            return self.expr(node)
        marker = self.sites.add("iterate", node, text=node, role=Role("iterate", node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in effects.VIEWS:
            self.arguments(node)
            node.func.value = self.expr(node.func.value)   # the view's iteration says it all
            value: ast.expr = node
        else:
            value = self.expr(node)
        return call("iterate", value, marker, at=value)

    def is_fresh(self, node: ast.expr) -> bool:
        """Return True if the expression creates an object that no other thread can reach."""
        if self.is_plain(node) or isinstance(node, ast.BinOp):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return (node.func.attr in known_names.FRESH_METHODS or self.is_stdlib(node.func)
                    or (node.func.attr in effects.VIEWS and self.is_plain(node.func.value)))
        return isinstance(node, ast.Call) and self.is_builtin(node.func, *known_names.FRESH_CALLS)

    def has_token(self) -> bool:
        """Return True if the frame may have a token among its locals."""
        scope: Scope | None = self.scope.own_frame
        return any(self._within(scope, owner) for owner in self.tokens)

    @staticmethod
    def _within(scope: Scope | None, owner: Scope) -> bool:
        while scope is not None and scope is not owner:
            scope = scope.parent
        return scope is owner


class ExpressionRewriter(CallRewriter):
    """Transformer of expressions."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Rewrite `in` if a write may depend on it."""
        inside = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        container = node.comparators[0]
        if (tested := tested_attribute(node)) and self.role("access", node):
            marker = self.sites.add("attr_read", node, tested[1], self.test, text=node)
            owner = call("attr_read", self.expr(tested[0]), marker, at=tested[0])
            if isinstance(container, ast.Attribute):
                container.value = owner
            elif isinstance(container, ast.Call):
                container.args[0] = owner
            return node
        wanted = self.role("access", node) or (self.test & Flag.POLL) or self.may_be_tested_by_caller(container)
        if not inside or not wanted or isinstance(container, known_names.LITERALS) or self.is_plain(container):
            return self.generic_expr(node)
        marker = self.sites.add("contains", node, "", self.test, text=node)
        found = call("contains", self.expr(node.left), self.expr(container), marker, at=node)
        if isinstance(node.ops[0], ast.In):
            return found
        return ast.copy_location(ast.UnaryOp(ast.Not(), found), node)

    def truth(self, node: ast.expr, flag: Flag) -> ast.expr:
        """Return a test, with ops for the sizes of containers in it if a span or a loop needs them."""
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
        if role is None and (self.test & Flag.POLL or self.caller_decides) and isinstance(node, PLACES) \
                and self.pruned.is_container(node):
            role = Role("size", node)
        if role is None or self.is_plain(node) or (isinstance(node, ast.Call) and self.is_builtin(node.func)):
            return self.expr(node)
        return self.sized(self.expr(node), node, role)

    def _branch(self, node: ast.expr) -> ast.expr:
        before = set(self.read_before)
        value = self._truth(node)
        self.read_before &= before
        return value

    def optional(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression that is possibly not evaluated: its reads do not count afterwards."""
        before = set(self.read_before)
        value = self.expr(node)
        self.read_before &= before
        return value

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """Rewrite `not`, which may read a size."""
        return self._truth(node) if isinstance(node.op, ast.Not) else self.generic_expr(node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.expr:
        """Rewrite a value of an f-string."""
        node.value = self.whole(node.value, "format") if self.pruned.is_container(node.value) else self.expr(node.value)
        node.format_spec = node.format_spec and self.expr(node.format_spec)
        return node

    def visit_Starred(self, node: ast.Starred) -> ast.expr:
        """Rewrite a value that is unpacked into a display, or a target."""
        node.value = self.whole(node.value, "star") if isinstance(node.ctx, ast.Load) else self.expr(node.value)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """Rewrite `and`, `or`."""
        if self.caller_decides or any(self.role("size", value) for value in node.values):
            return self._truth(node)
        node.values = [self.optional(value) if index else self.expr(value) for index, value in enumerate(node.values)]
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """Rewrite a conditional expression."""
        node.test = self.truth(node.test, Flag.TEST)
        node.body, node.orelse = self.optional(node.body), self.optional(node.orelse)
        return node

    # Frames of their own, and places where other code runs.

    def visit_Await(self, node: ast.expr) -> ast.expr:
        """Rewrite an expression during which other code runs."""
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
        """Enter a function; return the state for `leave`."""
        state = (self.scope, self.active, self.test, self.first, self.read_before, self.caller_decides,
                 self.sites.function, self.sites.lines)
        self.scope, self.active, self.test, self.first, self.read_before = scope, True, Flag.NONE, first, set()
        self.caller_decides = getattr(scope.node, "name", "") in self.getters
        self.sites.function = scope.qualname
        return state

    def leave(self, state: tuple[Any, ...]) -> None:
        """Restore the state before `enter`."""
        (self.scope, self.active, self.test, self.first, self.read_before, self.caller_decides,
         self.sites.function, self.sites.lines) = state
