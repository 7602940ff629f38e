"""Extension modules of setuptools: `Extension(...)` and its like in setup.py, by its syntax tree; tables of settings.

What a script computes cannot be read from it: then the module has no name, and is known once it is built.
"""

from __future__ import annotations

import ast
import configparser
import contextlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.project.extensions.discover.call_syntax import binding_of
from gilscope.toolkit.evaluate.project.extensions.discover.cffi import ffi_module
from gilscope.toolkit.evaluate.project.extensions.discover.conditions import answered, stored_by_variables, variables
from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module
from gilscope.toolkit.evaluate.requirements.declared import table_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_BINDINGS = {"Pybind11Extension": Binding.PYBIND11, "RustExtension": Binding.PYO3}
_CYTHON = (".pyx", ".py")
DEEPEST = 8   # constants made of constants; one may be made of itself


def from_script(files: Files, script: str) -> Iterator[Module]:
    """Yield what a build script makes: setup.py, or one of poetry's or pdm's."""
    text = files.text(script)
    if text is None:
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return   # for another Python; its build will tell
    yield from _Script(files, script, tree).modules()


def from_settings(files: Files, pyproject: Mapping[str, Any]) -> Iterator[Module]:
    """Yield what [tool.setuptools] of pyproject.toml names, and pbr's sections of setup.cfg."""
    table = table_below(pyproject, "tool", "setuptools")
    for each in [*_tables(table.get("ext-modules")), *_tables(table.get("ext_modules"))]:
        sources = [text for text in each.get("sources", ()) if isinstance(text, str)]
        yield _module(files, "pyproject.toml", 1, str(each.get("name", "")), sources,
                      optional=each.get("optional") is True)
    rust = table_below(pyproject, "tool", "setuptools-rust")
    for each in _tables(rust.get("ext-modules")):
        if each.get("binding", "PyO3") in {"PyO3", "RustCPython", "NoBinding"}:
            yield Module(name=str(each.get("target", "")), binding=Binding.PYO3, backend="setuptools-rust",
                         file="pyproject.toml", line=1, optional=each.get("optional") is True)
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error):
        parser.read_string(files.text("setup.cfg") or "")
    for section in parser.sections():
        if section.startswith("extension="):
            sources = parser.get(section, "sources", fallback="").split()
            yield _module(files, "setup.cfg", 1, section.partition("=")[2].strip(), sources)
    for name in parser.get("options", "cffi_modules", fallback="").split():
        yield ffi_module(files, name, "setup.cfg", 1, "setuptools")


