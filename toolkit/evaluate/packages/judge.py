"""From what was seen to what it is called: one distribution on one build.  Pure: nothing here starts or reads anything.

The order of the checks is the order of what a user must deal with first.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:

    from gilscope.toolkit.evaluate.packages.facts import Distribution, Extension, ImportRun, Load

# mypyc names the module of a whole package after a hash of its sources.
_MYPYC = re.compile(r"\b[0-9a-f]{20}__mypyc$")
# What CPython says of an extension module that an interpreter with its own GIL cannot load.
REFUSED = re.compile(r"module (\S+) does not support loading in subinterpreters")

_NEWER = {"_zstd"}   # what the standard library of 3.14 has beyond that of the oldest Python that we run on


class Status(StrEnum):
    """What a distribution is on a build."""

    READY = "ready"              # what it loads does without the GIL, and it has all its C code
    PURE = "pure Python"         # on the build with the GIL, too
    GIL = "turns the GIL on"
    LOST = "loses its C code"
    NO_WHEEL = "no wheel"
    CRASH = "crashes"
    HANG = "hangs"
    FAILS = "cannot be imported"
    UNKNOWN = "unknown"          # an extension file that cannot be read and was not loaded: never called ready
    INTERPRETER = "interpreter at fault"   # the standard library alone does the same

    @property
    def blocks(self) -> bool:
        """Whether a program that needs the distribution is held up by it."""
        return self in {Status.GIL, Status.LOST, Status.NO_WHEEL, Status.CRASH, Status.HANG, Status.FAILS}

    @property
    def mends(self) -> bool:
        """Whether another version that is this is a way out; one of which that is not known is none."""
        return self in {Status.READY, Status.PURE}


class InterpreterStatus(StrEnum):
    """What a distribution does in interpreters that have their own GIL."""

    OK = "ok"
    LOST = "loses its C code"
    FAILS = "ImportError"
    CRASH = "crashes"
    HANG = "hangs"
    UNKNOWN = "not known"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What it is called, and why: one sentence each."""

    status: Status
    reasons: tuple[str, ...] = ()


def judge(seen: Seen) -> Verdict:
    """Return what the distribution is on its build."""
    if seen.distribution is None:
        return Verdict(status=Status.NO_WHEEL, reasons=(seen.missing,))
    if seen.newer:
        return Verdict(status=Status.NO_WHEEL, reasons=(
            f"{seen.newer} has none; the installer went back to {seen.distribution.version}, which is pure Python",))
    run = seen.run
    if run and run.kind in {"crash", "hang", "exit", "starting"}:
        return _broken(seen, run)
    if failed := _failed(seen):
        return _fails(failed)
    if culprits := gil_users(seen):
        return _gil(seen, culprits)
    return _whole(seen)


def _whole(seen: Seen) -> Verdict:
    """Judge what imports and leaves the GIL off."""
    if lost := lost_modules(seen):
        return Verdict(status=Status.LOST, reasons=tuple(_lost_reason(seen, name) for name in lost))
    if _lost_libraries(seen):
        return Verdict(status=Status.LOST, reasons=("its compiled code: not in the wheel of this build",))
    if failed := _never_imported(seen):
        verdict = _fails(failed)
        return verdict if verdict.status is Status.INTERPRETER else Verdict(status=Status.UNKNOWN, reasons=tuple(
            f"{reason}; on the build with the GIL, too" for reason in failed))
    if unknown := _unknown(seen):
        return Verdict(status=Status.UNKNOWN, reasons=unknown)
    compiled = [each for each in (seen.distribution, seen.reference_distribution) if each and not each.pure]
    return Verdict(status=Status.READY if compiled else Status.PURE)


def gil_users(seen: Seen) -> dict[str, str]:
    """Return the distribution's modules that need the GIL, and how that is known: "import", "hook" or both."""
    if not seen.free_threaded:
        return {}
    by_import = {load.name for run in (seen.run, seen.forced) if run for load in run.loads
                 if load.gil == "used" and load.error is None and owns(seen.distribution, load)}
    by_hook = {extension.name for extension in seen.extensions if extension.gil == "used"}
    return {name: " and ".join(how for how, names in (("hook", by_hook), ("import", by_import)) if name in names)
            for name in sorted(by_hook | by_import)}


def lost_modules(seen: Seen) -> tuple[str, ...]:
    """Return the extension modules that were loaded on the build with the GIL but not here.

    One that the package itself loads there must be loaded by the package here: that it could be does not help.
    """
    if seen.reference is None or seen.run is None or seen.reference_distribution is None:
        return ()
    owned = {name for name, _ in seen.reference_distribution.extensions}
    here, unused = ({_comparable(name) for name in names} for names in (seen.run.loaded, only_by_name(seen.run)))
    by_itself = seen.reference.loaded - only_by_name(seen.reference)
    return tuple(sorted(name for name in seen.reference.loaded & owned if _comparable(name) not in here
                        or (name in by_itself and _comparable(name) in unused)))


def only_by_name(run: ImportRun) -> set[str]:
    """Return what was loaded as somebody asked for that very module and the package did not."""
    loads = [load for load in run.loads if load.error is None]
    return ({load.name for load in loads if load.part == "extensions"}
            - {load.name for load in loads if load.part != "extensions"})


