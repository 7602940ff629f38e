"""`--dry-run`: show a plan on one screen: the cells, the skipped ones and why, the time, and how to shorten it."""

from __future__ import annotations

import datetime
import textwrap
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.bounded_reading import RESULTS
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.measure.estimate import EarlierProcess, estimate, least_again
from gilscope.toolkit.measure.machine import this_machine
from gilscope.toolkit.model import Cell
from gilscope.toolkit.stats.interim_looks import FIRST
from gilscope.toolkit.stats.verdict import MIN_ROUNDS
from gilscope.toolkit.store import find_label, labels, read_json
from gilscope.toolkit.units import MOST_NAMED, counted, few, format_minutes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gilscope.toolkit.measure.cells import Plan, Selection
    from gilscope.toolkit.measure.estimate import Estimate
    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Build

SHORT_SECONDS = 300.0   # a shorter run needs no advice: --budget 5m would not cut it
WIDTH = 80
RECENT = 5           # earlier runs to estimate from; older ones say little about the machine today
SHOWN_REASONS = 6
PAUSE_SECONDS = 30.0  # a longer pause between two processes means that the run was interrupted


def preview(
    plan: Plan, builds: Sequence[Build], selection: Selection, settings: Settings, earlier: Sequence[EarlierProcess]
) -> list[str]:
    """Return the lines of the preview."""
    estimated = estimate(plan.cells, settings, selection.size, earlier)
    least = least_again(plan.cells, settings, selection.size, earlier)
    fewest, most = (f"{len(plan.cells) * rounds}" for rounds in _range(settings))
    processes = most if fewest == most else f"{fewest} to {most}"
    return [
        f"{len(plan.cells)} cells x {rounds_text(settings)} = {processes} processes; seed {settings.seed}",
        *_asked(selection),
        "",
        *_matrix(plan, builds),
        "",
        *skip_lines(plan),
        *_time(estimated, least, settings, selection),
    ]


def rounds_text(settings: Settings) -> str:
    """Return "12 rounds", or "4 to 12 rounds" if cells stop when their answer is clear."""
    fewest, most = _range(settings)
    return counted(most, "round") if fewest == most else f"{fewest} to {most} rounds"


def _range(settings: Settings) -> tuple[int, int]:
    return min(FIRST, settings.rounds) if settings.where_open else settings.rounds, settings.rounds


def _asked(selection: Selection) -> Iterator[str]:
    names = [selection.user.function] if selection.user else list(selection.workloads)
    yield from _wrapped(f"{counted(len(names), 'workload')}: ", ", ".join(names), lines=2)
    lengths = ([f"task lengths {', '.join(map(format_seconds, selection.task_seconds))}"] if selection.task_seconds
               else [])
    yield from _wrapped("each with: ", "; ".join([
        f"workers {', '.join(map(str, selection.workers))}", f"size {selection.size}",
        f"phase {', '.join(selection.phases)}", *lengths]))


