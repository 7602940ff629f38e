"""Ask what a distribution does when it is imported in one environment, and again with the GIL off or in interpreters.

Packages and the project itself are asked alike; `judge` decides what the answers mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - `dataclass` reads the hints
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.imports import ImportRequest, import_run, interpreter_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gilscope.toolkit.evaluate.packages.evidence import Distribution, ImportRun, PackageEvidence

MOST_SWEPT = 150   # modules of a package; further ones rarely show anything new
BROKEN = {"crash", "hang"}
# The modules that packages import most, for a control run after a crash that left no list.
USUAL_STDLIB = ("asyncio", "collections", "ctypes", "datetime", "decimal", "hashlib", "json", "logging", "pickle",
                "random", "re", "socket", "ssl", "struct", "subprocess", "tempfile", "threading", "typing", "zlib")
NOT_A_CONTROL = {"antigravity", "idlelib", "this", "turtledemo", "__main__"}   # importing these has side effects


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """The modules that were imported of a distribution, and the result."""

    level: int         # index into the result of `levels`
    wanted: ImportRequest
    run: ImportRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    """Asks the distributions of one environment."""

    python: Path                 # of the environment
    free_threaded: bool
    interpreters: bool           # also try interpreters with their own GIL
    limit: float                 # seconds for the imports of one distribution
    path: tuple[str, ...] = ()   # folders to add to `sys.path`
    memo: Path | None = None     # see `children.asking.ask`

    def imported(self, found: Distribution, known: ImportOutcome | None = None) -> ImportOutcome:
        """Import a distribution: the modules that could be imported on the counterpart if that is `known`."""
        chosen = list(enumerate(levels(found)))
        if known:
            chosen = [chosen[known.level]]
        done = []
        for level, wanted in chosen:
            done.append(ImportOutcome(level, wanted, self._run(wanted)))
            if done[-1].run.kind == "done":
                return done[-1]
        return done[0]

    def asked_more(self, seen: PackageEvidence, wanted: ImportRequest) -> PackageEvidence:
        """Return `seen` with the further runs that it calls for: the GIL forced off, a control, interpreters."""
        run = seen.run
        if seen.distribution is None or run is None:
            return seen
        flipped = bool(run.gil_on) and self.free_threaded
        stdlib = ImportRequest(roots=_control_modules(seen))
        if flipped:
            seen = replace(seen, forced=self._run(wanted, force_off=True))
        if run.kind in BROKEN or flipped:
            seen = replace(seen, control=self._run(stdlib))
        if self.interpreters and run.kind == "done":
            runs = self._inside(wanted)
            control = self._inside(stdlib) if runs[-1].kind in BROKEN else ()
            seen = replace(seen, interpreters=runs, interpreters_control=control)
        return seen

    def _run(self, wanted: ImportRequest, *, force_off: bool = False) -> ImportRun:
        return import_run(self.python, wanted, path=self.path, limit=self.limit, force_off=force_off, memo=self.memo)

    def _inside(self, wanted: ImportRequest) -> tuple[ImportRun, ...]:
        return interpreter_runs(self.python, wanted, path=self.path, limit=self.limit, memo=self.memo)


def levels(found: Distribution) -> tuple[ImportRequest, ...]:
    """Return the modules to import: all of them, then fewer in case that fails.

    An inner module may start a server, or may only work when another module imports it.  If it also fails on the build
    with the GIL, it is left out on every build.
    """
    whole = ImportRequest(roots=found.modules, sweep=found.inner[:MOST_SWEPT] if found.extensions else (),
                          extensions=tuple(name for name, _ in found.extensions))
    return whole, replace(whole, sweep=()), ImportRequest(roots=whole.roots)


def _control_modules(seen: PackageEvidence) -> tuple[str, ...]:
    """Return the modules of the standard library that importing the package loaded, here or on the counterpart."""
    names = next((run.stdlib for run in (seen.run, seen.reference) if run and run.stdlib), USUAL_STDLIB)
    return control_modules(names)


def control_modules(names: Iterable[str]) -> tuple[str, ...]:
    """Return the modules that a control run may import, from those of the standard library that were loaded."""
    return tuple(name for name in names if name.partition(".")[0] not in NOT_A_CONTROL)
