"""Find what the race checker cannot judge in functions that several threads ran.

Three kinds: state that no Python code stores (files, C code, other people's containers), branches that no thread took
and that would change shared state, and state that each process would have a copy of.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.threaded_functions import (
    LOCKS,
    Function,
    changed,
    changed_by_methods,
    sources,
    stored,
    within,
)
from gilscope.toolkit.evaluate.sections import SharedFact, Unwatched

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from gilscope.toolkit.evaluate.project.racing.threaded_functions import FunctionSource, ThreadedFunction
    from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths

WATCHED = "os._Environ"     # the race checker watches its items
WITH_GIL = "ctypes.PyDLL"   # calls C code with the GIL held, if there is one
# Calls that change state of the whole process.
FOR_ALL = frozenset({"contextlib.chdir", "contextlib.redirect_stderr", "contextlib.redirect_stdout", "locale.setlocale",
                     "os.chdir", "os.fchdir", "os.umask", "random.seed", "socket.setdefaulttimeout"})
CACHES = frozenset({"functools.cache", "functools.cached_property", "functools.lru_cache"})
AT_PLACE = frozenset({"read", "readinto", "readline", "readlines", "truncate", "write", "writelines"})   # after a seek


def unwatched(ran: Iterable[ThreadedFunction], shown: ProjectPaths) -> Iterator[Unwatched]:
    """Yield the operations in those functions that the race checker cannot watch, except for lines with a comment."""
    found = {(source.name, line, what) for source in sources(ran, shown)
             for line, what in _in_function(source) if not source.judged(line)}
    yield from (Unwatched(file=file, line=line, what=what) for file, line, what in sorted(found))


def _in_function(source: FunctionSource) -> Iterator[tuple[int, str]]:
    # A cached function is not called again for the same arguments.
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
               *changed_by_methods(source.node)]
    yield from ((line, f"what {name} ({holders[name]}) holds") for line, name in changes
                if name in holders and not source.guarded(line))
    yield from ((each.lineno, f"what {name} does, C code that ctypes.PyDLL calls with the GIL where there is one")
                for each in source.walk() if isinstance(each, ast.Name | ast.Attribute)
                and source.foreign.get(name := ast.unparse(each)) == WITH_GIL)
    yield from _without_the_lock(source.node)


def _at_a_place(source: FunctionSource) -> Iterator[tuple[int, str]]:
    """Yield places where a shared file is positioned and then used: another thread may move it in between."""
    methods = [(ast.unparse(call.func.value), call.func.attr, call.lineno) for call in source.calls()
               if isinstance(call.func, ast.Attribute)]
    for name, method, line in methods:
        if method == "seek" and name in source.shared and not source.guarded(line) and any(
                other == name and used in AT_PLACE for other, used, _ in methods):
            yield line, f"where the file {name} stands"


def _made_twice(source: FunctionSource) -> Iterator[tuple[int, str]]:
    """Yield cached functions that return mutable objects: two threads that call first may get different ones."""
    caches = {source.called(each) for each in source.node.decorator_list} & CACHES
    if not caches or ("functools.cached_property" in caches and not source.ran.one_self):
        return
    classes = {each.name: each for each in source.module.body if isinstance(each, ast.ClassDef)}
    for each in source.walk():
        if (isinstance(each, ast.Return) and isinstance(each.value, ast.Call) and isinstance(each.value.func, ast.Name)
                and (made := classes.get(each.value.func.id)) and _class_changes(made)):
            name = min(caches).rpartition(".")[2]
            yield each.lineno, f"whether {name} gives two threads that ask first one {made.name}"


def _class_changes(made: ast.ClassDef) -> bool:
    """Return True if a method of the class changes its object."""
    methods = (each for each in made.body if isinstance(each, Function) and each.name not in {"__init__", "__new__"})
    return any(isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del)
               and isinstance(each.value, ast.Name) and each.value.id == "self"
               for method in methods for each in ast.walk(method))


def _without_the_lock(node: Function) -> Iterator[tuple[int, str]]:
    """Yield places where a lock may not be acquired in time, and the function continues nevertheless."""
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
    """Return True if anything but releasing the lock depends on a name."""
    if not name:
        return False
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name
            and isinstance(each.ctx, ast.Load)]
    releases = [each for each in ast.walk(node) if isinstance(each, ast.If) and isinstance(each.test, ast.Name)
                and each.test.id == name and not each.orelse and len(each.body) == 1
                and ast.unparse(each.body[0]).endswith(".release()")]
    return len(uses) > len(releases)


LONGEST = 60   # characters of a statement to show


def unreached(ran: Iterable[ThreadedFunction], shown: ProjectPaths) -> Iterator[Unwatched]:
    """Yield statements that change shared state of functions run by two threads, which no second thread reached.

    They are sorted by file and line; lines with a comment that judges them are left out.
    """
    found = {(source.name, each.lineno, _shown(each)) for source in sources(ran, shown)
             if source.ran.twice and source.ran.lines
             for each in _statements(source.node.body)
             if not any(within(each, line) for line in source.ran.lines)
             and _changes_shared(each, source) and not source.judged(each.lineno)}
    yield from (Unwatched(file=file, line=line, what=what) for file, line, what in sorted(found))


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the innermost statements; nested functions and classes run separately, if at all."""
    for each in body:
        if isinstance(each, Function | ast.ClassDef):
            continue
        inner = [child for child in ast.iter_child_nodes(each)
                 if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)]
        if not inner:
            yield each
        for child in inner:
            yield from _statements([child] if isinstance(child, ast.stmt) else child.body)


