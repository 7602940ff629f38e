"""What calls read and write: getters and setters, methods of containers, builtins."""

from __future__ import annotations

import ast

from gilscope.toolkit.race.rewrite.data_flow.expressions import Effects
from gilscope.toolkit.race.rewrite.data_flow.locations import NOTHING, Place, Read, Reads
from gilscope.toolkit.race.rewrite.known_names import (
    DYNAMIC,
    FOREIGN_METHODS,
    KEYED_METHODS,
    MUTATORS,
    REWRITING,
    SIZE_READS,
    SNAPSHOTS,
)
from gilscope.toolkit.race.rewrite.sites import Role


class CallEffects(Effects):
    """Follows values through calls."""

    def value_Call(self, node: ast.Call, *, awaited: bool = False) -> Reads:
        """Call: a method may get or set what belongs to its receiver."""
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func, awaited=awaited)
        reads = self.value(node.func) | self.arguments(node)
        self.rewriting(node)
        if not isinstance(node.func, ast.Name):
            return reads
        name, scope = node.func.id, self.scope
        if self.table.is_builtin(scope, self.paths.mangled(name)):
            return reads | self.builtin(node, name)
        if not awaited and self.summary.effects(name, method=False) and self._is_function(name):
            place = Place("call", "", name)
            self.spans.act(self, Role("call", node), place, reads)
            reads |= {Read(Role("call", node), place, self.held)}
        return reads

    def _is_function(self, name: str) -> bool:
        variable = self.table.resolve(self.scope, self.paths.mangled(name))
        return variable.place == "global" and variable.owner.bindings.get(variable.name) == {"def"}

    def arguments(self, node: ast.Call) -> Reads:
        """Evaluate a call's arguments."""
        return self.union([*node.args, *(keyword.value for keyword in node.keywords)])

    def builtin(self, node: ast.Call, name: str) -> Reads:
        """Call a builtin function."""
        base = self.paths.of(node.args[0]) if node.args else None
        if name == "len" or name in SNAPSHOTS:
            return self.read("size", node, "size", base)
        if name not in DYNAMIC or len(node.args) < 2:   # noqa: PLR2004  object and name
            return NOTHING
        attribute = node.args[1]
        constant = attribute.value if isinstance(attribute, ast.Constant) else None
        key = constant if isinstance(constant, str) else self.paths.key(attribute)
        if name in ("getattr", "hasattr"):
            return self.read("access", node, "attr", base, key)
        if base and key:
            self.spans.act(self, Role("access", node), Place("attr", base, key), self.union(node.args[2:]))
        return NOTHING

    def method(self, node: ast.Call, function: ast.Attribute, *, awaited: bool) -> Reads:
        """Call a method."""
        name, base = self.paths.mangled(function.attr), self.paths.of(function.value)
        receiver, given = self.value(function.value), self.arguments(node)
        self.lock(name, base)
        self.keep(function.value, given)
        if base is None or self._is_library(function.value):
            self.rewriting(node)
            return receiver | given
        found = self.container(node, name, base, given)
        if not awaited and self._may_be_ours(name, node):
            place = Place("call", base, name)
            self.spans.act(self, Role("call", node), place, given)
            found |= {Read(Role("call", node), place, self.held)}
        return receiver | given | found

    def rewriting(self, node: ast.Call) -> None:
        """Record what functions of the standard library do to their argument, as heappush does."""
        module, called = self.table.library_function(self.scope, node.func)
        base = self.paths.of(node.args[0]) if node.args else None
        if base and called in REWRITING.get(module, ()):
            self.spans.act(self, Role("size", node), Place("size", base, None), NOTHING)

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
        """Record what a method of a container does; return what it reads."""
        key = self.paths.key(node.args[0]) if node.args and not isinstance(node.args[0], ast.Starred) else None
        if name == "get" and node.args:
            return self.read("method", node, "item", base, key) if key else NOTHING
        if name in SIZE_READS:
            return self.read("method", node, "size", base)
        takes = name == "get"
        harmless = name == "pop" and len(node.args) > 1
        if takes or (name in MUTATORS and not harmless):
            place = Place("item", base, key) if name in KEYED_METHODS and key else Place("size", base, None)
            self.spans.act(self, Role("method", node), place, given, clears=name == "clear")
        return NOTHING

    def value_Await(self, node: ast.Await) -> Reads:
        """Await: what a coroutine does, it does later."""
        if isinstance(node.value, ast.Call):
            return self.value_Call(node.value, awaited=True)
        return self.value(node.value)
