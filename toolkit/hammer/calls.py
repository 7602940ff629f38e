"""Find calls in tests and doctests that can be made again: with what they need, as source text.

A call can be repeated if it, and whatever its arguments and its object are made from, consists of literals, operators,
the project's own names, and a few builtins and modules that only compute.  Nothing else of a test is run: no fixture
of a plugin, no file, no network.  Runs in the build under test: imports little.
"""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Self

# What a repeated call may use besides the project itself: it computes, and touches nothing outside of the process.
SAFE_BUILTINS = frozenset({
    "abs", "bool", "bytearray", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "float", "frozenset", "int",
    "iter", "len", "list", "max", "memoryview", "min", "next", "object", "ord", "range", "repr", "reversed", "round",
    "set", "slice", "sorted", "str", "sum", "tuple", "zip", *(
        name for name in vars(builtins) if isinstance(getattr(builtins, name), type)
        and issubclass(getattr(builtins, name), BaseException))})
SAFE_MODULES = frozenset({"array", "collections", "datetime", "decimal", "fractions", "io", "itertools", "math",
                          "numpy", "operator", "string", "struct", "uuid"})
UNSAFE_NAMES = frozenset({"FileIO", "OpenWrapper", "fromfile", "load", "loadtxt", "memmap", "open", "open_code", "save",
                          "savetxt", "savez", "tofile"})   # of those modules