def refusal_in(output: str) -> str:
    """Return which extension modules interpreters refused, by the tracebacks that a process printed; "": none.

    A package that cannot do without says something else: "Unable to import required dependency numpy".
    """
    names = list(dict.fromkeys(REFUSED.findall(output)))
    does = "does" if len(names) == 1 else "do"
    return f"{', '.join(names)} {does} not support loading in subinterpreters" if names else ""


def _broken(seen: Seen, run: ImportRun) -> Verdict:
    reason = run.reason + place_of(run)
    if seen.control and seen.control.kind == run.kind:
        return Verdict(status=Status.INTERPRETER, reasons=(
            f"{reason}; importing the standard library's modules alone does the same",))
    if seen.reference and seen.reference.kind == run.kind:
        reason += "; on the build with the GIL, too"
    status = {"crash": Status.CRASH, "hang": Status.HANG}.get(run.kind, Status.FAILS)
    return Verdict(status=status, reasons=(reason,))


def place_of(run: ImportRun) -> str:
    """Return what was going on when a process ended; "" when that is not known."""
    if run.during == "ending":
        return " while ending"
    return f" while importing {run.during}" if run.during else ""


def _failed(seen: Seen) -> tuple[str, ...]:
    """Return the roots that fail here and not on the build with the GIL; without one, all of them when all fail."""
    failed = _failed_roots(seen)
    if seen.reference:
        elsewhere = {name for name, _ in seen.reference.failed}
        failed = {name: error for name, error in failed.items() if name not in elsewhere}
    elif seen.distribution and set(failed) != set(seen.distribution.modules):
        failed = {}   # one may need what was never installed
    return tuple(f"{name}: {error}" for name, error in failed.items())


def _fails(failed: tuple[str, ...]) -> Verdict:
    if all(_lacks_stdlib(reason) for reason in failed):
        return Verdict(status=Status.INTERPRETER, reasons=tuple(
            f"{reason}; this build lacks that part of the standard library" for reason in failed))
    return Verdict(status=Status.FAILS, reasons=failed)


def _lacks_stdlib(reason: str) -> bool:
    """Return whether an import failed as the interpreter was built without a library: `_sqlite3`, `_ctypes`, `zlib`."""
    told = re.search(r"No module named '(_\w+|zlib|readline)'$", reason)
    return told is not None and told[1] in sys.stdlib_module_names | _NEWER


def _failed_roots(seen: Seen) -> dict[str, str]:
    if not seen.run or not seen.distribution:
        return {}
    return {name: error for name, error in seen.run.failed if name in seen.distribution.modules}


def _gil(seen: Seen, culprits: dict[str, str]) -> Verdict:
    if seen.control and seen.control.gil_on and not any("hook" in how for how in culprits.values()):
        return Verdict(status=Status.INTERPRETER, reasons=("the standard library alone turns the GIL on",))
    return Verdict(status=Status.GIL, reasons=tuple(f"{name} needs the GIL (seen by {how})"
                                                    for name, how in culprits.items()))


def _lost_libraries(seen: Seen) -> bool:
    """Return whether the wheel of the build with the GIL has libraries, and the one here has none.

    They are for ctypes, or extension modules that cannot be loaded on this machine with the GIL either.
    """
    here, there = seen.distribution, seen.reference_distribution
    return bool(here and there and here.pure and not there.pure and here.version == there.version)


def _lost_reason(seen: Seen, name: str) -> str:
    assert seen.run is not None
    errors = {load.name: load.error for load in seen.run.loads if load.error} | dict(seen.run.failed)
    if name in errors:
        return f"{name}: {errors[name]}"
    has_file = seen.distribution and any(_comparable(each) == _comparable(name)
                                         for each, _ in seen.distribution.extensions)
    return (f"{name}: its file is there but the package does not load it" if has_file
            else f"{name}: not in the wheel of this build")


def _unknown(seen: Seen) -> tuple[str, ...]:
    """Return why extension files that were neither read nor loaded keep the distribution from being called ready."""
    nowhere = set(loadable_nowhere(seen))
    return tuple(f"{extension.name}: {extension.problem}" for extension in _unread(seen)
                 if extension.name not in nowhere)


def loadable_nowhere(seen: Seen) -> tuple[str, ...]:
    """Return extension modules that nothing is known of, as they fail here and with the GIL: a library is missing.

    No program on this machine can load them, so they do not keep the distribution from being ready here.
    """
    if not seen.run or not seen.reference:
        return ()
    failed = {name for name, _ in seen.run.failed} & {name for name, _ in seen.reference.failed}
    return tuple(extension.name for extension in _unread(seen) if extension.name in failed)


def _unread(seen: Seen) -> list[Extension]:
    loaded = seen.run.loaded if seen.run else frozenset()
    return [each for each in seen.extensions if each.problem and each.name not in loaded]


def _never_imported(seen: Seen) -> tuple[str, ...]:
    """Return the errors when nothing of the distribution could be imported, here or with the GIL."""
    if not seen.run or seen.run.imported:
        return ()
    return tuple(f"{name}: {error}" for name, error in _failed_roots(seen).items())


def owns(distribution: Distribution | None, load: Load) -> bool:
    """Return whether what was loaded belongs to the distribution."""
    return distribution is not None and any(load.name == name or load.file == file
                                            for name, file in distribution.extensions)


def _comparable(name: str) -> str:
    return _MYPYC.sub("__mypyc", name)
