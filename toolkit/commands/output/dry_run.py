"""`--dry-run`: show a plan on one screen: the cells, and the skipped ones with their reasons."""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import TYPE_CHECKING

from gilscope.runners.catalog import RUNNERS
from gilscope.toolkit.model import FIRST_LOOK
from gilscope.toolkit.units import MOST_NAMED, counted, few, format_minutes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gilscope.toolkit.measure.cells import Plan, Selection
    from gilscope.toolkit.measure.settings import Settings
    from gilscope.toolkit.model import Build, Cell

WIDTH = 80
SHOWN_REASONS = 6


def preview(plan: Plan, builds: Sequence[Build], selection: Selection, settings: Settings) -> list[str]:
    """Return the lines of the preview."""
    fewest, most = (f"{len(plan.cells) * rounds}" for rounds in _range(settings))
    processes = most if fewest == most else f"{fewest} to {most}"
    return [
        f"{len(plan.cells)} cells x {rounds_text(settings)} = {processes} processes; seed {settings.seed}",
        *_asked(selection),
        "",
        *_matrix(plan, builds),
        "",
        *skip_lines(plan),
        *([f"time: at most {format_minutes(settings.budget)}"] if settings.budget else []),
    ]


def rounds_text(settings: Settings) -> str:
    """Return "12 rounds", or "4 to 12 rounds" if cells stop when their answer is clear."""
    fewest, most = _range(settings)
    return counted(most, "round") if fewest == most else f"{fewest} to {most} rounds"


def _range(settings: Settings) -> tuple[int, int]:
    return min(FIRST_LOOK, settings.rounds) if settings.where_open else settings.rounds, settings.rounds


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


def _wrapped(title: str, text: str, *, lines: int | None = None) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=title, subsequent_indent=" " * len(title), max_lines=lines,
                         break_on_hyphens=False, placeholder=" ...")
