"""What several threads of the project's own code do that the race checker does not watch, by the text of its functions.

The checker follows Python code and the containers that are built in.  It does not see what `exec` runs, where a file
stands, what the library's or a package's own containers hold, what lru_cache keeps, what C code does that ctypes calls,
what is the whole process's, and which way a lock that is not got would have led.  A function with one of these that
ran in two threads is no function without races.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.sections import SharedFact, Unwatched
from gilscope.toolkit.reading import read_text

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.bench import Shown

Function = ast.FunctionDef | ast.AsyncFunctionDef
JUDGED = "# race: ok"     # on the line, as for a race
CHANGES = frozenset({"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "setdefault",
                     "update"})
USED_UP = frozenset({"threading.Semaphore", "random.Random"})   # by whoever uses them
WITH_GIL = "ctypes.PyDLL"   # calls C code with the GIL, where there is one
# What they change is the whole process's.
FOR_ALL = frozenset({"chdir", "redirect_stderr", "redirect_stdout", "setlocale", "umask"})
CACHES = frozenset({"cache", "cached_property", "lru_cache"})
AT_PLACE = frozenset({"read", "readinto", "readline", "readlines", "truncate", "write", "writelines"})   # after a seek


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A function of the project's own that ran in another thread than the first."""

    file: str
    line: int                    # its first, with its decorators
    twice: bool                  # in two threads
    one_self: bool               # in both of one object
    foreign: Mapping[str, str]   # its globals, and attributes of its object, of such containers, by name: their class


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """The text of a function that ran."""

    ran: Ran
    name: str                    # of its file, as it is shown
    node: Function
    module: ast.Module
    lines: list[str]             # of its file


def unwatched(ran: Iterable[Ran], shown: Shown) -> Iterator[Unwatched]:
    """Yield what is not watched in those functions, in the order of files and lines; what a comment judges is not."""
    found = {(text.name, line, what) for text in _texts(ran, shown)
             for line, what in _in_function(text.node, text.ran, text.module) if JUDGED not in text.lines[line - 1]}
    yield from (Unwatched(file=file, line=line, what=what) for file, line, what in sorted(found))


def kept_by_others(ran: Iterable[Ran], shown: Shown) -> Iterator[SharedFact]:
    """Yield what those functions change, or use up, that the library or a package keeps for all threads, each once.

    Whatever orders the threads, each process would have its own: of permits, of numbers drawn, of what is kept.
    """
    known = set()
    for text in _texts(ran, shown):
        foreign = _foreign(text.ran) if text.ran.twice else {}
        changed = [*_changes_of(text.node, foreign), *_uses_of(text.node, {
            name: kind for name, kind in foreign.items() if kind in USED_UP})]
        for line, name in sorted(changed):
            if name not in known:
                known.add(name)
                yield SharedFact(variable=f"{name} ({foreign[name]})", file=text.name, line=line,
                                 other_file=text.name, other_line=line)


def _texts(ran: Iterable[Ran], shown: Shown) -> Iterator[_Text]:
    files: dict[str, dict[int, Ran]] = {}
    for each in ran:
        files.setdefault(each.file, {})[each.line] = each
    for file, inside in sorted(files.items()):
        if (name := shown.path(file)) is None:
            continue
        try:
            text = read_text(Path(file))
            tree = ast.parse(text)
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        yield from (_Text(ran=told, name=name, node=node, module=tree, lines=text.splitlines())
                    for node in ast.walk(tree)
                    if isinstance(node, Function) and (told := inside.get(_first_line(node))))


def _foreign(ran: Ran) -> dict[str, str]:
    """Return what the threads share of those: globals, and attributes of one object."""
    return {name: kind for name, kind in ran.foreign.items() if ran.one_self or name.partition(".")[0] != "self"}


def _first_line(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _in_function(node: Function, ran: Ran, tree: ast.Module) -> Iterator[tuple[int, str]]:
    shared = _shared(node, one_self=ran.one_self)
    # What is found in a cache is not called again.
    yield from _made_twice(node, tree, one_self=ran.one_self)
    if not ran.twice:
        return
    yield from _executed(node)
    yield from _at_a_place(node, shared)
    foreign = _foreign(ran)
    yield from ((line, f"what {name} holds, a {foreign[name]}") for line, name in _changes_of(node, foreign)
                if not _guarded(node, line))
    yield from ((line, f"what {name} does, C code that ctypes.PyDLL calls with the GIL where there is one")
                for line, name in _uses_of(node, {name for name, kind in foreign.items() if kind == WITH_GIL}))
    yield from _changed_for_all(node)
    yield from _without_the_lock(node)


def _shared(node: Function, *, one_self: bool) -> set[str]:
    """Return the texts of names that are not the function's own: globals, attributes of an object that is shared."""
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    own |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    found = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id not in own:
            found.add(each.id)
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            name = each.value.id
            if name not in own or (name == "self" and one_self):
                found.add(ast.unparse(each))
    return found


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def _executed(node: Function) -> Iterator[tuple[int, str]]:
    for call in _calls(node):
        if isinstance(call.func, ast.Name) and call.func.id in {"exec", "eval"}:
            yield call.lineno, f"what {call.func.id} runs"


def _changed_for_all(node: Function) -> Iterator[tuple[int, str]]:
    for call in _calls(node):
        name = ast.unparse(call.func).rpartition(".")[2]
        if name in FOR_ALL:
            yield call.lineno, f"what {name} changes for all threads"


def _at_a_place(node: Function, shared: set[str]) -> Iterator[tuple[int, str]]:
    """Yield where a file that threads share is moved and then used: another thread may move it in between."""
    methods = [(ast.unparse(call.func.value), call.func.attr, call.lineno) for call in _calls(node)
               if isinstance(call.func, ast.Attribute)]
    for name, method, line in methods:
        if method == "seek" and name in shared and not _guarded(node, line) and any(
                other == name and used in AT_PLACE for other, used, _ in methods):
            yield line, f"where the file {name} stands"


def _uses_of(node: Function, names: Container[str]) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name | ast.Attribute) and (name := ast.unparse(each)) in names:
            yield each.lineno, name


def _changes_of(node: Function, names: Container[str]) -> Iterator[tuple[int, str]]:
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store):
            name, line = ast.unparse(each.value), each.lineno
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGES:
            name, line = ast.unparse(each.func.value), each.lineno
        else:
            continue
        if name in names:
            yield line, name


def _made_twice(node: Function, tree: ast.Module, *, one_self: bool) -> Iterator[tuple[int, str]]:
    """Yield a cached function that gives objects of a class whose methods change them: two first calls get two."""
    caches = {ast.unparse(each.func if isinstance(each, ast.Call) else each).rpartition(".")[2]
              for each in node.decorator_list} & CACHES
    if not caches or ("cached_property" in caches and not one_self):
        return
    classes = {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}
    for each in ast.walk(node):
        if (isinstance(each, ast.Return) and isinstance(each.value, ast.Call) and isinstance(each.value.func, ast.Name)
                and (made := classes.get(each.value.func.id)) and _changes(made)):
            yield each.lineno, f"whether {min(caches)} gives two threads that ask first one {made.name}"


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


def _guarded(node: Function, line: int) -> bool:
    """Return whether a line stands in a `with` of the function: what that holds may order it."""
    return any(isinstance(each, ast.With | ast.AsyncWith) and each.lineno <= line <= (each.end_lineno or 0)
               for each in ast.walk(node))
