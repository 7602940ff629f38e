"""Data flow through statements: the tests that lead to a write, and the reads that its value comes from."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.race.analysis.known_names import UNREPEATABLE
from gilscope.toolkit.race.analysis.scopes import FUNCTIONS
from gilscope.toolkit.race.effects import LIBRARY_MAKERS, MAKERS, SNAPSHOTS
from gilscope.toolkit.race.rewrite.flow_expressions import DISPLAYS, CallFlow
from gilscope.toolkit.race.rewrite.partners import NOTHING, NamedLocation, PartnerFinder, Read, Reads
from gilscope.toolkit.race.rewrite.site_collector import PartnerPlan, Role
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.race.analysis.scopes import ScopeTable
    from gilscope.toolkit.race.rewrite.function_summaries import ModuleSummary

_FRESH_CALLS = SNAPSHOTS | MAKERS | LIBRARY_MAKERS
_LOOKUP_ERRORS = frozenset({"KeyError", "IndexError", "LookupError", "Exception", "BaseException"})
_NAME_ERRORS = frozenset({"AttributeError", "NameError", "Exception", "BaseException"})


def exits(body: Sequence[ast.stmt]) -> bool:
    """Return True if the statements never continue with the next one."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    if isinstance(last, ast.If):
        return exits(last.body) and exits(last.orelse)
    if isinstance(last, ast.With | ast.AsyncWith):
        return exits(last.body)
    if isinstance(last, ast.Try | ast.TryStar):
        ends = exits(last.body) or exits(last.orelse)
        return exits(last.finalbody) or (ends and all(exits(handler.body) for handler in last.handlers))
    return (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)
            and isinstance(last.value.func, ast.Attribute) and last.value.func.attr in ("exit", "_exit", "abort"))


def _is_whole(key: ast.expr) -> bool:
    """Return True for the `:` of `items[:]`."""
    return isinstance(key, ast.Slice) and not (key.lower or key.upper or key.step)


def is_reset(value: ast.expr) -> bool:
    """Return True if the value is empty or zero; None and False do not count, since they may be states."""
    if isinstance(value, ast.Constant):
        return value.value is not None and not isinstance(value.value, bool) and not value.value
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    if not isinstance(value, ast.Call):
        return False
    name = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
    return name in _FRESH_CALLS and all(isinstance(one, ast.Name) for one in value.args) and len(value.args) <= (
        name == "defaultdict")


def failing(handler: ast.ExceptHandler, reads: Reads) -> Reads:
    """Return the reads whose exceptions the handler catches."""
    wanted: set[str] = set()
    if _catches(handler, _LOOKUP_ERRORS):
        wanted |= {"item", "size"}
    if _catches(handler, _NAME_ERRORS):
        wanted |= {"attr", "name"}
    return frozenset(read for read in reads if read.place.kind in wanted)


def handles_absence(node: ast.Try | ast.TryStar | ast.With | ast.AsyncWith) -> bool:
    """Return True if the statement's body may find no such key or index: `except` or `suppress` catches that."""
    if isinstance(node, ast.Try | ast.TryStar):
        return any(_catches(handler, _LOOKUP_ERRORS) for handler in node.handlers)
    calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
    kinds = [kind for call in calls if getattr(call.func, "attr", getattr(call.func, "id", "")) == "suppress"
             for kind in call.args]
    return any(isinstance(kind, ast.Name) and kind.id in _LOOKUP_ERRORS for kind in kinds)


def _catches(handler: ast.ExceptHandler, names: frozenset[str]) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return handler.type is None or any(isinstance(kind, ast.Name) and kind.id in names for kind in kinds)


_LOOPS_TWICE = 2          # nested deeper, a loop's body is followed once


def analyse(table: ScopeTable, summary: ModuleSummary) -> PartnerPlan:
    """Return the partners of the writes in all frames of a module."""
    plan = PartnerPlan()
    spans = PartnerFinder(plan, summary)
    for node, scope in table.scopes.items():
        if isinstance(node, ast.Module):
            StatementFlow(table, summary, spans, scope).run(node.body)
        elif isinstance(node, ast.Lambda):
            StatementFlow(table, summary, spans, scope).value(node.body)
        elif isinstance(node, FUNCTIONS):
            StatementFlow(table, summary, spans, scope).run(node.body)   # type: ignore[arg-type]  # lambdas went above
    return plan


