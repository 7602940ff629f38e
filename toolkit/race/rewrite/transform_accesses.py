"""Replace accesses to attributes, items and variables by ops; the state of the walk that all transformers share."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from gilscope.toolkit.race.analysis.known_names import ENVIRON, INITIALIZERS, LITERALS
from gilscope.toolkit.race.analysis.scopes import FUNCTIONS, Scope, ScopeTable, Variable, mangle
from gilscope.toolkit.race.rewrite.site_collector import Role, SiteCollector, call
from gilscope.toolkit.race.site import CELLS
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.race.rewrite.prune import UnsharedNodes

_ENTERED = (*FUNCTIONS, ast.ClassDef)
_CONSTANT_KINDS = (ast.UAdd, ast.USub, ast.Invert, ast.Not)


class RewriterBase(ast.NodeTransformer):
    """Base of the transformers: the state of the walk, and predicates for nodes that need no op."""

    def __init__(self, table: ScopeTable, sites: SiteCollector, pruned: UnsharedNodes, *, cells: bool) -> None:
        self.table = table
        self.sites = sites
        self.pruned = pruned
        self.watch_cells = cells
        self.scope: Scope = table.module
        self.active = True              # False directly in class bodies
        self.test = Flag.NONE           # TEST, POLL: set while visiting an expression that decides a branch or loop
        self.getters = pruned.summary.called_by(sites.plan.getters())
        self.absence = False            # True in a statement that handles it: an `except` of KeyError, say
        self.caller_decides = False     # True in a returned expression: the caller may test sizes and keys
        self.multi = Flag.NONE          # MULTI inside of a target with several locations
        self.read_whole: dict[ast.expr, str] = {}   # arguments -> the function that reads them as a whole
        self.first: str | None = None   # the first parameter, in an initializer
        self.tokens: dict[Scope, str] = {}   # functions with watched cells -> the local with the token
        self.read_before: set[tuple[str, str]] = set()   # attributes of locals read since the last call

    def visit(self, node: ast.AST) -> ast.AST:
        """Visit a node; in a class body only functions are rewritten."""
        if self.active or isinstance(node, _ENTERED):
            visitor: Callable[[ast.AST], ast.AST] = getattr(self, "visit_" + type(node).__name__, self.generic_visit)
            return visitor(node)
        return self.generic_visit(node)

    def expr(self, node: ast.expr) -> ast.expr:
        """Return the rewritten expression."""
        rewritten = self.visit(node)
        assert isinstance(rewritten, ast.expr)
        return rewritten

    def tested(self, node: ast.expr, flag: Flag) -> ast.expr:
        """Return the rewritten expression, whose reads get the flag: they decide a test."""
        before, self.test = self.test, flag
        try:
            return self.expr(node)
        finally:
            self.test = before

    # Names.

    def mangled(self, name: str) -> str:
        """Return the name as the compiler mangles it."""
        return mangle(name, self.scope.mangler)

    def variable(self, name: str) -> Variable:
        """Return the variable that a name means here."""
        return self.table.resolve(self.scope, self.mangled(name))

    def watched(self, name: str) -> str | None:
        """Return "global" or "cell" if the name is a watched variable, else None."""
        variable = self.variable(name)
        if variable.place == "global":
            return "global" if variable.name in self.table.watched_globals else None
        return "cell" if self.watch_cells and variable in self.table.watched_cells else None

    def is_builtin(self, node: ast.AST, *names: str) -> TypeGuard[ast.Name]:
        """Return True if the node names a builtin: one of these, or any."""
        return (isinstance(node, ast.Name) and (not names or node.id in names)
                and self.table.is_builtin(self.scope, self.mangled(node.id)))

    def is_stdlib(self, node: ast.AST) -> bool:
        """Return True if the expression is a module of the standard library or something in it."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (
            node.id.startswith("@")    # pytest's own, in rewritten assertions
            or self.table.is_stdlib(self.scope, self.mangled(node.id)))

    def is_plain(self, node: ast.AST) -> bool:
        """Return True if the object cannot be shared or cannot change."""
        if isinstance(node, LITERALS):
            return True
        if isinstance(node, ast.Name):
            return (self.pruned.is_private(self.variable(node.id)) or self.is_builtin(node)
                    or (node.id != ENVIRON and self.is_stdlib(node)))
        if isinstance(node, ast.Call):
            return self.is_builtin(node.func, "super")
        return not (isinstance(node, ast.Attribute) and node.attr == ENVIRON) and self.is_stdlib(node)

    # Ops.

    def simple(self, node: ast.expr) -> bool:
        """Return True if the expression consists of constants, names and arithmetic of those."""
        if isinstance(node, ast.BinOp):
            return self.simple(node.left) and self.simple(node.right)
        if isinstance(node, ast.UnaryOp):
            return self.simple(node.operand)
        return isinstance(node, ast.Constant | ast.Name)

    def constant(self, node: ast.expr) -> Flag:
        """Return CONSTANT for a literal."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, _CONSTANT_KINDS):
            node = node.operand
        return Flag.CONSTANT if isinstance(node, ast.Constant) else Flag.NONE

    def in_init(self, node: ast.expr) -> Flag:
        """Return INIT for the first parameter of an initializer."""
        return Flag.INIT if self.first and isinstance(node, ast.Name) and node.id == self.first else Flag.NONE

    def token(self, variable: Variable) -> ast.Name:
        """Return a load of the token of the variable's owner."""
        return ast.Name(self.tokens.get(variable.owner, CELLS), ast.Load())

    def variable_op(self, verb: str, value: ast.expr, name: ast.AST, identifier: str,
                    flags: Flag = Flag.NONE) -> ast.expr:
        """Return `global_<verb>(value, S)` or `cell_<verb>(value, token, S)`; the value itself if it is not watched."""
        place = self.watched(identifier)
        if place is None:
            return value
        key = self.mangled(identifier)
        marker = self.sites.add(f"{place}_{verb}", name, key, flags, text=identifier)
        if place == "global":
            return call(f"global_{verb}", value, marker, at=value)
        return call(f"cell_{verb}", value, self.token(self.variable(identifier)), marker, at=value)

    def role(self, name: str, node: ast.AST) -> Role | None:
        """Return the role if it is part of a span, or a test that a use relies on, else None."""
        role, plan = Role(name, node), self.sites.plan
        return role if role in plan.reads or role in plan.acts or role in plan.tests else None

    def init_function(self, node: ast.AST) -> str | None:
        """Return the first parameter's name if the function is an initializer of a class."""
        if not isinstance(node, ast.FunctionDef) or node.name not in INITIALIZERS or self.scope.kind != "class":
            return None
        arguments = [*node.args.posonlyargs, *node.args.args]
        return arguments[0].arg if arguments else None


