"""The functions of the project's own that threads ran, as syntax trees: what they share, and what they call.

The witness in the process that ran them tells which functions ran in which threads, which of their lines others than
the first thread came to, and what of the library's and of packages they use; the rest is read from their files.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit.bounded_reading import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.where_to_run import Shown

JUDGED = "# race: ok"     # on the line, as for a race
LOCKS = frozenset({"_thread.lock", "_thread.RLock", "threading.Condition", "threading.Semaphore", "threading._RLock"})
# What changes a container, of the methods that these have in common.
CHANGES = frozenset({"add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft",
                     "remove", "setdefault", "update"})
# What `with` is used for and orders no threads.
NO_LOCKS = frozenset({
    "open", "contextlib.chdir", "contextlib.closing", "contextlib.nullcontext", "contextlib.redirect_stderr",
    "contextlib.redirect_stdout", "contextlib.suppress", "decimal.localcontext", "os.scandir", "tempfile.TemporaryFile",
    "tempfile.NamedTemporaryFile", "tempfile.TemporaryDirectory", "warnings.catch_warnings", "zipfile.ZipFile",
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.ProcessPoolExecutor"})
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A function of the project's own that ran in another thread than the first."""

    file: str
    line: int                    # its first, with its decorators
    twice: bool                  # in two threads
    one_self: bool               # in both of one object
    foreign: Mapping[str, str]   # its globals, and attributes of its object, of such containers, by name: their class
    lines: frozenset[int] = field(default_factory=frozenset)   # that other threads than the first ran


@dataclass(frozen=True, kw_only=True)
class Source:
    """A function that ran, and its syntax tree."""

    ran: Ran
    name: str                    # of its file, as it is shown
    node: Function
    module: ast.Module
    lines: list[str]             # of its file

    @cached_property
    def foreign(self) -> dict[str, str]:
        """What its threads share of the library's and of packages: globals, and attributes of one object."""
        return {name: kind for name, kind in self.ran.foreign.items()
                if self.ran.one_self or name.partition(".")[0] != "self"}

    @cached_property
    def shared(self) -> set[str]:
        """The texts of names that are not the function's own: globals, attributes of an object that is shared."""
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

    @cached_property
    def _imported(self) -> dict[str, str]:
        """What its file's names stand for that it imports: "run" is "subprocess.run"."""
        found: dict[str, str] = {}
        for each in ast.walk(self.module):
            if isinstance(each, ast.Import):
                found |= {alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname
                          else alias.name.partition(".")[0] for alias in each.names}
            elif isinstance(each, ast.ImportFrom) and not each.level:
                found |= {alias.asname or alias.name: f"{each.module}.{alias.name}" for alias in each.names}
        return found

    @cached_property
    def _defined(self) -> set[str]:
        return {each.name for each in ast.walk(self.module) if isinstance(each, Function | ast.ClassDef)}

    def walk(self) -> Iterator[ast.AST]:
        """Return everything in the function, itself first."""
        return ast.walk(self.node)

    def calls(self) -> Iterator[ast.Call]:
        """Return its calls."""
        return (each for each in self.walk() if isinstance(each, ast.Call))

    def called(self, what: ast.expr) -> str:
        """Return what a name stands for by the file's imports, "os.chdir"; a builtin's name; "" for anything else."""
        if isinstance(what, ast.Call):
            what = what.func
        first, dot, rest = ast.unparse(what).partition(".")
        if first in self._imported:
            return f"{self._imported[first]}{dot}{rest}"
        builtin = not dot and hasattr(builtins, first) and first not in self._defined
        return first if builtin else ""

    def guards(self) -> Iterator[tuple[ast.With | ast.AsyncWith, ast.expr]]:
        """Yield each `with` and what it enters that may order threads: a lock, or what nobody can tell from one."""
        for each in self.walk():
            if isinstance(each, ast.With | ast.AsyncWith):
                entered = [item.context_expr for item in each.items]
                yield from ((each, what) for what in entered if not self._orders_nobody(what))

    def _orders_nobody(self, entered: ast.expr) -> bool:
        if isinstance(entered, ast.Call) and isinstance(entered.func, ast.Attribute) and entered.func.attr == "open":
            return True
        return self.called(entered) in NO_LOCKS

    def guarded(self, line: int) -> bool:
        """Return whether a line stands in a `with` of the function that may order it."""
        return any(within(each, line) for each, _ in self.guards())

    def judged(self, line: int) -> bool:
        """Return whether a comment on a line of its file says why it may be."""
        return JUDGED in self.lines[line - 1]


def sources(ran: Iterable[Ran], shown: Shown) -> Iterator[Source]:
    """Yield the functions that ran, in the order of their files."""
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
        yield from (Source(ran=told, name=name, node=node, module=tree, lines=text.splitlines())
                    for node in ast.walk(tree)
                    if isinstance(node, Function) and (told := inside.get(_first_line(node))))


def _first_line(node: Function) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def made_at_import(file: Path) -> set[str]:
    """Return the names that a module stores under at its top; what it imports is not its own."""
    try:
        tree = ast.parse(read_text(file))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return set()
    return {each.id for statement in tree.body if not isinstance(statement, Function | ast.ClassDef)
            for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def within(node: ast.stmt | ast.expr, line: int) -> bool:
    """Return whether a line is one of those that a part of a syntax tree stands in."""
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def changed(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each container of which a part of a syntax tree stores an item, or calls a method so."""
    yield from stored(node)
    yield from told_to_change(node)


def stored(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each container of which an item is stored or deleted."""
    for each in ast.walk(node):
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Store | ast.Del):
            yield each.lineno, ast.unparse(each.value)


def told_to_change(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each object of which a method is called that changes containers."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in CHANGES:
            yield each.lineno, ast.unparse(each.func.value)
