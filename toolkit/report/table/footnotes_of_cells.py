"""Footnotes of one number, the same in every view: a slow process, and the sessions that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.report.table.process_notes import process_notes, slowest_process
from gilscope.toolkit.stats.sessions import FEWEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Cell
    from gilscope.toolkit.report.table.observations import Clock
    from gilscope.toolkit.report.table.ratios import Ratios


def notes_on_processes(ratios: Ratios, cell: Cell, clock: Clock) -> tuple[Note, ...]:
    """Return the note on a slow process of a cell that has numbers; it is judged by wall time.

    Args:
        ratios: Those of the run.
        cell: The cell.
        clock: That of the number beside which the note stands.
    """
    found = process_notes(slowest_process(ratios.index.by(cell, "wall").values()))
    return tuple(note if clock == "wall" else Note(text=f"by wall time, {note.text}") for note in found)


def note_on_ratio(ratios: Ratios, baseline: Cell, sample: Cell, clock: Clock) -> Note | None:
    """Return a note if the ratio of two cells of a run, both with numbers, lacks sessions of the run."""
    shared = ratios.index.by(baseline, clock).keys() & ratios.index.by(sample, clock).keys()
    return _note_within(ratios, [each for r, each in _sessions(ratios, sample).items() if r in shared])


def note_on_time(ratios: Ratios, cell: Cell) -> Note | None:
    """Return a note if the wall time of a cell lacks sessions of its run."""
    return _note_within(ratios, [*_sessions(ratios, cell).values()])


def note_on_side(ratios: Ratios, cell: Cell, clock: Clock) -> Note | None:
    """Return a note if a cell that is compared with that of another run lacks sessions of its own run."""
    own = ratios.index.by(cell, clock)
    rounds = [each for r, each in _sessions(ratios, cell).items() if r in own]
    sessions = len(set(rounds))   # `Ratios.level` takes nothing from other cells if there are few
    return _note(ratios, rounds, "its part of the interval includes how sessions differ" if sessions >= FEWEST
                 else f"its part of the interval is of {_those(sessions)} alone")


def _note_within(ratios: Ratios, rounds: Sequence[int]) -> Note | None:
    return _note(ratios, rounds, "its intervals take from other cells how sessions differ"
                 if ratios.sessions >= FEWEST else f"its intervals are of {_those(len(set(rounds)))} alone")


def _sessions(ratios: Ratios, cell: Cell) -> dict[int, int]:
    """Return the session of each valid round of a cell."""
    return {one.round: one.session for one in ratios.index.valid_observations[cell]}


def _note(ratios: Ratios, rounds: Sequence[int], scope: str) -> Note | None:
    """Return the note if sessions lack; `rounds` has the session of each round that the number comes from."""
    own, every, done = len(set(rounds)), ratios.sessions, ratios.index.run.rounds_done
    if own >= every:
        return None
    return Note(text=f"{own} of {every} sessions ({len(rounds)} of {done} rounds): {scope}")


def _those(sessions: int) -> str:
    return "that session" if sessions == 1 else "those sessions"
