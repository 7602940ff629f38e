"""The standard library, rewritten: the same functions, docstrings and lines, and the same files are refused."""

import ast
import inspect
import sysconfig
import types
import warnings
from pathlib import Path

import pytest

from gilscope.toolkit.race.rewrite import compile_rewritten

LIBRARY = Path(sysconfig.get_path("stdlib"))
QUICK = ("asyncio/taskgroups.py", "contextlib.py", "collections/__init__.py", "enum.py", "functools.py", "queue.py",
         "threading.py", "weakref.py")


@pytest.mark.parametrize("name", QUICK)
def test_file_is_the_same_rewritten(name):
    assert differences(LIBRARY / name) == []


@pytest.mark.nightly
def test_every_file_is_the_same_rewritten():
    files = [path for path in sorted(LIBRARY.rglob("*.py")) if "site-packages" not in path.parts]
    assert len(files) > 500
    found = {str(path.relative_to(LIBRARY)): differences(path) for path in files}
    assert {name: told for name, told in found.items() if told} == {}


def differences(path):
    """Return what is not the same in the rewritten code of a file."""
    plain, rewritten = (compiled(path, how) for how in (
        lambda source: compile(source, path, "exec", dont_inherit=True),
        lambda source: compile_rewritten(source, str(path))[0]))
    if isinstance(plain, type) or isinstance(rewritten, type):
        return [] if plain is rewritten else [f"{plain} or {rewritten}"]
    pairs = list(zip(tree(plain), tree(rewritten), strict=False))
    told = [f"{one.co_qualname} is {other.co_qualname}" for one, other in pairs if shape(one) != shape(other)][:1]
    if told or len([*tree(plain)]) != len([*tree(rewritten)]):
        return [*told, "other code objects"]
    docstrings = first_lines(path)
    return [f"{one.co_qualname}: lines {sorted(lines(one))}, rewritten {sorted(lines(other))}" for one, other in pairs
            # What is done when a function begins has the line of its first statement, which may be a docstring.
            if not lines(one) <= lines(other) <= lines(one) | docstrings]


def compiled(path, how):
    """Return the code, or the type of the exception that refuses the file."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return how(path.read_bytes())
        except (SyntaxError, ValueError) as error:
            return type(error)


def tree(code):
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from tree(each)


def shape(code):
    """Return what a caller, `inspect` and `help` see of a code object."""
    named = code.co_argcount + code.co_kwonlyargcount
    # Before 3.14 the first constant of a function is its docstring or no str; since then a flag says that it is one.
    is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
    documented = is_function and code.co_flags & getattr(inspect, "CO_HAS_DOCSTRING", code.co_flags)
    doc = code.co_consts[0] if documented and isinstance(code.co_consts[0], str) else None
    return (code.co_name, code.co_qualname, code.co_firstlineno, code.co_argcount, code.co_posonlyargcount,
            code.co_varnames[:named], code.co_flags, doc)


def lines(code):
    return {line for *_, line in code.co_lines() if line}


def first_lines(path):
    """Return the lines at which the bodies of the file's functions begin."""
    return {node.body[0].lineno for node in ast.walk(ast.parse(path.read_bytes()))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
