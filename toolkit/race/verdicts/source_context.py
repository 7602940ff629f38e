"""Facts about the source around an access that the rewriter's flags do not have.

Files are parsed once, and only if a conflict might be benign or is reported.
"""

from __future__ import annotations

import ast
import io
import os
import tokenize
import warnings
from functools import lru_cache
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

from gilscope.toolkit.bounded_reading import read_bytes
from gilscope.toolkit.race.analysis.memoization import has_side_effects, repeatable
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.effects import CHANGING, LIBRARY_MAKERS, MAKERS, Fact, methods_with
from gilscope.toolkit.race.terms import Flag

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from gilscope.toolkit.race.site import SiteInfo

MOST_TREES = 1000
# Exceptions of an emptied container, a removed key or a full queue; code that catches them need not check before.
FAILURES = frozenset({
    "IndexError", "KeyError", "LookupError", "ValueError", "StopIteration", "Empty", "Full", "AttributeError",
    "Exception", "BaseException",
})
RECORDING = frozenset({"error", "exception", "critical", "print_exc", "print_exception"})    # of logging, traceback
EMPTY = MAKERS | LIBRARY_MAKERS    # without arguments
TOLERANT = methods_with(Fact.TOLERANT)


class SourceFiles:
    """Lines and syntax trees of source files: as a process recorded them, or of files that it did not check."""

    def __init__(self) -> None:
        self._lines: dict[str, list[str]] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._around: dict[SiteInfo, list[ast.AST]] = {}
        self._memos: dict[SiteInfo, bool] = {}

    def add(self, path: str, source: bytes) -> None:
        """Add a file with its content."""
        self._lines[path] = _split(_decode(source))
        self._trees.pop(path, None)

    def line(self, path: str, number: int) -> str:
        """Return one source line without its indentation, "" if there is none."""
        lines = self.lines(path)
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def lines(self, path: str) -> list[str]:
        """Return the lines of a file, none if it cannot be read."""
        if path not in self._lines:
            self.add(path, _content(path))
        return self._lines[path]

    def tree(self, path: str) -> ast.Module | None:
        """Return the syntax tree of a file, None if there is none."""
        if path not in self._trees:
            self._trees[path] = _tree("\n".join(self.lines(path)))
        return self._trees[path]

    def is_parsed(self) -> bool:
        """Return True if all files that had to be parsed could be: none has the syntax of a newer Python."""
        return None not in self._trees.values()

    def around(self, site: SiteInfo) -> list[ast.AST]:
        """Return the nodes that enclose the site's expression, innermost first."""
        if site not in self._around:
            tree = self.tree(site.path)
            self._around[site] = [] if tree is None else [*_down(tree, site)][::-1]
        return self._around[site]

    def stored(self, site: SiteInfo) -> ast.expr | None:
        """Return the expression that the site stores, None if it is not one plain assignment."""
        for node in self.around(site):
            if isinstance(node, ast.Assign):
                return None if any(isinstance(target, ast.Tuple | ast.List) for target in node.targets) else node.value
            if isinstance(node, ast.AnnAssign | ast.NamedExpr):
                return node.value
            if isinstance(node, ast.Call) and site.op == "dynamic" and len(node.args) == 3:
                return node.args[2]
            if isinstance(node, ast.stmt):
                return None
        return None

    def part_stored(self, site: SiteInfo) -> str | None:
        """Return the source of the value that a target of a tuple assignment gets, None for other sites."""
        for node in self.around(site):
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
                return next((found for pair in pairs if (found := _part(*pair, site))), None)
            if isinstance(node, ast.stmt):
                return None
        return None

    def literal(self, site: SiteInfo) -> Any:
        """Return the constant that the site stores, or NO_VALUE."""
        stored = self.stored(site)
        try:
            return NO_VALUE if stored is None else ast.literal_eval(stored)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return NO_VALUE

    def stores_default(self, site: SiteInfo) -> bool:
        """Return True if the site stores a constant or an empty container, which costs nothing to make."""
        stored = self.stored(site)
        if isinstance(stored, ast.Call):
            empty = isinstance(stored.func, ast.Name) and stored.func.id in EMPTY and not stored.keywords
            return empty and not stored.args
        return self.literal(site) is not NO_VALUE

    def asks_for_key(self, site: SiteInfo) -> bool:
        """Return True if an `if` or `try` around the store of an item is about its key, and not only about a size."""
        try:
            item = ast.parse(site.text, mode="eval").body
        except SyntaxError:
            return False   # the text was cut
        key = ast.dump(item.slice) if isinstance(item, ast.Subscript) else None
        return any(isinstance(node, ast.Try) or (isinstance(node, ast.If) and any(
            ast.dump(part) == key for part in ast.walk(node.test))) for node in self.around(site))

    def in_loop_of(self, read: SiteInfo, write: SiteInfo) -> bool:
        """Return True if `write` is in the body of the while loop that `read` decides about."""
        for node in self.around(write):
            if isinstance(node, ast.While) and _covers(node.test, read) and not _covers(node.test, write):
                return True
        return False

    def outputs_in_loop(self, read: SiteInfo) -> bool:
        """Return True if a loop passes the read to a call whose result it drops: `print(f"{self.done} files")`."""
        nodes = list(takewhile(lambda node: not isinstance(node, _SCOPES), self.around(read)))
        statement = next((node for node in nodes if isinstance(node, ast.stmt)), None)
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and any(
            part in nodes for part in statement.value.args)
        return called and any(isinstance(node, _LOOPS) for node in nodes)

    def alone_under(self, read: SiteInfo, write: SiteInfo) -> bool:
        """Return True if the test of `read` decides about the statement of `write` only."""
        for node in self.around(write):
            if isinstance(node, ast.If) and _covers(node.test, read):
                return len(node.body) == 1 and not node.orelse and isinstance(node.body[0], ast.Expr | ast.Assign)
        return False

    def block_end(self, read: SiteInfo, write: SiteInfo) -> int:
        """Return the last line of the block around `write` that the `if` of `read` guards, 0 if there is none."""
        for inner, node in pairwise(self.around(write)):
            if isinstance(node, ast.If) and _covers(node.test, read) and inner is not node.test:
                block = node.body if inner in node.body else node.orelse
                return block[-1].end_lineno or 0
        return 0

    def found_there(self, test: SiteInfo, write: SiteInfo) -> bool:
        """Return True if the write is in the body of an `if` that tests only `key in container`."""
        for node in self.around(write):
            if isinstance(node, ast.If) and _covers(node.test, test):
                alone = isinstance(node.test, ast.Compare) and [type(each) for each in node.test.ops] == [ast.In]
                return alone and any(child is step for child in node.body for step in self.around(write))
        return False

    def decides(self, read: SiteInfo, *, comparisons: bool = False) -> bool:
        """Return True if the read only decides a test or a predicate: `return not self.open`, `any(w.done for w in w)`.

        A property that returns the attribute and does nothing else is a predicate, too.  With `comparisons`, it is what
        compares, and be it by order: `return self.done < self.total`.
        """
        nodes = self.around(read)
        as_truth = False
        for inner, node in pairwise(nodes):
            if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp) and inner is node.test:
                return True
            if isinstance(node, ast.Return | ast.Lambda):
                return as_truth or (not comparisons and inner is nodes[0] and _is_accessor(nodes))
            compared = comparisons and isinstance(node, ast.Compare)
            if isinstance(node, ast.stmt) or not (compared or _keeps_truth(node, inner)):
                return False
            as_truth = as_truth or not isinstance(node, ast.GeneratorExp | ast.ListComp)
        return False

    def lets_caller_decide(self, read: SiteInfo) -> bool:
        """Return True if the caller decides what a missing key means: `return d.get(k)`, or a handler of KeyError."""
        nodes = list(pairwise(self.around(read)))
        call = next((node for inner, node in nodes if isinstance(inner, ast.Call)), None)
        caught = any(isinstance(node, ast.Try) and inner in node.body and any(map(_catches, node.handlers))
                     for inner, node in nodes)
        return caught or (read.op == "method" and isinstance(call, ast.Return))

    def tolerant(self, act: SiteInfo) -> bool:
        """Return True if the act copes with an outdated check: its failure is caught, or it cannot fail."""
        if act.op == "method" and (act.key in TOLERANT or self._has_default(act)):
            return True
        nodes = self.around(act)
        for inner, node in pairwise(nodes):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return False
            if isinstance(node, ast.Try) and inner in node.body and any(
                    _catches(handler) and not _records(handler) for handler in node.handlers):
                return True
            if isinstance(node, ast.With) and inner in node.body and any(map(_suppresses, node.items)):
                return True
        return False

    def compares_owner(self, read: SiteInfo) -> bool:
        """Return True if the read is compared with the current thread or process: `if self.owner == get_ident()`."""
        nodes = self.around(read)
        compare = next((node for node in nodes if isinstance(node, ast.Compare)), None)
        if compare is None or not all(isinstance(op, _EQUALITY) for op in compare.ops):
            return False
        others = [part for part in (compare.left, *compare.comparators) if not _covers(part, read)]
        return bool(others) and all(self._is_own_id(part, nodes) for part in others)

    def stores_owner(self, write: SiteInfo) -> bool:
        """Return True if the current thread or process is stored, or None."""
        stored = self.stored(write)
        if isinstance(stored, ast.Constant):
            return stored.value is None
        return stored is not None and self._is_own_id(stored, self.around(write))

    @staticmethod
    def _is_own_id(node: ast.expr, around: list[ast.AST]) -> bool:
        if isinstance(node, ast.Name):
            function = next((one for one in around if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)), None)
            stores = [one for one in ast.walk(function) if isinstance(one, ast.Assign | ast.NamedExpr)
                      and any(isinstance(target, ast.Name) and target.id == node.id for target in _targets(one))
                      ] if function is not None else []
            return bool(stores) and all(_asks_for_id(store.value) for store in stores)
        return _asks_for_id(node)

    def may_be_none(self, site: SiteInfo) -> bool:
        """Return True if the file stores None in a variable of that name."""
        tree = self.tree(site.path)
        return tree is not None and any(
            _is_none(node.value) and any(_name(target) == site.key for target in _targets(node))
            for node in ast.walk(tree) if isinstance(node, ast.Assign | ast.AnnAssign))

    def changes_after(self, write: SiteInfo) -> bool:
        """Return True if the function that stores an object changes the object after the store."""
        stored = self.stored(write)
        names = {write.text, *([stored.id] if isinstance(stored, ast.Name) else [])}
        nodes = self.around(write)
        function = next((node for node in nodes if isinstance(node, _SCOPES)), None)
        later = [node for node in ast.walk(function) if getattr(node, "lineno", 0) > write.end_line] if function else []
        return any(ast.unparse(node.value) in names for node in later if _changes(node))

    def loads_parts(self, read: SiteInfo) -> bool:
        """Return True if two parts of what the read loads are taken by two loads: `self.range.low, self.range.high`.

        Both are in one statement, or in two that follow each other, and neither is a method that is called.
        """
        nodes = self.around(read)
        statement = next((node for node in nodes if isinstance(node, ast.stmt)), None)
        if statement is None or not isinstance(nodes[1], _PARTS):
            return False
        inside = [node for near in _beside(statement, nodes[nodes.index(statement) + 1]) for node in ast.walk(near)]
        called = {id(node.func) for node in inside if isinstance(node, ast.Call)}
        parts = {ast.dump(node) for node in inside if isinstance(node, _PARTS) and isinstance(node.ctx, ast.Load)
                 and id(node) not in called and ast.unparse(node.value) == read.text}
        return len(parts) > 1

    def is_called(self, read: SiteInfo) -> bool:
        """Return True if a method of what is read is called, and nothing else done: `self.sock.close()`."""
        nodes = self.around(read)
        return len(nodes) > 3 and [type(node) for node in nodes[1:4]] == [ast.Attribute, ast.Call, ast.Expr]

    def announces_before(self, write: SiteInfo, read: SiteInfo) -> bool:
        """Return True if a function tells the reader that there is a value before it stores it.

        It stores a constant that the reader tests, or calls `set` of an event that the reader waits for.
        """
        around = self.around(write)
        told, asked = (next((node for node in nodes if isinstance(node, _SCOPES)), None)
                       for nodes in (around, self.around(read)))
        if told is asked or told is None or asked is None or any(isinstance(node, _LOOPS) for node in around):
            return False
        announced = {name for node in _before(told, write) for name in _announced(node)} - {write.key}
        return not announced.isdisjoint(name for node in _before(asked, read) for name in _awaited(node, read))

    def in_one_with(self, read: SiteInfo, write: SiteInfo) -> bool:
        """Return True if both are in the body of one `with` statement."""
        return any(isinstance(node, ast.With) and _covers(node, read) for node in self.around(write))

    def before_with(self, read: SiteInfo, write: SiteInfo) -> bool:
        """Return True if the read precedes the `with` statement around the write."""
        enclosing = next((node for node in self.around(write) if isinstance(node, ast.With)), None)
        return enclosing is not None and read.line < enclosing.lineno

    def memo(self, write: SiteInfo) -> bool:
        """Return True if any thread would store the same value there; see `analysis.memoization.repeatable`."""
        if write not in self._memos:
            self._memos[write] = repeatable(self.around(write), known=bool(write.flags & Flag.MEMO))
        return self._memos[write]

    def made_with_side_effects(self, write: SiteInfo) -> bool:
        """Return True if a function of the same file that makes the stored value also changes something else."""
        return has_side_effects(self.around(write))

    def _has_default(self, act: SiteInfo) -> bool:
        call = next((node for node in self.around(act) if isinstance(node, ast.Call)), None)
        return act.key == "pop" and call is not None and len(call.args) > 1

    def leaks_before(self, site: SiteInfo) -> bool:
        """Return True if the constructor may have passed the object to other code before this line.

        It did if its first argument is used alone (`registry.append(self)`), a bound method is passed on
        (`Thread(target=self.run)`), or the object starts itself (`self.start()`).
        """
        function = next((node for node in self.around(site) if isinstance(node, ast.FunctionDef)), None)
        if function is None or not (arguments := [*function.args.posonlyargs, *function.args.args]):
            return True
        return any(node.lineno < site.line for node in _shown(function, arguments[0].arg))

    def plain_object(self, site: SiteInfo) -> bool | None:
        """Return True if the site stores a reference to an object or container, None if the source does not tell."""
        stored = self.stored(site)
        if isinstance(stored, ast.Dict | ast.List | ast.Set | ast.Tuple | ast.ListComp | ast.SetComp | ast.DictComp):
            return True
        if isinstance(stored, ast.Constant | ast.JoinedStr | ast.Compare | ast.BinOp | ast.UnaryOp):
            return isinstance(stored, ast.BinOp) and isinstance(
                stored.right, ast.List | ast.Tuple | ast.Dict | ast.Set)
        if isinstance(stored, ast.Call):
            name = ast.unparse(stored.func).rpartition(".")[2]
            if name in {"int", "float", "str", "bool", "len", "sum", "min", "max", "round", "abs"}:
                return False
            containers = {"dict", "list", "set", "tuple", "frozenset", "deque"}
            return True if name in containers or name[:1].isupper() else None
        return None


