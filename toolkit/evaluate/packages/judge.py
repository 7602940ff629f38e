"""Judge a package on one build, and in interpreters with their own GIL, from the evidence.  Pure."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.evidence import InterpreterReason, InterpreterStatus, PackageVerdict, Status
from gilscope.toolkit.measure.child.refusal import REFUSAL
from gilscope.toolkit.units import inflect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.children.asking import EndingKind
    from gilscope.toolkit.evaluate.packages.evidence import (
        Distribution,
        Extension,
        ExtensionLoad,
        ImportRun,
        PackageEvidence,
    )

_NEWER = {"_zstd"}   # modules of newer standard libraries that the oldest Python we run on does not know


def judge_package(seen: PackageEvidence) -> PackageVerdict:
    """Return the status of the distribution on its build."""
    if seen.distribution is None:
        assert seen.missing is not None
        status = Status.NOT_FOUND if seen.missing.not_found else Status.NO_WHEEL
        return PackageVerdict(status=status, reasons=(str(seen.missing),))
    if seen.newer:
        return PackageVerdict(status=Status.NO_WHEEL, reasons=(
            f"{seen.newer} has no wheel; the installer went back to the pure Python of {seen.distribution.version}",))
    run = seen.run
    if run and run.kind in {"crash", "hang", "exit", "starting"}:
        return _broken(seen, run)
    if failed := _failed(seen):
        return _fails(failed)
    if culprits := gil_users(seen):
        return _gil(seen, culprits)
    return _whole(seen)


def _whole(seen: PackageEvidence) -> PackageVerdict:
    """Judge a package that imports and leaves the GIL off."""
    if lost := lost_modules(seen):
        return PackageVerdict(status=Status.LOST, reasons=tuple(_lost_reason(seen, name) for name in lost))
    if _lost_libraries(seen):
        return PackageVerdict(status=Status.LOST, reasons=("its compiled code: none of it is for this build",))
    if failed := _never_imported(seen):
        verdict = _fails(failed)
        return verdict if verdict.status is Status.INTERPRETER else PackageVerdict(status=Status.UNKNOWN, reasons=tuple(
            f"{reason}; on the build with the GIL, too" for reason in _texts(failed)))
    if unknown := _unknown(seen):
        return PackageVerdict(status=Status.UNKNOWN, reasons=unknown)
    compiled = [each for each in (seen.distribution, seen.reference_distribution) if each and not each.pure]
    return PackageVerdict(status=Status.READY if compiled else Status.PURE)


def _broken(seen: PackageEvidence, run: ImportRun) -> PackageVerdict:
    reason = run.reason + run.place
    if seen.control and seen.control.kind == run.kind:
        return PackageVerdict(status=Status.INTERPRETER, reasons=(
            f"{reason}; importing the standard library's modules alone does the same",))
    if seen.reference and seen.reference.kind == run.kind:
        reason += "; on the build with the GIL, too"
    elif run.kind == "crash":
        reason += _tag_reason(seen)
    status = {"crash": Status.CRASH, "hang": Status.HANG}.get(run.kind, Status.FAILS)
    return PackageVerdict(status=status, reasons=(reason,))


def _tag_reason(seen: PackageEvidence) -> str:
    """Return that the wheel's tags let a build install it whose ABI its extension modules do not have, or ""."""
    here, there = seen.distribution, seen.reference_distribution
    tags = [tag.split("-", 2) for tag in here.tags] if here and there and here.tags == there.tags else []
    tag = next((f"{python}-{abi}" for python, abi, platform in tags if abi == "none" and platform != "any"), "")
    own = {name for name, _ in here.extensions} if here else set()
    # No extension module of a tag without an ABI can be for both: their objects have other layouts (PEP 703).
    if not tag or not seen.free_threaded or not seen.reference or not own & seen.reference.loaded:
        return ""
    return (f": its wheel is tagged {tag}, so builds without a GIL take it, but its extension modules are compiled for "
            "the build with the GIL")


