"""Measure the coverage of intervals for another session: predict each session of a run from its other sessions.

For each session, the ratios of all cells to their baselines (wall time) and of one thread between builds (CPU time) are
predicted from the other sessions, by two intervals of 95 %:

- *rounds*: by the errors of the rounds alone, as if sessions did not differ
- *sessions*: with the variance between sessions in addition, estimated from the others, of which there must be three

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
from gilscope.toolkit.report.table.session_spread import SessionSpread
from gilscope.toolkit.stats.distributions import t_quantile
from gilscope.toolkit.stats.sample import CONFIDENCE
from gilscope.toolkit.stats.sessions import SessionRatio
from gilscope.toolkit.store import load_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gilscope.toolkit.model import Cell, Run
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.stats.ratios import Ratio
    from gilscope.toolkit.stats.sessions import OwnDeviation

    Pair = tuple[Cell, Cell]   # the baseline first


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """A ratio of a session, predicted from the other sessions."""

    pair: Pair
    off: float              # log of the measured ratio, minus that of the predicted one
    rounds: float           # half-width of the interval by the errors of rounds alone
    sessions: float | None  # with the variance between sessions; None: too few other sessions


def predict(ratios: Ratios, session: int, pairs: Iterable[Pair], clock: Clock) -> Iterator[Prediction]:
    """Yield a prediction for each pair that this session and another one have."""
    numbers, spread = ratios.by(clock), ratios.spread(clock)
    others = SessionSpread(ratios.index.run, {
        group: {number: logs for number, logs in sessions.items() if number != session}
        for group, sessions in numbers.sessions.items()}, numbers.noises)
    for pair in pairs:
        measured = spread.parts(*pair).get(session)
        predicted = others.ratio(*pair, CONFIDENCE)
        if measured is not None and predicted is not None:
            rounds = sqrt(measured.half() ** 2 + SessionRatio(parts=predicted.parts).half() ** 2)
            yield Prediction(pair=pair, off=measured.center - predicted.center, rounds=rounds,
                             sessions=None if predicted.own is None else _with_sessions(
                                 predicted, measured, predicted.own, rounds))


def _with_sessions(predicted: SessionRatio, measured: Ratio, own: OwnDeviation, rounds: float) -> float:
    """Return the half-width of the prediction interval: every part of one more session, and of the others' mean."""
    times = 1 + 1 / predicted.sessions
    errors = [measured.error**2, *((each.error / predicted.sessions) ** 2 for each in predicted.parts)]
    freedoms = [each.noise.freedom(each.rounds) for each in (measured, *predicted.parts)]
    within = sum(errors)
    square = within + own.variance * times
    # Satterthwaite's: the variance of a variance of f degrees of freedom is 2 / f of its square.
    doubt = own.uncertainty * times**2 + sum(2 * error**2 / free for error, free in zip(errors, freedoms, strict=True))
    wider = rounds / (t_quantile(CONFIDENCE, within**2 / sum(
        error**2 / free for error, free in zip(errors, freedoms, strict=True))) * sqrt(within))
    alone = wider * t_quantile(CONFIDENCE, 2 * square**2 / doubt) * sqrt(square)
    joint = sum(t_quantile(CONFIDENCE, each.freedom) ** 2 * each.variance * times for each in predicted.shifts)
    return max(sqrt(alone**2 + joint), rounds)


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
    ratios = Ratios(Index(run))
    every: dict[Clock, list[Prediction]] = {}
    print(f"{name}: {len(run.sessions)} sessions")
    print(f"{'session':42}{'rounds':>12}{'sessions':>12}{'joint shift':>12}")
    for clock, pairs in pairs_of(run).items():
        kind = "speed-ups" if clock == "wall" else "builds, CPU"
        for number, session in enumerate(run.sessions, 1):
            if found := [*predict(ratios, number, pairs, clock)]:
                every.setdefault(clock, []).extend(found)
                print(_line(f"{session.started[:16].replace('T', ' ')}  {kind}", found))
        if clock in every:
            print(_line(f"all  {kind}", every[clock]))
    for clock in pairs_of(run):
        if spreads := spread_of_times(ratios.index, clock):
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
