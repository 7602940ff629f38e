"""Find the state that functions change which several threads ran: each process would have a copy of it.

This reads the source.  State is reached from a global, a closure, a class, a `self` that threads share, or the default
value of a parameter.  A local that is taken from such state stands for it, and so does a parameter that gets it from
another of these functions.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.racing.threaded_functions import Function, sources, within
from gilscope.toolkit.evaluate.sections import SharedFact
from gilscope.toolkit.own_files import is_test
from gilscope.toolkit.race.analysis.memoization import repeatable
from gilscope.toolkit.race.effects import CHANGING, library_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.racing.threaded_functions import FunctionSource, ThreadedFunction
    from gilscope.toolkit.evaluate.project.where_to_run import ProjectPaths

STORED = frozenset({"get", "items", "setdefault", "values"})   # methods that return what a container holds
MUTABLE = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp | ast.Call   # new objects
FOR_THREADS = "threading.local"
STATEFUL = frozenset({"itertools", "multiprocessing", "queue", "threading"})   # modules whose objects have no copies
CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})   # two objects may have had one address


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedState:
    """The shared state that functions change."""

    variables: tuple[SharedFact, ...]
    uses: frozenset[tuple[str, int]]   # file and line of each use of these variables and of memos


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A change of a shared variable."""

    reader: FunctionReader
    variable: str
    shown: str              # its name for messages
    around: tuple[ast.AST, ...]   # the node that changes it, and those that enclose it, innermost first

    @property
    def line(self) -> int:
        """The line of the change."""
        return self.around[0].lineno   # type: ignore[attr-defined,no-any-return]  # of an expression

    @property
    def statement(self) -> ast.stmt:
        """The statement that changes it."""
        return next(each for each in self.around if isinstance(each, ast.stmt))

    def is_reached(self) -> bool:
        """Return True if a thread other than the first ran it."""
        lines = self.reader.source.ran.lines
        return not lines or any(within(self.statement, line) for line in lines)

    def is_repeatable(self) -> bool:
        """Return True if each process would store the same value, made from the key, where it finds none."""
        value = getattr(self.statement, "value", None)
        if value is None or isinstance(value, ast.Constant) or self.variable in self.reader.variables_in(value):
            return False
        if any(self.reader.source.called(each).partition(".")[0] in STATEFUL for each in ast.walk(value)
               if isinstance(each, ast.Call)):
            return False
        here = set(ast.walk(self.statement))
        asked = any(each.lineno <= self.line and each not in here and self.reader.variable(each) == self.variable
                    for each in self.reader.expressions())
        return asked and repeatable(self.around, by_key_alone=True)


def shared_state(ran: Iterable[ThreadedFunction], shown: ProjectPaths) -> SharedState:
    """Return the state that threads share and change, by the functions that two of them ran; tests have none.

    A memo that each process fills for itself is left out: it changes no result.
    """
    readers = _readers([each for each in sources(ran, shown) if not is_test(each.name)])
    changes = [change for reader in readers if reader.source.ran.twice for change in reader.changes()
               if change.is_reached()]
    own_values = {id(change): change.is_repeatable() for change in changes}
    diverging = {change.variable for change in changes if not own_values[id(change)]}
    found: dict[str, SharedFact] = {}
    for change in changes:
        reader = change.reader
        if not own_values[id(change)] or diverging.intersection(reader.variables_in(change.statement)):
            found.setdefault(change.shown, SharedFact(
                variable=change.shown, file=reader.source.name, line=change.line))
    changed = {change.variable for change in changes}
    uses = {(reader.source.name, each.lineno) for reader in readers for each in reader.expressions()
            if reader.variable(each) in changed}
    return SharedState(variables=tuple(found.values()), uses=frozenset(uses))


