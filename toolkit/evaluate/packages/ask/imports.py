"""Import packages in processes of a build, and tell what that loaded, what turned the GIL on, and where it broke."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.evaluate.children.asking import ask
from gilscope.toolkit.evaluate.packages.facts import ImportRun, Load, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.children.asking import Told

LIMIT = 60.0         # seconds for one import; what takes longer hangs for everybody who uses it
TURNS = 3            # create, import, destroy: what an interpreter leaves behind breaks the next one
CHILD = "gilscope.toolkit.evaluate.packages.ask.import_child"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to import of a package, in this order."""

    roots: Sequence[str]            # as a program would
    sweep: Sequence[str] = ()       # where that asks for none of the extension modules: what may ask for them
    extensions: Sequence[str] = ()  # whatever is not loaded yet by then


def import_run(
    python: Path, wanted: Wanted, *, path: Sequence[str] = (), limit: float = LIMIT, force_off: bool = False,
    memo: Path | None = None,
) -> ImportRun:
    """Import what is wanted in one process.

    Args:
        python: Of the build and environment.
        wanted: The modules.
        path: Folders to add to `sys.path`.
        limit: Seconds for all of it.
        force_off: Keep the GIL off whatever the modules ask for, on a build that can.
        memo: See `children.ask`.
    """
    job = {**asdict(wanted), "path": list(path)}
    told = ask(python, CHILD, "main", job, limit=limit, options=["-X", "gil=0"] if force_off else [], memo=memo)
    return _read(told, [record for record in told.records if record["turn"] == 0])


def interpreter_runs(
    python: Path, wanted: Wanted, *, path: Sequence[str] = (), limit: float = LIMIT, turns: int = TURNS,
    memo: Path | None = None,
) -> tuple[ImportRun, ...]:
    """Import in interpreters that have their own GIL, one after another in one process; return a run for each.

    The last run carries how the process ended: it may be shorter than `turns`, empty where there are no interpreters.
    """
    job = {**asdict(wanted), "path": list(path), "turns": turns}
    told = ask(python, CHILD, "interpreters_main", job, limit=limit, memo=memo)
    runs: list[ImportRun] = []
    for turn in range(turns):
        records = [record for record in told.records if record["turn"] == turn]
        ended = any(record["event"] == "destroyed" and record["number"] == turn for record in told.records)
        if not records and runs:
            break
        runs.append(_read(told, records, done=ended, errors=[
            record["error"] for record in told.records if record["event"] == "ran" and record["number"] == turn]))
    return tuple(runs)


def _read(
    told: Told, records: list[dict[str, Any]], *, done: bool | None = None, errors: Iterable[str | None] = (),
) -> ImportRun:
    """Return the run that `records` describe; it is whole when the process, or its interpreter, came to its end."""
    end = next((record for record in records if record["event"] == "end"), None)
    raised = next((error for error in errors if error), None)
    whole = told.ending.kind == "done" if done is None else done
    kind, reason = ("done", "") if whole and end else (told.ending.kind, told.ending.reason)
    if kind == "done" and not end:
        kind, reason = "exit", raised or "ended before everything was imported"
    return ImportRun(
        imported=tuple(record["name"] for record in records if record["event"] == "imported"),
        failed=tuple((record["name"], record["error"]) for record in records if record["event"] == "failed"),
        loads=tuple(_loads(records)), kind=kind, reason=reason, during=_during(records) if kind != "done" else "",
        gil_on=end["gil"] if end else None, stdlib=tuple(end["stdlib"]) if end else (),
        present=tuple(end["present"]) if end else (),
        output=told.ending.output if kind != "done" else "")


def _loads(records: Sequence[dict[str, Any]]) -> Iterable[Load]:
    imported = {record["name"] for record in records if record["event"] == "imported"}
    part: Any = ""
    asking = ""
    for record in records:
        if record["event"] == "begin":
            part, asking = record["part"], record["name"]
        elif record["event"] == "load":
            yield Load(
                name=record["name"], file=record["file"], gil=record["gil"], flipped=record["flipped"],
                error=record["error"], part=part, asking=asking,
                swallowed=bool(record["error"]) and asking in imported,
                chain=tuple(Step(module=module, file=file, line=line) for module, file, line in record["chain"]))


def _during(records: Sequence[dict[str, Any]]) -> str:
    """Return what was going on when the journal ended: the innermost that has begun and not ended."""
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
