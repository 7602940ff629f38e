"""Extension modules of CMake (scikit-build-core and others): commands that make one, in the CMakeLists.txt files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.discover.call_syntax import arguments, binding_of
from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import line_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|#\[(=*)\[.*?\]\2\]|#[^\n]*', re.DOTALL)
_COMMAND = re.compile(r"\b(python[23]?_add_library|python_add_module|add_python_library|python_extension_module"
                      r"|pybind11_add_module|nanobind_add_module)\s*\(", re.IGNORECASE)
_SUBDIRECTORY = re.compile(r"\badd_subdirectory\s*\(\s*\"?([\w./-]+)", re.IGNORECASE)
_SET = re.compile(r"\bset\s*\(\s*(\w+)\s+([^()]*)\)", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_HERE = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR", "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")
DEEPEST = 5   # variables in values of variables
_SOURCE = re.compile(r"[\w./+-]+\.(?:c|cc|cpp|cxx|pyx)\b")
_BINDINGS = {"pybind11_add_module": Binding.PYBIND11, "nanobind_add_module": Binding.NANOBIND}


def from_cmake(files: Files, backend: str) -> Iterator[Module]:
    """Yield what the CMakeLists.txt files make that the outermost one asks for; others' sources may lie beside."""
    found = {file: list(_commands(files, file, backend)) for file in files.named("CMakeLists.txt")}
    reached = [each for file in _reached(files) for each in found.get(file, ())]
    # Where a folder's name is computed all of them may be meant.
    yield from reached or [each for modules in found.values() for each in modules]


def _reached(files: Files) -> list[str]:
    """Return the outermost CMakeLists.txt and those of the folders that it and they name."""
    waiting = ["CMakeLists.txt"]
    for file in waiting:   # it grows
        folder = file.rpartition("/")[0]
        for named in _SUBDIRECTORY.findall(without_comments(files.text(file) or "")):
            inside = f"{folder}/{named}/CMakeLists.txt".lstrip("/")
            if inside not in waiting:
                waiting.append(inside)
    return waiting


def _commands(files: Files, file: str, backend: str) -> Iterator[Module]:
    text = without_comments(files.text(file) or "")
    variables = dict.fromkeys(_HERE, ".") | {name: value.replace('"', "").strip() for name, value in _SET.findall(text)}
    for match in _COMMAND.finditer(text):
        command, given = match[1].lower(), _expanded(arguments(text, match.end() - 1), variables)
        words = given.replace('"', " ").split()
        # Without MODULE it is a library that others link.
        if not words or (command.endswith("_add_library") and "MODULE" not in words):
            continue
        sources = tuple(found for each in _SOURCE.findall(given) if (found := files.there(each, file)))
        yield Module(name="" if "$" in words[0] else words[0],
                     binding=_BINDINGS.get(command) or binding_of(files, sources), backend=backend, file=file,
                     line=line_of(text, match.start()), sources=sources)


def _expanded(text: str, variables: Mapping[str, str], depth: int = 0) -> str:
    """Return a text with the values of variables that the file sets to plain text; others stay as they are."""
    found = _VARIABLE.sub(lambda match: variables.get(match[1], match[0]), text)
    return found if found == text or depth > DEEPEST else _expanded(found, variables, depth + 1)


def without_comments(text: str) -> str:
    """Return CMake's text without comments, with all of its lines."""
    return _COMMENT.sub(lambda match: match[1] or "\n" * match[0].count("\n"), text)
