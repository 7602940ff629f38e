"""Add ops to stores, deletions, loops, branches, functions and classes."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.race.analysis.suppression_comments import lines_of_statement
from gilscope.toolkit.race.rewrite.flow_statements import handles_absence
from gilscope.toolkit.race.rewrite.site_collector import Role, call, statement
from gilscope.toolkit.race.rewrite.transform_expressions import ExpressionRewriter
from gilscope.toolkit.race.site import CELLS
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Iterable

_SIMPLE = (ast.Attribute, ast.Subscript)
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+=", ast.Sub: "-=", ast.Mult: "*=", ast.MatMult: "@=", ast.Div: "/=", ast.FloorDiv: "//=", ast.Mod: "%=",
    ast.Pow: "**=", ast.LShift: "<<=", ast.RShift: ">>=", ast.BitOr: "|=", ast.BitXor: "^=", ast.BitAnd: "&=",
}


class StatementRewriter(ExpressionRewriter):
    """Transformer of statements."""

    def visit(self, node: ast.AST) -> Any:
        """Visit a node, remembering which lines a statement's expressions have."""
        if isinstance(node, ast.stmt):
            self.sites.lines = lines_of_statement(node)
        return super().visit(node)

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.neighbours: set[ast.expr] = set()   # targets of stores to one object right after each other

    # Assignments.

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        """Rewrite an assignment: value first, then the targets from left to right."""
        self.sites.store(node.targets, node.value)
        if len(node.targets) == 1 and isinstance(node.targets[0], _SIMPLE):
            return self.store(node, node.targets[0], node.value)
        constant = self.constant(node.value)
        unpacked = any(isinstance(target, ast.Tuple | ast.List) for target in node.targets)
        node.value = self.whole(node.value, "unpack") if unpacked else self.expr(node.value)
        for index, target in enumerate(node.targets):
            if isinstance(target, ast.Name):
                node.value = self.variable_op("write", node.value, target, target.id, constant)
                self.forget(target.id)
            else:
                node.targets[index] = self.target(target)
        return [node, *self.written(target for target in node.targets if not isinstance(target, ast.Name))]

    def target(self, node: ast.expr) -> ast.expr:
        """Rewrite a target; the locations in a tuple belong together."""
        places = [one for one in ast.walk(node) if isinstance(one, _SIMPLE) and not isinstance(one.ctx, ast.Load)]
        self.multi = Flag.MULTI if len(places) > 1 else Flag.NONE
        rewritten = self.expr(node)
        self.multi = Flag.NONE
        return rewritten

    def store(self, node: ast.Assign, target: ast.Attribute | ast.Subscript, value: ast.expr) -> ast.stmt:
        """Rewrite an assignment to one attribute or item."""
        constant = self.constant(value) | (Flag.MULTI if target in self.neighbours else Flag.NONE)
        if isinstance(target, ast.Subscript):
            return self.store_item(node, target, value, constant)
        node.value = self.expr(value)
        if not self.needs_op(target):
            target.value = self.expr(target.value)
            return node
        act, call_role = self.sites.plan.acts.get(Role("access", target)), self.role("call", target)
        if call_role is None and (act is None or not act.flags & Flag.GUARD):
            self.attribute(target, "attr_write", constant)
            return node
        text = self.sites.text.of(target)
        marker = self.sites.add("attr_store", target, self.mangled(target.attr),
                                constant | self.in_init(target.value), text=target)
        self.forget_attribute(self.mangled(target.attr))
        at = _store_location(target)
        stored = call("attr_store", node.value, self.expr(target.value), marker, at=at)
        return statement(self.spanned(stored, target, call_role, text) if call_role else stored, node)

    def store_item(self, node: ast.Assign, target: ast.Subscript, value: ast.expr, constant: Flag) -> ast.stmt:
        """Rewrite an assignment to one item."""
        node.value = self.expr(value)
        if self.is_plain(target.value):
            self.generic_visit(target)
            return node
        marker = self.sites.add("item_write", target, "", constant, text=target)
        container = self.expr(target.value)
        return statement(call("item_write", node.value, container, self.key(target.slice), marker, at=target), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt | list[ast.stmt]:
        """Rewrite an annotated assignment, never the annotation."""
        if node.value is None:
            return node
        self.sites.store([node.target], node.value)
        constant = self.constant(node.value)
        node.value = self.expr(node.value)
        if isinstance(node.target, ast.Name):
            node.value = self.variable_op("write", node.value, node.target, node.target.id, constant)
            self.forget(node.target.id)
        else:
            self.visit(node.target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt | list[ast.stmt]:
        """Rewrite `x += v`."""
        self.sites.operator = OPERATORS[type(node.op)]
        simple = self.simple(node.value)
        if isinstance(node.target, ast.Name):
            return self.augment_name(node, node.target, simple=simple)
        if isinstance(node.target, ast.Attribute):
            if self.needs_op(node.target):
                simple = simple and self.mangled(node.target.attr) not in self.pruned.summary.properties
                self.attribute(node.target, "attr_update" if simple else "attr_proxy", Flag.AUGMENTED)
            else:
                node.target.value = self.expr(node.target.value)
        elif self.is_plain(node.target.value):
            self.generic_visit(node.target)
        else:
            self.item_proxy(node.target, Flag.AUGMENTED)
        node.value = self.expr(node.value)
        return node

    def augment_name(self, node: ast.AugAssign, target: ast.Name, *, simple: bool) -> ast.stmt | list[ast.stmt]:
        """Rewrite `x += v` of a variable."""
        self.forget(target.id)
        if self.watched(target.id) is None:
            changed = [self.change_in_place(target)] if node in self.sites.plan.in_place else []
            node.value = self.expr(node.value)
            return [*changed, node]
        if simple:
            node.value = self.variable_op("update", self.expr(node.value), target, target.id, Flag.AUGMENTED)
            return node
        plan, read = self.sites.plan, Role("read", target)
        plan.add(Role("access", target), (read,), Flag.VALUE)
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        marker_node = self.read_of(load, target, read)
        value = self.expr(node.value)
        node.value = self.variable_op("write", value, target, target.id, Flag.AUGMENTED)
        return [statement(marker_node), node]

    def change_in_place(self, target: ast.Name) -> ast.stmt:
        """Return the note of `x += v` of a local, which changes a container."""
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target)
        marker = self.sites.add("size", target, self.sites.operator, text=target.id)
        return statement(call("size", load, marker, at=target))

    def read_of(self, load: ast.Name, target: ast.Name, role: Role) -> ast.expr:
        """Return the read of a variable before `x += v`, whose value v may change."""
        place, key = self.watched(target.id), self.mangled(target.id)
        marker = self.sites.add(f"{place}_read", target, key, role=role, text=target.id)
        if place == "global":
            return call("global_read", load, marker, at=load)
        return call("cell_read", load, self.token(self.variable(target.id)), marker, at=load)

    # Names that statements bind by other means than an assignment.

    def written(self, targets: Iterable[ast.AST], flags: Flag = Flag.NONE) -> list[ast.stmt]:
        """Return statements with the ops for writes of watched variables among the targets."""
        names = [node for target in targets for node in ast.walk(target)
                 if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)]
        return [made for name in names for made in self.wrote(name, name.id, flags)]

    def wrote(self, node: ast.AST, identifier: str, flags: Flag = Flag.NONE) -> list[ast.stmt]:
        """Return a statement with the op for the write of a watched variable."""
        self.forget(identifier)
        if not self.active or self.watched(identifier) is None:
            return []
        nothing = ast.copy_location(ast.Constant(None), node)
        return [statement(self.variable_op("write", nothing, node, identifier, flags))]

    def visit_Delete(self, node: ast.Delete) -> ast.stmt | list[ast.stmt]:
        """Rewrite `del`."""
        target = node.targets[0]
        if len(node.targets) == 1 and isinstance(target, ast.Subscript) and not self.is_plain(target.value):
            marker = self.sites.add("item_delete", target, "", Flag.DELETE, text=target)
            return statement(call("item_delete", self.expr(target.value), self.key(target.slice), marker, at=target),
                             node)
        node.targets = [self.expr(one) for one in node.targets]
        return [node, *self.written(node.targets, Flag.DELETE)]

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> list[ast.stmt]:
        """Add ops for the binding of watched names; a lazy import stays lazy."""
        names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
        return [node, *(made for name in names for made in self.wrote(node, name))]

    visit_ImportFrom = visit_Import

    # Loops, with, try, match.

    def visit_For(self, node: ast.For | ast.AsyncFor) -> ast.stmt:
        """Rewrite a `for` loop."""
        node.iter = self.iterable(node.iter) if isinstance(node, ast.For) else self.expr(node.iter)
        self.forget()
        node.target = self.expr(node.target)
        node.body = [*self.written([node.target]), *self.block(node.body)]
        node.orelse = self.block(node.orelse)
        return node

    visit_AsyncFor = visit_For

    def visit_While(self, node: ast.While) -> ast.stmt:
        """Rewrite a `while` loop, whose test may poll a flag."""
        self.forget()
        node.test = self.truth(node.test, Flag.TEST | Flag.POLL)
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)
        return node

    def visit_If(self, node: ast.If) -> ast.stmt:
        """Rewrite a branch."""
        node.test = self.truth(node.test, Flag.TEST)
        before = set(self.read_before)
        node.body = self.block(node.body, forget=False)
        self.read_before = before
        node.orelse = self.block(node.orelse, forget=False)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        """Rewrite a returned value, which the caller may test."""
        if node.value is not None:
            before, self.caller_decides = self.caller_decides, True
            node.value = self.expr(node.value)
            self.caller_decides = before
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        """Rewrite an assertion."""
        if not isinstance(node.test, ast.Tuple):    # always true: the compiler warns, and must see it
            node.test = self.truth(node.test, Flag.TEST)
        node.msg = node.msg and self.optional(node.msg)
        return node

    def visit_With(self, node: ast.With | ast.AsyncWith) -> ast.stmt:
        """Rewrite a with statement."""
        bound: list[ast.expr] = []
        absence = handles_absence(node)
        for item in node.items:
            known = isinstance(node, ast.AsyncWith) or self.is_library_made(item.context_expr)
            context = self.context(item.context_expr)
            item.context_expr = context if known else self.locking(context)
            self.forget()
            if item.optional_vars:
                item.optional_vars = self.expr(item.optional_vars)
                bound.append(item.optional_vars)
        node.body = [*self.written(bound), *self.block(node.body, absence=absence)]
        return node

    visit_AsyncWith = visit_With

    def context(self, node: ast.expr) -> ast.expr:
        """Return a context manager: an attribute that only initializers store (a lock, mostly) needs no op."""
        if isinstance(node, ast.Attribute) and self.mangled(node.attr) not in self.pruned.restored:
            node.value = self.expr(node.value)
            return node
        return self.expr(node)

    def visit_Try(self, node: ast.Try | ast.TryStar) -> ast.stmt:
        """Rewrite a try statement: each part may be reached from anywhere before."""
        node.body = self.block(node.body, absence=handles_absence(node))
        for handler in node.handlers:
            handler.type = handler.type and self.expr(handler.type)
            bound = self.wrote(handler, handler.name) if handler.name else []
            handler.body = [*bound, *self.block(handler.body)]
        node.orelse = self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        return node

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        """Rewrite a match statement, never its patterns."""
        node.subject = self.tested(node.subject, Flag.TEST)
        for case in node.cases:
            self.forget()
            if case.guard:
                case.guard = self.truth(case.guard, Flag.TEST)
            captured = [(one, getattr(one, "name", None) or getattr(one, "rest", None))
                        for one in ast.walk(case.pattern)]
            bound = [made for one, name in captured if isinstance(name, str) for made in self.wrote(one, name)]
            case.body = [*bound, *self.block(case.body)]
        return node

    def visit_TypeAlias(self, node: ast.TypeAlias) -> ast.stmt:
        """Leave type aliases alone."""
        return node

    def block(self, body: list[ast.stmt], *, forget: bool = True, absence: bool = False) -> list[ast.stmt]:
        """Return rewritten statements that run never, once or repeatedly; with `absence` a lookup may fail there."""
        outside = self.absence
        self.absence |= absence
        if forget:
            self.forget()
        self.neighbours |= _neighbours(body) if self.first is None else set()
        made: list[ast.stmt] = []
        for one in body:
            rewritten: ast.stmt | list[ast.stmt] = self.visit(one)
            made += rewritten if isinstance(rewritten, list) else [rewritten]
        self.forget()
        self.absence = outside
        return made


