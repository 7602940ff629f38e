"""What evaluating an expression reads and what it does, in order: the lower half of the flow analysis."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.race.rewrite.data_flow.locations import NOTHING, Paths, Place, Read, Reads
from gilscope.toolkit.race.rewrite.known_names import UNREPEATABLE
from gilscope.toolkit.race.rewrite.scopes.shared import mangle
from gilscope.toolkit.race.rewrite.sites import Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.race.rewrite.data_flow.partners import Spans
    from gilscope.toolkit.race.rewrite.function_summaries import Summary
    from gilscope.toolkit.race.rewrite.scopes.shared import Scope, Table

_PEEKED = (0, 1)     # `if queue[0] < now: queue.popleft()` depends on the queue, not on a place in it; 1 as in -1


class Effects:
    """Follows the values of one frame."""

    def __init__(self, table: Table, summary: Summary, spans: Spans, scope: Scope) -> None:
        self.table, self.summary, self.spans, self.scope = table, summary, spans, scope
        self.paths = Paths(lambda name: mangle(name, scope.mangler))
        self.locals: dict[str, Reads] = {}         # what their values depend on
        self.origins: dict[str, frozenset[str]] = {}   # local -> names that its value is made from
        self.built: set[str] = set()               # locals that hold an object made here
        self.guards: list[Reads] = []              # what brought us here, oldest first
        self.held: tuple[object, ...] = ()         # `with` statements around, locks acquired before
        self.trace: Reads = NOTHING                # what was read since a `try`
        self.taken: dict[Place, Read] = {}         # places whose whole value a local has: a reset would empty them

    def value(self, node: ast.AST | None) -> Reads:
        """Return what the value of an expression depends on; record what the expression does."""
        if node is None:
            return NOTHING
        method = getattr(self, "value_" + type(node).__name__, None)
        return method(node) if method else self.parts(node)

    def parts(self, node: ast.AST) -> Reads:
        """Return what the parts of an expression depend on."""
        return self.union(ast.iter_child_nodes(node))

    def union(self, nodes: Iterator[ast.AST] | Sequence[ast.AST | None]) -> Reads:
        """Return what any of the expressions depends on."""
        return NOTHING.union(*[self.value(node) for node in nodes])

    def read(self, role: str, node: ast.AST, kind: str, base: str | None, key: str | None = None) -> Reads:
        """Return one read, or nothing when its place has no name."""
        if base is None:
            return NOTHING
        found = frozenset([Read(Role(role, node), Place(kind, base, key), self.held)])
        self.trace |= found
        return found

    @contextmanager
    def guarded(self, reads: Reads) -> Iterator[None]:
        """Have what runs inside depend on a test."""
        count = len(self.guards)
        self.guards.append(reads)
        yield
        del self.guards[count:]

    # Places.

    def value_Name(self, node: ast.Name) -> Reads:
        """Read a variable."""
        if not isinstance(node.ctx, ast.Load):
            return NOTHING
        return self.variable(node, "access") | self.locals.get(node.id, NOTHING)

    def variable(self, node: ast.Name, role: str) -> Reads:
        """Return the read of a watched variable."""
        place = self.variable_place(node.id)
        return self.read(role, node, "name", place.base) if place else NOTHING

    def variable_place(self, name: str) -> Place | None:
        """Return the place of a watched variable."""
        variable = self.table.resolve(self.scope, self.paths.mangled(name))
        watched = variable.name in self.table.watched_globals if variable.place == "global" \
            else variable in self.table.watched_cells
        return Place("name", variable.name, None) if watched else None

    def value_Attribute(self, node: ast.Attribute) -> Reads:
        """Read an attribute; a property is a getter."""
        inner = self.value(node.value)
        if not isinstance(node.ctx, ast.Load):
            return inner
        name = self.paths.mangled(node.attr)
        base = self.paths.of(node.value)
        found = self.read("access", node, "attr", base, name)
        if name in self.summary.properties:
            found |= self.read("call", node, "call", base, name)
        return inner | found

    def value_Subscript(self, node: ast.Subscript) -> Reads:
        """Read an item."""
        inner = self.value(node.value) | self.value(node.slice)
        if not isinstance(node.ctx, ast.Load):
            return inner
        base, key = self.paths.of(node.value), self.paths.key(node.slice)
        found = self.read("access", node, "item", base, key) if key else NOTHING
        index = node.slice.operand if isinstance(node.slice, ast.UnaryOp) else node.slice
        if isinstance(index, ast.Constant) and index.value in _PEEKED:
            found |= self.read("size", node.value, "size", base)
        return inner | found

    def value_Slice(self, node: ast.Slice) -> Reads:
        """Read a slice's bounds."""
        return self.parts(node)

    def value_NamedExpr(self, node: ast.NamedExpr) -> Reads:
        """Assign in passing."""
        reads = self.value(node.value)
        self.assign_name(node.target, reads, node.value)
        return reads

    def assign_name(self, target: ast.Name, reads: Reads, value: ast.AST | None) -> None:
        """Note what a variable now depends on."""
        place = self.variable_place(target.id)
        if place:
            self.spans.act(self, Role("access", target), place, reads)
        if isinstance(value, ast.Constant) and self.guards:
            reads |= self.guards[-1]      # `found = True` says what the test said
        self.locals[target.id] = reads
        self.origins[target.id] = self.made_from(value) if value is not None else frozenset([target.id])
        self.paths.bind(target.id, value)
        if isinstance(value, ast.Call | ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
            self.built.add(target.id)
        else:
            self.built.discard(target.id)

    def made_from(self, value: ast.AST) -> frozenset[str]:
        """Return the names that a value is made from; functions, constants and classes of the module are none."""
        found: set[str] = set()
        called = {id(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and node.attr in UNREPEATABLE:
                found.add(node.attr)
            if not isinstance(node, ast.Name):
                continue
            name = self.paths.mangled(node.id)
            fixed = self.table.is_builtin(self.scope, name) or self.table.is_declared(self.scope, name)
            if name in UNREPEATABLE or not (fixed or id(node) in called):
                found |= self.origins.get(node.id, frozenset([node.id]))
        return frozenset(found)

    # Decisions.

    def truth(self, node: ast.expr) -> Reads:
        """Return what a test depends on; a container's truth is its size."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.truth(node.operand)
        if isinstance(node, ast.BoolOp):
            return self.value_BoolOp(node, decides=True)
        reads = self.value(node)
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.NamedExpr):
            reads |= self.read("size", node, "size", self.paths.of(node))
        return reads

    def value_BoolOp(self, node: ast.BoolOp, *, decides: bool = False) -> Reads:
        """Evaluate operands one after another, each guarded by those before it."""
        count, reads = len(self.guards), NOTHING
        for operand in node.values:
            last = operand is node.values[-1]
            reads |= self.truth(operand) if decides or not last else self.value(operand)
            self.guards.append(reads)
        del self.guards[count:]
        return reads

    def value_IfExp(self, node: ast.IfExp) -> Reads:
        """Evaluate one of two."""
        test = self.truth(node.test)
        with self.guarded(test):
            return test | self.value(node.body) | self.value(node.orelse)

    def value_Compare(self, node: ast.Compare) -> Reads:
        """Compare; `in` looks for a key."""
        reads = self.parts(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            base = self.paths.of(node.comparators[0])
            reads |= self.read("access", node, "item", base, self.paths.key(node.left))
        return reads

    def keep(self, owner: ast.AST, reads: Reads) -> None:
        """Note that an object made here may keep a value: `node.next = self.head`."""
        if isinstance(owner, ast.Name) and owner.id in self.built and reads:
            self.locals[owner.id] = self.locals.get(owner.id, NOTHING) | reads

    # Frames of their own, and comprehensions, which are as good as inlined.

    def value_Lambda(self, node: ast.Lambda) -> Reads:
        """Leave a lambda's body to its own analysis."""
        return self.union([*node.args.defaults, *node.args.kw_defaults])

    def value_GeneratorExp(self, node: ast.GeneratorExp) -> Reads:
        """Read the first iterable; the rest has a frame of its own."""
        return self.value(node.generators[0].iter)

    def value_ListComp(self, node: ast.ListComp | ast.SetComp | ast.DictComp) -> Reads:
        """Evaluate a comprehension."""
        count, reads = len(self.guards), NOTHING
        outer, self.scope = self.scope, self.table.scopes[node]
        known = dict(self.locals)
        for clause in node.generators:
            found = self.value(clause.iter)
            reads |= found
            for name in ast.walk(clause.target):
                if isinstance(name, ast.Name):
                    self.locals[name.id] = found
            self.guards.extend(self.truth(test) for test in clause.ifs)
        reads |= self.union([getattr(node, part, None) for part in ("key", "value", "elt")])
        self.scope, self.locals = outer, known
        del self.guards[count:]
        return reads

    value_SetComp = value_DictComp = value_ListComp
