"""A project's own extension modules: what the build configuration names, what the sources do, what a build made.

Also how each kind of module declares that it can run without the GIL.  Sources for that: CPython's "C API Extension
Support for Free Threading"; Cython 3.1, "Free threading"; pybind11 2.13 and 3.0, "Free-threading support"; nanobind
2.2, "Free-threaded Python"; PyO3's guide and its migration guide (0.23, 0.28); CFFI 2.0's release notes; mypyc's
emitmodule.py, which writes the slot itself on free-threaded builds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from gilscope.toolkit.evaluate.packages.doctor import BuildReport  # noqa: TC001 - the cache reads the hints
from gilscope.toolkit.evaluate.sections import Missing, Place

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.doctor import Finding


class Binding(StrEnum):
    """The tool or interface that an extension module is written with; each has its own declaration for the GIL."""

    C_API = "C API"
    CYTHON = "Cython"
    PYBIND11 = "pybind11"
    NANOBIND = "nanobind"
    PYO3 = "PyO3"
    CFFI = "CFFI"
    MYPYC = "mypyc"
    UNKNOWN = "not known"

    @property
    def declared_by_build(self) -> bool:
        """Return True if the tool that builds the module declares it, so that nothing is written into a source."""
        return self in {Binding.CFFI, Binding.MYPYC}


Concern = Literal["state", "lazy cache", "module state", "borrowed reference", "no lock", "unlocked write",
                  "allocation", "interface", "not read"]
# What is safe only with the GIL.  Reading the source shows no run in which it does harm, so whether it does is unknown.
UNGUARDED: frozenset[Concern] = frozenset({
    "state", "lazy cache", "module state", "borrowed reference", "no lock", "unlocked write"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionModule:
    """An extension module that the build configuration names."""

    name: str                        # "pkg._speedups", or only its last part; "" if the configuration computes it
    binding: Binding
    backend: str                     # the tool that builds it: "setuptools", "meson-python"
    file: str                        # the configuration file that names it, relative to the project's root
    line: int                        # in that file
    sources: tuple[str, ...] = ()    # existing files that the configuration names, relative to the root
    optional: bool = False           # the build succeeds without it
    condition: str = ""              # only built where this holds, and it does not here: "sys.platform == 'win32'"
    question: str = ""               # only built where this holds, known at build time: "USE_CYTHON"
    variables: tuple[str, ...] = ()  # environment variables that decide `question`
    flags: tuple[str, ...] = ()      # for the preprocessor, as far as constants give them: "-DNAME=1", "-UNAME"
    possible: tuple[str, ...] = ()   # others that the script may give, as it computes them: each may be there or not

    @property
    def stand_in(self) -> str:
        """A stand-in for a name that the configuration computes."""
        return f"the module made by {self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line of source code to review when porting."""

    line: int
    concern: Concern
    what: str                        # "PyDict_GetItem", "static PyObject *cache"
    instead: str = ""                # "PyDict_GetItemRef"; "" if there is no single replacement

    @property
    def unguarded(self) -> bool:
        """True if only the GIL is known to make it safe."""
        return self.concern in UNGUARDED


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionSource:
    """A source file of an extension module."""

    file: str                        # relative to the root
    language: Literal["C", "C++", "Cython", "Rust", "Python"]
    binding: Binding
    defines: bool                    # it defines the module, so the declaration belongs here
    line: int                        # of the definition; 1 if it defines none
    declared: bool                   # it declares that the module can run without the GIL
    declare: str                     # how to declare that; "" if no declaration is needed
    remarks: tuple[Remark, ...] = ()
    vendored: bool = False           # a copy of another project's file: "pythoncapi_compat.h"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnExtensions:
    """The extension modules that a project's files describe."""

    modules: tuple[ExtensionModule, ...] = ()
    sources: tuple[ExtensionSource, ...] = ()
    unsure: tuple[str, ...] = ()     # one sentence for each thing that may make more modules when it is built
    left_out: int = 0                # number of sources not read because there are too many
    limited: tuple[Place, ...] = ()  # build settings that request the limited API
    read_for: str = ""               # the build whose compiler decided which branches of `#if` count; "": all do
    cut: Missing | None = None       # why the sources were not read, or not to the end

    @property
    def any(self) -> bool:
        """True if the project has, or may have, extension modules of its own."""
        return bool(self.modules or self.unsure)

    @property
    def runs_uncompiled(self) -> bool:
        """True if every module is compiled from Python code that also runs uncompiled, as mypyc's does."""
        return bool(self.modules) and not self.unsure and all(
            each.binding is Binding.MYPYC or (each.binding is Binding.CYTHON and each.sources
                                              and all(file.endswith(".py") for file in each.sources))
            for each in self.modules)


