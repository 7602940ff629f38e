"""Read the extension modules of setuptools: from the syntax tree of setup.py, and from tables of settings.

A module whose name the script computes has no name here; it is known once it is built.
"""

from __future__ import annotations

import ast
import configparser
import contextlib
import operator
import os
import platform
import re
import sys
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.own_extensions import Binding, ExtensionModule
from gilscope.toolkit.evaluate.project.extensions.project_files import binding_of, is_vendored
from gilscope.toolkit.evaluate.requirements.declared import table_below

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.project_files import ProjectFiles

_BINDINGS = {"Pybind11Extension": Binding.PYBIND11, "RustExtension": Binding.PYO3}
_CYTHON_SUFFIXES = (".pyx", ".py")
_GROWING = {"append", "extend", "insert"}
MOST_INDIRECTIONS = 8   # a constant may refer to itself
MOST_POSSIBLE = 8       # macros that a call may define: the preprocessor runs once for each


def from_script(files: ProjectFiles, script: str) -> Iterator[ExtensionModule]:
    """Yield the modules that a build script makes: setup.py, or the script of poetry or pdm."""
    text = files.text(script)
    if text is None:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return   # written for another version of Python: the build shows what it makes
    yield from _Script(files, script, tree).modules()


def from_settings(files: ProjectFiles, pyproject: Mapping[str, Any]) -> Iterator[ExtensionModule]:
    """Yield the modules in [tool.setuptools] of pyproject.toml and in pbr's sections of setup.cfg."""
    table = table_below(pyproject, "tool", "setuptools")
    for each in [*_tables(table.get("ext-modules")), *_tables(table.get("ext_modules"))]:
        sources = [text for text in each.get("sources", ()) if isinstance(text, str)]
        name = str(each.get("name", ""))
        made = _module(files, "pyproject.toml", _line_of_name(files, name), name, sources,
                       optional=each.get("optional") is True)
        yield replace(made, flags=tuple(_flags_of_table(each)))
    rust = table_below(pyproject, "tool", "setuptools-rust")
    for each in _tables(rust.get("ext-modules")):
        if each.get("binding", "PyO3") in {"PyO3", "RustCPython", "NoBinding"}:
            name = str(each.get("target", ""))
            yield ExtensionModule(name=name, binding=Binding.PYO3, backend="setuptools-rust", file="pyproject.toml",
                                  line=_line_of_name(files, name), optional=each.get("optional") is True)
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error):
        parser.read_string(files.text("setup.cfg") or "")
    for section in parser.sections():
        if section.startswith("extension="):
            sources = parser.get(section, "sources", fallback="").split()
            yield _module(files, "setup.cfg", 1, section.partition("=")[2].strip(), sources)
    for name in parser.get("options", "cffi_modules", fallback="").split():
        yield ffi_module(files, name, "setup.cfg", 1, "setuptools")


def _line_of_name(files: ProjectFiles, name: str) -> int:
    """Return the line of pyproject.toml, below `ext-modules`, that contains the quoted name; 1 if none does."""
    seen = False
    for number, line in enumerate((files.text("pyproject.toml") or "").splitlines(), 1):
        seen = seen or re.search(r"\bext[-_]modules\b", line) is not None
        if seen and re.search(rf"""(?P<quote>["']){re.escape(name)}(?P=quote)""", line):
            return number
    return 1


