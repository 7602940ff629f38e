"""What a distribution does in interpreters of their own: from what was seen there to what it is called.  Pure."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from gilscope.toolkit.evaluate.packages.judge.modules import only_by_name, owns
from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.evaluate.packages.facts import ImportRun, Seen

# What CPython says of an extension module that an interpreter with its own GIL cannot load.
REFUSED = re.compile(r"module (\S+) does not support loading in subinterpreters")


def refusal_in(output: str) -> str:
    """Return which extension modules interpreters refused, by the tracebacks that a process printed; "": none.

    A package that cannot do without says something else: "Unable to import required dependency numpy".
    """
    names = list(dict.fromkeys(REFUSED.findall(output)))
    does = "does" if len(names) == 1 else "do"
    return f"{', '.join(names)} {does} not support loading in subinterpreters" if names else ""


def judge_interpreters(seen: Seen) -> tuple[InterpreterStatus, tuple[str, ...]]:
    """Return what the distribution does in interpreters of their own, and why.

    What the standard library alone does, too, is not held against it.
    """
    if not seen.interpreters or seen.run is None or not seen.run.imported or seen.newer:
        return InterpreterStatus.UNKNOWN, ()   # not tried, or it cannot be imported anywhere
    first, last = seen.interpreters[0], seen.interpreters[-1]
    if last.kind in {"crash", "hang"} and not _control_same(last.kind, seen.interpreters_control):
        status = InterpreterStatus.CRASH if last.kind == "crash" else InterpreterStatus.HANG
        return status, (f"{last.reason} in interpreter {len(seen.interpreters)}{last.place}",)
    if first.kind != "done" and not first.imported and not first.failed:
        return InterpreterStatus.UNKNOWN, (f"{first.reason or 'no answer'}; the standard library alone does the same",)
    if failed := _failing_modules(seen, first):
        if refused := _library_refuses(first):
            return _by_slots(seen, refused)
        return InterpreterStatus.FAILS, failed
    return _interpreters_lost(seen, first)


def _library_refuses(run: ImportRun) -> list[str]:
    """Return the standard library's modules that did not load there, where no other did that: 3.12 has some."""
    refused = {load.name for load in run.loads if load.error and "support loading in subinterpreters" in load.error}
    return sorted(refused) if all(name.partition(".")[0] in sys.stdlib_module_names for name in refused) else []


def _by_slots(seen: Seen, refused: list[str]) -> tuple[InterpreterStatus, tuple[str, ...]]:
    """Judge what could not be tried, as the standard library stops it, by what its own files declare."""
    own = [each.name for each in seen.extensions if each.interpreters in {"none", "shared-gil"}]
    if own:
        return InterpreterStatus.FAILS, tuple(
            f"{name}: module {name} does not support loading in subinterpreters, as its slots say" for name in own)
    return InterpreterStatus.UNKNOWN, (f"the standard library's own {', '.join(refused)} cannot be loaded there",)


def _failing_modules(seen: Seen, first: ImportRun) -> tuple[str, ...]:
    """Return the modules that fail when the package does: one that a program imports, or most of those inside.

    One that fails alone may belong to a back end that is not in use.
    """
    if seen.distribution is None or seen.run is None:
        return ()
    failed = {name: error for name, error in first.failed if name in seen.run.imported}
    roots = [name for name in seen.distribution.modules if name in failed]
    inner = [name for name in seen.distribution.inner if name in seen.run.imported]
    inner_failed = [name for name in inner if name in failed]
    if not roots and len(inner_failed) * 2 <= len(inner):
        return ()
    return tuple(f"{name}: {_cause(first, name, failed[name])}" for name in roots or inner_failed)


def _cause(run: ImportRun, name: str, error: str) -> str:
    """Return the error of a module, and the extension module behind it: packages put that in words of their own.

    What was given up last is behind it: what was missed before that was done without.
    """
    missed = [load for load in run.loads if load.error and any(step.module == name for step in load.chain)]
    if not missed or any(load.error == error for load in missed):
        return error
    return f"{missed[-1].name}: {missed[-1].error}"


def _interpreters_lost(seen: Seen, first: ImportRun) -> tuple[InterpreterStatus, tuple[str, ...]]:
    assert seen.run is not None
    owned = [load for load in seen.run.loads if load.error is None and owns(seen.distribution, load)]
    missed = only_by_name(first) - only_by_name(seen.run)
    lost = [load for load in owned if load.name not in first.loaded or load.name in missed]
    if not lost:
        return InterpreterStatus.OK, ()
    errors = {load.name: load.error for load in first.loads if load.error}
    reasons = tuple(f"{load.name}: {errors.get(load.name) or 'not loaded by the package'}" for load in lost)
    # Where no module of the package goes on without it, who needs it gets the error.
    tried = {load.name for load in first.loads}
    never = {load.name for load in lost if load.name not in tried and load.asking in first.imported}
    replaced = {load.name for load in first.loads if load.swallowed} | missed | never
    return (InterpreterStatus.FAILS if replaced.isdisjoint(load.name for load in lost) else InterpreterStatus.LOST,
            reasons)


def _control_same(kind: str, control: Sequence[ImportRun]) -> bool:
    return bool(control) and control[-1].kind == kind
