"""What one distribution is on one build.

The order of the checks is the order of what a user must deal with first.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.packages.installer import NO_VERSION, UNKNOWN
from gilscope.toolkit.evaluate.packages.judge.modules import (
    comparable,
    gil_users,
    loadable_nowhere,
    lost_modules,
    unread,
)
from gilscope.toolkit.evaluate.packages.judge.status import Status, Verdict

if TYPE_CHECKING:
    from gilscope.toolkit.evaluate.packages.facts import ImportRun, Seen

_NEWER = {"_zstd"}   # what the standard library of 3.14 has beyond that of the oldest Python that we run on


def judge(seen: Seen) -> Verdict:
    """Return what the distribution is on its build."""
    if seen.distribution is None:
        unknown = seen.missing.startswith((UNKNOWN, NO_VERSION))
        return Verdict(status=Status.NOT_FOUND if unknown else Status.NO_WHEEL, reasons=(seen.missing,))
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
        return Verdict(status=Status.LOST, reasons=("its compiled code: none of it is for this build",))
    if failed := _never_imported(seen):
        verdict = _fails(failed)
        return verdict if verdict.status is Status.INTERPRETER else Verdict(status=Status.UNKNOWN, reasons=tuple(
            f"{reason}; on the build with the GIL, too" for reason in failed))
    if unknown := _unknown(seen):
        return Verdict(status=Status.UNKNOWN, reasons=unknown)
    compiled = [each for each in (seen.distribution, seen.reference_distribution) if each and not each.pure]
    return Verdict(status=Status.READY if compiled else Status.PURE)


def _broken(seen: Seen, run: ImportRun) -> Verdict:
    reason = run.reason + run.place
    if seen.control and seen.control.kind == run.kind:
        return Verdict(status=Status.INTERPRETER, reasons=(
            f"{reason}; importing the standard library's modules alone does the same",))
    if seen.reference and seen.reference.kind == run.kind:
        reason += "; on the build with the GIL, too"
    status = {"crash": Status.CRASH, "hang": Status.HANG}.get(run.kind, Status.FAILS)
    return Verdict(status=status, reasons=(reason,))


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
    """Return whether the build with the GIL has libraries, or files of extension modules, and this one has none.

    The libraries are for ctypes; the extension modules cannot be loaded on this machine with the GIL either.
    """
    here, there = seen.distribution, seen.reference_distribution
    if here is None or there is None or here.version != there.version:
        return False
    return (here.pure and not there.pure) or bool(there.extensions and not here.extensions)


def _lost_reason(seen: Seen, name: str) -> str:
    assert seen.run is not None
    errors = {load.name: load.error for load in seen.run.loads if load.error} | dict(seen.run.failed)
    if name in errors:
        return f"{name}: {errors[name]}"
    has_file = seen.distribution and any(comparable(each) == comparable(name)
                                         for each, _ in seen.distribution.extensions)
    return (f"{name}: its file is there but the package does not load it" if has_file
            else f"{name}: not in the wheel of this build")


def _unknown(seen: Seen) -> tuple[str, ...]:
    """Return why extension files that were neither read nor loaded keep the distribution from being called ready."""
    nowhere = set(loadable_nowhere(seen))
    return tuple(f"{extension.name}: {extension.problem}" for extension in unread(seen)
                 if extension.name not in nowhere)


def _never_imported(seen: Seen) -> tuple[str, ...]:
    """Return the errors when nothing of the distribution could be imported, here or with the GIL."""
    if not seen.run or seen.run.imported:
        return ()
    return tuple(f"{name}: {error}" for name, error in _failed_roots(seen).items())
