"""The nouns of readiness: distributions, extension files, what importing them did; all plain and frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Gil = Literal["used", "not-used"]
Interpreters = Literal["none", "shared-gil", "own-gil"]
Part = Literal["roots", "sweep", "extensions"]   # the package; its other modules; an extension by its own name


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """A package as it is installed in one environment."""

    name: str                               # normalised: "pydantic-core"
    version: str
    modules: tuple[str, ...]                # what to import: top-level modules and packages
    inner: tuple[str, ...]                  # the modules inside them
    extensions: tuple[tuple[str, str], ...]  # module name and file
    tags: tuple[str, ...]                   # of the wheel it came from: "cp314-cp314t-manylinux_2_28_x86_64"
    pure: bool                              # its wheel has no compiled code
    requires: tuple[str, ...] = ()          # names of the distributions that it asks for, normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """What one extension file declares, read from its slots in the build that would load it."""

    name: str
    file: str
    init: str | None = None                 # "multi-phase", "single-phase", "export"; None: not known
    gil: Gil | None = None                  # None: not said, and the build has a GIL anyway; or not known
    interpreters: Interpreters | None = None
    creates: bool = False                   # makes its module object itself
    problem: str = ""                       # why nothing is known
    damaged: bool = False                   # its file is no whole shared library: no build loads it


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One place on the way from an import statement to an extension module."""

    module: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One extension module as it was loaded, or not."""

    name: str
    file: str
    gil: Gil | None                         # what the module object says; None on builds with a GIL
    flipped: bool                           # the GIL was off before and on after
    error: str | None
    part: Part                              # what was being imported
    chain: tuple[Step, ...]                 # outermost first
    swallowed: bool = False                 # it failed, and what asked for it was imported all the same
    asking: str = ""                        # the module that was being imported, as it was asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRun:
    """What one process or interpreter saw when it imported a package."""

    imported: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]     # module and error
    loads: tuple[Load, ...]
    kind: str                               # "done", or how the process ended before it was: "crash", "hang", "exit"
    reason: str                             # one line
    during: str                             # the module that was being imported or loaded then
    gil_on: bool | None                     # at the end; None: it did not get there
    stdlib: tuple[str, ...]                 # the standard library's modules that it loaded
    present: tuple[str, ...] = ()           # its extension modules that were there at the end, however they came
    output: str = ""                        # the last lines it printed, when it did not come to its end

    @property
    def loaded(self) -> frozenset[str]:
        """Names of the extension modules that were loaded."""
        return frozenset(load.name for load in self.loads if load.error is None) | frozenset(self.present)

    @property
    def place(self) -> str:
        """What was going on when the process ended; "" when that is not known."""
        if self.during == "ending":
            return " while ending"
        return f" while importing {self.during}" if self.during else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that is known of one distribution on one build."""

    distribution: Distribution | None        # None: could not be installed
    missing: str = ""                        # why not
    newer: str = ""                          # a version that has no wheel; what is there is the old one gone back to
    free_threaded: bool = True               # the build; on others the GIL is on whatever a module needs
    extensions: tuple[Extension, ...] = ()
    run: ImportRun | None = None             # as a program imports it
    forced: ImportRun | None = None          # with the GIL forced off, when it was turned on
    reference: ImportRun | None = None       # on the build of the same minor version that has a GIL
    reference_distribution: Distribution | None = None
    control: ImportRun | None = None         # the standard library alone, when something broke
    interpreters: tuple[ImportRun, ...] = ()
    interpreters_control: tuple[ImportRun, ...] = ()
