"""Measure the coverage of intervals for another session: predict each session of a run from its other sessions.

For each session, the ratios of all cells to their baselines (wall time) and of one thread between builds (CPU time) are
predicted from the other sessions, by two intervals of 95 %:

- *rounds*: by the errors of the rounds alone, as if sessions did not differ
- *sessions*: by the differences of the other sessions, of which there must be three

Prints how many ratios are inside, and the joint shift of the session: the mean difference of all speed-ups of several
workers, and of all ratios between builds, from the mean of the other sessions.  Then, how far the time of one cell
moves from session to session: the largest of the sessions' medians over the smallest, for cells with one worker.

    python -m tests.benchmarks.predict_sessions .gilscope-results/LABEL ...
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from math import expm1, sqrt
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from gilscope.toolkit.report.table.build_pairs import build_pairs
from gilscope.toolkit.report.table.observations import Index
from gilscope.toolkit.report.table.ratios import Ratios
from gilscope.toolkit.stats.sessions import FEWEST
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import Clock

    Pair = tuple[Cell, Cell]   # the baseline first


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A ratio of a session, predicted from the other sessions."""

    pair: Pair
    off: float              # log of the measured ratio, minus that of the predicted one
    rounds: float           # half-width of the interval by the errors of rounds alone
    sessions: float | None  # with the variance between sessions; None: too few other sessions


def of_sessions(run: Run, sessions: Collection[int]) -> Ratios:
    """Return the ratios of a run that has these sessions alone."""
    return Ratios(Index(replace(run, measurements=tuple(
        replace(each, observations=tuple(one for one in each.observations if one.session in sessions))
        for each in run.measurements))))


def predict(run: Run, pairs: Mapping[Clock, Iterable[Pair]]) -> Iterator[tuple[Clock, int, Prediction]]:
    """Yield a prediction for each pair and session that this session and another one have, with its clock."""
    numbers = range(1, len(run.sessions) + 1)
    alone = {session: of_sessions(run, {session}) for session in numbers}
    for session in numbers:
        others = of_sessions(run, {*numbers} - {session})
        for clock, wanted in pairs.items():
            for pair in wanted:
                each = {number: found for number, ratios in alone.items()
                        if (found := ratios.ratio(*pair, clock)) is not None}
                measured = each.pop(session, None)
                predicted = others.ratio(*pair, clock)
                if measured is None or predicted is None:
                    continue
                errors = [measured.half() ** 2, *((one.half() / len(each)) ** 2 for one in each.values())]
                # The mean of n sessions has the variance of one over n; its difference to another has both.
                wide = predicted.half() * sqrt(len(each) + 1) if len(each) >= FEWEST else None
                yield clock, session, Prediction(
                    pair=pair, off=measured.center - predicted.center, rounds=sqrt(sum(errors)), sessions=wide)


def pairs_of(run: Run) -> dict[Clock, list[Pair]]:
    """Return the speed-ups over the baseline by wall time, and build against build with one thread by CPU time."""
    cells = [cell for cell in run.cells if not cell.twin]
    bases = [(replace(cell, runner=run.baseline, workers=1), cell) for cell in cells]
    builds = [(cell, replace(cell, build=second.label)) for first, second in build_pairs(run.builds)
              for cell in cells if cell.build == first.label and cell.workers == 1]
    return {"wall": [pair for pair in bases if pair[0] != pair[1]], "cpu": builds}


def _line(name: str, found: list[Prediction]) -> str:
    inside = f"{sum(abs(each.off) <= each.rounds for each in found)} of {len(found)}"
    halves = [(abs(each.off), each.sessions) for each in found if each.sessions is not None]
    with_sessions = f"{sum(off <= half for off, half in halves)} of {len(halves)}" if halves else "-"
    several = [each.off for each in found if max(cell.workers for cell in each.pair) > 1]
    shift = expm1(fmean(several or [each.off for each in found]))
    return f"{name:42}{inside:>12}{with_sessions:>12}{shift:>+12.1%}"


def spread_of_times(index: Index, clock: Clock) -> list[float]:
    """Return the slowest session's median time over the fastest session's, as shares, of each cell with one worker."""
    found = []
    for cell in index.cells():
        medians = [median(seconds) for seconds in _by_session(index, cell, clock).values()] if cell.workers == 1 else []
        if len(medians) > 1:
            found.append(max(medians) / min(medians) - 1)
    return found


def _by_session(index: Index, cell: Cell, clock: Clock) -> Mapping[int, list[float]]:
    seconds: dict[int, list[float]] = {}
    for number, value in index.by(cell, clock).items():
        seconds.setdefault(index.run.session_of(number), []).append(value)
    return seconds


def report(name: str, run: Run) -> Mapping[Clock, list[Prediction]]:
    """Print the table of a run, and return all predictions."""
    every: dict[Clock, list[Prediction]] = {}
    print(f"{name}: {len(run.sessions)} sessions")
    print(f"{'session':42}{'rounds':>12}{'sessions':>12}{'joint shift':>12}")
    pairs = pairs_of(run)
    found: dict[tuple[Clock, int], list[Prediction]] = {}
    for clock, number, prediction in predict(run, pairs):
        found.setdefault((clock, number), []).append(prediction)
        every.setdefault(clock, []).append(prediction)
    for clock in pairs:
        kind = "speed-ups" if clock == "wall" else "builds, CPU"
        for number, session in enumerate(run.sessions, 1):
            if (clock, number) in found:
                print(_line(f"{session.started[:16].replace('T', ' ')}  {kind}", found[clock, number]))
        if clock in every:
            print(_line(f"all  {kind}", every[clock]))
    for clock in pairs:
        if spreads := spread_of_times(Index(run), clock):
            print(f"{clock} time of a cell with one worker, slowest session over fastest: median "
                  f"{median(spreads):+.1%}, largest {max(spreads):+.1%}, of {len(spreads)}")
    return every


def main() -> None:
    """Print a table for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="runs with at least two sessions")
    for folder in parser.parse_args().folders:
        run = load_run(folder)
        if len(run.sessions) < 2:
            parser.error(f"{folder} has one session; `gilscope run --add-session {run.label}` adds one")
        report(str(folder), run)


if __name__ == "__main__":
    main()
