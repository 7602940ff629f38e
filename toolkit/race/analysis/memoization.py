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


def repeatable(around: Sequence[ast.AST], *, known: bool = False, by_key_alone: bool = False) -> bool:
    """Return True if the store in the middle of `around` (innermost node first) stores a function of its key.

    `known`: the rewriter has found that the value's names are those of the key or of the module.
    `by_key_alone`: names that the key was made from count only if the key determines them: `seen[number % 2] = number`
    stores the first of many.
    """
    found = _store(around)
    if found is None:
        return False
    target, value, block, module = found
    functions = [node for node in around if isinstance(node, Function)]
    key_names = _determined_by_key if by_key_alone else _key_names
    allowed = key_names(target, block) | _outside(functions, module) | _decorated(value, functions)
    values = [value]
    if by_key_alone or not known:
        made_from = _made_from(value, allowed, _bindings(functions))
        if made_from is None:
            return False
        values += made_from
    if isinstance(target, ast.Subscript) and any(_mentions(each, target.value) for each in values):
        return False     # the value depends on the container: `ids[name] = len(ids)`
    called = [function for each in values for function in _functions_called(each, around, module)]
    return not any(map(_varies, (*values, *called))) and not any(map(_has_side_effects, called))


def has_side_effects(around: Sequence[ast.AST]) -> bool:
    """Return True if a function of this file that makes the stored value also changes a global or an object."""
    found = _store(around)
    if found is None:
        return False
    _, value, _, module = found
    return any(map(_has_side_effects, _functions_called(value, around, module)))


def _store(around: Sequence[ast.AST]) -> tuple[ast.expr, ast.expr, list[ast.stmt], ast.Module] | None:
    """Return target, resolved value, preceding statements and module of the innermost assignment."""
    found = _assignment(around)
    module = around[-1] if around else None
    if found is None or not isinstance(module, ast.Module):
        return None
    target, value, block = found
    return target, _resolve(value, block), block, module


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


def _bindings(functions: Sequence[Function]) -> dict[str, list[ast.expr]]:
    """Return the values of each local of the innermost function that only assignments and `for` loops bind."""
    bound: dict[str, list[ast.expr]] = {}
    statements = [node for node in ast.walk(functions[0]) if isinstance(node, ast.stmt)] if functions else []
    for statement in statements:
        match statement:
            case ast.Assign(targets=targets, value=value):
                pairs = [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value) | (
                    ast.For(target=target, iter=value)):
                pairs = [(target, value)]
            case _:
                pairs = []
        for target, value in pairs:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    bound.setdefault(name.id, []).append(value)
    stored = [node.id for statement in statements for node in _own_nodes(statement)
              if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    unknown = {name for name, values in bound.items() if stored.count(name) != len(values)}
    return {name: values for name, values in bound.items() if name not in unknown | _parameters(functions)}


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement without those of the statements in it."""
    for child in ast.iter_child_nodes(statement):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from ast.walk(child)


def _made_from(value: ast.expr, allowed: set[str], bound: dict[str, list[ast.expr]]) -> list[ast.expr] | None:
    """Return the values of the locals that `value` is made from, None if it needs other names than the allowed."""
    found: list[ast.expr] = []
    known = set(allowed)
    wanted = [value]
    while wanted:
        for name in _names(wanted.pop()) - known:
            if name not in bound:
                return None
            known.add(name)
            found += bound[name]
            wanted += bound[name]
    return found


def _varies(node: ast.AST) -> bool:
    """Return True if the code, by itself, may return another value each time."""
    return not UNREPEATABLE.isdisjoint(_called(node)) or any(
        isinstance(each, ast.Await | ast.Yield | ast.YieldFrom) for each in ast.walk(node))


def _functions_called(value: ast.AST, around: Sequence[ast.AST], module: ast.Module) -> list[Function]:
    """Return the functions of this file that the expression calls, directly or through others."""
    found: list[Function] = []
    wanted = [value]
    while wanted:
        for name in set(_called(wanted.pop())):
            new = [function for function in _definitions(name, around, module) if function not in found]
            found += new
            wanted += new
    return found


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