def _part(target: ast.expr, value: ast.expr, site: SiteInfo) -> str | None:
    if not isinstance(target, ast.Tuple | ast.List) or not isinstance(value, ast.Tuple | ast.List):
        return None
    for part, stored in zip(target.elts, value.elts, strict=False):
        if _covers(part, site):
            return ast.unparse(stored)
    return None


def _down(node: ast.AST, site: SiteInfo) -> Iterator[ast.AST]:
    """Yield the nodes that enclose the site, outermost first."""
    while True:
        yield node
        below = next((child for child in _spanned(node) if _covers(child, site)), None)
        if below is None:
            return
        node = below


def _spanned(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children that have a position; a child without one is replaced by its children."""
    for child in ast.iter_child_nodes(node):
        if getattr(child, "end_lineno", None) is not None:
            yield child
        else:
            yield from _spanned(child)


def _covers(node: ast.AST, site: SiteInfo) -> bool:
    end = (site.end_line, site.end_column)
    start: tuple[int, int] = (node.lineno, node.col_offset)  # type: ignore[attr-defined]  # callers pass only nodes with a position
    stop: tuple[int, int] = (node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]  # as above
    return start <= (site.line, site.column) and end <= stop


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(each).rpartition(".")[2] in FAILURES for each in types)


def _records(handler: ast.ExceptHandler) -> bool:
    """Return True if the handler raises, or shows the exception to somebody: then the failure is not what was meant."""
    return any(isinstance(node, ast.Raise) or (isinstance(node, ast.Name) and node.id == handler.name)
               or (isinstance(node, ast.Attribute) and node.attr in RECORDING) for node in ast.walk(handler))


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] == "suppress" and any(
        ast.unparse(each).rpartition(".")[2] in FAILURES for each in call.args)


def _shown(function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
    """Yield the expressions that pass on `name` or one of its methods."""
    used = {id(node.value) for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    called = {id(node.func): node for node in ast.walk(function) if isinstance(node, ast.Call)}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == name and id(node) not in used and not _own(called, node):
            yield node
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            if id(node) in called and node.attr == "start":
                yield node
            if id(node) not in called and any(node in [*call.args, *(word.value for word in call.keywords)]
                                              and _threads(call) for call in called.values()):
                yield node


_PARTS = (ast.Attribute, ast.Subscript)
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_EQUALITY = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)


# The calls that another thread may wait for, by the call that waits.
SIGNALS = {"wait": {"set", "notify", "notify_all"}, "is_set": {"set"}, "get": {"put", "put_nowait"},
           "acquire": {"release"}, "result": {"set_result"}}
SIGNALLING = frozenset().union(*SIGNALS.values())


def _beside(statement: ast.stmt, around: ast.AST) -> list[ast.stmt]:
    """Return a statement and those before and after it in its block, as far as they contain no others."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(around, name, [])
        if statement in block:
            at = block.index(statement)
            return [one for one in block[max(at - 1, 0):at + 2] if isinstance(one, _SIMPLE)]
    return []


def _before(function: ast.AST, site: SiteInfo) -> Iterator[ast.AST]:
    return (node for node in ast.walk(function) if getattr(node, "lineno", site.line) < site.line)


def _announced(node: ast.AST) -> Iterator[str]:
    """Yield the variables that get a constant, and the objects that signal."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value:
        yield from map(_name, node.targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SIGNALLING:
        yield _name(node.func.value)


def _awaited(node: ast.AST, read: SiteInfo) -> Iterator[str]:
    """Yield the variables that are tested, by loops that end before the read, and the objects that are waited for."""
    if isinstance(node, ast.If) or (isinstance(node, ast.While) and not _covers(node, read)):
        yield from (_name(part) for part in ast.walk(node.test) if isinstance(part, ast.Name | ast.Attribute))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SIGNALS:
        yield _name(node.func.value)


def _changes(node: ast.AST) -> TypeGuard[ast.Attribute | ast.Subscript]:
    """Return True if the node changes the object that it is about, `node.value`, or names a method that does."""
    if not isinstance(node, ast.Attribute | ast.Subscript):
        return False
    return not isinstance(node.ctx, ast.Load) or (isinstance(node, ast.Attribute) and node.attr in CHANGING)


def _is_none(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name(target: ast.AST) -> str:
    """Return the last identifier of a variable: `tree` of `self.tree`."""
    return target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")


def _targets(node: ast.Assign | ast.AnnAssign | ast.NamedExpr) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _asks_for_id(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in {
        "get_ident", "get_native_id", "current_thread", "currentThread", "current_task", "getpid"}


def _keeps_truth(node: ast.AST, part: ast.AST) -> bool:
    """Return True if no more than the truth of a part matters to an expression."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in {"all", "any", "bool"} and part in node.args
    if isinstance(node, ast.GeneratorExp | ast.ListComp):
        return part is node.elt
    return isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)) or (
        isinstance(node, ast.Compare) and all(isinstance(op, _EQUALITY) for op in node.ops))


