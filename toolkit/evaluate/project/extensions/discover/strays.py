"""Sources that make extension modules although no configuration names one: a script of the project builds them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Binding, Module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gilscope.toolkit.evaluate.project.extensions.discover.files import Files

_MAKES = {
    (".c", ".cc", ".cpp", ".cxx"): re.compile(
        r"\bPyMODINIT_FUNC\s+(?P<c>PyInit_\w+|PyModExport_\w+)|\bPYBIND11_MODULE\s*\(|\bNB_MODULE\s*\("),
    (".rs",): re.compile(r"#\[\s*(?:pyo3::)?pymodule\b"),
}
# C, C++, Rust, Fortran, CUDA, Go, Zig, D, Nim; interfaces of SWIG, SIP and f2py.
_COMPILED = (".c", ".cc", ".cpp", ".cxx", ".rs", ".f", ".f90", ".pyf", ".cu", ".go", ".zig", ".d", ".nim", ".i", ".sip")


def stray_modules(files: Files) -> Iterator[Module]:
    """Yield the sources below the root that make an extension module, by what they say themselves."""
    for suffixes, makes in _MAKES.items():
        for file in files.ending(*suffixes):
            if found := makes.search(files.text(file) or ""):
                yield _module(file, Binding.PYO3 if file.endswith(".rs") else _binding(found[0]))
    for file in files.ending(".pyx"):
        yield _module(file, Binding.CYTHON)


def compiled_sources(files: Files) -> list[str]:
    """Return the files that some compiler may make a module of; whether it does is seen when the project is built."""
    return files.ending(*_COMPILED)


def _binding(text: str) -> Binding:
    if text.startswith("PYBIND11"):
        return Binding.PYBIND11
    return Binding.NANOBIND if text.startswith("NB_") else Binding.C_API


def _module(file: str, binding: Binding) -> Module:
    return Module(name="", binding=binding, backend="no build that is known", file=file, line=1, sources=(file,))