def _matrix(plan: Plan, builds: Sequence[Build]) -> Iterator[str]:
    """Yield a table of the number of cells per model and build; A/A are cells that are measured twice."""
    asked = {each.runner for each in (*plan.cells, *(skip.cell for skip in plan.skips))}
    models = [runner.name for runner in RUNNERS if runner.name in asked]
    counts = Counter(("A/A" if cell.twin else cell.runner, cell.build) for cell in plan.cells)
    rows = [["cells", *(build.label for build in builds)]]
    rows += [[model, *(str(counts[model, build.label] or "-") for build in builds)] for model in [*models, "A/A"]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *words in rows:
        columns = [word.rjust(width) for word, width in zip(words, widths[1:], strict=True)]
        yield "  ".join([name.ljust(widths[0]), *columns])


def skip_lines(plan: Plan) -> Iterator[str]:
    """Yield the reasons why cells are not measured, the most frequent first."""
    if not plan.skips:
        return
    by_reason: dict[str, list[Cell]] = {}
    for skip in plan.skips:
        by_reason.setdefault(skip.reason, []).append(skip.cell)
    yield f"not measured: {counted(len(plan.skips), 'cell')}"
    ranked = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    for reason, cells in ranked[:SHOWN_REASONS]:
        models, builds = (few([*dict.fromkeys(names)], MOST_NAMED) for names in (
            (cell.runner for cell in cells), (cell.build for cell in cells)))
        yield from _wrapped(f"{len(cells):6}  ", f"{models} on {builds}: {reason}", lines=2)
    if rest := ranked[SHOWN_REASONS:]:
        yield f"{sum(len(cells) for _, cells in rest):6}  for {counted(len(rest), 'more reason')}"
    yield ""


def _time(estimated: Estimate, least: float, settings: Settings, selection: Selection) -> Iterator[str]:
    if not estimated.cells:
        return
    if estimated.known == estimated.cells:
        source = "from earlier runs here"
    elif estimated.known:
        source = (f"{estimated.known} of {estimated.cells} cells from earlier runs here, the others guessed from the "
                  "number of passes")
    else:
        source = "a guess from the number of passes, because none of this was measured here before"
    budget = settings.budget
    if selection.user is not None and not estimated.known:
        # A dry run has no side effects, so it does not call the function.
        fits = f", and refuses it if it does not fit into the budget of {format_minutes(budget)}" if budget else ""
        yield from _wrapped("time: ", f"unknown until {selection.user.function} is called: a run first calls it for "
                            f"about a second on each build{fits}")
        return
    if budget and selection.user is not None and least > budget:
        yield from _wrapped("time: ", f"{counted(min(MIN_ROUNDS, settings.rounds), 'round')} take at least "
                            f"{format_minutes(least)} ({source}), more than the budget of {format_minutes(budget)}: "
                            "the run would be refused. Use a larger --budget or fewer payloads")
        return
    cut = f", cut to {format_minutes(budget)} by the budget" if budget and budget < estimated.seconds else ""
    yield from _wrapped("time: ", f"about {format_minutes(estimated.seconds)}{cut} ({source})")
    if estimated.seconds < SHORT_SECONDS:
        return
    half = max(1, settings.rounds // 2)
    seconds = estimated.seconds * half / settings.rounds
    fewer = settings.rounds > 1 and (not budget or seconds < budget)
    ways = [f"--rounds {half} (about {format_minutes(seconds)}, wider intervals)"] * fewer
    ways += [] if budget else ["--budget 5m (stops in time)"]
    ways += ["fewer workloads, --models, --workers or --builds"]
    ways += ["--quick (a first look in about 3 minutes)"] if selection.controls else []
    yield from _wrapped("shorter: ", "; ".join(ways))


def _wrapped(title: str, text: str, *, lines: int | None = None) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=title, subsequent_indent=" " * len(title), max_lines=lines,
                         break_on_hyphens=False, placeholder=" ...")


def earlier_processes() -> list[EarlierProcess]:
    """Return the times of processes in the newest runs under results/ that were made on this machine."""
    here = this_machine()
    found: list[EarlierProcess] = []
    runs = []
    for label in labels():
        path = find_label(label)
        try:
            fields = read_json(path / "run.json")
            machine = fields["machine"]
            if (machine["hostname"], machine["cpu_model"], machine["cores"]) == (
                    here.hostname, here.cpu_model, here.cores):
                runs.append((str(fields["started"]), path, fields))
        except (BadFileError, KeyError, TypeError, ValueError, AttributeError):
            continue  # `gilscope report` tells what is wrong with the run
    for _, path, fields in sorted(runs, key=lambda each: each[0])[-RECENT:]:
        found += _took(path, fields)
    return found


def _took(path: Path, fields: dict[str, Any]) -> Iterator[EarlierProcess]:
    """Yield the time of each process in a run; in older runs, the time until the next process began."""
    begun: list[tuple[datetime.datetime, Cell]] = []
    try:
        settings, size = fields["options"]["settings"], str(fields["options"]["selection"]["size"])
        other_passes = 1 + int(settings["warmups"])
        for build in fields["builds"]:
            suite = read_json(path / f"{build['label']}.json", RESULTS)
            for each in suite["benchmarks"]:
                cell = Cell.parse(each["metadata"]["name"], build["label"])
                for run in each["runs"]:
                    metadata = {**suite.get("metadata", {}), **each["metadata"], **run.get("metadata", {})}
                    if (seconds := metadata.get("gilscope_seconds")) is None:
                        begun.append((datetime.datetime.fromisoformat(metadata["date"]), cell))
                        continue
                    passes = other_passes + len(run["values"]) + int(metadata.get("gilscope_again", 0))
                    yield EarlierProcess(cell=cell, size=size, passes=passes, seconds=float(seconds))
    except (BadFileError, KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return
    begun.sort(key=lambda each: each[0])
    for (start, cell), (end, _) in pairwise(begun):
        if (seconds := (end - start).total_seconds()) < PAUSE_SECONDS:
            yield EarlierProcess(cell=cell, size=size, passes=other_passes + int(settings["values"]), seconds=seconds)
