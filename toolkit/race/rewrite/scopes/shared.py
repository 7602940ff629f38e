"""Which variable a name means, and which variables threads may share: globals and closure variables that change.

Works on syntax trees, as trees are what the rewriter gets from pytest; `symtable` wants source.
"""

from __future__ import annotations

import ast
import builtins
import sys

from gilscope.toolkit.race.rewrite.scopes.walk import (
    COMPREHENSIONS,
    DECLARING,
    FUNCTIONS,
    Scope,
    Variable,
    Walk,
    mangle,
)

__all__ = ["COMPREHENSIONS", "FUNCTIONS", "Scope", "Table", "Variable", "mangle"]

_BUILTIN_NAMES = frozenset(dir(builtins))


class Table(Walk):
    """All scopes of a module."""

    def __init__(self, module: ast.Module) -> None:
        super().__init__(module)
        self._settle()

    def resolve(self, scope: Scope, name: str) -> Variable:
        """Return the variable that the (mangled) name means in the scope."""
        if name in scope.globals:
            return Variable("global", self.module, name)
        here: Scope | None = scope.parent if name in scope.nonlocals else scope
        first = True
        while here is not None and here.kind != "module":
            if name in here.globals:
                break
            visible = here.kind != "class" or (first and here is scope)
            if visible and name in here.bindings and name not in here.nonlocals:
                return Variable("class" if here.kind == "class" else "local", here, name)
            first = False
            here = here.parent
        return Variable("global", self.module, name)

    def is_builtin(self, scope: Scope, name: str) -> bool:
        """Return whether the name means the builtin of that name."""
        return (name in _BUILTIN_NAMES and not self.module.star and name not in self.module.bindings
                and name not in self._globals_written and self.resolve(scope, name).place == "global")

    def is_stdlib(self, scope: Scope, name: str) -> bool:
        """Return whether nothing but an import from the standard library binds the name."""
        owner = self.resolve(scope, name).owner
        return owner.bindings.get(name) == {"import"} and owner.modules[name] <= sys.stdlib_module_names

    def library_function(self, scope: Scope, function: ast.expr) -> tuple[str, str]:
        """Return the module of the standard library and the name there of what is called; empty when it is another."""
        name = function.value if isinstance(function, ast.Attribute) else function
        if not isinstance(name, ast.Name) or not self.is_stdlib(scope, name.id):
            return "", ""
        owner = self.resolve(scope, name.id).owner
        called = function.attr if isinstance(function, ast.Attribute) else owner.imported.get(name.id, "")
        return min(owner.modules[name.id]), called

    def is_declared(self, scope: Scope, name: str) -> bool:
        """Return whether nothing but imports, functions and classes bind the name."""
        kinds = self.resolve(scope, name).owner.bindings.get(name)
        return bool(kinds) and kinds <= set(DECLARING)   # type: ignore[operator]  # bool() of it excludes None

    # What is watched.

    def _settle(self) -> None:
        self._globals_written: set[str] = set()
        nonlocal_written: set[Variable] = set()
        for scope, name in self.outer_writes:
            variable = self.resolve(scope, name)
            if variable.place == "global":
                self._globals_written.add(name)
            else:
                nonlocal_written.add(variable)
        read_in_functions, captured = set(), set()
        for scope, name in self.uses:
            variable, frame = self.resolve(scope, name), scope.own_frame
            if variable.place == "global" and frame.kind in ("function", "generator"):
                read_in_functions.add(name)
            elif variable.place == "local" and variable.owner.kind == "function" and frame is not variable.owner:
                captured.add(variable)
        counts = self.module.counts
        self.watched_globals = self._globals_written | {
            name for name in read_in_functions if counts[name] > 1}
        self.captured = captured | nonlocal_written
        self.watched_cells = {variable for variable in captured | nonlocal_written if variable.owner.kind == "function"
                              and (variable in nonlocal_written or variable.owner.counts[variable.name] > 1)}
