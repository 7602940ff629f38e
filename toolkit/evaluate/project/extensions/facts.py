"""The nouns of a project's own extension modules: what its build names, what its sources do, what a build made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport, Finding


class Binding(StrEnum):
    """How an extension module is written; each has a way of its own to say that it does without the GIL."""

    C_API = "C API"
    CYTHON = "Cython"
    PYBIND11 = "pybind11"
    NANOBIND = "nanobind"
    PYO3 = "PyO3"
    CFFI = "CFFI"
    MYPYC = "mypyc"
    UNKNOWN = "not known"


Concern = Literal["state", "module state", "borrowed reference", "no lock", "unlocked write", "allocation", "interface"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """An extension module that the build's configuration names."""

    name: str                        # "pkg._speedups", or the last part of that; "": it is computed
    binding: Binding
    backend: str                     # what builds it: "setuptools", "meson-python"
    file: str                        # where it is named, relative to the project's root
    line: int
    sources: tuple[str, ...] = ()    # relative to the root, those that are named and there
    optional: bool = False           # the build goes on without it
    condition: str = ""              # that another system or interpreter fulfils: "sys.platform == 'win32'"
    question: str = ""               # that its script asks before, whose answer the build knows: "USE_CYTHON"
    variables: tuple[str, ...] = ()  # of the environment, that decide about it

    @property
    def place(self) -> str:
        """What stands for its name where that is computed."""
        return f"what {self.file}:{self.line} makes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A line that porting must look at."""

    line: int
    concern: Concern
    what: str                        # "PyDict_GetItem", "static PyObject *cache"
    instead: str = ""                # "PyDict_GetItemRef"; "" where it depends


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of an extension module."""

    file: str                        # relative to the root
    language: Literal["C", "C++", "Cython", "Rust", "Python"]
    binding: Binding
    defines: bool                    # it makes a module: the place for the declaration
    line: int                        # of that place; 1 otherwise
    declared: bool                   # it says there that the module does without the GIL
    declare: str                     # how that is said; "" where nothing has to be
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnExtensions:
    """What a project's files say of its own extension modules."""

    modules: tuple[Module, ...] = ()
    sources: tuple[Source, ...] = ()
    unsure: tuple[str, ...] = ()     # what may make more, one sentence each: it is seen when it is built
    left_out: int = 0                # sources that were not read: too many or too long
    limited: tuple[str, ...] = ()    # "file:line" of its build's settings that ask for the limited API

    @property
    def any(self) -> bool:
        """Whether the project has, or may have, extension modules of its own."""
        return bool(self.modules or self.unsure)

    @property
    def runs_uncompiled(self) -> bool:
        """Whether all of them are compiled from Python that runs as it stands, too, as for mypyc."""
        return bool(self.modules) and not self.unsure and all(
            each.binding is Binding.MYPYC or (each.binding is Binding.CYTHON and each.sources
                                              and all(file.endswith(".py") for file in each.sources))
            for each in self.modules)


NO_EXTENSIONS = OwnExtensions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbuilt:
    """An extension module that the configuration names and the build did not make."""

    name: str
    why: str                         # what the compiler said; "" when it was not tried
    elsewhere: str = ""              # the build with a GIL that has it; "": none has


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBuild:
    """What came of building and installing the project itself on one build."""

    build: str                       # label
    report: BuildReport | None = None   # the project itself, judged like a package; None: nothing was built
    failure: str = ""                # why nothing was built
    output: str = ""                 # the last lines of what built it, where something was not made
    elsewhere: str = ""              # the build with a GIL on which it can be built; "": none
    unbuilt: tuple[Unbuilt, ...] = ()

    @property
    def finding(self) -> Finding | None:
        """What its files and imports came to; None: nothing was built."""
        return self.report.findings[0] if self.report else None
