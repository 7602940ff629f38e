"""Would another thread have stored the same value?  Asked of `if key not in cache: cache[key] = value`.

It would where the value is computed from what the key is computed from, and nothing in between gives another answer
each time: a counter's next number, a clock, a random number, the thread's own name.  What cannot be told is no memo.
"""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
# Names that answer differently each time, or take what they return from a place where it is then missing.
UNREPEATABLE = frozenset({
    "next", "id", "object", "input", "open", "iter", "random", "randint", "randrange", "choice", "choices", "shuffle",
    "sample", "uniform", "gauss", "uuid1", "uuid4", "token_hex", "token_bytes", "token_urlsafe", "urandom",
    "getrandbits", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "thread_time", "now", "utcnow", "today", "get_ident", "get_native_id", "current_thread", "current_task", "getpid",
    "pop", "popleft", "popitem", "get_nowait", "recv", "read", "readline", "send", "acquire", "__next__",
})
DEEPEST = 4      # calls of calls that are looked into


def repeatable(around: Sequence[ast.AST], *, known: bool, by_key_alone: bool = False) -> bool:
    """Tell whether the store in the middle of `around` (innermost node first) stores a function of its key.

    `known`: the rewriter has seen that the value's names are those of the key or of the module.
    `by_key_alone`: what the key was made from does not count, unless the key tells it: `seen[number % 2] = number`
    keeps the first of many.
    """
    found = _assignment(around)
    module = around[-1] if around else None
    if found is None or not isinstance(module, ast.Module):
        return False
    target, value, block = found
    value = _resolve(value, block)
    functions = [node for node in around if isinstance(node, Function)]
    key_names = _told_by_key if by_key_alone else _key_names
    allowed = key_names(target, block) | _outside(functions, module) | _decorated(value, functions)
    if (by_key_alone or not known) and not _names(value) <= allowed:
        return False
    if isinstance(target, ast.Subscript) and _mentions(value, target.value):
        return False     # what stands in the container decides: `ids[name] = len(ids)`
    return not _varies(value, around, module, DEEPEST)


def _assignment(around: Sequence[ast.AST]) -> tuple[ast.expr, ast.expr, list[ast.stmt]] | None:
    """Return target, value and the statements around of the innermost assignment."""
    for index, node in enumerate(around):
        if isinstance(node, ast.Assign):
            # `found = cache[key] = ...` keeps the value in a local besides.
            targets = [target for target in node.targets if not isinstance(target, ast.Name)] or node.targets
            return (targets[0], node.value, _block(node, around[index + 1:])) if len(targets) == 1 else None
        if isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            return node.target, node.value, []
        if isinstance(node, ast.stmt):
            return None
    return None


def _block(statement: ast.stmt, around: Sequence[ast.AST]) -> list[ast.stmt]:
    """Return the statements of the function that stand before the statement."""
    function = next((node for node in around if isinstance(node, Function)), None)
    if function is None:
        return []
    return [node for node in ast.walk(function) if isinstance(node, ast.stmt) and node.lineno < statement.lineno]


def _resolve(value: ast.expr, before: list[ast.stmt]) -> ast.expr:
    """Return what a local name was last assigned, or the expression itself."""
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


def _told_by_key(target: ast.expr, before: list[ast.stmt]) -> set[str]:
    """Return the names in the target, and those of the tuple that its key is."""
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
    """Return the names that are called and are parameters of a function around: a decorator's `fn(*args)`."""
    around = {arg.arg for function in functions[1:] for arg in function.args.args}
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return {function.id for function in calls if isinstance(function, ast.Name)} & around - _parameters(functions)


def _parameters(functions: Sequence[Function]) -> set[str]:
    """Return the parameters of the innermost function and of what it defines."""
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
    """Tell whether the expression, or a function of this file that it calls, may answer differently each time."""
    called = set(_called(value))
    waits = any(isinstance(node, ast.Await | ast.Yield | ast.YieldFrom) for node in ast.walk(value))
    if waits or called & UNREPEATABLE:
        return True
    for name in called:
        for function in _definitions(name, around, module):
            if not deep or _leaves_traces(function) or any(
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
    """Yield the functions of that name in the module and the classes around."""
    bodies = [module.body, *(node.body for node in around if isinstance(node, ast.ClassDef))]
    yield from (node for body in bodies for node in body if isinstance(node, Function) and node.name == name)


def _leaves_traces(function: Function) -> bool:
    """Tell whether calling the function twice differs from calling it once."""
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            return True
    return False
