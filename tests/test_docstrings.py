"""Checks that names of our own, in backticks in docstrings and comments, exist: a rename must reach the prose."""

import ast
import functools
import re
import tokenize
from pathlib import Path

import pytest

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[1]
MODULES = [path for folder in ("toolkit", "workloads", "runners") for path in sorted((ROOT / folder).rglob("*.py"))]
MODULES += sorted((ROOT / "gilscope").glob("*.py"))
FOREIGN = {"TryParse"}   # a method of actions/runner, which a docstring cites
QUOTED = re.compile(r"`([^`\n]+)`")
QUOTED_IN_COMMENT = re.compile(r"#.*`")
PATH = re.compile(r"\w+(?:/\w+)+\.py")
CLASS = re.compile(r"_?(?:[A-Z][a-z0-9]+){2,}")
DOTTED = re.compile(r"([a-z_]\w*)((?:\.(?!py\b)\w+)+)(?:\(\))?")   # and not `cpu.py`, a file


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def known_names():
    """Return every name that the modules define, import or use."""
    names = set()
    for path in MODULES:
        for node in ast.walk(parsed(path)):
            match node:
                case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    names.add(name)
                case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                    names.add(name)
                case ast.alias(name=name):
                    names.update(name.split("."))
    return names


@functools.cache
def module_names():
    return {path.stem for path in MODULES} | {path.parent.name for path in MODULES}


def texts(path):
    """Yield a module's docstrings and comments."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    if QUOTED_IN_COMMENT.search(path.read_text(encoding="utf-8")):   # reading all tokens takes long
        with path.open("rb") as file:
            yield from (token.string for token in tokenize.tokenize(file.readline) if token.type == tokenize.COMMENT)


def stale_names(text):
    """Yield the files, classes and attributes of ours that a text names and that do not exist."""
    for quoted in QUOTED.findall(text):
        if PATH.fullmatch(quoted):
            if not any(path.as_posix().endswith(f"/{quoted}") for path in MODULES) and not (ROOT / quoted).exists():
                yield quoted
        elif CLASS.fullmatch(quoted):
            if quoted not in known_names() | FOREIGN:
                yield quoted
        elif (dotted := DOTTED.fullmatch(quoted)) and dotted[1] in module_names():
            known = known_names() | module_names()
            if any(name not in known for name in dotted[2].split(".")[1:]):
                yield quoted


def test_names_in_docstrings_and_comments_exist():
    stale = {f"{path.relative_to(ROOT)}: {name}" for path in MODULES for text in texts(path)
             for name in stale_names(text)}
    assert stale == set()