def _readers(found: Sequence[FunctionSource]) -> list[FunctionReader]:
    """Return the readers of these functions, which know the parameters that get shared state."""
    ran = {each.node for each in found}
    parents = {module: {child: node for node in ast.walk(module) for child in ast.iter_child_nodes(node)}
               for module in {each.module for each in found}}
    readers = [FunctionReader(each, ran, parents[each.module]) for each in found]
    by_name = defaultdict(list)
    for reader in readers:
        by_name[reader.source.node.name].append(reader)
    spreads = True
    while spreads:
        spreads = False
        for caller in readers:
            for call in caller.calls():
                for called in by_name[ast.unparse(call.func).rpartition(".")[2]]:
                    spreads |= called.takes(call, caller)
    return readers


class FunctionReader:
    """Reads one function: which expressions mean shared state, and which of it the function changes."""

    def __init__(self, source: FunctionSource, ran: set[Function], parents: Mapping[ast.AST, ast.AST]) -> None:
        """Set up.

        Args:
            source: The function.
            ran: Those that ran in threads: their locals are those of a call.
            parents: By each node of the module, the node that it is in.
        """
        self.source = source
        self._ran = ran
        self._scope = source.scopes.scopes[source.node]
        self._parents = parents
        self._class = next((each for each in self._around(source.node) if isinstance(each, ast.ClassDef)), None)
        # Attributes whose object the class makes, for all of its objects.
        self._of_class = {target.id for each in (self._class.body if self._class else ())
                          if isinstance(each, ast.Assign) and isinstance(each.value, MUTABLE)
                          for target in each.targets if isinstance(target, ast.Name)}
        self._nodes = list(_own_nodes(source.node))
        self._passed: set[str] = set()       # parameters that get shared state
        self._taken: dict[str, list[ast.expr]] = defaultdict(list)      # local -> what it is taken from
        self._defaults = set(_with_new_default(source.node))
        for each in self._nodes:
            for target, value in _bound(each):
                self._taken[target].append(value)
        self._threads_own = {name.rpartition(".")[2] for name in self._made_for_each_thread()}

    def expressions(self) -> Iterator[ast.Name | ast.Attribute]:
        """Yield the names and attributes that the function mentions."""
        return (each for each in self._nodes if isinstance(each, ast.Name | ast.Attribute))

    def calls(self) -> Iterator[ast.Call]:
        """Yield its calls."""
        return (each for each in self._nodes if isinstance(each, ast.Call))

    def variables_in(self, node: ast.AST) -> set[str | None]:
        """Return the shared variables that a node mentions."""
        return {self.variable(each) for each in ast.walk(node) if isinstance(each, ast.Name | ast.Attribute)}

    def takes(self, call: ast.Call, caller: FunctionReader) -> bool:
        """Note the parameters to which a call passes shared state; return True if one is new."""
        names = [each.arg for each in (*self.source.node.args.posonlyargs, *self.source.node.args.args)]
        if names[:1] in (["self"], ["cls"]):
            del names[0]
        given = [*zip(names, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]
        new = {name for name, value in given if name is not None and caller.variable(value)} - self._passed
        self._passed |= new
        return bool(new)

    def changes(self) -> Iterator[StateChange]:
        """Yield the changes of shared state, in the order of the source."""
        for each in self._nodes:
            if isinstance(each, ast.Name):
                declared = self._scope.globals | self._scope.nonlocals
                if not isinstance(each.ctx, ast.Load) and each.id in declared and (name := self.variable(each)):
                    place = self.source.scopes.resolve(self._scope, each.id)
                    shown = f"{each.id} of {place.owner.qualname}" if place.place == "local" else (
                        f"global {each.id} in {self.source.name.rpartition('/')[2]}")
                    yield self._change(each, name, shown)
            elif (target := self._changed(each)) is not None and (name := self.variable(target)):
                yield self._change(each, name, name)

    def _changed(self, node: ast.AST) -> ast.expr | None:
        """Return the expression whose object a node changes."""
        match node:
            case ast.Attribute(ctx=ast.Store() | ast.Del()):
                return node
            case ast.Subscript(ctx=ast.Store() | ast.Del(), value=value):
                return value
            case ast.Call(func=ast.Attribute(attr=attr, value=value)) if attr in CHANGING:
                return value
            case ast.Call(func=function, args=[first, *_]):
                name = self.source.called(function)
                return first if name == "next" or library_function(*name.rpartition(".")[::2]).effect else None
        return None

    def _change(self, node: ast.AST, name: str, shown: str) -> StateChange:
        return StateChange(reader=self, variable=name, shown=shown, around=(node, *self._around(node)))

    def _around(self, node: ast.AST) -> Iterator[ast.AST]:
        while (node := self._parents.get(node)) is not None:   # type: ignore[assignment]
            yield node

    def variable(self, what: ast.expr, *, through: frozenset[str] = frozenset()) -> str | None:
        """Return the shared variable that an expression is or lies in, None if it is the thread's own.

        `through`: the locals that led here.
        """
        match what:
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice):
                return self.variable(value, through=through)
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in STORED:
                return self.variable(value, through=through)
            case ast.Attribute(value=value, attr=attr) if attr not in self._threads_own:
                own = self._class_of(value) if isinstance(value, ast.Name) and attr in self._of_class else None
                owner = own or self.variable(value, through=through)
                return f"{owner}.{attr}" if owner else None
            case ast.Name(id=name) if name not in self._threads_own:
                return self._of_name(name, through)
        return None

    def _of_name(self, name: str, through: frozenset[str]) -> str | None:
        if (own := self._class_of(ast.Name(name))) is not None:
            is_shared = name == "cls" or (self.source.ran.one_self and self.source.node.name not in CONSTRUCTORS)
            return own if is_shared and own not in self._threads_own else None
        place = self.source.scopes.resolve(self._scope, name)
        if place.place == "global":
            return name if not self.source.scopes.is_builtin(self._scope, name) else None
        if place.owner.node is not self.source.node:     # of an enclosing function
            return name if place.place == "local" and place.owner.node not in self._ran else None
        if name in self._passed or name in self._defaults:
            return name
        taken = self._taken[name] if name not in through else ()
        return next(filter(None, (self.variable(each, through=through | {name}) for each in taken)), None)

    def _class_of(self, name: ast.Name) -> str | None:
        """Return the class that defines the function if a name is its `self` or `cls`."""
        is_first = name.id in ("self", "cls") and name.id in {each.arg for each in self.source.node.args.args[:1]}
        return self._class.name if is_first and self._class else None

    def _made_for_each_thread(self) -> Iterator[str]:
        """Yield the names of classes derived from `threading.local`, and of what is assigned an object of one."""
        scopes = self.source.scopes
        classes = {each.name for each in ast.walk(self.source.module) if isinstance(each, ast.ClassDef)
                   and any(scopes.qualified_name(scopes.module, base) == FOR_THREADS for base in each.bases)}
        yield from classes
        for each in ast.walk(self.source.module):
            if isinstance(each, ast.Assign) and isinstance(each.value, ast.Call):
                made = each.value.func
                if scopes.qualified_name(scopes.module, made) == FOR_THREADS or ast.unparse(made) in classes:
                    yield from map(ast.unparse, each.targets)


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function's body without those of functions and classes in it."""
    wanted: list[ast.AST] = [*function.body]
    while wanted:
        node = wanted.pop(0)
        yield node
        if not isinstance(node, Function | ast.ClassDef):
            wanted[:0] = ast.iter_child_nodes(node)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each local that a statement binds, and what its object is or lies in."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.For(target=target, iter=value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case _:
            return
    for target, value in pairs:
        names = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        yield from ((each.id, value) for each in names if isinstance(each, ast.Name))


def _with_new_default(function: Function) -> Iterator[str]:
    """Yield the parameters whose default value is an object that all calls share."""
    names = [*function.args.posonlyargs, *function.args.args]
    defaults = [*zip(reversed(names), reversed(function.args.defaults), strict=False),
                *zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)]
    yield from (name.arg for name, default in defaults if isinstance(default, MUTABLE))