def _changes_shared(statement: ast.stmt, source: FunctionSource) -> bool:
    """Return True if a statement, or a function of the same file that it calls, changes shared state."""
    if any(name in source.shared for _, name in changed(statement)):
        return True
    for each in ast.walk(statement):
        if isinstance(each, ast.Name | ast.Attribute) and isinstance(each.ctx, ast.Store | ast.Del):
            if ast.unparse(each) in source.shared:
                return True
        elif isinstance(each, ast.Call) and (called := _called(each, source)) and _function_changes(called):
            return True
    return False


def _called(call: ast.Call, source: FunctionSource) -> Function | None:
    """Return the function that is called, if it is in the same file, or a method of a shared `self`."""
    name = ast.unparse(call.func)
    body = source.module.body
    if name.startswith("self.") and source.ran.one_self:
        own = (each for each in body if isinstance(each, ast.ClassDef) and source.node in each.body)
        body, name = next((each.body for each in own), []), name.removeprefix("self.")
    return next((each for each in body if isinstance(each, Function) and each.name == name), None)


def _function_changes(function: Function) -> bool:
    """Return True if a function changes its object or a global."""
    globals_ = {name for each in ast.walk(function) if isinstance(each, ast.Global) for name in each.names}
    return any(isinstance(each, ast.Attribute | ast.Name) and isinstance(each.ctx, ast.Store | ast.Del)
               and (ast.unparse(each).startswith("self.") or ast.unparse(each) in globals_)
               for each in ast.walk(function))


def _shown(statement: ast.stmt) -> str:
    text = ast.unparse(statement).partition("\n")[0]
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


USED_UP = frozenset({"threading.Semaphore", "random.Random"})   # calling them changes them


def library_state(
    ran: Iterable[ThreadedFunction], shown: ProjectPaths, *, known: Collection[str] = (),
) -> Iterator[SharedFact]:
    """Yield each library object that those functions change or use up and that all threads share.

    Each process would have its own permits, random numbers or stored items, whatever orders the threads.

    Args:
        ran: The functions.
        shown: Tells the project's files.
        known: Names of variables that are reported already.
    """
    reported = set(known)
    for source in sources(ran, shown):
        if not source.ran.twice:
            continue
        kinds = {name: kind for name, kind in source.foreign.items() if kind in USED_UP or kind not in LOCKS}
        used = [*((line, name) for line, name in changed(source.node) if name in kinds),
                *((each.lineno, name) for each in source.walk() if isinstance(each, ast.Name | ast.Attribute)
                  and kinds.get(name := ast.unparse(each)) in USED_UP)]
        for line, name in sorted(used):
            if name not in reported:
                reported.add(name)
                yield _shared(source, f"{name} ({kinds[name]})", line)


def locks_for_outside(
    ran: Iterable[ThreadedFunction], shown: ProjectPaths, explained: Collection[tuple[str, int]],
) -> Iterator[SharedFact]:
    """Yield locks that threads share and that guard no known shared variable, hence something outside of the process.

    A file, a table or a device: a copy of the lock in another process would not guard it.

    Args:
        ran: The functions.
        shown: Tells the project's files.
        explained: File and line of every use of a variable that threads share, memos included.
    """
    held: dict[tuple[str, str], list[tuple[FunctionSource, int, bool]]] = defaultdict(list)
    for source in sources(ran, shown):
        for each, entered in source.guards() if source.ran.twice else ():
            name = ast.unparse(entered)
            if source.foreign.get(name) in LOCKS - USED_UP and not source.judged(each.lineno):
                inside = any(file == source.name and within(each, line) for file, line in explained)
                held[source.name, name].append((source, each.lineno, inside))
    for (_, name), places in sorted(held.items()):
        if not any(inside for *_, inside in places):
            source, line, _ = places[0]
            yield _shared(source, f"{name} (a lock, of which a copy guards nothing outside)", line)


def _shared(source: FunctionSource, variable: str, line: int) -> SharedFact:
    return SharedFact(variable=variable, file=source.name, line=line)
