"""Read the functions of the project that threads ran, as syntax trees: the state that they share, and their calls.

The witness records which functions ran in which threads, which of their lines ran outside the first thread, and which
foreign objects they use; the rest is read from the source files.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_text
from gilscope.toolkit.race.analysis.scopes import ScopeTable
from gilscope.toolkit.race.analysis.suppression_comments import (
    lines_of_statement,
    reason_for_line,
    suppression_reasons,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths

LOCKS = frozenset({"_thread.lock", "_thread.RLock", "threading.Condition", "threading.Semaphore", "threading._RLock"})
# Methods that change a container.
CHANGES = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
                     "remove", "setdefault", "update"})
# Context managers that order no threads.
NO_LOCKS = frozenset({
    "open", "contextlib.chdir", "contextlib.closing", "contextlib.nullcontext", "contextlib.redirect_stderr",
    "contextlib.redirect_stdout", "contextlib.suppress", "decimal.localcontext", "os.scandir", "tempfile.TemporaryFile",
    "tempfile.NamedTemporaryFile", "tempfile.TemporaryDirectory", "warnings.catch_warnings", "zipfile.ZipFile",
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadedFunction:
    """A function of the project that ran in a thread other than the first."""

    file: str
    line: int                    # first line, including decorators
    twice: bool                  # in two threads
    one_self: bool               # in two threads with the same `self`
    foreign: Mapping[str, str]   # foreign containers among its globals and the attributes of `self`: name -> class
    lines: frozenset[int] = field(default_factory=frozenset)   # lines that ran in threads other than the first


@dataclass(frozen=True, kw_only=True)
class FunctionSource:
    """A function that ran in threads, with its syntax tree."""

    ran: ThreadedFunction
    name: str                    # name of its file for messages
    node: Function
    module: ast.Module
    scopes: ScopeTable           # of its file
    reasons: Mapping[int, str]   # of the `race: ok` comments of its file, by line

    @cached_property
    def foreign(self) -> dict[str, str]:
        """Foreign objects that its threads share: globals, and attributes of a shared `self`."""
        return {name: kind for name, kind in self.ran.foreign.items()
                if self.ran.one_self or name.partition(".")[0] != "self"}

    @cached_property
    def shared(self) -> set[str]:
        """Source texts of names that are not local: globals, and attributes of a shared `self`."""
        changed = {name for each in self.walk() if isinstance(each, ast.Global | ast.Nonlocal) for name in each.names}
        own = {each.arg for each in self.walk() if isinstance(each, ast.arg)}
        own |= {each.id for each in self.walk() if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        own -= changed
        found = set(changed)
        for each in self.walk():
            if isinstance(each, ast.Name) and each.id not in own:
                found.add(each.id)
            elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                name = each.value.id
                if name not in own or (name == "self" and self.ran.one_self):
                    found.add(ast.unparse(each))
        return found

    def walk(self) -> Iterator[ast.AST]:
        """Yield all nodes of the function, itself first."""
        return ast.walk(self.node)

    def calls(self) -> Iterator[ast.Call]:
        """Yield its calls."""
        return (each for each in self.walk() if isinstance(each, ast.Call))

    def called(self, what: ast.expr) -> str:
        """Return the dotted name of a callee, such as "os.chdir" or the name of a builtin; "" for anything else."""
        if isinstance(what, ast.Call):
            what = what.func
        return self.scopes.qualified_name(self.scopes.scopes[self.node], what)

    def guards(self) -> Iterator[tuple[ast.With | ast.AsyncWith, ast.expr]]:
        """Yield each `with` and the context manager that may order threads: a lock, or an unknown object."""
        for each in self.walk():
            if isinstance(each, ast.With | ast.AsyncWith):
                entered = [item.context_expr for item in each.items]
                yield from ((each, what) for what in entered if not self._orders_nobody(what))

    def _orders_nobody(self, entered: ast.expr) -> bool:
        if isinstance(entered, ast.Call) and isinstance(entered.func, ast.Attribute) and entered.func.attr == "open":
            return True
        return self.called(entered) in NO_LOCKS

    def guarded(self, line: int) -> bool:
        """Return True if a line is inside a `with` that may order threads."""
        return any(within(each, line) for each, _ in self.guards())

    def judged(self, line: int) -> bool:
        """Return True if a comment on the line or elsewhere in its statement suppresses findings, as it does races."""
        statements = [range(line, line + 1),
                      *(lines_of_statement(each) for each in self.walk() if isinstance(each, ast.stmt))]
        return any(line in lines and reason_for_line(self.reasons, line, lines) is not None for lines in statements)


def sources(ran: Iterable[ThreadedFunction], shown: ProjectPaths) -> Iterator[FunctionSource]:
    """Yield the functions that ran, sorted by file."""
    files: dict[str, dict[int, ThreadedFunction]] = {}
    for each in ran:
        files.setdefault(each.file, {})[each.line] = each
    for file, inside in sorted(files.items()):
        if (name := shown.path(file)) is None:
            continue
        try:
            text = read_text(Path(file))
            tree = ast.parse(text)
            scopes = ScopeTable(tree)
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue
        reasons = suppression_reasons(text.encode())
        yield from (FunctionSource(ran=told, name=name, node=node, module=tree, scopes=scopes, reasons=reasons)
                    for node in ast.walk(tree)
                    if isinstance(node, Function) and (told := inside.get(_first_line(node))))


def _first_line(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def within(node: ast.stmt | ast.expr, line: int) -> bool:
    """Return True if a line belongs to a node of a syntax tree."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def changed(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source text of each container that a node changes, by storing an item or by a method."""
    yield from stored(node)
    yield from changed_by_methods(node)


def stored(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source text of each container of which an item is stored or deleted."""
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each.lineno, ast.unparse(each.value)


def changed_by_methods(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source text of each object on which a method is called that changes containers."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGES:
            yield each.lineno, ast.unparse(each.func.value)