PLACES = (ast.Name, ast.Attribute, ast.Subscript)


class AccessRewriter(RewriterBase):
    """Transformer of loads, and of targets inside of larger ones."""

    # Attributes, items, names.

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Rewrite a load of a watched variable; statements rewrite stores."""
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
        """Return the attribute with the op around its object."""
        marker = self.sites.add(op, node, self.mangled(node.attr), flags | self.in_init(node.value), text=node)
        self.forget_attribute(self.mangled(node.attr) if isinstance(node.ctx, ast.Store | ast.Del) else None)
        value = self.expr(node.value)
        node.value = call(op, value, marker, at=value)
        return node

    def load_attribute(self, node: ast.Attribute) -> ast.Attribute:
        """Rewrite a load, unless it needs no op."""
        needed = self.needs_op(node)
        if not needed or self.is_repeated(node):
            if needed and Role("access", node) in self.sites.plan.uses:    # reports name it
                self.sites.add("attr_read", node, self.mangled(node.attr), self.test, text=node)
            node.value = self.expr(node.value)
            return node
        return self.attribute(node, "attr_read", self.test)

    def needs_op(self, node: ast.Attribute) -> bool:
        """Return True if the attribute may be shared and may change."""
        name = node.attr
        if self.is_plain(node.value) or node in self.pruned.attributes:
            return False
        return not (name.startswith("__") and name.endswith("__"))

    def is_repeated(self, node: ast.Attribute) -> bool:
        """Return True if the same attribute was read before, with no call in between, so that it needs no op."""
        if not isinstance(node.value, ast.Name) or Role("access", node) in self.sites.plan.reads:
            return False
        variable = self.variable(node.value.id)
        if variable.place != "local" or variable in self.table.watched_cells:
            return False
        read = (node.value.id, self.mangled(node.attr))
        if read in self.read_before:
            return True
        self.read_before.add(read)
        return False

    def forget(self, name: str | None = None) -> None:
        """Drop the attributes read from one local, or from all, as other code may run here."""
        self.read_before = {read for read in self.read_before if read[0] != name} if name else set()

    def forget_attribute(self, name: str | None) -> None:
        """Drop the reads of attributes of this name, as it changes."""
        if name:
            self.read_before = {read for read in self.read_before if read[1] != name}

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Rewrite a load, or a target inside a bigger one."""
        if self.is_plain(node.value) or self.is_type(node.value):
            return self.generic_expr(node)
        if isinstance(node.ctx, ast.Load):
            expected = isinstance(node.slice, ast.Constant) and not self.absence
            marker = self.sites.add("item_read", node, "", self.test | Flag.EXPECTED * expected, text=node)
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
        """Return the rewritten container of an item, with an op for its size if a span needs it."""
        role = self.role("size", node.value)
        peeks = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        wanted = role or (peeks and self.caller_decides and isinstance(node.ctx, ast.Load))
        text, value = node.value, self.expr(node.value)
        return self.sized(value, text, role) if wanted else value

    def sized(self, value: ast.expr, node: ast.expr, role: Role | None = None, key: str = "") -> ast.expr:
        """Return `size(value, S)`; the key is the function that reads the container."""
        role = role or Role("size", node)
        return call("size", value, self.sites.add("size", node, key, self.test, role=role, text=node), at=value)

    def whole(self, node: ast.expr, key: str) -> ast.expr:
        """Return an expression with an op for the read of all its items, if it may be a container."""
        if not isinstance(node, PLACES) or self.is_plain(node):
            return self.expr(node)
        shown = self.sites.text.of(node)
        value = self.expr(node)
        marker = self.sites.add("size", node, key, self.test, role=Role("whole", node), text=shown)
        return call("size", value, marker, at=value)

    def may_be_tested_by_caller(self, node: ast.expr) -> bool:
        """Return True if the function returns this, so that its caller may test the container's size or keys."""
        return self.caller_decides and isinstance(node, PLACES) and not self.is_plain(node)

    def is_type(self, node: ast.expr) -> bool:
        """Return True if the expression is a class, so that brackets make a generic alias."""
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
        """Rewrite the parts only."""
        self.generic_visit(node)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        """Rewrite an assignment expression."""
        self.sites.store([node], node.value)
        constant = self.constant(node.value)
        value = self.expr(node.value)
        node.value = self.variable_op("write", value, node, node.target.id, constant)
        self.forget(node.target.id)
        return node

    def spanned(self, value: ast.expr, node: ast.expr, role: Role, text: ast.expr | str) -> ast.expr:
        """Return a getter's or setter's call between the ops `begin` and `reads` or `writes`."""
        for op, wanted in (("reads", role in self.sites.plan.reads), ("writes", role in self.sites.plan.acts)):
            if wanted:
                marker = self.sites.add(op, node, "", self.test, role=role, text=text)
                value = call(op, call("begin", at=node), value, marker, at=node)
        return value
