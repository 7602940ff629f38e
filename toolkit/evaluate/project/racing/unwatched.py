"""What several threads of the project's own code do that the race checker does not watch, by their functions' trees.

The checker follows Python code and the containers that are built in.  It does not see what `exec` runs, where a file
stands, what the library's or a package's own containers hold, what lru_cache keeps, what C code does that ctypes calls,
what is the whole process's, and which way a lock that is not got would have led.  A function with one of these that
ran in two threads is no function without races.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.threaded_functions import LOCKS, Function, sources, stored, told_to_change
from gilscope.toolkit.evaluate.sections import Unwatched

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gilscope.toolkit.evaluate.project.racing.threaded_functions import Ran, Source
    from gilscope.toolkit.evaluate.project.where_to_run import Shown

WATCHED = "os._Environ"     # its items are
WITH_GIL = "ctypes.PyDLL"   # calls C code with the GIL, where there is one
# What they change is the whole process's.
FOR_ALL = frozenset({"contextlib.chdir", "contextlib.redirect_stderr", "contextlib.redirect_stdout", "locale.setlocale",
                     "os.chdir", "os.fchdir", "os.umask", "random.seed", "socket.setdefaulttimeout"})
CACHES = frozenset({"functools.cache", "functools.cached_property", "functools.lru_cache"})
AT_PLACE = frozenset({"read", "readinto", "readline", "readlines", "truncate", "write", "writelines"})   # after a seek


def unwatched(ran: Iterable[Ran], shown: Shown) -> Iterator[Unwatched]:
    """Yield what is not watched in those functions, in the order of files and lines; what a comment judges is not."""
    found = {(source.name, line, what) for source in sources(ran, shown)
             for line, what in _in_function(source) if not source.judged(line)}
    yield from (Unwatched(file=file, line=line, what=what) for file, line, what in sorted(found))


def _in_function(source: Source) -> Iterator[tuple[int, str]]:
    # What is found in a cache is not called again.
    yield from _made_twice(source)
    if not source.ran.twice:
        return
    for call in source.calls():
        name = source.called(call)
        if name in {"exec", "eval"}:
            yield call.lineno, f"what {name} runs"
        if name in FOR_ALL:
            yield call.lineno, f"what {name.rpartition('.')[2]} changes for all threads"
    yield from _at_a_place(source)
    holders = {name: kind for name, kind in source.foreign.items() if kind not in LOCKS}
    changes = [*((line, name) for line, name in stored(source.node) if holders.get(name) != WATCHED),
               *told_to_change(source.node)]
    yield from ((line, f"what {name} ({holders[name]}) holds") for line, name in changes
                if name in holders and not source.guarded(line))
    yield from ((each.lineno, f"what {name} does, C code that ctypes.PyDLL calls with the GIL where there is one")
                for each in source.walk() if isinstance(each, ast.Name | ast.Attribute)
                and source.foreign.get(name := ast.unparse(each)) == WITH_GIL)
    yield from _without_the_lock(source.node)


def _at_a_place(source: Source) -> Iterator[tuple[int, str]]:
    """Yield where a file that threads share is moved and then used: another thread may move it in between."""
    methods = [(ast.unparse(call.func.value), call.func.attr, call.lineno) for call in source.calls()
               if isinstance(call.func, ast.Attribute)]
    for name, method, line in methods:
        if method == "seek" and name in source.shared and not source.guarded(line) and any(
                other == name and used in AT_PLACE for other, used, _ in methods):
            yield line, f"where the file {name} stands"


def _made_twice(source: Source) -> Iterator[tuple[int, str]]:
    """Yield a cached function that gives objects of a class whose methods change them: two first calls get two."""
    caches = {source.called(each) for each in source.node.decorator_list} & CACHES
    if not caches or ("functools.cached_property" in caches and not source.ran.one_self):
        return
    classes = {each.name: each for each in source.module.body if isinstance(each, ast.ClassDef)}
    for each in source.walk():
        if (isinstance(each, ast.Return) and isinstance(each.value, ast.Call) and isinstance(each.value.func, ast.Name)
                and (made := classes.get(each.value.func.id)) and _changes(made)):
            name = min(caches).rpartition(".")[2]
            yield each.lineno, f"whether {name} gives two threads that ask first one {made.name}"


def _changes(made: ast.ClassDef) -> bool:
    """Return whether a method of the class changes its object."""
    methods = (each for each in made.body if isinstance(each, Function) and each.name not in {"__init__", "__new__"})
    return any(isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del)
               and isinstance(each.value, ast.Name) and each.value.id == "self"
               for method in methods for each in ast.walk(method))


def _without_the_lock(node: Function) -> Iterator[tuple[int, str]]:
    """Yield where a lock may not be got in time, and the function goes on all the same."""
    for statement in ast.walk(node):
        if isinstance(statement, ast.Expr):
            name, value = "", statement.value
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, value = statement.targets[0].id, statement.value
        else:
            continue
        if isinstance(value, ast.Call) and _may_give_up(value) and not _decides(node, name):
            yield value.lineno, f"what happens where {ast.unparse(value.func)} does not get the lock"


def _may_give_up(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "acquire":
        return False
    given = {each.arg: each.value for each in call.keywords}
    waits = [*call.args, *(given[name] for name in ("timeout", "blocking") if name in given)]
    return any(not (isinstance(each, ast.Constant) and each.value in {True, -1}) for each in waits)


def _decides(node: Function, name: str) -> bool:
    """Return whether anything but giving the lock back depends on a name."""
    if not name:
        return False
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name
            and isinstance(each.ctx, ast.Load)]
    releases = [each for each in ast.walk(node) if isinstance(each, ast.If) and isinstance(each.test, ast.Name)
                and each.test.id == name and not each.orelse and len(each.body) == 1
                and ast.unparse(each.body[0]).endswith(".release()")]
    return len(uses) > len(releases)
