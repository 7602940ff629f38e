"""What a project's files say of its own extension modules: which its build names, and what their sources do.

Reads files only; nothing of the project is imported or run.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.evaluate.project.extensions.discover.backends import named_modules
from gilscope.toolkit.evaluate.project.extensions.discover.cargo import pyo3_version
from gilscope.toolkit.evaluate.project.extensions.discover.cmake import without_comments
from gilscope.toolkit.evaluate.project.extensions.discover.files import Files
from gilscope.toolkit.evaluate.project.extensions.discover.limited_api import limited_places
from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module, OwnExtensions, Source
from gilscope.toolkit.evaluate.project.extensions.how_to_declare import how_to_declare
from gilscope.toolkit.evaluate.project.extensions.scan import c, cython, rust
from gilscope.toolkit.evaluate.project.extensions.scan.lexing import code_of_c, code_of_python, code_of_rust

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gilscope.toolkit.evaluate.project.extensions.facts import Remark

MOST_SOURCES = 400
_C, _CPP, _HEADERS = (".c",), (".cc", ".cpp", ".cxx"), (".h", ".hh", ".hpp", ".hxx", ".inc")
_PYX = (".pyx", ".pxi")
_CYTHON_INCLUDE = re.compile(r"""^include\s+["']([^"'\n]+)["']""", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_CONFIGURATION = ("setup.py", "pyproject.toml", "meson.build", "setup.cfg", "CMakeLists.txt")


def find_extensions(root: Path) -> OwnExtensions:
    """Return what the files of the project in the folder `root` say of its own extension modules."""
    files = Files(root)
    modules, unsure = named_modules(files)
    if not (modules or unsure):
        return OwnExtensions()
    wanted = list(_sources(files, modules))
    reader = _Reader(files, modules)
    sources = tuple(each for file in wanted[:MOST_SOURCES] if (each := reader.source(file)))
    return OwnExtensions(modules=tuple(dict.fromkeys(modules)), sources=sources, unsure=tuple(unsure),
                         left_out=max(0, len(wanted) - MOST_SOURCES), limited=tuple(limited_places(files)))


def _sources(files: Files, modules: Iterable[Module]) -> Iterator[str]:
    """Yield the sources that are named, and what they include; where none is named, all that know Python."""
    named = [file for each in modules for file in each.sources]
    nameless = not named or any(not each.sources and each.binding is not Binding.MYPYC for each in modules)
    if nameless:
        named += [file for file in files.ending(*_C, *_CPP) if c.reads(files.text(file) or "")]
        named += files.ending(".pyx")
        named += files.ending(".rs") if any(each.binding is Binding.PYO3 for each in modules) else []
    waiting = list(dict.fromkeys(_written(files, file) for file in named))
    seen = set(waiting)
    for file in waiting:   # it grows
        yield file
        for included in _included(files, file):
            found = files.there(included, file)
            if found and found not in seen and found.endswith((*_C, *_CPP, *_HEADERS, *_PYX)):
                seen.add(found)
                waiting.append(found)


def _written(files: Files, file: str) -> str:
    """Return what somebody has written: for C that Cython has made, the .pyx beside it, where there is one."""
    stem, _, suffix = file.rpartition(".")
    made = f".{suffix}" in {*_C, *_CPP} and (files.text(file) or "").startswith(c.GENERATED)
    return files.there(f"{stem}.pyx") or file if made else file


def _included(files: Files, file: str) -> list[str]:
    if file.endswith(_PYX):
        return [name for name in _CYTHON_INCLUDE.findall(files.text(file) or "") if name.endswith(_PYX)]
    return _INCLUDE.findall(files.text(file) or "") if file.endswith((*_C, *_CPP, *_HEADERS)) else []


class _Reader:
    """Reads sources of a project whose configuration is known."""

    def __init__(self, files: Files, modules: Iterable[Module]) -> None:
        self._files = files
        self._bindings = {file: each.binding for each in modules for file in each.sources}
        # Binding generators have locks of their own.
        kinds = {each.binding for each in modules}
        self._plain = not kinds or bool(kinds & {Binding.C_API, Binding.UNKNOWN})
        # Of other .pyx files, which are no modules.
        self._parts = {found for file in files.ending(".pyx") for name in _included(files, file)
                       if (found := files.there(name, file))} - self._bindings.keys()

    def source(self, file: str) -> Source | None:
        """Return what a source does; None where it is none that is read."""
        text = self._files.text(file)
        if text is None:
            return None
        if file.endswith(".rs"):
            return self._rust(file, text)
        if file.endswith(_PYX):
            return self._cython(file, text)
        if file.endswith((*_C, *_CPP, *_HEADERS)):
            return self._c(file, text)
        binding = self._bindings.get(file, Binding.UNKNOWN)
        return Source(file=file, language="Python", binding=binding, defines=True, line=1,
                      declared=binding in {Binding.CFFI, Binding.MYPYC}, declare=how_to_declare(binding))

    def _c(self, file: str, text: str) -> Source:
        binding = c.binding_of(text)
        language = self._language(file, binding)
        if binding is Binding.CYTHON:   # an sdist without the .pyx that it was made of
            return Source(file=file, language=language, binding=binding, defines=True, line=1,
                          declared=cython.is_declared_in_c(text), declare=how_to_declare(binding))
        if binding is Binding.CFFI:     # likewise written by a program; its backend declares it, or does not
            return Source(file=file, language=language, binding=binding, defines=True, line=1, declared=True,
                          declare=how_to_declare(binding))
        code = code_of_c(text)
        line = c.place_of_module(code)
        declared = c.is_declared(code) or (binding is Binding.NANOBIND and self._free_threaded_nanobind())
        return Source(file=file, language=language, binding=binding, defines=line > 0, line=line or 1,
                      declared=declared, declare=how_to_declare(binding, single_phase=c.is_single_phase(code)),
                      remarks=_sorted(c.remarks_of_c(text, writes=self._plain and binding is Binding.C_API)))

    def _cython(self, file: str, text: str) -> Source:
        declared = cython.is_declared(text) or any(
            cython.is_declared_everywhere(self._files.text(name) or "") for name in self._files.named(*_CONFIGURATION))
        return Source(file=file, language="Cython", binding=Binding.CYTHON, defines=file not in self._parts, line=1,
                      declared=declared,
                      declare=how_to_declare(Binding.CYTHON),
                      remarks=_sorted(cython.remarks_of_cython(text, self._all_cython)))

    @cached_property
    def _all_cython(self) -> str:
        return "\n".join(code_of_python(self._files.text(file) or "") for file in self._files.ending(*_PYX))

    def _rust(self, file: str, text: str) -> Source:
        code = code_of_rust(text)
        line = rust.place_of_module(code)
        return Source(file=file, language="Rust", binding=Binding.PYO3, defines=line > 0, line=line or 1,
                      declared=rust.is_declared(code, pyo3_version(self._files)),
                      declare=how_to_declare(Binding.PYO3), remarks=_sorted(rust.remarks_of_rust(text)))

    def _free_threaded_nanobind(self) -> bool:
        texts = [without_comments(self._files.text(file) or "") for file in self._files.named("CMakeLists.txt")]
        return any(re.search(r"nanobind_add_module\s*\([^)]*\bFREE_THREADED\b", text, re.IGNORECASE) for text in texts)

    @staticmethod
    def _language(file: str, binding: Binding) -> Literal["C", "C++"]:
        plus = binding in {Binding.PYBIND11, Binding.NANOBIND} or file.endswith((*_CPP, ".hpp", ".hh", ".hxx"))
        return "C++" if plus else "C"


def _sorted(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    return tuple(sorted(dict.fromkeys(remarks), key=lambda each: (each.line, each.what)))
