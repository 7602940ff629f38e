"""Questions of build scripts about the system and the interpreter, as far as their answer is certain here.

What is not certain is None: a module that was not made is missed then.
"""

from __future__ import annotations

import ast
import os
import platform
import re
import sys
from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# As CPython answers them on this system; only it is evaluated.
_KNOWN = {
    "sys.platform": sys.platform, "os.name": os.name, "platform.system()": platform.system(),
    "sys.implementation.name": "cpython", "platform.python_implementation()": "CPython",
}


def answered(question: ast.expr) -> bool | None:
    """Return what the question of an `if` comes to on this system; None where that is not certain."""
    if isinstance(question, ast.UnaryOp) and isinstance(question.op, ast.Not):
        found = answered(question.operand)
        return None if found is None else not found
    if isinstance(question, ast.BoolOp):
        answers = [answered(each) for each in question.values]
        decides = isinstance(question.op, ast.Or)   # a True of `or` and a False of `and` do, whatever the others are
        if decides in answers:
            return decides
        return None if None in answers else not decides
    if isinstance(question, ast.Compare) and len(question.ops) == 1:
        return _compared(question.left, question.ops[0], question.comparators[0])
    if isinstance(question, ast.Call) and isinstance(question.func, ast.Attribute) and len(question.args) == 1:
        known, words = _KNOWN.get(ast.unparse(question.func.value)), _words(question.args[0])
        if question.func.attr == "startswith" and known is not None and words:
            return known.startswith(words)
    return None


def stored_by_variables(tree: ast.AST) -> dict[str, list[str]]:
    """Return by name the variables of the environment that decide what is stored under it."""
    found: dict[str, list[str]] = {}
    parts: list[ast.stmt]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            decides, parts = node.value, [node]
        elif isinstance(node, ast.If):
            decides, parts = node.test, [*node.body, *node.orelse]
        else:
            continue
        asked = list(variables(decides))
        for each in chain.from_iterable(map(ast.walk, parts if asked else ())):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.setdefault(each.id, []).extend(asked)
    return found


def variables(node: ast.AST) -> Iterator[str]:
    """Yield the variables of the environment that an expression asks for by name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            asks, name = ast.unparse(each.func), each.args[0] if each.args else None
        elif isinstance(each, ast.Subscript):
            asks, name = ast.unparse(each.value), each.slice
        elif isinstance(each, ast.Compare):
            asks, name = ast.unparse(each.comparators[0]), each.left
        else:
            continue
        if (re.search(r"\b(?:getenv|environ(?:\.get)?)$", asks) and isinstance(name, ast.Constant)
                and isinstance(name.value, str)):
            yield name.value


def _compared(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> bool | None:
    known, words = _KNOWN.get(ast.unparse(left)), _words(right)
    if known is None or not words:
        return None
    if isinstance(operator, ast.Eq | ast.NotEq) and len(words) == 1 and isinstance(right, ast.Constant):
        return (known == words[0]) == isinstance(operator, ast.Eq)
    if isinstance(operator, ast.In | ast.NotIn) and not isinstance(right, ast.Constant):
        return (known in words) == isinstance(operator, ast.In)
    return None


def _words(node: ast.expr) -> tuple[str, ...]:
    """Return the texts that stand there, empty where something else does."""
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    words = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return tuple(words) if len(words) == len(nodes) else ()
