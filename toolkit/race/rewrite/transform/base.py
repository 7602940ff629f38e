"""What the rewriting of expressions and of statements share: where the walk is, and what needs no op."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from gilscope.toolkit.race.rewrite.known_names import ENVIRON, INITIALIZERS, LITERALS
from gilscope.toolkit.race.rewrite.scopes.shared import FUNCTIONS, Scope, Table, Variable, mangle
from gilscope.toolkit.race.rewrite.sites import Role, Sites, call
from gilscope.toolkit.race.site import CELLS, Flag

if TYPE_CHECKING:
    from collections.abc import Callable

    from gilscope.toolkit.race.rewrite.prune import Pruned

_ENTERED = (*FUNCTIONS, ast.ClassDef)
_CONSTANT_KINDS = (ast.UAdd, ast.USub, ast.Invert, ast.Not)


class Base(ast.NodeTransformer):
    """The state of the walk."""

    def __init__(self, table: Table, sites: Sites, pruned: Pruned, *, cells: bool) -> None:
        self.table = table
        self.sites = sites
        self.pruned = pruned
        self.watch_cells = cells
        self.scope: Scope = table.module
        self.active = True              # False directly in class bodies
        self.test = Flag.NONE           # TEST, POLL: what the expression being visited decides
        self.getters = pruned.summary.called_by(sites.plan.getters())
        self.asked = False              # whether a caller may act on the sizes and keys that are looked at here
        self.multi = Flag.NONE          # MULTI inside of a target with several places
        self.looked_at: dict[ast.expr, str] = {}   # arguments about to be read as a whole -> by what
        self.first: str | None = None   # the first parameter, in an initializer
        self.tokens: dict[Scope, str] = {}   # functions that own watched cells -> the local with their token
        self.noted: set[tuple[str, str]] = set()   # attributes of locals already read in this stretch of code

    def visit(self, node: ast.AST) -> ast.AST:
        """Visit a node; outside functions of a class body only functions are entered."""
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
        """Return the rewritten expression, whose reads decide something."""
        before, self.test = self.test, flag
        try:
            return self.expr(node)
        finally:
            self.test = before

    # Names.

    def mangled(self, name: str) -> str:
        """Return the name as the compiler will have it."""
        return mangle(name, self.scope.mangler)

    def variable(self, name: str) -> Variable:
        """Return what a name means here."""
        return self.table.resolve(self.scope, self.mangled(name))

    def watched(self, name: str) -> str | None:
        """Return "global" or "cell" when the name is a variable that is watched."""
        variable = self.variable(name)
        if variable.place == "global":
            return "global" if variable.name in self.table.watched_globals else None
        return "cell" if self.watch_cells and variable in self.table.watched_cells else None

    def is_builtin(self, node: ast.AST, *names: str) -> TypeGuard[ast.Name]:
        """Return whether the node names a builtin: one of these, or any."""
        return (isinstance(node, ast.Name) and (not names or node.id in names)
                and self.table.is_builtin(self.scope, self.mangled(node.id)))

    def is_stdlib(self, node: ast.AST) -> bool:
        """Return whether the expression is a module of the standard library or something in it."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and (
            node.id.startswith("@")    # pytest's own, in rewritten assertions
            or self.table.is_stdlib(self.scope, self.mangled(node.id)))

    def is_plain(self, node: ast.AST) -> bool:
        """Return whether the object cannot be shared, or is nothing that changes."""
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
        """Return whether the expression runs no code worth mentioning: constants and names, and arithmetic of those."""
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
        """Return `global_<verb>(value, S)` or `cell_<verb>(value, token, S)`; the value as it is if nobody watches."""
        place = self.watched(identifier)
        if place is None:
            return value
        key = self.mangled(identifier)
        marker = self.sites.add(f"{place}_{verb}", name, key, flags, text=identifier)
        if place == "global":
            return call(f"global_{verb}", value, marker, at=value)
        return call(f"cell_{verb}", value, self.token(self.variable(identifier)), marker, at=value)

    def role(self, name: str, node: ast.AST) -> Role | None:
        """Return the role when a span needs it."""
        role = Role(name, node)
        return role if role in self.sites.plan.reads or role in self.sites.plan.acts else None

    def init_function(self, node: ast.AST) -> str | None:
        """Return the first parameter's name when the function is an initializer of a class."""
        if not isinstance(node, ast.FunctionDef) or node.name not in INITIALIZERS or self.scope.kind != "class":
            return None
        arguments = [*node.args.posonlyargs, *node.args.args]
        return arguments[0].arg if arguments else None