def _tables(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _flags_of_table(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags for the preprocessor in an entry of `ext-modules`."""
    for each in table.get("define-macros") or ():
        if isinstance(each, list) and each and all(isinstance(part, str) for part in each):
            yield _define(*each[:2])
    yield from (f"-U{each}" for each in table.get("undef-macros") or () if isinstance(each, str))
    yield from _preprocessor_flags(table.get("extra-compile-args") or ())


def _define(name: str, value: str | None = None) -> str:
    return f"-D{name}" if value is None else f"-D{name}={value}"


def _preprocessor_flags(arguments: Iterable[Any]) -> Iterator[str]:
    """Yield the compiler's arguments that define or undefine a macro."""
    yield from (each for each in arguments if isinstance(each, str) and re.match(r"-[DU][A-Za-z_]", each))


def _module(files: ProjectFiles, file: str, line: int, name: str, sources: list[str], *, optional: bool = False,  # noqa: PLR0913 - the fields of one module
            binding: Binding | None = None, condition: str = "") -> ExtensionModule:
    there = tuple(found for text in sources if (found := files.there(text, file)))
    if binding is None:
        cython = any(text.endswith(_CYTHON_SUFFIXES) for text in sources)
        binding = Binding.CYTHON if cython else (
            binding_of(files, there) if there else Binding.C_API if sources else Binding.UNKNOWN)
    backend = "setuptools-rust" if binding is Binding.PYO3 else "setuptools"
    return ExtensionModule(name=name, binding=binding, backend=backend, file=file, line=line, sources=there,
                           optional=optional, condition=condition)


class _Script:
    """A build script with the values of its constants."""

    def __init__(self, files: ProjectFiles, script: str, tree: ast.Module) -> None:
        self._files = files
        self._script = script
        self._tree = tree
        self._conditions = _conditions(tree)
        self._questions = _questions(tree)
        self._asks = deciding_variables(tree)
        self._constants: dict[str, ast.expr] = {
            target.id: node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name)}
        stored = Counter(node.id for node in ast.walk(tree)
                         if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        grown = {call.func.value.id for call in _calls(tree) if isinstance(call.func, ast.Attribute)
                 and call.func.attr in _GROWING and isinstance(call.func.value, ast.Name)}
        # What a list gets later: ["b.c"] of `files.append("b.c")` and of `files += ["b.c"]`.
        self._added: dict[str, list[ast.expr]] = defaultdict(list)
        for call in _calls(tree):
            if (isinstance(call.func, ast.Attribute) and call.func.attr in _GROWING and call.args
                    and isinstance(call.func.value, ast.Name) and call not in self._conditions):
                self._added[call.func.value.id].append(call.args[-1])
        for node in ast.walk(tree):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.target, ast.Name):
                self._added[node.target.id].append(node.value)
        self._certain = {name for name in self._constants if stored[name] == 1} - grown

    def modules(self) -> Iterator[ExtensionModule]:
        found = list(self._found())
        yield from found
        if found:
            return
        for call in _calls(self._tree):
            # A list that a function computes.
            given = _keyword(call, "ext_modules") or _keyword(call, "rust_extensions")
            if _called(call) == "setup" and given is not None and not _is_empty(given):
                yield self._one(call, "", [])

    def _found(self) -> Iterator[ExtensionModule]:
        for call in _calls(self._tree):
            name = _called(call)
            if name.endswith("Extension") and name != "build_extension":
                yield self._extension(call, name)
            elif name == "cythonize":
                yield from self._cythonized(call)
            elif name == "mypycify":
                sources = self._strings(_argument(call, 0, "paths"))
                python = [text for text in sources if text.endswith(".py")]
                yield self._one(call, "", python, Binding.MYPYC)
            for text in self._strings(_keyword(call, "cffi_modules")):
                yield ffi_module(self._files, text, self._script, call.lineno, "setuptools",
                                 self._conditions.get(call, ""))

    def _extension(self, call: ast.Call, called: str) -> ExtensionModule:
        given = _argument(call, 0, "name") or _keyword(call, "target")
        name = self._string(given) if given else ""
        sources = self._strings(_argument(call, 1, "sources"))
        optional = _keyword(call, "optional")
        return self._one(call, name, sources, _BINDINGS.get(called),
                         optional=isinstance(optional, ast.Constant) and optional.value is True)

    def _cythonized(self, call: ast.Call) -> Iterator[ExtensionModule]:
        for pattern in self._strings(_argument(call, 0, "module_list")):
            if pattern.endswith(_CYTHON_SUFFIXES):
                for file in self._glob(pattern) or [pattern]:
                    stem = file.rpartition("/")[2].rpartition(".")[0]
                    yield self._one(call, "" if "*" in stem else stem, [file], Binding.CYTHON)

    def _one(self, call: ast.Call, name: str, sources: list[str], binding: Binding | None = None, *,
             optional: bool = False) -> ExtensionModule:
        made = _module(self._files, self._script, call.lineno, name, sources, optional=optional, binding=binding,
                       condition=self._conditions.get(call, ""))
        question = self._questions.get(call, "")
        return replace(made, question=question, variables=self._variables(question), flags=tuple(self._flags(call)),
                       possible=tuple(self._possible_flags(call)))

    def _flags(self, call: ast.Call) -> Iterator[str]:
        """Yield the flags for the preprocessor that a call gives as constants."""
        for each in self._items(_keyword(call, "define_macros")):
            name, value = each.elts if isinstance(each, ast.Tuple) and len(each.elts) == 2 else (each, each)
            words = self._string(name)
            if isinstance(value, ast.Constant) and value.value is None and words:
                yield _define(words)
            elif isinstance(each, ast.Tuple) and words and (text := self._string(value)):
                yield _define(words, text)
        yield from (f"-U{text}" for each in self._items(_keyword(call, "undef_macros")) if (text := self._string(each)))
        yield from _preprocessor_flags(map(self._string, self._items(_keyword(call, "extra_compile_args"))))

    def _possible_flags(self, call: ast.Call) -> Iterator[str]:
        """Yield a flag for each macro that the script names in a pair, if it computes the macros of the call."""
        if all(self._is_known(_keyword(call, name)) for name in ("define_macros", "undef_macros")):
            return
        unreached = {inner for other in self._conditions for inner in ast.walk(other)}
        named = (self._string(node.elts[0]) for node in ast.walk(self._tree)
                 if isinstance(node, ast.Tuple) and len(node.elts) == 2 and node not in unreached)
        yield from islice(dict.fromkeys(_define(name) for name in named if name.isidentifier()), MOST_POSSIBLE)

    def _is_known(self, node: ast.expr | None, depth: int = 0) -> bool:
        """Return True if constants alone give all items of a list."""
        if node is None or depth > MOST_INDIRECTIONS:
            return node is None
        if isinstance(node, ast.Name):
            return node.id in self._certain and self._is_known(self._constants[node.id], depth + 1)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._is_known(node.left, depth + 1) and self._is_known(node.right, depth + 1)
        return isinstance(node, ast.List | ast.Tuple) and all(
            not isinstance(each, ast.Starred) or self._is_known(each.value, depth + 1) for each in node.elts)

    def _items(self, node: ast.expr | None, depth: int = 0) -> Iterator[ast.expr]:
        """Yield the items of a list; of one with a name, if nothing else is ever given this name."""
        if depth > MOST_INDIRECTIONS:
            return
        if isinstance(node, ast.Name) and node.id in self._certain:
            yield from self._items(self._constants[node.id], depth + 1)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            yield from self._items(node.left, depth + 1)
            yield from self._items(node.right, depth + 1)
        elif isinstance(node, ast.List | ast.Tuple):
            for each in node.elts:
                yield from self._items(each.value, depth + 1) if isinstance(each, ast.Starred) else (each,)

    def _variables(self, question: str) -> tuple[str, ...]:
        """Return the environment variables that decide the answer to a question."""
        if not question:
            return ()
        asked = ast.parse(question, mode="eval")
        names = [each.id for each in ast.walk(asked) if isinstance(each, ast.Name)]
        behind = (each for name in names for each in self._asks.get(name, ()))
        return tuple(dict.fromkeys([*environment_variables(asked), *behind]))

    def _glob(self, pattern: str) -> list[str]:
        try:
            found = [str(path.relative_to(self._files.root)) for path in self._files.root.glob(pattern)]
        except (ValueError, NotImplementedError, OSError):
            return []
        return sorted(found)

    def _string(self, node: ast.expr, depth: int = 0) -> str:
        """Return the text that an expression evaluates to, "" if that takes more than constants."""
        if depth > MOST_INDIRECTIONS:
            return ""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name) and node.id in self._constants:
            return self._string(self._constants[node.id], depth + 1)
        nodes, between = _parts(node)
        parts = [self._string(each, depth + 1) for each in nodes]
        return between.join(parts) if all(parts) else ""

    def _strings(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """Return the texts in an expression that is a list, as far as they are constants."""
        if depth > MOST_INDIRECTIONS:
            return []
        if isinstance(node, ast.Name):
            added = [text for each in self._added.get(node.id, ()) for text in self._strings(each, depth + 1)]
            return [*self._strings(self._constants.get(node.id), depth + 1),
                    *(text for text in added if not is_vendored(text))]
        if isinstance(node, ast.BinOp):
            return [*self._strings(node.left, depth + 1), *self._strings(node.right, depth + 1)]
        if isinstance(node, ast.Starred):
            return self._strings(node.value, depth + 1)
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return [text for each in node.elts for text in self._strings(each, depth + 1)]
        text = self._string(node) if node is not None else ""
        return [text] if text else []


def _calls(tree: ast.AST) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(found, key=lambda node: (node.lineno, node.col_offset))


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _argument(call: ast.Call, number: int, name: str) -> ast.expr | None:
    return call.args[number] if len(call.args) > number else _keyword(call, name)


def _parts(node: ast.expr) -> tuple[list[ast.expr], str]:
    """Return the parts that an expression joins, and the separator."""
    if isinstance(node, ast.JoinedStr):
        return [each.value if isinstance(each, ast.FormattedValue) else each for each in node.values], ""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right], ""
    if isinstance(node, ast.Call) and _called(node) in {"join", "str", "Path"}:
        return node.args, "/"
    return [], ""


