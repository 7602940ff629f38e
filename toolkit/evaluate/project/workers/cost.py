"""What one more worker takes on a build: a thread, an interpreter with its own GIL, a process; seconds and memory.

Measured in a process of the build in which everything that loads in interpreters is imported.  What an interpreter
takes that imports nothing is measured in another one: what interpreters leave behind, the next ones would use.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.evaluate.children.asking import ask
from gilscope.toolkit.evaluate.packages.doctor import control_modules
from gilscope.toolkit.evaluate.packages.install.installing import name_of
from gilscope.toolkit.evaluate.packages.judge.status import InterpreterStatus
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.sections import Broken, Missing, Spread, Worker, Workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gilscope.toolkit.evaluate.children.asking import Told
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.project.discovery import Project

CHILD = "gilscope.toolkit.evaluate.project.workers.child"
SECONDS = 4.5          # that the rounds of all kinds may take together, where that is enough for the fewest
LIMIT = 60.0           # seconds for all of it
NO_INTERPRETERS = "this Python cannot make interpreters"


def modules_inside(project: Project, report: BuildReport | Missing) -> tuple[str, ...]:
    """Return what an interpreter may import for the project: what loads of its requirements, then its own modules."""
    found = [] if isinstance(report, Missing) else [
        each for each in report.findings if each.interpreters in {InterpreterStatus.OK, InterpreterStatus.LOST}]
    named = {name_of(text) for text in project.requirements}
    direct = [each for each in found if each.name in named] or found
    modules = [name for each in direct if each.seen.distribution and each.seen.run and each.seen.interpreters
               for name in each.seen.distribution.modules
               if name in each.seen.run.imported and name in each.seen.interpreters[0].imported]
    return tuple(dict.fromkeys([*modules, *project.modules]))


def measure_workers(
    python: Path, modules: Sequence[str], *, path: Sequence[str] = (), limit: float = LIMIT, foreign: bool = False,
) -> Workers | Broken | Missing:
    """Make workers of each kind, several times, and return what they took.

    Args:
        python: Of the build and environment.
        modules: What each of them imports, as far as interpreters can.
        path: Folders to add to `sys.path`.
        limit: Seconds for all of it.
        foreign: These folders are the user's: nothing is written there, no compiled module either.
    """
    began = time.monotonic()
    told = bare = _ask(python, (), (), limit)
    if _whole(bare) and modules:
        with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
            variables = compiled_into(Path(name)) if foreign else {}
            told = _ask(python, modules, path, max(1.0, limit - (time.monotonic() - began)), variables)
    return _workers(told, bare, modules) if _whole(told) else _why_not(python, told, limit)


def _ask(
    python: Path, modules: Sequence[str], path: Sequence[str], limit: float, variables: Mapping[str, str] | None = None,
) -> Told:
    job = {"modules": list(modules), "path": list(path), "seconds": min(SECONDS, limit / 4)}
    return ask(python, CHILD, "main", job, limit=limit, variables=variables, whose="users")


def _whole(told: Told) -> bool:
    return any(record["event"] == "end" for record in told.records)


def _why_not(python: Path, told: Told, limit: float) -> Broken | Missing:
    """Return why nothing was measured; nobody is blamed before the standard library was tried alone."""
    reason = _reason(told)
    imported = _first(told, "imported")
    if told.ending.kind == "hang":
        return Missing(reason=f"it took more than the {limit:.0f} s that there were for it")
    if told.ending.kind != "crash" or imported is None:
        return Missing(reason=reason)
    control = _ask(python, control_modules(imported["stdlib"]), (), limit)
    if control.ending.kind == told.ending.kind:
        return Missing(reason=f"{reason}; with the standard library alone, too")
    return Broken(reason=reason)


def _reason(told: Told) -> str:
    if any(record["event"] == "unavailable" for record in told.records):
        return NO_INTERPRETERS
    failed = _first(told, "failed")
    return failed["error"] if failed else told.ending.reason or "it ended early"


def _first(told: Told, event: str) -> dict[str, Any] | None:
    return next((record for record in told.records if record["event"] == event), None)


def _workers(told: Told, bare: Told, modules: Sequence[str]) -> Workers:
    imported, tried = _first(told, "imported"), _first(told, "tried")
    assert imported
    assert tried
    inside = [record for record in told.records if record["event"] == "interpreter"]
    return Workers(
        modules=tuple(name for name in modules if name not in imported["missing"] and name not in tried["refused"]),
        missing=tuple(imported["missing"].items()), refused=tuple(tried["refused"].items()),
        run_queue=_run_queue(told.records), thread=_worker(told, "thread"), process=_worker(told, "process"),
        interpreter=_worker(told, "interpreter"), bare=_worker(bare, "interpreter"),
        create=_spread(record["create"] for record in inside), imports=_spread(record["imports"] for record in inside),
        destroy=_spread(record["destroy"] for record in inside), kept=_kept(told))


def _worker(told: Told, event: str) -> Worker:
    records = [record for record in told.records if record["event"] == event]
    memory = [record["memory"] for record in records if record["memory"] is not None]
    return Worker(start=_spread(record["start"] for record in records), memory=median(memory) if memory else None)


def _spread(values: Iterable[float]) -> Spread:
    found = sorted(values)
    return Spread(median=median(found), lo=found[0], hi=found[-1], count=len(found))


def _kept(told: Told) -> float | None:
    """Return how many bytes each round left behind, the first one apart: later ones may use what it left."""
    levels = [record["memory"] for record in told.records if record["event"] == "destroyed"]
    if len(levels) < 2 or None in levels:  # noqa: PLR2004 - growth takes two
        return None
    return max(0.0, float(levels[-1] - levels[0]) / (len(levels) - 1))


def _run_queue(records: Iterable[dict[str, Any]]) -> float | None:
    """Return which share of their time the workers waited for a core; None where the system does not tell."""
    lives = [(record["ran"], record["waited"]) for record in records if "ran" in record]
    total = sum(ran + waited for ran, waited in lives)
    return float(sum(waited for _, waited in lives) / total) if total else None
