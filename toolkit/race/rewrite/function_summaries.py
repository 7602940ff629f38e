"""Summaries of a module's functions: names that each one reads and writes, to recognize getters and setters."""

from __future__ import annotations

import ast
from typing import NamedTuple

from gilscope.toolkit.race.analysis.scopes import mangle
from gilscope.toolkit.race.effects import LIBRARY, MUTATORS, SIZE_READS

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class FunctionEffects(NamedTuple):
    """Names of attributes and variables that a function reads and writes, and of the functions it calls."""

    reads: set[str]
    writes: set[str]
    calls: set[str]


class ModuleSummary:
    """Effects of a module's functions; functions with the same name are merged."""

    def __init__(self, module: ast.Module) -> None:
        self.functions: dict[str, FunctionEffects] = {}      # of the module
        self.methods: dict[str, FunctionEffects] = {}        # of its classes
        self.properties: set[str] = set()
        self.containers: set[str] = set()            # names and attributes used as containers
        self.polled: set[str] = set()                # names and attributes in tests of `while`
        self._collect(module, None)
        for group in (self.functions, self.methods):
            self._close(group)

    def effects(self, name: str, *, method: bool) -> FunctionEffects | None:
        """Return the effects of functions (or methods) of the name, None if there is none."""
        return (self.methods if method else self.functions).get(name)

    def is_container(self, node: ast.AST) -> bool:
        """Return True if the module uses the named object as a container."""
        return _last(node) in self.containers

    def is_polled(self, node: ast.AST) -> bool:
        """Return True if a `while` loop of the module asks for a variable of that name."""
        return _last(node) in self.polled

    def _collect(self, node: ast.AST, owner: str | None) -> None:
        for child in ast.iter_child_nodes(node):
            inner = child.name if isinstance(child, ast.ClassDef) else owner
            if isinstance(child, _FUNCTIONS):
                group = self.methods if isinstance(node, ast.ClassDef) else self.functions
                effects = group.setdefault(mangle(child.name, owner), FunctionEffects(set(), set(), set()))
                inside = [one for part in child.body for one in ast.walk(part)]
                shared = {name for one in inside if isinstance(one, ast.Global) for name in one.names}
                for one in inside:
                    if not isinstance(one, ast.Name) or isinstance(one.ctx, ast.Load) or one.id in shared:
                        self._note(one, effects, owner)
                if any(_is_property(decorator) for decorator in child.decorator_list):
                    self.properties.add(mangle(child.name, owner))
            self._note_container(child)
            if isinstance(child, ast.While):
                self.polled.update(map(_last, ast.walk(child.test)))
            self._collect(child, inner)

    def _note(self, node: ast.AST, effects: FunctionEffects, owner: str | None) -> None:
        if isinstance(node, ast.Attribute | ast.Name | ast.Subscript):
            names = effects.reads if isinstance(node.ctx, ast.Load) else effects.writes
            names.add(mangle(_last(node), owner))
        elif isinstance(node, ast.AugAssign):
            effects.reads.add(mangle(_last(node.target), owner))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            effects.calls.add(mangle(node.func.attr, owner))
            if node.func.attr in MUTATORS:
                effects.writes.add(mangle(_last(node.func.value), owner))
            self._note_rewriting(node, node.func.attr, effects, owner)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            effects.calls.add(node.func.id)
            self._note_rewriting(node, node.func.id, effects, owner)
            if node.func.id == "setattr":
                effects.writes.update(one.value for one in node.args[1:2] if isinstance(one, ast.Constant)
                                      and isinstance(one.value, str))

    @staticmethod
    def _note_rewriting(node: ast.Call, name: str, effects: FunctionEffects, owner: str | None) -> None:
        if node.args and any(name in functions and functions[name].effect for functions in LIBRARY.values()):
            effects.writes.add(mangle(_last(node.args[0]), owner))

    def called_by(self, names: set[str]) -> set[str]:
        """Return the names of these functions and of those that they call."""
        found, new = set(names), set(names)
        while new:
            called = [group[name].calls for group in (self.functions, self.methods) for name in new if name in group]
            new = set().union(*called) & (self.functions.keys() | self.methods.keys()) - found
            found |= new
        return found

    def _note_container(self, node: ast.AST) -> None:
        used: ast.expr | None = None
        if isinstance(node, ast.Subscript):
            used = node.value
        elif isinstance(node, ast.For | ast.comprehension):
            used = node.iter
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            used = node.comparators[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            used = node.func.value if node.func.attr in MUTATORS | SIZE_READS else None
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
            used = node.args[0]
        if used is not None:
            self.containers.add(_last(used))

    @staticmethod
    def _close(group: dict[str, FunctionEffects]) -> None:
        """Add the effects of called functions to each function."""
        changed = True
        while changed:
            changed = False
            for effects in group.values():
                for callee in effects.calls & group.keys():
                    other = group[callee]
                    if not (other.reads <= effects.reads and other.writes <= effects.writes):
                        effects.reads.update(other.reads)
                        effects.writes.update(other.writes)
                        changed = True


def _is_property(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "property") or (
        isinstance(node, ast.Attribute) and node.attr in ("setter", "getter", "deleter"))


def _last(node: ast.AST) -> str:
    """Return the last identifier of an expression: `d` for `self.d[k]`."""
    while isinstance(node, ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