def _is_empty(node: ast.expr) -> bool:
    return (isinstance(node, ast.List | ast.Tuple) and not node.elts) or (
        isinstance(node, ast.Constant) and node.value is None)


def _branches(tree: ast.AST) -> Iterator[tuple[ast.expr, list[ast.Call], list[ast.Call]]]:
    """Yield each condition of a script with the calls in its true branch and those in its false branch."""
    for node in ast.walk(tree):   # breadth first, so that an outer condition comes before a nested one
        if isinstance(node, ast.If):
            yield node.test, _calls_inside(node.body), _calls_inside(node.orelse)
        elif isinstance(node, ast.IfExp):
            yield node.test, _calls_inside([node.body]), _calls_inside([node.orelse])


def _calls_inside(parts: Iterable[ast.AST]) -> list[ast.Call]:
    return [each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call)]


def _questions(tree: ast.AST) -> dict[ast.AST, str]:
    """Return, for each call, the enclosing conditions whose answer is not certain, outermost first."""
    asked: dict[ast.AST, list[str]] = defaultdict(list)
    for test, yes, no in _branches(tree):
        if answer_of(test) is None:
            for call in yes:
                asked[call].append(ast.unparse(test))
            for call in no:
                asked[call].append(f"not ({ast.unparse(test)})")
    return {call: " and ".join(questions) for call, questions in asked.items()}


