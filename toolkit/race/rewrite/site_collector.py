"""Collect the sites of a module while it is rewritten, and build the syntax nodes that call ops."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from gilscope.toolkit.race.analysis.suppression_comments import reason_for_line
from gilscope.toolkit.race.site import MARKER, OP_PREFIX, SiteInfo
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LOADS = ("attr_read", "global_read", "cell_read")
LONGEST_TEXT = 80    # characters of an expression in a report


class Role(NamedTuple):
    """One op of one node: a method call may have the ops `method` and `reads`."""

    name: str         # "access", "size", "method", "call"
    node: ast.AST


class DependentWrite(NamedTuple):
    """Partners and flags of a write."""

    partners: tuple[Role, ...]
    flags: Flag


class PartnerPlan:
    """Partners of all writes of a module, by nodes of the tree before it is rewritten."""

    def __init__(self) -> None:
        self.acts: dict[Role, DependentWrite] = {}
        self.reads: set[Role] = set()           # partners of all writes
        self.facts: dict[Role, Flag] = {}       # further flags
        self.uses: dict[Role, set[Role]] = {}   # reads -> the reads of the same location whose test led there
        self.tests: set[Role] = set()           # the latter
        self.replaced: set[str] = set()         # variables and attributes that hold one new object after the other
        self.in_place: set[ast.AugAssign] = set()      # those of a local whose object other threads may have
        self.changed: set[str] = set()          # those whose object the module changes, or passes on to who may

    def add(self, act: Role, partners: tuple[Role, ...], flags: Flag) -> None:
        """Add partners to a write."""
        known = self.acts.get(act, DependentWrite((), Flag.NONE))
        self.acts[act] = DependentWrite(tuple({*known.partners, *partners}), known.flags | flags)
        self.reads.update(partners)

    def add_use(self, use: Role, tests: set[Role]) -> None:
        """Add a read of what earlier reads tested."""
        self.uses.setdefault(use, set()).update(tests)
        self.tests |= tests

    def add_snapshot(self, read: Role) -> None:
        """Add a read of a value that a local keeps until it is tested."""
        self.add_fact(read, Flag.SNAPSHOT)
        self.uses.pop(read, None)

    def add_fact(self, role: Role, flag: Flag) -> None:
        """Add a flag to an access."""
        self.facts[role] = self.facts.get(role, Flag.NONE) | flag

    def getters(self) -> set[str]:
        """Return the names of functions whose calls are the first half of a span."""
        called = [role.node.func for role in self.reads if role.name == "call" and isinstance(role.node, ast.Call)]
        loaded = [role.node for role in self.reads if role.name == "call" and isinstance(role.node, ast.Attribute)]
        return {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
                for node in (*called, *loaded)}


class SourceText:
    """Source of a module, for the text of expressions."""

    def __init__(self, source: bytes | None) -> None:
        self._lines = source.splitlines() if source is not None else None

    def of(self, node: ast.expr) -> str:
        """Return the expression's source on one line."""
        text = self._cut(node)
        if text is None:
            text = ast.unparse(node)
        text = " ".join(text.split())
        return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT - 3] + "..."

    def _cut(self, node: ast.expr) -> str | None:
        if self._lines is None or node.lineno != node.end_lineno or node.lineno > len(self._lines):
            return None
        return self._lines[node.lineno - 1][node.col_offset:node.end_col_offset].decode(errors="replace") or None


class SiteCollector:
    """Collector of the sites of one module."""

    def __init__(self, path: str, text: SourceText, plan: PartnerPlan, reasons: Mapping[int, str]) -> None:
        self.path = path
        self.text = text
        self.plan = plan
        self.reasons = reasons     # of suppressing comments, by line
        self.function = "<module>"
        self.operator = ""         # of the augmented assignment that is rewritten
        self.stored: dict[ast.AST, str] = {}     # targets -> the variable whose value they get
        self.lines = range(0)      # of the statement, each of which may have a suppressing comment
        self.acting: set[str] = set()      # functions with writes that have partners
        self._infos: list[SiteInfo] = []
        self._roles: dict[Role, int] = {}
        self._acts: list[tuple[int, DependentWrite]] = []
        self._uses: list[tuple[int, set[Role]]] = []

    def add(self, op: str, node: ast.AST, key: str = "", flags: Flag = Flag.NONE, *,
            role: Role | None = None, text: ast.expr | str = "") -> ast.Constant:
        """Add a site and return its marker, which stands for it until the code is linked."""
        index = len(self._infos)
        role = role or Role("access", node)
        act = self.plan.acts.get(role)
        if op != "reads" and act:
            self._acts.append((index, act))
            self.acting.add(self.function)
            flags |= act.flags
        if op != "writes" and role in self.plan.reads:
            flags |= Flag.SPAN_READ
            self._roles[role] = index
        tests = self.plan.uses.get(role)
        if role in self.plan.tests:
            self._roles.setdefault(role, index)
        if tests:
            self._uses.append((index, tests))
        if tests or role in self.plan.tests:
            flags |= Flag.RELIES
        flags |= self.plan.facts.get(role, Flag.NONE)
        if key in self.plan.replaced and op in _LOADS:
            flags |= Flag.NEW
        # A copy put in place orders loads, like what is made anew, if nobody changes what he loaded.
        decided = act is not None and (act.flags & Flag.GUARD or key in self.plan.changed)
        if decided or role in self.plan.reads:
            flags &= ~Flag.NEW
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        end_line, end_column = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        shown = text if isinstance(text, str) else self.text.of(text)
        self._infos.append(SiteInfo(self.path, line, column, end_line, end_column, self.function, op, key, shown,
                                    int(flags), (), reason_for_line(self.reasons, line, self.lines),
                                    self.operator * bool(flags & Flag.AUGMENTED), stored=self.stored.get(node, "")))
        return ast.Constant((MARKER, index))  # type: ignore[arg-type]  # any constant will do

    def store(self, targets: Iterable[ast.expr], value: ast.expr) -> None:
        """Remember the name of the variable whose value the targets get, if it is one."""
        if isinstance(value, ast.Name):
            self.stored.update(dict.fromkeys(targets, value.id))

    def finish(self) -> list[SiteInfo]:
        """Return all sites, each with the indexes of its partners and tests."""
        infos = list(self._infos)
        for index, act in self._acts:
            infos[index] = infos[index]._replace(partners=self._indexes(act.partners))
        for index, tests in self._uses:
            infos[index] = infos[index]._replace(tests=self._indexes(tests))
        return infos

    def _indexes(self, roles: Iterable[Role]) -> tuple[int, ...]:
        return tuple(sorted({self._roles[role] for role in roles if role in self._roles}))


def call(op: str, *arguments: ast.expr, at: ast.AST) -> ast.Call:
    """Return a call of the op with the position of a node, for tracebacks."""
    name = ast.copy_location(ast.Name(OP_PREFIX + op, ast.Load()), at)
    for argument in arguments:
        if not hasattr(argument, "lineno"):
            ast.copy_location(argument, at)
    return ast.copy_location(ast.Call(name, list(arguments), []), at)


def statement(expression: ast.expr, at: ast.AST | None = None) -> ast.Expr:
    """Return the expression as a statement."""
    return ast.copy_location(ast.Expr(expression), at or expression)
