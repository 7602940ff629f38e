"""Ways through functions that threads ran which none of them took, and which change what the threads share.

The race checker judges what happened: a token that is renewed once an hour was not renewed.  Such a way is no race,
and no proof that there is none.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.threaded_functions import Function, changed, sources, within
from gilscope.toolkit.evaluate.sections import Unwatched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.evaluate.project.racing.threaded_functions import Ran, Source
    from gilscope.toolkit.evaluate.project.where_to_run import Shown

LONGEST = 60   # characters of a statement that are told


def unreached(ran: Iterable[Ran], shown: Shown) -> Iterator[Unwatched]:
    """Yield the statements of functions that ran in two threads, in no thread but perhaps the first one, that matter.

    In the order of files and lines; what a comment judges is not told.
    """
    found = {(source.name, each.lineno, _shown(each)) for source in sources(ran, shown)
             if source.ran.twice and source.ran.lines
             for each in _statements(source.node.body)
             if not any(within(each, line) for line in source.ran.lines)
             and _changes_shared(each, source) and not source.judged(each.lineno)}
    yield from (Unwatched(file=file, line=line, what=what) for file, line, what in sorted(found))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that hold no others; functions and classes inside are run, if at all, by themselves."""
    for each in body:
        if isinstance(each, Function | ast.ClassDef):
            continue
        inner = [child for child in ast.iter_child_nodes(each)
                 if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)]
        if not inner:
            yield each
        for child in inner:
            yield from _statements([child] if isinstance(child, ast.stmt) else child.body)


def _changes_shared(statement: ast.stmt, source: Source) -> bool:
    """Return whether a statement, or what it calls of its own file, changes what threads share."""
    if any(name in source.shared for _, name in changed(statement)):
        return True
    for each in ast.walk(statement):
        if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            if ast.unparse(each) in source.shared:
                return True
        elif isinstance(each, ast.Call) and (called := _called(each, source)) and _changes(called):
            return True
    return False


def _called(call: ast.Call, source: Source) -> Function | None:
    """Return the function that is called, where it is one of the file's, or a method of the object that is shared."""
    name = ast.unparse(call.func)
    body = source.module.body
    if name.startswith("self.") and source.ran.one_self:
        own = (each for each in body if isinstance(each, ast.ClassDef) and source.node in each.body)
        body, name = next((each.body for each in own), []), name.removeprefix("self.")
    return next((each for each in body if isinstance(each, Function) and each.name == name), None)


def _changes(function: Function) -> bool:
    """Return whether a function changes its object or a global."""
    globals_ = {name for each in ast.walk(function) if isinstance(each, ast.Global) for name in each.names}
    return any(isinstance(each, ast.Attribute | ast.Name) and isinstance(each.ctx, ast.Store | ast.Del)
               and (ast.unparse(each).startswith("self.") or ast.unparse(each) in globals_)
               for each in ast.walk(function))


def _shown(statement: ast.stmt) -> str:
    text = ast.unparse(statement).partition("\n")[0]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