def _conditions(tree: ast.AST) -> dict[ast.AST, str]:
    """Return the calls that are not reached on this system, each with the condition that excludes it."""
    found: dict[ast.AST, str] = {}
    for test, yes, no in _branches(tree):
        answer = answer_of(test)
        if answer is not None:
            question = f"not ({ast.unparse(test)})" if answer else ast.unparse(test)
            found |= dict.fromkeys(no if answer else yes, question)
    return found


def ffi_module(files: ProjectFiles, named: str, file: str, line: int, backend: str,
               condition: str = "") -> ExtensionModule:
    """Return the module of a CFFI entry like "src/pkg/_build.py:ffibuilder".

    Args:
        files: The project's files.
        named: The entry: script and object.
        file: The configuration file that contains the entry.
        line: The line of the entry.
        backend: The tool that builds the module.
        condition: The condition that excludes the module here, or "".
    """
    script = files.there(named.partition(":")[0], file)
    return ExtensionModule(name=_set_source(files.text(script) or "") if script else "", binding=Binding.CFFI,
                           backend=backend,
                           file=file, line=line, sources=(script,) if script else (), condition=condition)


def _set_source(text: str) -> str:
    """Return the module name that a script passes to `set_source`; "" if it is computed."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    names = [call.args[0].value for call in ast.walk(tree)
             if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "set_source"
             and call.args and isinstance(call.args[0], ast.Constant)]
    return str(names[0]) if names else ""


# The values under CPython on this system: gilscope evaluates no other implementation.
_KNOWN = {
    "sys.platform": sys.platform, "os.name": os.name, "platform.system()": platform.system(),
    "sys.implementation.name": "cpython", "platform.python_implementation()": "CPython",
}


MAJOR = 3
_MAJORS = {"sys.version_info.major", "sys.version_info[0]"}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge}


def answer_of(question: ast.expr) -> bool | None:
    """Return the answer to the condition of an `if` on this system; None if it is not certain.

    An uncertain module that the build does not make is reported as missing.
    """
    if isinstance(question, ast.UnaryOp) and isinstance(question.op, ast.Not):
        found = answer_of(question.operand)
        return None if found is None else not found
    if isinstance(question, ast.BoolOp):
        answers = [answer_of(each) for each in question.values]
        decides = isinstance(question.op, ast.Or)   # one True decides an `or`, one False an `and`
        if decides in answers:
            return decides
        return None if None in answers else not decides
    if isinstance(question, ast.Compare) and len(question.ops) == 1:
        return _compare_known(question.left, question.ops[0], question.comparators[0])
    if isinstance(question, ast.Call) and isinstance(question.func, ast.Attribute) and len(question.args) == 1:
        known, words = _KNOWN.get(ast.unparse(question.func.value)), _text_constants(question.args[0])
        if question.func.attr == "startswith" and known is not None and words:
            return known.startswith(words)
    return None


def deciding_variables(tree: ast.AST) -> dict[str, list[str]]:
    """Return, for each name that a script assigns, the environment variables that decide its value."""
    found: dict[str, list[str]] = {}
    parts: list[ast.stmt]
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            decides, parts = node.value, [node]
        elif isinstance(node, ast.If):
            decides, parts = node.test, [*node.body, *node.orelse]
        else:
            continue
        asked = list(environment_variables(decides))
        for each in chain.from_iterable(map(ast.walk, parts if asked else ())):
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                found.setdefault(each.id, []).extend(asked)
    return found


def environment_variables(node: ast.AST) -> Iterator[str]:
    """Yield the environment variables that an expression reads by name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            asks, name = ast.unparse(each.func), each.args[0] if each.args else None
        elif isinstance(each, ast.Subscript):
            asks, name = ast.unparse(each.value), each.slice
        elif isinstance(each, ast.Compare):
            asks, name = ast.unparse(each.comparators[0]), each.left
        else:
            continue
        if (re.search(r"\b(?:getenv|environ(?:\.get)?)$", asks) and isinstance(name, ast.Constant)
                and isinstance(name.value, str)):
            yield name.value


