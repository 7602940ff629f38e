"""Attributes, items and variables with their ops."""

from __future__ import annotations

import ast

from gilscope.toolkit.race.rewrite.sites import Role, call
from gilscope.toolkit.race.rewrite.transform.base import Base
from gilscope.toolkit.race.site import Flag

PLACES = (ast.Name, ast.Attribute, ast.Subscript)


class Places(Base):
    """Rewrites loads, and targets inside of bigger ones."""

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
        if not isinstance(node, PLACES) or self.is_plain(node):
            return self.expr(node)
        shown = self.sites.text.of(node)
        value = self.expr(node)
        marker = self.sites.add("size", node, key, self.test, role=Role("whole", node), text=shown)
        return call("size", value, marker, at=value)

    def is_asked(self, node: ast.expr) -> bool:
        """Return whether a caller may act on the size or the keys of the container."""
        return self.asked and isinstance(node, PLACES) and not self.is_plain(node)

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

    def spanned(self, value: ast.expr, node: ast.expr, role: Role, text: ast.expr | str) -> ast.expr:
        """Return a getter's or setter's call between `begin` and what takes its accesses for one."""
        for op, wanted in (("reads", role in self.sites.plan.reads), ("writes", role in self.sites.plan.acts)):
            if wanted:
                marker = self.sites.add(op, node, "", self.test, role=role, text=text)
                value = call(op, call("begin", at=node), value, marker, at=node)
        return value
