"""Data flow through expressions: the reads that a value depends on, and the writes of its evaluation, in order."""

from __future__ import annotations

import ast
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gilscope.toolkit.race.analysis.known_names import DYNAMIC, FOREIGN_METHODS, INITIALIZERS, UNREPEATABLE
from gilscope.toolkit.race.analysis.scopes import mangle
from gilscope.toolkit.race.effects import (
    CHANGING,
    MAKERS,
    MUTATORS,
    SIZE_READS,
    SNAPSHOTS,
    Fact,
    builtins_with,
    library_function,
    methods_with,
)
from gilscope.toolkit.race.rewrite.partners import (
    NOTHING,
    NamedLocation,
    Paths,
    Read,
    Reads,
    last_identifier,
    tested_attribute,
)
from gilscope.toolkit.race.rewrite.site_collector import Role
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.race.analysis.scopes import Scope, ScopeTable
    from gilscope.toolkit.race.rewrite.function_summaries import ModuleSummary
    from gilscope.toolkit.race.rewrite.partners import PartnerFinder

_NUMBERS = builtins_with(Fact.QUIET) - MAKERS
_KEYED_METHODS = methods_with(Fact.KEYED)
_HARMLESS = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)     # comparisons that any value allows
# Builtins that accept any value.
_ACCEPTING = frozenset({"bool", "callable", "hasattr", "id", "isinstance", "print", "repr", "str", "type"})
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)     # they make a container
_PEEKED = (0, 1)     # `if queue[0] < now: queue.popleft()` depends on the queue, not on a place in it; 1 as in -1


