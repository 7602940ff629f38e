"""Import packages in processes of a build, and read what their extension files declare."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.children.asking import ask
from gilscope.toolkit.children.at_once import at_once
from gilscope.toolkit.cores import usable_cores
from gilscope.toolkit.evaluate.packages.distributions import damage
from gilscope.toolkit.evaluate.packages.evidence import Extension, ExtensionLoad, ImportRun, ImportStep

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from gilscope.toolkit.children.asking import ChildAnswer, EndingKind

LIMIT = 60.0         # seconds; an import that takes longer would hang every program that uses the package
CYCLES = 3            # times to create an interpreter, import and destroy it: leftovers of one may break the next
CHILD = "gilscope.toolkit.evaluate.packages.import_child"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The modules to import of a package, in this order."""

    roots: Sequence[str]            # as a program would import them
    sweep: Sequence[str] = ()       # modules that may load extension modules, imported only if the roots load none
    extensions: Sequence[str] = ()  # extension modules by name, those that are not loaded yet by then


def import_run(
    python: Path, wanted: ImportRequest, *, path: Sequence[str] = (), limit: float = LIMIT, force_off: bool = False,
    memo: Path | None = None,
) -> ImportRun:
    """Import modules in one child process.

    Args:
        python: The interpreter of the environment.
        wanted: The modules to import.
        path: Folders to add to `sys.path`.
        limit: Seconds for the whole process.
        force_off: Keep the GIL off whatever the modules request, on a build that can.
        memo: See `children.asking.ask`.
    """
    job = {**asdict(wanted), "path": list(path)}
    answer = ask(python, CHILD, "main", job, limit=limit, options=["-X", "gil=0"] if force_off else [], memo=memo)
    return _read(answer, [record for record in answer.records if record["cycle"] == 0])


def interpreter_runs(
    python: Path, wanted: ImportRequest, *, path: Sequence[str] = (), limit: float = LIMIT, cycles: int = CYCLES,
    memo: Path | None = None,
) -> tuple[ImportRun, ...]:
    """Import in interpreters with their own GIL, one after another in one process; return a run for each.

    The last run describes how the process ended.  There may be fewer runs than `cycles`, or none without interpreters.
    """
    job = {**asdict(wanted), "path": list(path), "cycles": cycles}
    answer = ask(python, CHILD, "interpreters_main", job, limit=limit, memo=memo)
    runs: list[ImportRun] = []
    for cycle in range(cycles):
        records = [record for record in answer.records if record["cycle"] == cycle]
        ended = any(record["event"] == "destroyed" and record["number"] == cycle for record in answer.records)
        if not records and runs:
            break
        runs.append(_read(answer, records, done=ended, errors=[
            record["error"] for record in answer.records if record["event"] == "ran" and record["number"] == cycle]))
    return tuple(runs)


def _read(
    answer: ChildAnswer, records: list[dict[str, Any]], *, done: bool | None = None, errors: Iterable[str | None] = (),
) -> ImportRun:
    """Return the run in a journal's records; complete if the process, or its interpreter, came to its end."""
    end = next((record for record in records if record["event"] == "end"), None)
    raised = next((error for error in errors if error), None)
    whole = answer.ending.kind == "done" if done is None else done
    kind: EndingKind = "done" if whole and end else answer.ending.kind
    reason = "" if whole and end else answer.ending.reason
    if kind == "done" and not end:
        kind, reason = "exit", raised or "ended before everything was imported"
    return ImportRun(
        imported=tuple(record["name"] for record in records if record["event"] == "imported"),
        failed=tuple((record["name"], record["error"]) for record in records if record["event"] == "failed"),
        loads=tuple(_loads(records)), kind=kind, reason=reason, during=_during(records) if kind != "done" else "",
        gil_on=end["gil"] if end else None, stdlib=tuple(end["stdlib"]) if end else (),
        present=tuple(end["present"]) if end else (),
        output=answer.ending.output if kind != "done" else "")


def _loads(records: Sequence[dict[str, Any]]) -> Iterable[ExtensionLoad]:
    imported = {record["name"] for record in records if record["event"] == "imported"}
    part: Any = ""
    asking = ""
    for record in records:
        if record["event"] == "begin":
            part, asking = record["part"], record["name"]
        elif record["event"] == "load":
            yield ExtensionLoad(
                name=record["name"], file=record["file"], gil=record["gil"], flipped=record["flipped"],
                error=record["error"], part=part, asking=asking,
                swallowed=bool(record["error"]) and asking in imported,
                chain=tuple(ImportStep(module=module, file=file, line=line) for module, file, line in record["chain"]))


def _during(records: Sequence[dict[str, Any]]) -> str:
    """Return the module that was being imported or loaded when the journal ended, the innermost one."""
    if records and records[-1]["event"] == "end":
        return "ending"
    ends = {"begin": {"imported", "failed"}, "loading": {"load"}, "executing": {"executed"}}
    closed: set[tuple[str, str]] = set()
    for record in reversed(records):
        event, name = record["event"], str(record.get("name", ""))
        if event in ends and not any((end, name) in closed for end in ends[event]):
            return name
        closed.add((event, name))
    return ""


def all_at_once[T](function: Callable[[str], T], names: Sequence[str]) -> dict[str, T]:
    """Return the function's result for each name, computed on all cores; Ctrl-C ends the processes that it started."""
    return dict(zip(names, at_once(function, names, usable_cores()), strict=True))


SLOTS_LIMIT = 20.0    # for one file; a hook takes milliseconds, but a single-phase one may import half a library


def read_extensions(
    python: Path, files: Sequence[tuple[str, str]], *, path: Sequence[str] = (), limit: float = SLOTS_LIMIT,
    memo: Path | None = None,
) -> tuple[Extension, ...]:
    """Return the declarations in extension files, in the given order; `problem` says why a file has none.

    Args:
        python: The interpreter of the environment that would load them.
        files: Module name and path of each file.
        path: Folders to add to `sys.path`, for the imports of single-phase hooks.
        limit: Seconds for one file.
        memo: See `children.asking.ask`.
    """
    if not files:
        return ()
    damaged = {file: why for _, file in files if (why := damage(Path(file)))}
    job = {"files": list(files), "limit": limit, "path": list(path)}
    child = "gilscope.toolkit.evaluate.packages.slots_child"
    answer = ask(python, child, "main", job, limit=30 + limit * len(files), memo=memo)
    answers = {int(record["number"]): record for record in answer.records}
    silent = {"problem": f"the process that reads it {answer.ending.reason or 'gave no answer'}"}
    return tuple(_damaged(name, file, damaged[file]) if file in damaged
                 else _extension(name, file, answers.get(number, silent)) for number, (name, file) in enumerate(files))


def _damaged(name: str, file: str, why: str) -> Extension:
    return Extension(name=name, file=file, problem=why, damaged=True)


def _extension(name: str, file: str, fields: dict[str, object]) -> Extension:
    answer = {key: value for key, value in fields.items() if key != "number"}
    return Extension(name=name, file=file, **answer)  # type: ignore[arg-type]  # our own child wrote them
