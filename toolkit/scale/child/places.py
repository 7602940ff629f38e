"""Find the lines of the program that use an object while the function is called.

Run it in a fork: it calls the function once for each payload and watches which lines are executed.  Expressions on
these lines are looked up without running anything: a name in the variables of that moment, an attribute in the
dictionaries of an object and its classes, an item in a plain container.  A line counts if an expression on it is the
very object.
"""

from __future__ import annotations

import ast
import builtins
import functools
import os
import sys
import sysconfig
import types
from pathlib import Path

from gilscope.toolkit.scale.child.reachable import mro_of, namespace_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Place = tuple[str, int, str]      # file, line, function

MOST_LINES = 4000      # that are looked at: each counts once
MOST_PLACES = 3        # of an object
OURS = str(Path(__file__).parents[2])
_ABSENT = object()


def places_of(wanted: Sequence[Any], calls: Sequence[Callable[[], object]]) -> list[list[Place]]:
    """Return, for each object, the lines that use it during these calls, in the order in which they are executed.

    Lines of the standard library and of gilscope are left out.  A file that is below the working directory is named
    from there.
    """
    watcher = _LineWatcher(wanted)
    watcher.watch(calls)
    return [found[:MOST_PLACES] for found in watcher.found]


class _LineWatcher:
    """Looks at each line of the program when it is executed for the first time."""

    def __init__(self, wanted: Sequence[Any]) -> None:
        self._numbers: dict[int, list[int]] = {}
        for number, each in enumerate(wanted):
            self._numbers.setdefault(id(_seen_for(each)), []).append(number)
        self.found: list[list[Place]] = [[] for _ in wanted]
        self._trees: dict[str, dict[int, list[ast.expr]]] = {}     # expressions by file and line
        self._left = MOST_LINES

    def watch(self, calls: Sequence[Callable[[], object]]) -> None:
        monitoring = sys.monitoring
        tool = next(each for each in range(6) if monitoring.get_tool(each) is None)
        monitoring.use_tool_id(tool, "gilscope scale")
        monitoring.register_callback(tool, monitoring.events.LINE, self._line)
        monitoring.register_callback(tool, monitoring.events.PY_START, self._start)
        monitoring.set_events(tool, monitoring.events.LINE | monitoring.events.PY_START)
        monitoring.restart_events()      # that of lines which an earlier look has disabled
        try:
            for call in calls:
                call()
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

    def _line(self, code: types.CodeType, line: int) -> object:
        self._look_at(code, line, sys._getframe(1))  # noqa: SLF001 - the callback is told the code and the line alone
        return sys.monitoring.DISABLE      # it was looked at

    def _start(self, code: types.CodeType, _offset: int) -> object:
        # Code that is all on the line where it begins, such as a lambda, has no event for that line.
        if {line for _, _, line in code.co_lines() if line is not None} == {code.co_firstlineno}:
            self._look_at(code, code.co_firstlineno, sys._getframe(1))  # noqa: SLF001 - likewise
        return sys.monitoring.DISABLE

    def _look_at(self, code: types.CodeType, line: int, frame: types.FrameType) -> None:
        file = code.co_filename
        if self._left and not _is_foreign(file):
            self._left -= 1
            for expression in self._expressions(file).get(line, ()):
                self._look(expression, code, frame)

    def _look(self, expression: ast.expr, code: types.CodeType, frame: types.FrameType) -> None:
        values = _constants(expression, code) if isinstance(expression, ast.Constant) else _values(expression, frame)
        for value in values:
            for number in self._numbers.get(id(value), ()):
                place = _shown(code.co_filename), expression.lineno, code.co_qualname
                # A generator expression has a name of its own, and may be on the line of its function.
                if place[:2] not in {each[:2] for each in self.found[number]}:
                    self.found[number].append(place)

    def _expressions(self, file: str) -> dict[int, list[ast.expr]]:
        if file not in self._trees:
            lines: dict[int, list[ast.expr]] = {}
            for node in ast.walk(_tree(file)):
                if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)):
                    lines.setdefault(node.lineno, []).append(node)
            self._trees[file] = lines
        return self._trees[file]


def _seen_for(each: Any) -> Any:
    """Return what an expression is that uses an object: the value of a cell, which itself is none."""
    if type(each) is types.CellType:
        try:
            return each.cell_contents
        except ValueError:      # it is empty
            return each
    return each


def _tree(file: str) -> ast.AST:
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):      # it was made by a template, or is gone
        return ast.Module([], [])


@functools.cache      # it is asked for each line
def _is_foreign(file: str) -> bool:
    paths = sysconfig.get_paths()
    library = any(file.startswith(paths[name] + os.sep) for name in ("stdlib", "platstdlib"))
    installed = any(file.startswith(paths[name] + os.sep) for name in ("purelib", "platlib"))
    return file.startswith(("<", OURS + os.sep)) or (library and not installed)


def _shown(file: str) -> str:
    below = os.path.relpath(file)
    return file if below.startswith(os.pardir) else below


def _constants(expression: ast.Constant, code: types.CodeType) -> Iterator[Any]:
    """Yield the constant of the code that the expression stands for: the tree has an object of its own."""
    for each in code.co_consts:
        if type(each) is type(expression.value) and each == expression.value:
            yield each


def _values(expression: ast.expr, frame: types.FrameType) -> Iterator[Any]:
    """Yield the objects that an expression may be, without running code of the program."""
    match expression:
        case ast.Name(id=name):
            value = frame.f_locals.get(name, _ABSENT)
            if value is _ABSENT:
                value = frame.f_globals.get(name, _ABSENT)
            if value is _ABSENT:
                value = getattr(builtins, name, _ABSENT)
            if value is not _ABSENT:
                yield value
        case ast.Attribute(value=owner, attr=name):
            for each in _values(owner, frame):
                value = _attribute(each, name)
                if value is not _ABSENT:
                    yield value
        case ast.Subscript(value=owner, slice=key):
            for each in _values(owner, frame):
                yield from _items(each, key)


def _attribute(owner: Any, name: str) -> Any:
    """Return an attribute that is stored in the object or its class; a property is not called."""
    kind = owner if isinstance(owner, type) else type(owner)
    spaces = [namespace_of(base) for base in mro_of(kind)]
    if not isinstance(owner, type):
        try:
            spaces.insert(0, object.__getattribute__(owner, "__dict__"))
        except Exception:  # noqa: BLE001 - a class may answer with anything
            spaces = list(spaces)
    for space in spaces:
        if isinstance(space, (dict, types.MappingProxyType)) and name in space:
            value = space[name]
            if isinstance(value, types.MemberDescriptorType) and not isinstance(owner, type):      # a slot
                try:
                    return value.__get__(owner)
                except AttributeError:
                    return _ABSENT
            return value
    return _ABSENT


def _items(owner: Any, key: ast.expr) -> Iterator[Any]:
    """Yield the item of a plain container; any of its items where the key is computed, or changes in a loop."""
    if isinstance(key, ast.Constant) and type(owner) in {dict, list, tuple}:
        try:
            yield owner[key.value]
        except (LookupError, TypeError):
            return
    elif type(owner) is dict:
        yield from [*owner.values()]
    elif type(owner) in {list, tuple}:
        yield from [*owner]
