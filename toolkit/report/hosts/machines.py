"""Hosts of a fleet on one machine: their rounds become those of one host before anything is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.pairing import compare_builds
from gilscope.toolkit.model import Measurement, Note
from gilscope.toolkit.report.hosts.wording import names_text
from gilscope.toolkit.report.sessions import MERGED
from gilscope.toolkit.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Cell, Failure, Observation, Run

TWO = 2   # hosts that are both named


@dataclass(frozen=True, slots=True)
class MachineHosts:
    """The hosts of a fleet that are on one machine; most often one."""

    hosts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name by which the machine is counted: "host-1", "host-1+host-2", "host-1+7 more"."""
        first, *others = self.hosts
        return "+".join(self.hosts) if len(self.hosts) <= TWO else f"{first}+{len(others)} more"


def merge_runs(machine: MachineHosts, runs: Sequence[tuple[str, Run]]) -> Run:
    """Return the runs of the hosts of one machine as one run, with a note; rounds are in the order in which they began.

    Runs of other builds or other work than most rounds have are left out, as their values cannot be put together.

    Args:
        machine: The machine, for its name.
        runs: The name and the run of each of its hosts, at least one.
    """
    if len(runs) == 1:
        return runs[0][1]
    _, first = max(runs, key=lambda each: each[1].rounds_done)
    alike = [(name, run) for name, run in runs if _is_alike(first, run)]
    others = [name for name, run in runs if not _is_alike(first, run)]
    merged = replace(
        first, label=f"{first.label.rpartition('/')[0]}/{machine.name}", started=min(run.started for _, run in alike),
        rounds_planned=sum(run.rounds_planned for _, run in alike),
        rounds_done=sum(run.rounds_done for _, run in alike),
        looks=max(run.looks for _, run in alike), notes=(_note(alike, others), *_notes(alike)),
        cells=tuple(dict.fromkeys(cell for _, run in alike for cell in run.cells)),
        options=first.options | {MERGED: len(alike)})
    return _with_rounds(merged, [run for _, run in alike])


def _is_alike(one: Run, other: Run) -> bool:
    """Return True if the values of two runs are of the same work on the same builds."""
    builds, others = ({build.label: build for build in run.builds} for run in (one, other))
    return (
        one.baseline == other.baseline and builds.keys() == others.keys()
        and all(each.free_threaded == others[label].free_threaded and not compare_builds(each, others[label])
                for label, each in builds.items())
        and one.options.get("selection") == other.options.get("selection"))


def _note(alike: Sequence[tuple[str, Run]], others: Sequence[str]) -> Note:
    names = names_text([name for name, _ in alike] + list(others))
    if not others:
        return Note(text=f"{names} are one machine: their rounds are counted together, as those of one host")
    rounds = counted(sum(run.rounds_done for _, run in alike), "round")
    return Note(text=f"{names} are one machine: only the {rounds} of {names_text([name for name, _ in alike])} count, "
                     f"as {names_text(others)} measured other work or other builds")


def _notes(runs: Sequence[tuple[str, Run]]) -> tuple[Note, ...]:
    return tuple(dict.fromkeys(note for _, run in runs for note in run.notes))


def _with_rounds(merged: Run, runs: Sequence[Run]) -> Run:
    """Return a run with the measurements, failures and skips of `runs`, whose rounds are numbered as they began."""
    numbers = _round_numbers(runs)
    observations: dict[Cell, list[Observation]] = {}
    notes: dict[Cell, dict[Note, None]] = {}
    failures: list[Failure] = []
    for place, run in enumerate(runs):
        for each in run.measurements:
            observations.setdefault(each.cell, []).extend(
                replace(one, round=numbers[place, one.round]) for one in each.observations)
            notes.setdefault(each.cell, {}).update(dict.fromkeys(each.notes))
        failures += [replace(each, round=numbers[place, each.round]) for each in run.failures]
    skips = {skip.cell: skip for run in runs for skip in run.skips if not observations.get(skip.cell)}
    return replace(
        merged, failures=tuple(sorted(failures, key=lambda each: each.round)), skips=tuple(skips.values()),
        measurements=tuple(Measurement(cell=cell, observations=tuple(sorted(found, key=lambda one: one.round)),
                                       notes=tuple(notes[cell]))
                           for cell, found in observations.items()),
        answered=tuple(cell for cell in runs[0].answered if all(cell in run.answered for run in runs)))


def _round_numbers(runs: Sequence[Run]) -> dict[tuple[int, int], int]:
    """Return the number of each round among those of all runs, by the run's place and its number there.

    Hosts on one machine measure in turn, round by round.  What serial correlation compares are the rounds that followed
    each other on the machine, not those of one host.  Rounds without a value have no start, and come last.
    """
    began: dict[tuple[int, int], float] = {}
    for place, run in enumerate(runs):
        for number in {*range(run.rounds_done), *(each.round for each in run.failures)}:
            began.setdefault((place, number), inf)
        for one in (one for each in run.measurements for one in each.observations):
            began[place, one.round] = min(began.get((place, one.round), inf), *one.began, inf)
    return {key: at for at, key in enumerate(sorted(began, key=lambda key: (began[key], key)))}