NO_EXTENSIONS = OwnExtensions()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnbuiltModule:
    """An extension module that the configuration names and the build did not make."""

    name: str                        # or `ExtensionModule.stand_in`
    why: str                         # the compiler's message; "" if the build did not try
    place: Place | None = None       # where compiling stopped; None where it was in no file of the project
    elsewhere: str = ""              # the build with a GIL that made the module; "" if none did
    nameless: bool = False           # the configuration computes its name


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBuild:
    """The result of building and installing the project itself for one build of Python."""

    build: str                       # label
    report: BuildReport | None = None   # the project judged like a package; None if nothing was built
    failure: Missing | None = None   # why nothing was built
    output: str = ""                 # last lines of the build's output if something was not made
    elsewhere: str = ""              # the build with a GIL where the project builds; "" if none
    unbuilt: tuple[UnbuiltModule, ...] = ()
    names_limited_api: bool = False  # what the build says about a module that is made elsewhere names the limited API

    @property
    def finding(self) -> Finding | None:
        """The finding for the project's files and imports; None if nothing was built."""
        return self.report.findings[0] if self.report else None


MULTI_PHASE = "{Py_mod_gil, Py_MOD_GIL_NOT_USED} among the module's slots"
SINGLE_PHASE = ("PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED) in the init function, under #ifdef "
                "Py_GIL_DISABLED")
HOW = {
    Binding.C_API: MULTI_PHASE,
    Binding.CYTHON: "# cython: freethreading_compatible = True before the first line of code, with Cython 3.1 or newer",
    Binding.PYBIND11: "py::mod_gil_not_used() as third argument of PYBIND11_MODULE, with pybind11 2.13 or newer",
    Binding.NANOBIND: "FREE_THREADED in nanobind_add_module, with nanobind 2.2 or newer",
    Binding.PYO3: "#[pymodule(gil_used = false)] with PyO3 0.23 to 0.27; 0.28 and newer declare it by default",
    Binding.CFFI: "build it with CFFI 2.0 or newer, on 3.14t or later and without py_limited_api",
    Binding.MYPYC: "mypyc declares it by default on free-threaded builds; build with a current mypy",
}
UNKNOWN = "Py_MOD_GIL_NOT_USED, in the form that its build tool uses"


def how_to_declare(binding: Binding, *, single_phase: bool = False) -> str:
    """Return the declaration to write, and where it belongs."""
    if binding is Binding.C_API and single_phase:
        return SINGLE_PHASE
    return HOW.get(binding, UNKNOWN)


def source_of(own: OwnExtensions, name: str) -> ExtensionSource | None:
    """Return the source where the module `name` declares how it uses the GIL; None if that cannot be determined."""
    last = name.rpartition(".")[2]
    module = next((each for each in own.modules if each.name == name), None) or next(
        (each for each in own.modules if each.name.rpartition(".")[2] == last), None)
    if module is None and len(own.modules) == 1:
        module = own.modules[0]
    defining = [each for each in own.sources if each.defines]
    if module is not None:
        named = [each for each in defining if each.file in module.sources]
        alike = [each for each in defining if each.binding is module.binding]
        # Of a module whose sources are computed, the binding is a guess.
        defining = named or alike or ([] if module.sources else defining)
    same = [each for each in defining if each.file.rpartition("/")[2].partition(".")[0] == last]
    return next(iter(same or (defining if len(defining) == 1 else [])), None)


def place_of(own: OwnExtensions, source: ExtensionSource) -> Place:
    """Return the place of the declaration for the module in `source`; nanobind's is in the build configuration."""
    module = next((each for each in own.modules if source.file in each.sources), None)
    if source.binding is Binding.NANOBIND and module is not None:
        return Place(file=module.file, line=module.line)
    return Place(file=source.file, line=source.line)


def binding_of_module(own: OwnExtensions, name: str) -> Binding:
    """Return the binding of the module `name`; UNKNOWN if it cannot be determined."""
    last = name.rpartition(".")[2]
    for each in own.modules:
        if each.name and each.name.rpartition(".")[2] == last:
            return each.binding
    if source := source_of(own, name):
        return source.binding
    kinds = {each.binding for each in own.modules}
    return kinds.pop() if len(kinds) == 1 else Binding.UNKNOWN