def _tables(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _module(files: Files, file: str, line: int, name: str, sources: list[str], *, optional: bool = False,
            binding: Binding | None = None, condition: str = "") -> Module:
    there = tuple(found for text in sources if (found := files.there(text, file)))
    if binding is None:
        cython = any(text.endswith(_CYTHON) for text in sources)
        binding = Binding.CYTHON if cython else (binding_of(files, there) if there else Binding.C_API)
    backend = "setuptools-rust" if binding is Binding.PYO3 else "setuptools"
    return Module(name=name, binding=binding, backend=backend, file=file, line=line, sources=there, optional=optional,
                  condition=condition)


class _Script:
    """One build script and what its constants are."""

    def __init__(self, files: Files, script: str, tree: ast.Module) -> None:
        self._files = files
        self._script = script
        self._tree = tree
        self._conditions = _conditions(tree)
        self._questions = _questions(tree)
        self._asks = stored_by_variables(tree)
        self._constants: dict[str, ast.expr] = {
            target.id: node.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
            for target in node.targets if isinstance(target, ast.Name)}

    def modules(self) -> Iterator[Module]:
        found = list(self._found())
        yield from found
        if found:
            return
        for call in _calls(self._tree):
            # A list that some function makes, out of whatever it finds.
            given = _keyword(call, "ext_modules") or _keyword(call, "rust_extensions")
            if _called(call) == "setup" and given is not None and not _is_empty(given):
                yield self._one(call, "", [])

    def _found(self) -> Iterator[Module]:
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

    def _extension(self, call: ast.Call, called: str) -> Module:
        given = _argument(call, 0, "name") or _keyword(call, "target")
        name = self._string(given) if given else ""
        sources = self._strings(_argument(call, 1, "sources"))
        optional = _keyword(call, "optional")
        return self._one(call, name, sources, _BINDINGS.get(called),
                         optional=isinstance(optional, ast.Constant) and optional.value is True)

    def _cythonized(self, call: ast.Call) -> Iterator[Module]:
        for pattern in self._strings(_argument(call, 0, "module_list")):
            if pattern.endswith(_CYTHON):
                for file in self._glob(pattern) or [pattern]:
                    stem = file.rpartition("/")[2].rpartition(".")[0]
                    yield self._one(call, "" if "*" in stem else stem, [file], Binding.CYTHON)

    def _one(self, call: ast.Call, name: str, sources: list[str], binding: Binding | None = None, *,
             optional: bool = False) -> Module:
        made = _module(self._files, self._script, call.lineno, name, sources, optional=optional, binding=binding,
                       condition=self._conditions.get(call, ""))
        question = self._questions.get(call, "")
        return replace(made, question=question, variables=self._variables(question))

    def _variables(self, question: str) -> tuple[str, ...]:
        """Return the variables of the environment that decide about a question."""
        if not question:
            return ()
        asked = ast.parse(question, mode="eval")
        names = [each.id for each in ast.walk(asked) if isinstance(each, ast.Name)]
        behind = (each for name in names for each in self._asks.get(name, ()))
        return tuple(dict.fromkeys([*variables(asked), *behind]))

    def _glob(self, pattern: str) -> list[str]:
        try:
            found = [str(path.relative_to(self._files.root)) for path in self._files.root.glob(pattern)]
        except (ValueError, NotImplementedError, OSError):
            return []
        return sorted(found)

    def _string(self, node: ast.expr, depth: int = 0) -> str:
        """Return the text that an expression is, "" where that is not plain."""
        if depth > DEEPEST:
            return ""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name) and node.id in self._constants:
            return self._string(self._constants[node.id], depth + 1)
        nodes, between = _parts(node)
        parts = [self._string(each, depth + 1) for each in nodes]
        return between.join(parts) if all(parts) else ""

    def _strings(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """Return the texts of a list that stands there, as far as they are plain."""
        if depth > DEEPEST:
            return []
        if isinstance(node, ast.Name):
            return self._strings(self._constants.get(node.id), depth + 1)
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
    """Return what a text is put together of, and what stands between."""
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
    """Yield each question of a script, and the calls that are made where its answer is yes, and no."""
    for node in ast.walk(tree):   # breadth first, so that an outer question comes before one inside
        if isinstance(node, ast.If):
            yield node.test, _inside(node.body), _inside(node.orelse)
        elif isinstance(node, ast.IfExp):
            yield node.test, _inside([node.body]), _inside([node.orelse])


def _inside(parts: Iterable[ast.AST]) -> list[ast.Call]:
    return [each for part in parts for each in ast.walk(part) if isinstance(each, ast.Call)]


def _questions(tree: ast.AST) -> dict[ast.AST, str]:
    """Return the questions whose answer is not certain before each call, the outermost first."""
    asked: dict[ast.AST, list[str]] = defaultdict(list)
    for test, yes, no in _branches(tree):
        if answered(test) is None:
            for call in yes:
                asked[call].append(ast.unparse(test))
            for call in no:
                asked[call].append(f"not ({ast.unparse(test)})")
    return {call: " and ".join(questions) for call, questions in asked.items()}


def _conditions(tree: ast.AST) -> dict[ast.AST, str]:
    """Return the calls that this system does not come to, each with the question that keeps it from there."""
    found: dict[ast.AST, str] = {}
    for test, yes, no in _branches(tree):
        answer = answered(test)
        if answer is not None:
            question = f"not ({ast.unparse(test)})" if answer else ast.unparse(test)
            found |= dict.fromkeys(no if answer else yes, question)
    return found
