"""Footnotes of one number, the same in every view: a slow process, and the sessions that it lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gilscope.toolkit.model import Note
from gilscope.toolkit.report.table.process_notes import process_notes, slowest_process

if TYPE_CHECKING:
    from collections.abc import Collection

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
    return _note(ratios, sample, ratios.index.by(baseline, clock).keys() & ratios.index.by(sample, clock).keys())


def note_on_time(ratios: Ratios, cell: Cell, clock: Clock = "wall") -> Note | None:
    """Return a note if the time of a cell lacks sessions of its run."""
    return _note(ratios, cell, ratios.index.by(cell, clock).keys())


def _note(ratios: Ratios, cell: Cell, used: Collection[int]) -> Note | None:
    """Return the note if a number of a cell, which is of the rounds `used`, lacks sessions."""
    sessions = [each.session for each in ratios.index.valid_observations[cell] if each.round in used]
    own, every, done = len(set(sessions)), ratios.sessions, ratios.index.run.rounds_done
    return None if own >= every else Note(text=f"{own} of {every} sessions ({len(sessions)} of {done} rounds)")
