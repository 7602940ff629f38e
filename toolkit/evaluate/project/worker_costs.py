"""Measure what one more worker (a thread, an interpreter with its own GIL, a process) costs in time and memory.

The measuring process imports everything that loads in interpreters.  The cost of an empty interpreter is measured in
another process, because interpreters reuse memory that earlier ones left behind.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.evaluate.packages.doctor import control_modules
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.project.workload.name_check import modules_of
from gilscope.toolkit.evaluate.sections import InterpretersCrashed, Missing, Spread, WorkerPrice, Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gilscope.toolkit.children.asking import ChildAnswer
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.project.discovery import Project

CHILD = "gilscope.toolkit.evaluate.project.worker_child"
SECONDS = 4.5          # for the rounds of all kinds, if that is enough for the fewest
LIMIT = 60.0           # seconds for everything
NO_INTERPRETERS = "this Python cannot make interpreters"


def modules_inside(project: Project, report: BuildReport | Missing, workload: str | None) -> tuple[str, ...]:
    """Return the modules that a worker may import: requirements that load, the project's own, those of the workload."""
    found = [] if isinstance(report, Missing) else [
        each for each in report.findings if each.interpreters in {InterpreterStatus.OK, InterpreterStatus.LOST}]
    named = {distribution_of(text) for text in project.requirements}
    direct = [each for each in found if each.name in named] or found
    modules = [name for each in direct if each.seen.distribution and each.seen.run and each.seen.interpreters
               for name in each.seen.distribution.modules
               if name in each.seen.run.imported and name in each.seen.interpreters[0].imported]
    return tuple(dict.fromkeys([*modules, *project.modules, *modules_of(workload, project.root)]))


def measure_workers(
    python: Path, modules: Sequence[str], *, path: Sequence[str] = (), limit: float = LIMIT,
) -> Workers | InterpretersCrashed | Missing:
    """Start workers of each kind several times and return their cost.

    Args:
        python: The interpreter of the environment.
        modules: The modules that each worker imports, as far as interpreters can.
        path: Folders to add to `sys.path`; nothing is written there, not even bytecode.
        limit: Seconds for everything.
    """
    began = time.monotonic()
    answer = bare = _ask(python, (), (), limit)
    if _whole(bare) and modules:
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
            left = max(1.0, limit - (time.monotonic() - began))
            answer = _ask(python, modules, path, left, compiled_into(Path(name)))
    return _workers(answer, bare, modules) if _whole(answer) else _why_not(python, answer, limit)


def _ask(
    python: Path, modules: Sequence[str], path: Sequence[str], limit: float, variables: Mapping[str, str] | None = None,
) -> ChildAnswer:
    job = {"modules": list(modules), "path": list(path), "seconds": min(SECONDS, limit / 4)}
    return ask(python, CHILD, "main", job, limit=limit, variables=variables, whose="users")


def _whole(answer: ChildAnswer) -> bool:
    return any(record["event"] == "end" for record in answer.records)


def _why_not(python: Path, answer: ChildAnswer, limit: float) -> InterpretersCrashed | Missing:
    """Return why nothing was measured; a crash counts only if the standard library alone does not crash."""
    reason = _reason(answer)
    imported = _first(answer, "imported")
    if answer.ending.kind == "hang":
        return Missing(reason=f"it took more than the {limit:.0f} s that there were for it")
    if answer.ending.kind != "crash" or imported is None:
        return Missing(reason=reason)
    control = _ask(python, control_modules(imported["stdlib"]), (), limit)
    if control.ending.kind == answer.ending.kind:
        return Missing(reason=f"{reason}; with the standard library alone, too")
    return InterpretersCrashed(reason=reason)


def _reason(answer: ChildAnswer) -> str:
    if any(record["event"] == "unavailable" for record in answer.records):
        return NO_INTERPRETERS
    failed = _first(answer, "failed")
    return failed["error"] if failed else answer.ending.reason or "it ended early"


def _first(answer: ChildAnswer, event: str) -> dict[str, Any] | None:
    return next((record for record in answer.records if record["event"] == event), None)


def _workers(answer: ChildAnswer, bare: ChildAnswer, modules: Sequence[str]) -> Workers:
    imported, tried = _first(answer, "imported"), _first(answer, "tried")
    assert imported
    assert tried
    inside = [record for record in answer.records if record["event"] == "interpreter"]
    return Workers(
        modules=tuple(name for name in modules if name not in imported["missing"] and name not in tried["refused"]),
        missing=tuple(imported["missing"].items()), refused=tuple(tried["refused"].items()),
        run_queue=_run_queue(answer.records), thread=_worker(answer, "thread"), process=_worker(answer, "process"),
        interpreter=_worker(answer, "interpreter"), bare=_worker(bare, "interpreter"),
        create=_spread(record["create"] for record in inside), imports=_spread(record["imports"] for record in inside),
        destroy=_spread(record["destroy"] for record in inside), kept=_kept(answer))


def _worker(answer: ChildAnswer, event: str) -> WorkerPrice:
    records = [record for record in answer.records if record["event"] == event]
    memory = [record["memory"] for record in records if record["memory"] is not None]
    return WorkerPrice(start=_spread(record["start"] for record in records), memory=median(memory) if memory else None)


def _spread(values: Iterable[float]) -> Spread:
    found = sorted(values)
    return Spread(median=median(found), lo=found[0], hi=found[-1], count=len(found))


def _kept(answer: ChildAnswer) -> float | None:
    """Return the bytes that each round left behind, except for the first, whose leftovers later rounds may use."""
    levels = [record["memory"] for record in answer.records if record["event"] == "destroyed"]
    if len(levels) < 2 or None in levels:  # growth takes two
        return None
    return max(0.0, float(levels[-1] - levels[0]) / (len(levels) - 1))


def _run_queue(records: Iterable[dict[str, Any]]) -> float | None:
    """Return the share of their time that the workers waited for a core; None if the system does not report it."""
    lives = [(record["ran"], record["waited"]) for record in records if "ran" in record]
    total = sum(ran + waited for ran, waited in lives)
    return float(sum(waited for _, waited in lives) / total) if total else None
