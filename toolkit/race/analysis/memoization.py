"""Recognize memos: stores as in `if key not in cache: cache[key] = value` whose value is the same in any thread.

Two threads store the same value if it is computed from the same names as the key, and nothing in between returns
another value each time: a counter, a clock, a random number, the name of the thread.  A store that cannot be judged is
no memo.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from gilscope.toolkit.race.analysis.known_names import UNREPEATABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
DEEPEST = 4      # levels of calls that are analysed


def repeatable(around: Sequence[ast.AST], *, known: bool, by_key_alone: bool = False) -> bool:
    """Return True if the store in the middle of `around` (innermost node first) stores a function of its key.

    `known`: the rewriter has found that the value's names are those of the key or of the module.
    `by_key_alone`: names that the key was made from count only if the key determines them: `seen[number % 2] = number`
    stores the first of many.
    """
    found = _assignment(around)
    module = around[-1] if around else None
    if found is None or not isinstance(module, ast.Module):
        return False
    target, value, block = found
    value = _resolve(value, block)
    functions = [node for node in around if isinstance(node, Function)]
    key_names = _determined_by_key if by_key_alone else _key_names
    allowed = key_names(target, block) | _outside(functions, module) | _decorated(value, functions)
    if (by_key_alone or not known) and not _names(value) <= allowed:
        return False
    if isinstance(target, ast.Subscript) and _mentions(value, target.value):
        return False     # the value depends on the container: `ids[name] = len(ids)`
    return not _varies(value, around, module, DEEPEST)


def _assignment(around: Sequence[ast.AST]) -> tuple[ast.expr, ast.expr, list[ast.stmt]] | None:
    """Return target, value and preceding statements of the innermost assignment."""
    for index, node in enumerate(around):
        if isinstance(node, ast.Assign):
            # `found = cache[key] = ...` stores the value in a local as well.
            targets = [target for target in node.targets if not isinstance(target, ast.Name)] or node.targets
            return (targets[0], node.value, _block(node, around[index + 1:])) if len(targets) == 1 else None
        if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            return node.target, node.value, []
        if isinstance(node, ast.stmt):
            return None
    return None


def _block(statement: ast.stmt, around: Sequence[ast.AST]) -> list[ast.stmt]:
    """Return the statements of the function before the statement."""
    function = next((node for node in around if isinstance(node, Function)), None)
    if function is None:
        return []
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno < statement.lineno]


def _resolve(value: ast.expr, before: list[ast.stmt]) -> ast.expr:
    """Return the expression last assigned to a local name, or the value itself if it is no name."""
    if not isinstance(value, ast.Name):
        return value
    stores = [node.value for node in before if isinstance(node, ast.Assign)
              and any(isinstance(target, ast.Name) and target.id == value.id for target in node.targets)]
    return max(stores, key=lambda node: node.lineno) if stores else value


def _mentions(value: ast.AST, part: ast.expr) -> bool:
    text = ast.unparse(part)
    return any(ast.unparse(node) == text for node in ast.walk(value) if isinstance(node, ast.expr))


def _names(node: ast.AST) -> set[str]:
    bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} - bound


def _key_names(target: ast.expr, before: list[ast.stmt]) -> set[str]:
    """Return the names in the target, and those that its key was made from: `key = (args, kind)`."""
    names = _names(target)
    if isinstance(target, ast.Subscript):
        names |= _names(_resolve(target.slice, before))
    return names


def _determined_by_key(target: ast.expr, before: list[ast.stmt]) -> set[str]:
    """Return the names in the target, and those of its key if that is a tuple."""
    names = _names(target)
    if isinstance(target, ast.Subscript):
        if not isinstance(target.slice, ast.Name | ast.Tuple):
            names -= _names(target.slice)
        key = _resolve(target.slice, before)
        parts = [each.value if isinstance(each, ast.Starred) else each
                 for each in (key.elts if isinstance(key, ast.Tuple) else ())]
        names |= {each.id for each in parts if isinstance(each, ast.Name)}
    return names


def _decorated(value: ast.expr, functions: Sequence[Function]) -> set[str]:
    """Return the called names that are parameters of an enclosing function: a decorator's `fn(*args)`."""
    around = {arg.arg for function in functions[1:] for arg in function.args.args}
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)} & around - _parameters(functions)


def _parameters(functions: Sequence[Function]) -> set[str]:
    """Return the parameters of the innermost function and of functions inside of it."""
    return {arg.arg for arg in ast.walk(functions[0]) if isinstance(arg, ast.arg)} if functions else set()


def _outside(functions: Sequence[Function], module: ast.Module) -> set[str]:
    """Return the names of functions, classes, imports and constants of the module, and builtins."""
    names = set(dir(builtins))
    for statement in module.body:
        if isinstance(statement, Function | ast.ClassDef):
            names.add(statement.name)
        if isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
        if isinstance(statement, ast.Assign):
            names |= {target.id for target in statement.targets if isinstance(target, ast.Name) and target.id.isupper()}
    return names - _parameters(functions)


def _varies(value: ast.AST, around: Sequence[ast.AST], module: ast.Module, deep: int) -> bool:
    """Return True if the expression, or a function of this file that it calls, may return another value each time."""
    called = set(_called(value))
    waits = any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in ast.walk(value))
    if waits or called & UNREPEATABLE:
        return True
    for name in called:
        for function in _definitions(name, around, module):
            if not deep or _has_side_effects(function) or any(
                    _varies(statement, around, module, deep - 1) for statement in function.body):
                return True
    return False


def _called(value: ast.AST) -> Iterator[str]:
    for node in ast.walk(value):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).rpartition(".")[2]
        elif isinstance(node, ast.Attribute) and node.attr in UNREPEATABLE - {"time", "read", "random", "id"}:
            yield node.attr


def _definitions(name: str, around: Sequence[ast.AST], module: ast.Module) -> Iterator[Function]:
    """Yield the functions of that name in the module and the enclosing classes."""
    bodies = [module.body, *(node.body for node in around if isinstance(node, ast.ClassDef))]
    yield from (node for body in bodies for node in body if isinstance(node, Function) and node.name == name)


def _has_side_effects(function: Function) -> bool:
    """Return True if a second call of the function may have another effect than the first."""
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            return True
    return False
