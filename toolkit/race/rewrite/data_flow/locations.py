"""What an expression stands for, as text that is the same for the same place: `self.balance`, `counts[word]`.

The text only says which read *may* belong to which write: at run time the core asks whether both met one location.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gilscope.toolkit.race.rewrite.sites import Role


class Place(NamedTuple):
    """A location as the source names it."""

    kind: str          # attr, name, item, size, call
    base: str          # the object, container or receiver; "" for names and for functions of the module
    key: str | None    # attribute, variable, item or function; None: the container as a whole


class Read(NamedTuple):
    """A read that a later write may depend on."""

    role: Role
    place: Place
    held: tuple[object, ...] = ()     # the `with` statements around it, and locks acquired before it


Reads = frozenset[Read]
NOTHING: Reads = frozenset()


class Paths:
    """Names expressions; locals that stand for another expression are replaced by it."""

    def __init__(self, mangled: Callable[[str], str]) -> None:
        self.mangled = mangled
        self.aliases: dict[str, str] = {}

    def of(self, node: ast.AST | None) -> str | None:
        """Return the expression's text, or None when it is not simply a place."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = self.of(node.value)
            return base and f"{base}.{self.mangled(node.attr)}"
        if isinstance(node, ast.Subscript):
            base, key = self.of(node.value), self.key(node.slice)
            return base and key and f"{base}[{key}]"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type" and node.args:
            return f"type({self.of(node.args[0])})"
        if isinstance(node, ast.NamedExpr):
            return self.of(node.value)
        return None

    def key(self, node: ast.AST) -> str | None:  # noqa: PLR0911  a list of cases
        """Return the text of a key: what `of` takes, constants, tuples and arithmetic of those."""
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Tuple):
            return self._joined(", ", node.elts)
        if isinstance(node, ast.BinOp):
            return self._joined(f" {type(node.op).__name__} ", [node.left, node.right])
        if isinstance(node, ast.UnaryOp):
            operand = self.key(node.operand)
            return operand and f"{type(node.op).__name__} {operand}"
        if isinstance(node, ast.Call):
            return self._joined(", ", [node.func, *node.args]) if not node.keywords else None
        if isinstance(node, ast.Slice):
            return self._joined(":", [part or ast.Constant(None) for part in (node.lower, node.upper, node.step)])
        if isinstance(node, ast.JoinedStr | ast.Attribute | ast.Subscript | ast.Name):
            return ast.unparse(node) if isinstance(node, ast.JoinedStr) else self.of(node)
        return None

    def _joined(self, separator: str, nodes: list[ast.expr]) -> str | None:
        texts = [self.key(node) for node in nodes]
        return "(" + separator.join(text for text in texts if text) + ")" if all(texts) else None

    def bind(self, name: str, value: ast.AST | None) -> None:
        """Note that a local is assigned: it stands for the value from now on, and what it was part of is another."""
        text = self.of(value) if isinstance(value, ast.Attribute | ast.Subscript) else None
        self.aliases = {alias: path for alias, path in self.aliases.items()
                        if alias != name and not _mentions(path, name)}
        if text and not _mentions(text, name):
            self.aliases[name] = text

    def keep_common(self, others: Mapping[str, str]) -> None:
        """Keep what both ways to this place agree on."""
        self.aliases = {name: path for name, path in self.aliases.items() if others.get(name) == path}


def _mentions(path: str, name: str) -> bool:
    if name not in path:
        return False
    word, words = "", set()
    for letter in path + " ":
        if letter.isidentifier() or letter.isdigit():
            word += letter
        else:
            words.add(word)
            word = ""
    return name in words