def _failed(seen: PackageEvidence) -> dict[str, str]:
    """Return the errors of the roots that fail here and not with the GIL.

    Without a counterpart, those of all roots if all of them fail.
    """
    failed = _failed_roots(seen)
    if seen.reference:
        elsewhere = {name for name, _ in seen.reference.failed}
        failed = {name: error for name, error in failed.items() if name not in elsewhere}
    elif seen.distribution and set(failed) != set(seen.distribution.modules):
        failed = {}   # one of them may need a package that was never installed
    return failed


def _fails(failed: Mapping[str, str]) -> PackageVerdict:
    reasons = _texts(failed)
    if all(map(_lacks_stdlib, failed.values())):
        return PackageVerdict(status=Status.INTERPRETER, reasons=tuple(
            f"{reason}; this build lacks that part of the standard library" for reason in reasons))
    return PackageVerdict(status=Status.FAILS, reasons=reasons)


def _texts(failed: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}: {error}" for name, error in failed.items())


def _lacks_stdlib(error: str) -> bool:
    """Return True if an import failed because Python was built without a library: `_sqlite3`, `_ctypes`, `zlib`."""
    told = re.search(r"No module named '(_\w+|zlib|readline)'$", error)
    return told is not None and told[1] in sys.stdlib_module_names | _NEWER


def _failed_roots(seen: PackageEvidence) -> dict[str, str]:
    if not seen.run or not seen.distribution:
        return {}
    return {name: error for name, error in seen.run.failed if name in seen.distribution.modules}


def _gil(seen: PackageEvidence, culprits: dict[str, str]) -> PackageVerdict:
    if seen.control and seen.control.gil_on and not any(each.gil == "used" for each in seen.extensions):
        return PackageVerdict(status=Status.INTERPRETER, reasons=("the standard library alone turns the GIL on",))
    return PackageVerdict(status=Status.GIL, reasons=tuple(f"{name} needs the GIL (seen by {how})"
                                                           for name, how in culprits.items()))


def _lost_libraries(seen: PackageEvidence) -> bool:
    """Return True if the build with the GIL has libraries or extension modules, and this one has none.

    The libraries are for ctypes; the extension modules are some that this machine cannot load with the GIL either.
    """
    here, there = seen.distribution, seen.reference_distribution
    if here is None or there is None or here.version != there.version:
        return False
    return (here.pure and not there.pure) or bool(there.extensions and not here.extensions)


def _lost_reason(seen: PackageEvidence, name: str) -> str:
    assert seen.run is not None
    errors = {load.name: load.error for load in seen.run.loads if load.error} | dict(seen.run.failed)
    if name in errors:
        return f"{name}: {errors[name]}"
    has_file = seen.distribution and any(comparable(each) == comparable(name)
                                         for each, _ in seen.distribution.extensions)
    return (f"{name}: its file is there but the package does not load it" if has_file
            else f"{name}: not in the wheel of this build")


def _unknown(seen: PackageEvidence) -> tuple[str, ...]:
    """Return why extension files that were neither read nor loaded keep the distribution from being ready."""
    nowhere = set(loadable_nowhere(seen))
    return tuple(f"{extension.name}: {extension.problem}" for extension in unread(seen)
                 if extension.name not in nowhere)


def _never_imported(seen: PackageEvidence) -> dict[str, str]:
    """Return the errors if nothing of the distribution could be imported, here or with the GIL."""
    if not seen.run or seen.run.imported:
        return {}
    return _failed_roots(seen)


def refusal_in(output: str) -> str:
    """Return a clause with the extension modules that interpreters refused, from a process's output; "" if none.

    A package that needs the module often raises an error of its own: "Unable to import required dependency numpy".
    """
    names = list(dict.fromkeys(REFUSAL.findall(output)))
    does = inflect(len(names), "does", "do")
    return f"{', '.join(names)} {does} not support loading in subinterpreters" if names else ""