class ExpressionFlow:
    """Data flow through the expressions of one frame."""

    def __init__(self, table: ScopeTable, summary: ModuleSummary, spans: PartnerFinder, scope: Scope) -> None:
        self.table, self.summary, self.spans, self.scope = table, summary, spans, scope
        self.paths = Paths(lambda name: mangle(name, scope.mangler))
        self.locals: dict[str, Reads] = {}         # the reads that their values depend on
        self.origins: dict[str, frozenset[str]] = {}   # local -> names that its value is made from
        self.built: set[str] = set()               # locals that hold an object made here
        self.guards: list[Reads] = []              # reads of the tests that led here, oldest first
        self.held: tuple[object, ...] = ()         # `with` statements around, locks acquired before
        self.trace: Reads = NOTHING                # reads since the start of a `try`
        self.taken: dict[NamedLocation, Read] = {}     # locations whose whole value a local holds: see `take`
        self.tested: set[ast.AST] = set()          # expressions whose value is only tested

    def value(self, node: ast.AST | None) -> Reads:
        """Return the reads that the value of an expression depends on; record its writes."""
        if node is None:
            return NOTHING
        method = getattr(self, "value_" + type(node).__name__, None)
        return method(node) if method else self.parts(node)

    def parts(self, node: ast.AST) -> Reads:
        """Return the reads that the parts of an expression depend on."""
        return self.union(ast.iter_child_nodes(node))

    def union(self, nodes: Iterator[ast.AST] | Sequence[ast.AST | None]) -> Reads:
        """Return the reads that any of the expressions depends on."""
        return NOTHING.union(*[self.value(node) for node in nodes])

    def read(self, role: str, node: ast.AST, kind: str, base: str | None, key: str | None = None) -> Reads:
        """Return one read, or none if its location has no name."""
        if base is None:
            return NOTHING
        place = NamedLocation(kind, base, key)
        if node not in self.tested and kind in ("attr", "name", "item"):
            self.use(Role(role, node), place)
        found = frozenset([Read(Role(role, node), place, self.held)])
        self.trace |= found
        return found

    def use(self, role: Role, place: NamedLocation) -> None:
        """Record a read that relies on what an earlier read of the location found."""
        tests = {read.role for group in self.guards for read in group if read.place == place} - {role}
        if tests:
            self.spans.plan.add_use(role, tests)

    @contextmanager
    def guarded(self, reads: Reads) -> Iterator[None]:
        """Return a context for code that depends on a test."""
        count = len(self.guards)
        self.guards.append(reads)
        yield
        del self.guards[count:]

    # Places.

    def value_Name(self, node: ast.Name) -> Reads:
        """Read a variable."""
        if not isinstance(node.ctx, ast.Load):
            return NOTHING
        kept = self.locals.get(node.id, NOTHING)
        if node in self.tested:
            for read in kept:
                self.spans.plan.add_snapshot(read.role)
        return self.variable(node, "access") | kept

    def variable(self, node: ast.Name, role: str) -> Reads:
        """Return the read of a watched variable."""
        place = self.variable_place(node.id)
        return self.read(role, node, "name", place.base) if place else NOTHING

    def variable_place(self, name: str) -> NamedLocation | None:
        """Return the location of a watched variable, None for other variables."""
        variable = self.table.resolve(self.scope, self.paths.mangled(name))
        watched = variable.name in self.table.watched_globals if variable.place == "global" \
            else variable in self.table.watched_cells
        return NamedLocation("name", variable.name, None) if watched else None

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
        if base and not isinstance(node.slice, ast.Slice):
            self.use(Role("access", node), NamedLocation("size", base, None))
        return inner | found

    def value_Slice(self, node: ast.Slice) -> Reads:
        """Read a slice's bounds."""
        return self.parts(node)

    def value_NamedExpr(self, node: ast.NamedExpr) -> Reads:
        """Handle an assignment expression."""
        reads = self.value(node.value)
        self.assign_name(node.target, reads, node.value)
        return reads

    def assign_name(self, target: ast.Name, reads: Reads, value: ast.AST | None) -> None:
        """Record the reads that a variable depends on from now on."""
        place = self.variable_place(target.id)
        if place:
            self.spans.act(self, Role("access", target), place, reads)
            if value is not None:
                self.store_new(target, value)
        if isinstance(value, ast.Constant) and self.guards:
            reads |= self.guards[-1]      # `found = True` says what the test said
        self.locals[target.id] = reads
        self.origins[target.id] = self.made_from(value) if value is not None else frozenset([target.id])
        self.paths.bind(target.id, value)
        if isinstance(value, ast.Call | ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
            self.built.add(target.id)
        else:
            self.built.discard(target.id)

    def store_new(self, target: ast.Name | ast.Attribute | ast.Subscript, value: ast.AST) -> None:
        """Record a store of what was just made, and that loads of this name may see it."""
        if not self.is_new(value):
            return
        self.spans.plan.add_fact(Role("access", target), Flag.NEW)
        if not isinstance(target, ast.Subscript) and getattr(self.scope.node, "name", "") not in INITIALIZERS:
            self.spans.plan.replaced.add(self.paths.mangled(target.id if isinstance(target, ast.Name) else target.attr))

    def is_new(self, value: ast.AST) -> bool:
        """Return True if the value may be a container or an object that was just made."""
        if isinstance(value, ast.Name):
            return value.id in self.built
        if isinstance(value, ast.Call):
            return not isinstance(value.func, ast.Name) or value.func.id not in _NUMBERS
        if isinstance(value, ast.BinOp):
            return isinstance(value.left, (*DISPLAYS, ast.Tuple)) or isinstance(value.right, (*DISPLAYS, ast.Tuple))
        if isinstance(value, ast.Tuple):
            return any(isinstance(part, ast.Starred) for part in value.elts)
        return isinstance(value, DISPLAYS)

    def made_from(self, value: ast.AST) -> frozenset[str]:
        """Return the names that a value is made from, without functions, constants and classes of the module."""
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
        """Return the reads that a test depends on; the truth of a container is its size."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self.truth(node.operand)
        if isinstance(node, ast.BoolOp):
            return self.value_BoolOp(node, decides=True)
        self.tested.add(node)
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
        """Evaluate a conditional expression."""
        test = self.truth(node.test)
        with self.guarded(test):
            return test | self.value(node.body) | self.value(node.orelse)

    def value_Compare(self, node: ast.Compare) -> Reads:
        """Compare; `in` reads a key, or an attribute."""
        if all(isinstance(op, _HARMLESS) for op in node.ops):
            self.tested.update((node.left, *node.comparators))
        reads = self.parts(node)
        if tested := tested_attribute(node):
            reads |= self.read("access", node, "attr", self.paths.of(tested[0]), tested[1])
        elif len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn):
            base = self.paths.of(node.comparators[0])
            reads |= self.read("access", node, "item", base, self.paths.key(node.left))
        return reads

    def keep(self, owner: ast.AST, reads: Reads) -> None:
        """Record that a new object may refer to a value: `node.next = self.head`."""
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


class CallFlow(ExpressionFlow):
    """Data flow through calls."""

    def value_Call(self, node: ast.Call, *, awaited: bool = False) -> Reads:
        """Call; a method may be a getter or setter of its receiver."""
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func, awaited=awaited)
        if isinstance(node.func, ast.Name) and node.func.id in _ACCEPTING:
            self.tested.update(node.args)
        reads = self.value(node.func) | self.arguments(node)
        self.rewriting(node)
        name, scope = node.func.id if isinstance(node.func, ast.Name) else "", self.scope
        if self.table.is_builtin(scope, self.paths.mangled(name)):
            return reads | self.builtin(node, name)
        if not self._is_library(node.func):
            self.pass_on(*node.args, *(keyword.value for keyword in node.keywords))
        if not name:
            return reads
        if not awaited and self.summary.effects(name, method=False) and self._is_function(name):
            place = NamedLocation("call", "", name)
            self.spans.act(self, Role("call", node), place, reads)
            reads |= {Read(Role("call", node), place, self.held)}
        return reads

    def _is_function(self, name: str) -> bool:
        variable = self.table.resolve(self.scope, self.paths.mangled(name))
        return variable.place == "global" and variable.owner.bindings.get(variable.name) == {"def"}

    def pass_on(self, *nodes: ast.expr | None) -> None:
        """Record that other code gets the object of a variable, and may change it."""
        self.spans.plan.changed |= {last_identifier(path) for node in nodes if (path := self.paths.of(node))}

    def arguments(self, node: ast.Call) -> Reads:
        """Evaluate a call's arguments."""
        return self.union([*node.args, *(keyword.value for keyword in node.keywords)])

    def builtin(self, node: ast.Call, name: str) -> Reads:
        """Call a builtin function."""
        base = self.paths.of(node.args[0]) if node.args else None
        if name == "len" or name in SNAPSHOTS:
            return self.read("size", node, "size", base)
        if name not in DYNAMIC or len(node.args) < 2:  # object and name
            return NOTHING
        attribute = node.args[1]
        constant = attribute.value if isinstance(attribute, ast.Constant) else None
        key = constant if isinstance(constant, str) else self.paths.key(attribute)
        if name in ("getattr", "hasattr"):
            return self.read("access", node, "attr", base, key)
        if base and key:
            self.spans.act(self, Role("access", node), NamedLocation("attr", base, key), self.union(node.args[2:]))
        return NOTHING

    def method(self, node: ast.Call, function: ast.Attribute, *, awaited: bool) -> Reads:
        """Call a method."""
        name, base = self.paths.mangled(function.attr), self.paths.of(function.value)
        receiver, given = self.value(function.value), self.arguments(node)
        self.lock(name, base)
        self.keep(function.value, given)
        library = self._is_library(function.value)
        if not library:
            self.pass_on(*node.args, *(keyword.value for keyword in node.keywords))
        if library or base is None:
            self.rewriting(node)
            return receiver | given
        if name in CHANGING:
            self.pass_on(function.value)
        if name in self.table.stored_attributes:
            self.use(Role("access", function), NamedLocation("attr", base, name))
        found = self.container(node, name, base, given)
        if not awaited and self._may_be_ours(name, node):
            place = NamedLocation("call", base, name)
            self.spans.act(self, Role("call", node), place, given)
            found |= {Read(Role("call", node), place, self.held)}
        return receiver | given | found

    def rewriting(self, node: ast.Call) -> None:
        """Record the writes of library functions that change their argument, such as heappush."""
        base = self.paths.of(node.args[0]) if node.args else None
        if base and library_function(*self.table.library_function(self.scope, node.func)).effect:
            self.spans.act(self, Role("size", node), NamedLocation("size", base, None), NOTHING)

    def lock(self, name: str, base: str | None) -> None:
        """Enter or leave the region of a lock that is acquired without `with`."""
        if name == "acquire":
            self.held = (*self.held, f"{base}.acquire")
        elif name == "release":
            self.held = tuple(region for region in self.held if region != f"{base}.acquire")

    def _may_be_ours(self, name: str, node: ast.Call) -> bool:
        if self.summary.effects(name, method=True):
            return True
        if name == "set" and node.args:
            return True
        return name not in FOREIGN_METHODS | MUTATORS | SIZE_READS | {"get", "setdefault", "set"}

    def _is_library(self, node: ast.AST) -> bool:
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and self.table.is_stdlib(self.scope, self.paths.mangled(node.id))

    def container(self, node: ast.Call, name: str, base: str, given: Reads) -> Reads:
        """Record the writes of a container's method; return its reads."""
        key = self.paths.key(node.args[0]) if node.args and not isinstance(node.args[0], ast.Starred) else None
        if name == "get" and node.args:
            return self.read("method", node, "item", base, key) if key else NOTHING
        if name in SIZE_READS:
            return self.read("method", node, "size", base)
        takes = name == "get"
        harmless = name == "pop" and len(node.args) > 1
        if takes or (name in MUTATORS and not harmless):
            one_item = name in _KEYED_METHODS and key
            place = NamedLocation("item", base, key) if one_item else NamedLocation("size", base, None)
            self.spans.act(self, Role("method", node), place, given, clears=name == "clear")
        return NOTHING

    def value_Await(self, node: ast.Await) -> Reads:
        """Await; the accesses of a coroutine happen later."""
        if isinstance(node.value, ast.Call):
            return self.value_Call(node.value, awaited=True)
        return self.value(node.value)
