"""Import what a project needs in subinterpreters: what they refuse, and the memory of one.

The child imports everything in its main interpreter first, as a program does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.evaluate.packages.evidence import InterpreterStatus
from gilscope.toolkit.evaluate.packages.inspect import control_modules
from gilscope.toolkit.evaluate.project.where_to_run import compiled_into
from gilscope.toolkit.evaluate.project.workload.name_check import modules_of
from gilscope.toolkit.evaluate.sections import Cause, InterpreterTrial, Missing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from gilscope.toolkit.children.asking import ChildAnswer
    from gilscope.toolkit.evaluate.packages.doctor import BuildReport
    from gilscope.toolkit.evaluate.project.discovery import Project

CHILD = "gilscope.toolkit.evaluate.project.interpreter_child"
LIMIT = 60.0           # seconds for everything
NO_INTERPRETERS = "this Python cannot make interpreters"


def modules_inside(project: Project, report: BuildReport | Missing, workload: str | None) -> tuple[str, ...]:
    """Return what to import in interpreters: requirements that load, the project's modules, those of the workload."""
    found = [] if isinstance(report, Missing) else [
        each for each in report.findings if each.interpreters in {InterpreterStatus.OK, InterpreterStatus.LOST}]
    named = {distribution_of(text) for text in project.requirements}
    direct = [each for each in found if each.name in named] or found
    modules = [name for each in direct if each.seen.distribution and each.seen.run and each.seen.interpreters
               for name in each.seen.distribution.modules
               if name in each.seen.run.imported and name in each.seen.interpreters[0].imported]
    return tuple(dict.fromkeys([*modules, *project.modules, *modules_of(workload, project.root)]))


def try_interpreters(
    python: Path, modules: Sequence[str], *, path: Sequence[str] = (), limit: float = LIMIT,
) -> InterpreterTrial | Missing:
    """Import modules in interpreters of a child, and return what they refuse and the memory of one.

    Args:
        python: The interpreter of the environment.
        modules: The modules to import, as far as the main interpreter can.
        path: Folders to add to `sys.path`; nothing is written there, not even bytecode.
        limit: Seconds for everything.
    """
    with tempfile.TemporaryDirectory(prefix=temporary.prefix(), ignore_cleanup_errors=True) as name:
        answer = _ask(python, modules, path, limit, compiled_into(Path(name)))
    if _first(answer, "end") is None:
        return _why_not(python, answer, limit)
    imported, measured = _first(answer, "imported"), _first(answer, "measured")
    assert imported
    assert measured
    refused = measured["refused"]
    return InterpreterTrial(
        modules=tuple(name for name in imported["modules"] if name not in refused), refused=tuple(refused.items()),
        memory=measured["interpreter"], process_memory=measured["process"])


def _ask(
    python: Path, modules: Sequence[str], path: Sequence[str], limit: float, variables: Mapping[str, str] | None = None,
) -> ChildAnswer:
    job = {"modules": list(modules), "path": list(path)}
    return ask(python, CHILD, "main", job, limit=limit, variables=variables, whose="users")


def _why_not(python: Path, answer: ChildAnswer, limit: float) -> Missing:
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
    return Missing(reason=reason, cause=Cause.CRASHED)


def _reason(answer: ChildAnswer) -> str:
    if any(record["event"] == "unavailable" for record in answer.records):
        return NO_INTERPRETERS
    failed = _first(answer, "failed")
    return failed["error"] if failed else answer.ending.reason or "it ended early"


def _first(answer: ChildAnswer, event: str) -> dict[str, Any] | None:
    return next((record for record in answer.records if record["event"] == event), None)