def judge_interpreters(seen: PackageEvidence) -> tuple[InterpreterStatus, tuple[InterpreterReason, ...]]:
    """Return the status of the distribution in interpreters with their own GIL, and the reasons.

    Failures that the standard library alone has, too, do not count against it.
    """
    if not seen.interpreters or seen.run is None or not seen.run.imported or seen.newer:
        return InterpreterStatus.UNKNOWN, ()   # not tried, or not importable anywhere
    first, last = seen.interpreters[0], seen.interpreters[-1]
    if last.kind in {"crash", "hang"} and not _control_same(last.kind, seen.interpreters_control):
        status = InterpreterStatus.CRASH if last.kind == "crash" else InterpreterStatus.HANG
        return status, (InterpreterReason(f"{last.reason} in interpreter {len(seen.interpreters)}{last.place}"),)
    if first.kind != "done" and not first.imported and not first.failed:
        return InterpreterStatus.UNKNOWN, (
            InterpreterReason(f"{first.reason or 'no answer'}; the standard library alone does the same"),)
    if failed := _failing_modules(seen, first):
        if refused := _library_refuses(first):
            return _by_slots(seen, refused)
        return InterpreterStatus.FAILS, failed
    return _interpreters_lost(seen, first)


def _library_refuses(run: ImportRun) -> list[str]:
    """Return the modules of the standard library that an interpreter refused, if it refused no others, as on 3.12."""
    refused = {load.name for load in run.loads if REFUSAL.search(load.error or "")}
    return sorted(refused) if all(name.partition(".")[0] in sys.stdlib_module_names for name in refused) else []


def _by_slots(seen: PackageEvidence, refused: list[str]) -> tuple[InterpreterStatus, tuple[InterpreterReason, ...]]:
    """Judge by the declarations of its own files what could not be tried because the standard library stops it."""
    own = [each.name for each in seen.extensions if each.interpreters in {"none", "shared-gil"}]
    if own:
        return InterpreterStatus.FAILS, tuple(
            InterpreterReason(f"{name}: module {name} does not support loading in subinterpreters, as its slots say",
                              refused=name) for name in own)
    return InterpreterStatus.UNKNOWN, (
        InterpreterReason(f"the standard library's own {', '.join(refused)} cannot be loaded there"),)


def _failing_modules(seen: PackageEvidence, first: ImportRun) -> tuple[InterpreterReason, ...]:
    """Return the modules whose failure makes the package fail: a root, or more than half of the inner modules.

    A single inner module may belong to a back end that is not in use.
    """
    if seen.distribution is None or seen.run is None:
        return ()
    failed = {name: error for name, error in first.failed if name in seen.run.imported}
    roots = [name for name in seen.distribution.modules if name in failed]
    inner = [name for name in seen.distribution.inner if name in seen.run.imported]
    inner_failed = [name for name in inner if name in failed]
    if not roots and len(inner_failed) * 2 <= len(inner):
        return ()
    return tuple(_reason(name, _cause(first, name, failed[name])) for name in roots or inner_failed)


def _reason(name: str, error: str) -> InterpreterReason:
    refused = REFUSAL.search(error)
    return InterpreterReason(f"{name}: {error}", refused=refused[1] if refused else "")


def _cause(run: ImportRun, name: str, error: str) -> str:
    """Return the error of a module with the extension module that caused it, which packages often hide.

    The last load that failed is the cause: the package coped with the earlier ones.
    """
    missed = [load for load in run.loads if load.error and any(step.module == name for step in load.chain)]
    if not missed or any(load.error == error for load in missed):
        return error
    return f"{missed[-1].name}: {missed[-1].error}"