def _neighbours(body: list[ast.stmt]) -> set[ast.expr]:
    """Return the targets of neighbouring stores to different attributes of one object."""
    found: set[ast.expr] = set()
    before: ast.Attribute | None = None
    for one in body:
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        here = target if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) else None
        if before and here and before.attr != here.attr and before.value.id == here.value.id:  # type: ignore[attr-defined]  # both are names
            found |= {before, here}
        before = here
    return found


def _store_location(target: ast.Attribute) -> ast.AST:
    """Return the position that the compiler gives a store: that of the name after the dot."""
    if target.lineno == target.end_lineno:
        return target
    place = ast.copy_location(ast.Pass(), target)
    place.lineno = target.end_lineno or target.lineno
    place.col_offset = max(0, (target.end_col_offset or 0) - len(target.attr.encode()))
    return place


_STATIC_ATTRIBUTES = sys.version_info >= (3, 13)   # classes list what their methods store on a name `self`


class Rewriter(StatementRewriter):
    """Transformer of a module, with its functions and classes."""

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
        """Return the statements that create the token of a frame's closure variables."""
        at = node.body[0]
        made: list[ast.stmt] = []
        if self.owns_cells():
            depth = sum(1 for owner in self.tokens if self._within(self.scope, owner))
            self.tokens[self.scope] = name = f"{CELLS}{depth or ''}"
            token = ast.copy_location(ast.Name(name, ast.Store()), at)
            made.append(ast.copy_location(ast.Assign([token], call("token", at=at)), at))
        return made

    def entry(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Module, at: ast.AST) -> list[ast.stmt]:
        """Return the op that ends spans of an earlier frame at the same address, if the frame has spans."""
        if self.sites.function not in self.sites.acting:
            return []
        return [statement(call("enter", self.sites.add("enter", node, role=Role("enter", node)), at=at))]

    def owns_cells(self) -> bool:
        """Return True if closures share changing variables of this function."""
        return self.watch_cells and any(variable.owner is self.scope for variable in self.table.watched_cells)

    def static_attributes(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.stmt]:
        """Return dead code that preserves the class's `__static_attributes__`."""
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
        """Rewrite the functions of a class, not other statements of its body."""
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
    """Yield the nodes of a function, without those of functions inside of it and without `x += v`."""
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
