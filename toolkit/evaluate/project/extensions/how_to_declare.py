"""How an extension module says that it does without the GIL, for each way to write one.

Sources: CPython's "C API Extension Support for Free Threading"; Cython 3.1, "Free threading"; pybind11 2.13 and 3.0,
"Free-threading support"; nanobind 2.2, "Free-threaded Python"; PyO3's guide and its migration guide (0.23, 0.28); CFFI
2.0's release notes; mypyc's emitmodule.py, which for free-threaded builds writes the slot by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.project.extensions.facts import Binding

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.project.extensions.facts import OwnExtensions, Source

MULTI_PHASE = "{Py_mod_gil, Py_MOD_GIL_NOT_USED} among the module's slots"
SINGLE_PHASE = ("PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED) in the init function, under #ifdef "
                "Py_GIL_DISABLED")
BY_ITSELF = "nothing: "   # how it begins where what builds the module declares it, or does not
HOW = {
    Binding.C_API: MULTI_PHASE,
    Binding.CYTHON: "# cython: freethreading_compatible = True before the first line of code, with Cython 3.1 or newer",
    Binding.PYBIND11: "py::mod_gil_not_used() as third argument of PYBIND11_MODULE, with pybind11 2.13 or newer",
    Binding.NANOBIND: "FREE_THREADED in nanobind_add_module, with nanobind 2.2 or newer",
    Binding.PYO3: "#[pymodule(gil_used = false)] with PyO3 0.23 to 0.27; 0.28 and newer do it by themselves",
    Binding.CFFI: f"{BY_ITSELF}build it with CFFI 2.0 or newer, on 3.14t or later and without py_limited_api",
    Binding.MYPYC: f"{BY_ITSELF}mypyc says it by itself on free-threaded builds; build it with a mypy of today",
}
UNKNOWN = "Py_MOD_GIL_NOT_USED, in the way of what builds it"


def how_to_declare(binding: Binding, *, single_phase: bool = False) -> str:
    """Return what is to be written, and where."""
    if binding is Binding.C_API and single_phase:
        return SINGLE_PHASE
    return HOW.get(binding, UNKNOWN)


def source_of(own: OwnExtensions, name: str) -> Source | None:
    """Return the source in which the module `name` says what it does without, as far as that can be told."""
    last = name.rpartition(".")[2]
    module = next((each for each in own.modules if each.name == name), None) or next(
        (each for each in own.modules if each.name.rpartition(".")[2] == last), None)
    if module is None and len(own.modules) == 1:
        module = own.modules[0]
    defining = [each for each in own.sources if each.defines]
    if module is not None:
        named = [each for each in defining if each.file in module.sources]
        defining = named or [each for each in defining if each.binding is module.binding]
    same = [each for each in defining if each.file.rpartition("/")[2].partition(".")[0] == last]
    return next(iter(same or (defining if len(defining) == 1 else [])), None)


def place_of(own: OwnExtensions, source: Source) -> str:
    """Return "file:line" of where the module that `source` makes says it: nanobind's is a word in its build."""
    module = next((each for each in own.modules if source.file in each.sources), None)
    if source.binding is Binding.NANOBIND and module is not None:
        return f"{module.file}:{module.line}"
    return f"{source.file}:{source.line}"


def binding_of_module(own: OwnExtensions, name: str) -> Binding:
    """Return how the module `name` is written; UNKNOWN where that cannot be told."""
    last = name.rpartition(".")[2]
    for each in own.modules:
        if each.name and each.name.rpartition(".")[2] == last:
            return each.binding
    if source := source_of(own, name):
        return source.binding
    kinds = {each.binding for each in own.modules}
    return kinds.pop() if len(kinds) == 1 else Binding.UNKNOWN