def _interpreters_lost(seen: PackageEvidence, first: ImportRun) -> tuple[InterpreterStatus,
                                                                         tuple[InterpreterReason, ...]]:
    assert seen.run is not None
    owned = [load for load in seen.run.loads if load.error is None and owns(seen.distribution, load)]
    missed = only_by_name(first) - only_by_name(seen.run)
    lost = [load for load in owned if load.name not in first.loaded or load.name in missed]
    if not lost:
        return InterpreterStatus.OK, ()
    errors = {load.name: load.error for load in first.loads if load.error}
    reasons = tuple(_reason(load.name, errors.get(load.name) or "not loaded by the package") for load in lost)
    # If no module of the package works without it, its users get the error.
    tried = {load.name for load in first.loads}
    never = {load.name for load in lost if load.name not in tried and load.asking in first.imported}
    replaced = {load.name for load in first.loads if load.swallowed} | missed | never
    return (InterpreterStatus.FAILS if replaced.isdisjoint(load.name for load in lost) else InterpreterStatus.LOST,
            reasons)


def _control_same(kind: EndingKind, control: Sequence[ImportRun]) -> bool:
    return bool(control) and control[-1].kind == kind


# mypyc names the module of a whole package after a hash of its sources.
_MYPYC = re.compile(r"\b[0-9a-f]{20}__mypyc$")


def gil_users(seen: PackageEvidence) -> dict[str, str]:
    """Return the modules that need the GIL, and how that is known: "import", "hook" or both."""
    if not seen.free_threaded:
        return {}
    by_import = {load.name for run in (seen.run, seen.forced) if run for load in run.loads
                 if load.gil == "used" and load.error is None and owns(seen.distribution, load)}
    by_hook = {extension.name for extension in seen.extensions if extension.gil == "used"}
    return {name: " and ".join(how for how, names in (("hook", by_hook), ("import", by_import)) if name in names)
            for name in sorted(by_hook | by_import)}


def lost_modules(seen: PackageEvidence) -> tuple[str, ...]:
    """Return the extension modules that were loaded on the build with the GIL but not here.

    A module that the package itself loads there must be loaded by the package here; being loadable is not enough.
    """
    if seen.reference is None or seen.run is None or seen.reference_distribution is None:
        return ()
    owned = {name for name, _ in seen.reference_distribution.extensions}
    here, unused = ({comparable(name) for name in names} for names in (seen.run.loaded, only_by_name(seen.run)))
    by_itself = seen.reference.loaded - only_by_name(seen.reference)
    return tuple(sorted(name for name in seen.reference.loaded & owned if comparable(name) not in here
                        or (name in by_itself and comparable(name) in unused)))


def only_by_name(run: ImportRun) -> set[str]:
    """Return the modules that were loaded by their own name only, not by the package."""
    loads = [load for load in run.loads if load.error is None]
    return ({load.name for load in loads if load.part == "extensions"}
            - {load.name for load in loads if load.part != "extensions"})


def loadable_nowhere(seen: PackageEvidence) -> tuple[str, ...]:
    """Return extension modules that fail to load both here and with the GIL because a library is missing.

    No program on this machine can load them, so they do not keep the distribution from being ready.  A damaged file
    does not count, because its contents are unknown.
    """
    if not seen.run or not seen.reference:
        return ()
    failed = {name for name, _ in seen.run.failed} & {name for name, _ in seen.reference.failed}
    return tuple(extension.name for extension in unread(seen)
                 if extension.name in failed and not extension.damaged)


def unread(seen: PackageEvidence) -> list[Extension]:
    """Return the extension modules that were neither read nor loaded."""
    loaded = seen.run.loaded if seen.run else frozenset()
    return [each for each in seen.extensions if each.problem and each.name not in loaded]


def owns(distribution: Distribution | None, load: ExtensionLoad) -> bool:
    """Return True if a loaded module belongs to the distribution."""
    return distribution is not None and any(load.name == name or load.file == file
                                            for name, file in distribution.extensions)


def comparable(name: str) -> str:
    """Return a name for a module that is the same in other wheels of the package."""
    return _MYPYC.sub("__mypyc", name)