class StatementFlow(CallFlow):
    """Data flow through the statements of one frame."""

    depth = 0

    def run(self, body: Sequence[ast.stmt]) -> None:
        """Follow statements that all run; the guards of one hold for the next ones."""
        for statement in body:
            method = getattr(self, "do_" + type(statement).__name__, None)
            if method:
                method(statement)
            elif not isinstance(statement, ast.ClassDef):
                self.parts(statement)

    def block(self, body: Sequence[ast.stmt], guard: Reads = NOTHING) -> None:
        """Follow statements that run depending on a test."""
        with self.guarded(guard):
            self.run(body)

    # Assignments.

    def do_Assign(self, node: ast.Assign) -> None:
        """Follow an assignment."""
        for target in node.targets:
            self.assign(target, self.value(node.value), node.value)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Follow an annotated assignment, without the annotation."""
        if node.value is not None:
            self.assign(node.target, self.value(node.value), node.value)

    def assign(self, target: ast.expr, reads: Reads, value: ast.expr | None) -> None:
        """Record a store to a target of any form."""
        if isinstance(target, ast.Starred):
            self.assign(target.value, reads, None)
        elif isinstance(target, ast.Tuple | ast.List):
            self.unpack(target, reads, value)
        elif isinstance(target, ast.Name):
            self.take(value)
            self.assign_name(target, reads, value)
        elif isinstance(target, ast.Attribute | ast.Subscript):
            self.store(target, reads, value)

    def unpack(self, target: ast.Tuple | ast.List, reads: Reads, value: ast.expr | None) -> None:
        """Record several stores: locals depend on their own part of the value, other locations on all of it."""
        parts: Sequence[ast.expr | None] = [None for _ in target.elts]
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts) \
                and not any(isinstance(one, ast.Starred) for one in (*value.elts, *target.elts)):
            parts = value.elts
            for element in value.elts:
                self.take(element)
        for one, part in zip(target.elts, parts, strict=True):
            own = isinstance(one, ast.Name) and part is not None and not self.variable_place(one.id)
            self.assign(one, self.value(part) if own else reads, part)

    def store(self, target: ast.Attribute | ast.Subscript, reads: Reads, value: ast.expr | None) -> None:
        """Record a store to an attribute or an item."""
        place = self.place(target)
        reads |= self.value(target.slice) if isinstance(target, ast.Subscript) else NOTHING
        self.value(target.value)
        self.keep(target.value, reads)
        if place is None:
            return
        self.spans.act(self, Role("access", target), place, reads, resets=value is not None and is_reset(value))
        if value is not None:
            self.store_new(target, value)
            self.pass_on(value)
        if isinstance(target, ast.Subscript) and value is not None:
            made, keys = self.made_from(value), self.made_from(target.slice)
            if made and made <= keys and not made & UNREPEATABLE:
                self.spans.plan.add_fact(Role("access", target), Flag.MEMO)
        if place.kind == "attr" and place.key in self.summary.properties:
            self.spans.act(self, Role("call", target), NamedLocation("call", place.base, place.key), reads)

    def place(self, target: ast.expr) -> NamedLocation | None:
        """Return the location that an expression names, or None."""
        if isinstance(target, ast.Name):
            return self.variable_place(target.id)
        base = self.paths.of(target.value) if isinstance(target, ast.Attribute | ast.Subscript) else None
        if base is None:
            return None
        if isinstance(target, ast.Attribute):
            return NamedLocation("attr", base, self.paths.mangled(target.attr))
        key = self.paths.key(target.slice) if isinstance(target, ast.Subscript) else None
        return NamedLocation("item", base, key) if key else NamedLocation("size", base, None)

    def take(self, value: ast.expr | None) -> None:
        """Record that a local gets a location's whole value, as in `batch = self.items` or `list(self.items)`."""
        inner, role = None, "size"
        if isinstance(value, ast.Call):
            if isinstance(value.func, ast.Name) and value.func.id in SNAPSHOTS and len(value.args) == 1:
                inner = value.args[0]
            elif isinstance(value.func, ast.Attribute) and value.func.attr == "copy" and not value.args:
                inner, role = value.func.value, "method"
        elif isinstance(value, ast.Subscript) and _is_whole(value.slice):
            inner, role = value.value, "access"
        if value is not None and (base := self.paths.of(inner)):
            place = NamedLocation("size", base, None)
            self.taken[place] = Read(Role(role, value), place, self.held)
        for whole in (value, inner):
            found = self.place(whole) if isinstance(whole, ast.Name | ast.Attribute | ast.Subscript) else None
            if found and whole is not None:
                self.taken[found] = Read(Role("access", whole), found, self.held)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        """Record a store that is its own partner; earlier tests are partners as well."""
        reads = self.value(node.value)
        target = node.target
        self.pass_on(target)
        if self.spans.summary.is_polled(target):
            self.spans.plan.add_fact(Role("access", target), Flag.COUNTED)
        if isinstance(target, ast.Name):
            place = self.variable_place(target.id)
            if place:
                self.spans.act(self, Role("access", target), place, reads)
            elif target.id in self.paths.aliases or (isinstance(node.value, DISPLAYS) and target.id not in self.built):
                self.spans.plan.in_place.add(node)
            self.locals[target.id] = self.locals.get(target.id, NOTHING) | reads
            self.paths.bind(target.id, None)
            return
        self.store(target, reads, None)
        place = self.place(target)
        if place and place.key:
            self.trace |= {Read(Role("access", target), place, self.held)}

    def do_Return(self, node: ast.Return) -> None:
        """Return a value, which the caller may change."""
        self.parts(node)
        self.pass_on(node.value)

    def do_Delete(self, node: ast.Delete) -> None:
        """Record deletions."""
        for target in node.targets:
            if isinstance(target, ast.Attribute | ast.Subscript):
                self.store(target, NOTHING, None)
            elif isinstance(target, ast.Name):
                self.assign_name(target, NOTHING, None)

    # Branches.

    def do_If(self, node: ast.If) -> None:
        """Follow both branches."""
        test = self.truth(node.test)
        state = self.state()
        self.block(node.body, test)
        after = self.state()
        self.restore(state)
        self.block(node.orelse, test)
        if exits(node.orelse):
            self.restore(after)
        elif not exits(node.body):
            self.merge(after)
        if exits(node.body) or exits(node.orelse):
            self.guards.append(test)

    def do_While(self, node: ast.While) -> None:
        """Follow the body, and the statements after the loop, guarded by the test."""
        test = NOTHING

        def once() -> None:
            nonlocal test
            test = self.truth(node.test)
            self.block(node.body, test)

        self.loop(once)
        self.guards.append(test)
        self.run(node.orelse)

    def do_For(self, node: ast.For | ast.AsyncFor) -> None:
        """Follow the body with values of the iterable."""
        reads = self.value(node.iter)

        def once() -> None:
            self.assign(node.target, reads, None)
            self.block(node.body)

        self.loop(once)
        self.run(node.orelse)

    do_AsyncFor = do_For

    def loop(self, once: Callable[[], None]) -> None:
        """Follow a loop's body twice, as one iteration uses results of the one before."""
        before = self.state()
        self.depth += 1
        once()
        if self.depth <= _LOOPS_TWICE:
            self.merge(before)
            once()
        self.merge(before)
        self.depth -= 1

    def do_With(self, node: ast.With | ast.AsyncWith) -> None:
        """Follow the body, inside of the `with`."""
        for item in node.items:
            reads = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, reads, None)
        outer = self.held
        self.held = (*outer, node)
        self.run(node.body)
        self.held = outer

    do_AsyncWith = do_With

    def do_Try(self, node: ast.Try | ast.TryStar) -> None:
        """Follow the body, and handlers that run because a read of the body failed."""
        before, outer, self.trace = self.state(), self.trace, NOTHING
        self.run(node.body)
        inside = self.trace
        self.trace |= outer
        self.run(node.orelse)
        after = self.state()
        failed = NOTHING
        ends = exits(node.body) or exits(node.orelse)
        for handler in node.handlers:
            reason = failing(handler, inside)
            failed |= NOTHING if exits(handler.body) else reason
            self.restore(before)
            self.block(handler.body, reason)
            if not exits(handler.body):
                after = self.merged(after)
        self.restore(after)
        if ends and failed:
            self.guards.append(failed)
        self.run(node.finalbody)

    do_TryStar = do_Try

    def do_Match(self, node: ast.Match) -> None:
        """Follow each case, guarded by the subject."""
        subject = self.truth(node.subject)
        before = after = self.state()
        for case in node.cases:
            self.restore(before)
            for captured in ast.walk(case.pattern):
                name = getattr(captured, "name", None) or getattr(captured, "rest", None)
                if isinstance(name, str):
                    self.locals[name] = subject
                    self.paths.bind(name, None)
            test = self.truth(case.guard) if case.guard else NOTHING
            self.block(case.body, subject | test)
            after = self.merged(after)
        self.restore(after)

    def do_Assert(self, node: ast.Assert) -> None:
        """Guard the next statements by the test."""
        self.guards.append(self.truth(node.test))

    # Not followed here.

    def do_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Leave functions to their own analysis."""
        self.locals.pop(node.name, None)

    do_AsyncFunctionDef = do_FunctionDef

    def do_TypeAlias(self, node: ast.TypeAlias) -> None:
        """Leave type aliases alone."""

    # Branches.

    def state(self) -> tuple[dict[str, Reads], dict[str, str], dict[NamedLocation, Read]]:
        """Return the state of this path, which differs between branches."""
        return dict(self.locals), dict(self.paths.aliases), dict(self.taken)

    def restore(self, state: State) -> None:
        """Restore the state at the start of another branch."""
        self.locals, self.paths.aliases, self.taken = dict(state[0]), dict(state[1]), dict(state[2])

    def merge(self, other: State) -> None:
        """Merge the state of another branch into this one."""
        for name, reads in other[0].items():
            self.locals[name] = self.locals.get(name, NOTHING) | reads
        self.paths.keep_common(other[1])
        self.taken = {place: read for place, read in self.taken.items() if place in other[2]}

    def merged(self, other: State) -> State:
        """Return the merged state of this branch and another one."""
        self.merge(other)
        return self.state()


if TYPE_CHECKING:
    from collections.abc import Callable

    State = tuple[dict[str, Reads], dict[str, str], dict[NamedLocation, Read]]