def _is_accessor(nodes: list[ast.AST]) -> bool:
    """Return True if the innermost function around consists of one statement, beside its docstring."""
    function = next((node for node in nodes if isinstance(node, ast.FunctionDef | ast.Lambda)), None)
    if not isinstance(function, ast.FunctionDef) or not isinstance(nodes[0], ast.Attribute):
        return False
    return len(function.body) == 1 + (ast.get_docstring(function, clean=False) is not None)


def _own(called: dict[int, ast.Call], node: ast.Name) -> bool:
    """Return True if the object is only passed to a base's constructor: `Base.__init__(self)`, `super(C, self)`."""
    return any(node in call.args and ast.unparse(call.func).endswith(("__init__", "super")) for call in called.values())


def _threads(call: ast.Call) -> bool:
    """Return True if a call may run a method that it gets in another thread; a few known functions do not."""
    return ast.unparse(call.func).rpartition(".")[2] not in {"partial", "sorted", "map", "filter", "getattr", "super"}


@lru_cache(MOST_TREES)
def _tree(source: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")     # about the program's code, which has been compiled before
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _content(path: str) -> bytes:
    """Return a file's content, b"" if it cannot be read."""
    try:
        return read_bytes(Path(path)) if os.path.isabs(path) else b""
    except OSError:
        return b""


def _decode(source: bytes) -> str:
    """Return source decoded as Python does."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
        return source.decode(encoding, "replace")
    except (SyntaxError, LookupError):
        return source.decode("utf-8", "replace")


def _split(text: str) -> list[str]:
    """Return the lines as the compiler counts them: a form feed starts no new one."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n") if text else []