MOST_VALUES = 3      # of a parametrized test or a loop
MOST_STATEMENTS = 2**13   # of which is remembered what they use
RAISES = re.compile(r"(?:\b|_)(?:raises|assertRaises\w*|warns|assertWarns\w*)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecipe:
    """One call, with the statements that make what it needs."""

    imports: tuple[str, ...]             # import statements
    setup: tuple[str, ...]               # statements that make the objects it uses, in order
    receiver: str = ""                   # expression of the object whose method is called; "": a function or a type
    callee: str                          # expression of the function, or the method's name
    args: tuple[str, ...] = ()           # expressions
    kwargs: tuple[tuple[str, str], ...] = ()
    module: str = ""                     # all its names are known too, as in a doctest
    place: str                           # "tests/test_codec.py:12", "codec.label:2" for a line of a docstring

    @property
    def shown(self) -> str:
        """Return the call as a reader would write it."""
        words = [*self.args, *(f"{name}={value}" for name, value in self.kwargs)]
        return f"{f'{self.receiver}.' if self.receiver else ''}{self.callee}({', '.join(words)})"

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {name: getattr(self, name) for name in CallRecipe.__slots__}

    @classmethod
    def from_plain(cls, fields: dict[str, Any]) -> Self:
        """Return the recipe that `plain` has returned, after JSON has made lists of its tuples."""
        return cls(**{name: _tuples(value) for name, value in fields.items()})

    @property
    def same_as(self) -> tuple[object, ...]:
        """Return the key that two recipes of the same call share."""
        return self.setup, self.receiver, self.callee, self.args, self.kwargs


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class CallScope:
    """The statements before a place in a file, and the names that its imports bind."""

    own: frozenset[str]                          # the project's import names: "pkg", "zope.interface"
    imports: dict[str, str] = field(default_factory=dict)    # bound name: its import statement
    statements: tuple[ast.stmt, ...] = ()        # simple ones, in order
    fixtures: dict[str, tuple[ast.stmt, ...]] = field(default_factory=dict)
    module: str = ""
    module_names: frozenset[str] = frozenset()   # of that module, for a doctest

    def belongs(self, name: str) -> bool:
        """Return True if a name that no statement binds is the project's own."""
        text = self.imports.get(name)
        if text is None:
            return name in self.module_names
        _, source, *rest = text.split()
        names = [source, *([f"{source}.{rest[1]}"] if rest[:1] == ["import"] else [])]   # from zope import interface
        return any(is_inside(name, self.own) for name in names)

    def may_use(self, name: str) -> bool:
        """Return True if a name that no statement binds may be used in a repeated call."""
        return self.belongs(name) or name in self.imports or name in SAFE_BUILTINS


def is_inside(module: str, packages: Iterable[str]) -> bool:
    """Return True if a module is one of some packages, or in one of them."""
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def calls_in_file(text: str, place: str, own: Iterable[str]) -> Iterator[CallRecipe]:
    """Yield the calls of a test file's functions that can be repeated.

    Args:
        text: The file's source.
        place: Its path, as reports name it.
        own: The project's import names; only calls of these, and of methods of what they return, are of interest.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    scope = CallScope(own=frozenset(own))
    yield from _calls_in_body(tree.body, scope, place)


def calls_in_doctest(text: str, place: str, own: Iterable[str], module: str = "", names: Iterable[str] = (),
                     ) -> Iterator[CallRecipe]:
    """Yield the calls of the examples in a docstring or a page that can be repeated.

    Args:
        text: Text with examples after ">>>".
        place: The file, or what has the docstring, as reports name it.
        own: The project's import names.
        module: The module whose docstring it is; "" for a page.
        names: The module's names, which its examples use without an import.
    """
    statements: list[ast.stmt] = []
    for line, source in _examples(text):
        try:
            found = ast.parse(source).body
        except (SyntaxError, ValueError):
            continue
        for each in found:
            ast.increment_lineno(each, line - 1)
        statements += found
    scope = CallScope(own=frozenset(own), module=module, module_names=frozenset(names))
    yield from _calls_in_body(statements, scope, place)


def _examples(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, source) of each example; simpler than doctest's parser, whose import takes half of the library."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (found := re.match(r"\s*>>> ?(.*)", line)) is None:
            continue
        source = [found[1]]
        for following in lines[number + 1:]:
            if (more := re.match(r"\s*\.\.\. ?(.*)", following)) is None:
                break
            source.append(more[1])
        yield number + 1, "\n".join(source) + "\n"


def _calls_in_body(body: Sequence[ast.stmt], scope: CallScope, place: str) -> Iterator[CallRecipe]:
    """Yield the calls of statements, and of the functions and classes among them, in a scope that grows."""
    functions: list[ast.FunctionDef | ast.ClassDef] = []
    for statement in body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                scope = replace(scope, imports={**scope.imports, **_imported(statement)})
            case ast.FunctionDef() if _is_fixture(statement):
                scope = replace(scope, fixtures={**scope.fixtures, statement.name: _fixture(statement)})
            case ast.FunctionDef() | ast.ClassDef():
                functions.append(statement)
            case _:
                for simple in _flattened([statement]):
                    if isinstance(simple, (ast.Import, ast.ImportFrom)):   # try: from pkg import _c
                        scope = replace(scope, imports={**scope.imports, **_imported(simple)})
                        continue
                    yield from _calls_in_statement(simple, scope, place)
                    scope = _after(scope, simple)
    scope = replace(scope, statements=(*scope.statements, *filter(_is_helper, functions)))
    classes = {each.name: each for each in functions if isinstance(each, ast.ClassDef)}
    for each in functions:
        if isinstance(each, ast.FunctionDef):
            yield from _calls_in_function(each, scope, place)
        else:
            yield from _calls_in_class(_whole_body(each, classes), scope, place)


def _whole_body(made: ast.ClassDef, classes: Mapping[str, ast.ClassDef], seen: frozenset[str] = frozenset(),
                ) -> list[ast.stmt]:
    """Return the statements of a class and of its bases in the same file, without the methods that it overrides."""
    inherited: list[ast.stmt] = []
    for base in reversed(made.bases):
        if isinstance(base, ast.Name) and base.id in classes and base.id not in seen:
            inherited += _whole_body(classes[base.id], classes, seen | {made.name})
    own = {each.name for each in made.body if isinstance(each, ast.FunctionDef)}
    return [*(each for each in inherited if not isinstance(each, ast.FunctionDef) or each.name not in own), *made.body]


def _calls_in_class(body: Sequence[ast.stmt], scope: CallScope, place: str) -> Iterator[CallRecipe]:
    """Yield the calls of a class of tests, whose attributes and setUp come before each."""
    for statement in _class_attributes(body):
        scope = _after(scope, statement)
    functions = [each for each in body if isinstance(each, ast.FunctionDef)]
    for each in functions:
        if _is_helper(each) and each.args.args and each.args.args[0].arg == "self":
            scope = _after(scope, _helper(each))
    for each in functions:
        if each.name in {"setUp", "setup_method", "setup"}:
            for simple in _flattened(_without_self(each).body):
                scope = _after(scope, simple)
    rest = [_without_self(each) for each in functions]
    fixtures = {each.name: _fixture(each) for each in rest if _is_fixture(each)}
    scope = replace(scope, fixtures={**scope.fixtures, **fixtures})
    for each in rest:
        if not _is_fixture(each):
            yield from _calls_in_function(each, scope, place)


def _calls_in_function(function: ast.FunctionDef, scope: CallScope, place: str) -> Iterator[CallRecipe]:
    for bound in _parameters(function, scope):
        local = scope
        for statement in bound:
            local = _after(local, statement)
        for simple in _flattened(function.body):
            if isinstance(simple, (ast.Import, ast.ImportFrom)):
                local = replace(local, imports={**local.imports, **_imported(simple)})
                continue
            yield from _calls_in_statement(simple, local, place)
            local = _after(local, simple)


def _after(scope: CallScope, statement: ast.stmt) -> CallScope:
    return replace(scope, statements=(*scope.statements, statement))


# Statements.

def _flattened(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield simple statements, those of blocks among them; a loop's target has the first of its values."""
    for statement in body:
        match statement:
            case ast.With():
                if not any(RAISES.search(ast.unparse(item.context_expr)) for item in statement.items):
                    yield from (_assigned(item.optional_vars, item.context_expr) for item in statement.items
                                if isinstance(item.optional_vars, ast.Name))
                    yield from _flattened(statement.body)
            case ast.For():
                first = ast.parse(f"next(iter({ast.unparse(statement.iter)}))", mode="eval").body
                yield ast.copy_location(_assigned(statement.target, first), statement)
                yield from _flattened(statement.body)
            case ast.Try():
                yield from _flattened(statement.body)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.If() | ast.While():
                pass
            case _:
                yield statement


def _assigned(target: ast.expr, value: ast.expr) -> ast.stmt:
    made = ast.Assign(targets=[target], value=value)
    return ast.fix_missing_locations(ast.copy_location(made, value))


def _imported(statement: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the import statement of each name that one binds; relative imports are left out."""
    if isinstance(statement, ast.Import):
        return {each.asname or each.name.partition(".")[0]:
                f"import {each.name}" + (f" as {each.asname}" if each.asname else "") for each in statement.names}
    if statement.level or statement.module is None:
        return {}
    return {each.asname or each.name: f"from {statement.module} import {each.name}"
            + (f" as {each.asname}" if each.asname else "") for each in statement.names if each.name != "*"}


def _source_of(import_text: str) -> str:
    """Return the module that an import statement names."""
    return import_text.split()[1]


def _is_helper(function: ast.stmt) -> bool:
    """Return True for a function that tests may call: `self._makeOne()`."""
    return isinstance(function, ast.FunctionDef) and not (
        function.decorator_list or function.name.startswith("test") or function.name in {"setUp", "tearDown"})


def _helper(method: ast.FunctionDef) -> ast.FunctionDef:
    """Return a method as a function without `self`, by the name of the variable that stands for it."""
    made = _without_self(method)
    made.name = f"self_{made.name}"
    del made.args.args[0]
    return made


def _is_fixture(function: ast.FunctionDef) -> bool:
    return any("fixture" in ast.unparse(each) for each in function.decorator_list)


def _fixture(function: ast.FunctionDef) -> tuple[ast.stmt, ...]:
    """Return statements that bind a fixture's name to its value."""
    found: list[ast.stmt] = []
    for statement in _flattened(function.body):
        value = statement.value if isinstance(statement, (ast.Return, ast.Expr)) else None
        value = value.value if isinstance(value, ast.Yield) else value if isinstance(statement, ast.Return) else None
        if value is not None:
            return (*found, _assigned(ast.Name(function.name, ast.Store()), value))
        found.append(statement)
    return ()


def _parameters(function: ast.FunctionDef, scope: CallScope) -> Iterator[tuple[ast.stmt, ...]]:
    """Yield the statements that bind a test's parameters, once for each set of values, at most MOST_VALUES."""
    names = [each.arg for each in function.args.args]
    fixed = [each for name in names for each in scope.fixtures.get(name, ())]
    sets: list[tuple[ast.stmt, ...]] = [()]
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            values = [*_parametrized(decorator)][:MOST_VALUES]
            if values:
                sets = [(*earlier, *one) for one in values for earlier in sets][:MOST_VALUES]
    yield from ((*fixed, *each) for each in sets)


def _parametrized(decorator: ast.Call) -> Iterator[tuple[ast.stmt, ...]]:
    words = [*decorator.args, *(each.value for each in decorator.keywords if each.arg in {"argnames", "argvalues"})]
    try:
        named = ast.literal_eval(words[0])
    except (ValueError, IndexError):
        return
    names = [each.strip() for each in (named.split(",") if isinstance(named, str) else named)]
    values = words[1] if len(words) > 1 else None
    for value in values.elts if isinstance(values, (ast.List, ast.Tuple)) else ():
        one = value
        if isinstance(one, ast.Call) and ast.unparse(one.func).endswith("param") and one.args:
            one = one.args[0] if len(names) == 1 else ast.Tuple(one.args, ast.Load())
        if len(names) == 1:
            yield (_assigned(ast.Name(names[0], ast.Store()), one),)
        elif isinstance(one, (ast.Tuple, ast.List)) and len(one.elts) == len(names):
            yield tuple(_assigned(ast.Name(name, ast.Store()), each)
                        for name, each in zip(names, one.elts, strict=True))


def _class_attributes(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the assignments of a class, `Map = CMap`, as those of the variables that its tests use: `self_Map = CMap`.

    Of several to one name, the last one counts: that of a base is overridden.
    """
    found = {each.targets[0].id: each.value for each in body
             if isinstance(each, ast.Assign) and len(each.targets) == 1 and isinstance(each.targets[0], ast.Name)}
    for name, value in found.items():
        if not found.keys() & {each.id for each in ast.walk(value) if isinstance(each, ast.Name)}:
            yield _assigned(ast.Name(f"self_{name}", ast.Store()), value)


class _SelfAttributes(ast.NodeTransformer):
    """Makes variables of the attributes of `self`."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            return ast.copy_location(ast.Name(f"self_{node.attr}", node.ctx), node)
        return self.generic_visit(node)


def _without_self(function: ast.FunctionDef) -> ast.FunctionDef:
    made: Any = _SelfAttributes().visit(ast.parse(ast.unparse(function)).body[0])
    ast.increment_lineno(made, function.lineno - made.lineno)
    return made  # type: ignore[no-any-return]  # a function remains one


# Calls.

def _calls_in_statement(statement: ast.stmt, scope: CallScope, place: str) -> Iterator[CallRecipe]:
    if isinstance(statement, ast.Expr) and RAISES.search(ast.unparse(statement).partition("(")[0]):
        return   # assertRaises(ValueError, f, 1): the call is not one here
    for node in _outside_of_scopes(statement):
        if isinstance(node, ast.Call) and (recipe := _recipe(node, scope, place)):
            yield recipe


def _outside_of_scopes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield nodes, except for those inside of lambdas and comprehensions, which have names of their own."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            yield from _outside_of_scopes(child)


def _recipe(call: ast.Call, scope: CallScope, place: str) -> CallRecipe | None:
    """Return the recipe of a call; None if it is not the project's, or cannot be repeated."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    slice_ = _Slice(scope)
    for each in (*call.args, *(word.value for word in call.keywords)):
        if not slice_.take(each):
            return None
    receiver, root = "", _root(call.func)
    bound = {name for statement in scope.statements for name in _bound(statement)}
    if isinstance(call.func, ast.Attribute) and (root is None or root in bound):
        if not slice_.take(call.func.value):
            return None
        receiver, callee = ast.unparse(call.func.value), call.func.attr
        if isinstance(call.func.value, ast.Call):   # f(x).method(): the object is made first
            slice_.before_call.append(f"made = {receiver}")
            receiver = "made"
    elif root is None or _is_helpers_name(root, scope) or (root in bound and not slice_.take(call.func)) or (
            root not in bound and not scope.belongs(root)):
        return None
    else:
        slice_.take(call.func)
        callee = ast.unparse(call.func)
    if not slice_.own:
        return None
    return CallRecipe(
        imports=tuple(sorted(slice_.imports)), setup=(*slice_.setup(), *slice_.before_call), receiver=receiver,
        callee=callee, args=tuple(map(ast.unparse, call.args)), module=scope.module,
        kwargs=tuple((each.arg or "", ast.unparse(each.value)) for each in call.keywords),
        place=f"{place}:{call.lineno}")


def _is_helpers_name(name: str, scope: CallScope) -> bool:
    return any(isinstance(each, ast.FunctionDef) and each.name == name for each in scope.statements)


def _root(expression: ast.expr) -> str | None:
    """Return the name that a dotted expression begins with; None if it begins with something else."""
    while isinstance(expression, ast.Attribute):
        expression = expression.value
    return expression.id if isinstance(expression, ast.Name) else None


# Each call of a test asks for the names of all statements before it.
@lru_cache(maxsize=MOST_STATEMENTS)
def _bound(node: ast.AST) -> frozenset[str]:
    if isinstance(node, ast.FunctionDef):
        return frozenset([node.name])
    return frozenset(each.id for each in ast.walk(node) if isinstance(each, ast.Name)
                     and isinstance(each.ctx, ast.Store))


class _Slice:
    """The statements that an expression depends on."""

    def __init__(self, scope: CallScope) -> None:
        self._scope = scope
        self._kept: set[int] = set()        # indexes of statements
        self._seen: set[str] = set()        # names
        self.imports: set[str] = set()
        self.before_call: list[str] = []
        self.own = False                    # something of the project is in it

    def take(self, expression: ast.AST) -> bool:
        """Add what an expression needs; return False if it cannot be repeated."""
        helper = ast.walk(expression) if isinstance(expression, ast.FunctionDef) else ()
        return _may_run(expression) and all(map(self._imported, helper)) and all(map(self._name, _loaded(expression)))

    def setup(self) -> list[str]:
        """Return the statements in their order."""
        return [ast.unparse(self._scope.statements[index]) for index in sorted(self._kept)]

    def _imported(self, node: ast.AST) -> bool:
        """Return False for an import in a helper that it must not make."""
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            return True
        inside = CallScope(own=self._scope.own, imports=_imported(node))
        belongs = [*map(inside.belongs, inside.imports)]
        self.own |= any(belongs)
        return bool(belongs) and all(own or _source_of(text).partition(".")[0] in SAFE_MODULES
                                     for own, text in zip(belongs, inside.imports.values(), strict=True))

    def _name(self, name: str) -> bool:
        if name in self._seen:
            return True
        self._seen.add(name)
        touching = [(index, each) for index, each in enumerate(self._scope.statements) if name in _touched(each)]
        if not any(name in _bound(each) for _, each in touching):
            if not self._scope.may_use(name):
                return False
            if text := self._scope.imports.get(name):
                if not self._scope.belongs(name) and _source_of(text).partition(".")[0] not in SAFE_MODULES:
                    return False
                self.imports.add(text)
            self.own |= self._scope.belongs(name)
            return True
        for index, statement in touching:
            if index in self._kept:
                continue
            taken = self._kept.copy(), self._seen.copy(), self.imports.copy(), self.own
            self._kept.add(index)
            if self.take(statement):
                continue
            if name in _bound(statement):
                return False
            self._kept, self._seen, self.imports, self.own = taken   # it only uses the object: `print(c)`
        return True


@lru_cache(maxsize=MOST_STATEMENTS)
def _touched(statement: ast.stmt) -> frozenset[str]:
    """Return the names that a statement binds, or whose object it may change: `c = C()`, `c.add(1)`, `c[0] = 1`."""
    match statement:
        case ast.FunctionDef():
            return frozenset([statement.name])
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called)):
            root = _root(called)
            return frozenset([root] if root else [])
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Delete():
            targets = (statement.targets if isinstance(statement, (ast.Assign, ast.Delete)) else [statement.target])
            return _bound(statement) | {node.id for target in targets for node in ast.walk(target)
                                        if isinstance(node, ast.Name)}
    return frozenset()


@lru_cache(maxsize=MOST_STATEMENTS)
def _loaded(node: ast.AST) -> tuple[str, ...]:
    inner = {name for each in ast.walk(node) if isinstance(each, ast.comprehension) for name in _bound(each.target)}
    if isinstance(node, ast.FunctionDef):
        inner |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        inner |= {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
        inner |= {name for each in ast.walk(node) if isinstance(each, (ast.Import, ast.ImportFrom))
                  for name in _imported(each)}
    return tuple(dict.fromkeys(each.id for each in ast.walk(node) if isinstance(each, ast.Name)
                               and isinstance(each.ctx, (ast.Load, ast.Del)) and each.id not in inner))


@lru_cache(maxsize=MOST_STATEMENTS)
def _may_run(node: ast.AST) -> bool:
    """Return True if a node has only what computes, and no name of a module that reads or writes files."""
    return not any(
        isinstance(each, (ast.Lambda, ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.JoinedStr))
        or (isinstance(each, ast.Attribute) and (each.attr in UNSAFE_NAMES or each.attr.startswith("__")))
        or (isinstance(each, ast.Name) and each.id in UNSAFE_NAMES)
        for each in ast.walk(node))