def _compare_major(left: ast.expr, by: ast.cmpop, right: ast.expr) -> bool | None:
    """Return the answer to a condition on the major version of Python; None if it is another condition."""
    first = right.elts[0] if isinstance(right, ast.Tuple) and right.elts else right
    asked = first.value if isinstance(first, ast.Constant) and type(first.value) is int else None
    whole = ast.unparse(left) == "sys.version_info" and isinstance(right, ast.Tuple) and asked != MAJOR
    compare = _COMPARISONS.get(type(by))
    if asked is None or compare is None or not (whole or ast.unparse(left) in _MAJORS):
        return None
    return compare(MAJOR, asked)


def _compare_known(left: ast.expr, by: ast.cmpop, right: ast.expr) -> bool | None:
    if (answer := _compare_major(left, by, right)) is not None:
        return answer
    known, words = _KNOWN.get(ast.unparse(left)), _text_constants(right)
    if known is None or not words:
        return None
    if isinstance(by, ast.Eq | ast.NotEq) and len(words) == 1 and isinstance(right, ast.Constant):
        return (known == words[0]) == isinstance(by, ast.Eq)
    if isinstance(by, ast.In | ast.NotIn) and not isinstance(right, ast.Constant):
        return (known in words) == isinstance(by, ast.In)
    return None


def _text_constants(node: ast.expr) -> tuple[str, ...]:
    """Return the texts of a constant or a sequence of constants; empty if there is anything else."""
    nodes = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    words = [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return tuple(words) if len(words) == len(nodes) else ()
