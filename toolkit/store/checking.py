"""Checks of a stored run, before anything is computed from it.

A damaged value would change a result silently.  Every message names the file and the field.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.metrics import find_metric
from gilscope.toolkit.model import MOST_LOOKS, Cell, Run
from gilscope.toolkit.records import LARGEST, DamagedError, is_count, is_number, shown

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Measurement, Observation

EXPERIMENT = "experiment"   # an option that only the run of an experiment has
REMEDY = "; take the file from a copy or measure again"
MOST_SECONDS, LEAST_SECONDS = 1e10, 1e-12   # limits of measured durations and of times since the epoch
MOST_METRIC = 1e18     # largest metric of an experiment
MOST_WORKERS = 100_000
MOST_ROUNDS = 1_000_000
SUITE_VERSION = "1.0"  # of pyperf's files, as every version of gilscope wrote them
_LABEL = re.compile(r"[^\s/\x00-\x1f.-][^/\x00-\x1f]{0,199}")   # a build's label, which becomes a file's name
_VERSION = re.compile(r"3\.\d{1,3}\.\d{1,3}[\w.+-]{0,40}")   # a build's version, which becomes a folder's name


def _is_time(value: object, least: float = 0.0) -> bool:
    return is_number(value) and least <= value <= MOST_SECONDS


def check_header(run: Run, file: Path) -> None:
    """Check the header of a run by itself.

    Raises:
        BadFileError: A field has an impossible value.
    """
    _raise_first(file, _header_problems(run))


def check_values(run: Run, file: Path) -> None:
    """Check the values of a run against its header.

    Raises:
        BadFileError: A value is impossible; `file` is the header's.
    """
    for measurement in run.measurements:
        suite = file.with_name(f"{measurement.cell.build}.json")
        _raise_first(suite, _cell_problems(run, measurement))
    _raise_first(file, _round_problems(run))


def _raise_first(file: Path, problems: Iterable[str]) -> None:
    for problem in problems:
        raise BadFileError(f"{file} is damaged or was edited: {problem}{REMEDY}")


def _header_problems(run: Run) -> Iterable[str]:
    labels = [build.label for build in run.builds]
    yield from _label_problems(labels)
    yield from (f"{build.label} has the version {shown(build.version)}, which is none of CPython's"
                for build in run.builds if not _VERSION.fullmatch(build.version))
    if not run.cells:
        yield "cells is empty"
    allowed = {
        f"rounds_planned is {run.rounds_planned}": 0 < run.rounds_planned <= MOST_ROUNDS,
        f"rounds_done is {run.rounds_done} of {run.rounds_planned} planned": 0 <= run.rounds_done <= run.rounds_planned,
        f"looks is {run.looks}": 0 <= run.looks <= MOST_LOOKS,
        f"machine.cores is {run.machine.cores}": run.machine.cores > 0,
        f"machine.memory_bytes is {run.machine.memory_bytes}": (run.machine.memory_bytes or 0) >= 0,
    }
    yield from (problem for problem, fine in allowed.items() if not fine)
    yield from _session_problems(run)
    yield from _option_problems(run.options)
    yield from (f"cells has {cell.name} on {cell.build} {count} times"
                for cell, count in Counter(run.cells).items() if count > 1)
    mentioned = [*run.cells, *run.answered, *(each.cell for each in run.skips), *(each.cell for each in run.failures)]
    yield from filter(None, (_cell_problem(cell, labels) for cell in mentioned))
    yield from (f"failures has round {failure.round} of {run.rounds_done} done, of {failure.cell.name}"
                for failure in run.failures if not 0 <= failure.round <= run.rounds_done)


def _session_problems(run: Run) -> Iterable[str]:
    for before, session in pairwise(run.sessions):
        if not before.first_round < session.first_round <= run.rounds_done:
            yield (f"later_sessions has one that begins with round {session.first_round}, after one that begins with "
                   f"round {before.first_round}, of {run.rounds_done} done")


_OPTIONS: dict[str, tuple[type, str]] = {
    "selection": (dict, "an object"), "settings": (dict, "an object"), "units": (list, "a list"),
    "paths": (list, "a list"), "packages": (list, "a list"), "experiment": (str, "text"), "effort": (str, "text"),
}


_LEAST = {"rounds": 1, "values": 1, "warmups": 0, "retakes": 0, "min_seconds": 0, "timeout": 0, "budget": 0,
          "resolution": 0, "shared_by": 1, "sessions": 1, "every": 0}


def _option_problems(options: Mapping[str, Any]) -> Iterable[str]:
    """Yield the problems of the options that reports read; --resume checks those that it needs."""
    for name, (kind, words) in _OPTIONS.items():
        if name in options and not isinstance(options[name], kind):
            yield f"options.{name} is {shown(options[name])}, not {words}"
            return
    for unit in options.get("units", ()):
        if not _is_unit(unit):
            yield f"options.units has {shown(unit)}, not a workload, seconds, units and tasks"
    # An experiment stores its settings directly in the options.
    for where, settings in (("options", options), ("options.settings", options.get("settings", {}))):
        for name, least in _LEAST.items():
            number = settings.get(name)
            if number is not None and not (is_number(number) and least <= number <= LARGEST):
                yield f"{where}.{name} is {shown(number)}, not a number from {least} on"


def _is_unit(unit: Any) -> bool:
    """Return True if `unit` is a calibration for --task-length: a workload's name, seconds, units and tasks."""
    if not isinstance(unit, list) or len(unit) != 4 or not isinstance(unit[0], str):
        return False
    return is_number(unit[1]) and is_count(unit[2]) and is_count(unit[3]) and min(unit[1:]) > 0


def _label_problems(labels: Sequence[str]) -> Iterable[str]:
    if not labels:
        yield "builds is empty"
    for label, count in Counter(labels).items():
        if count > 1:
            yield f"builds has {shown(label)} {count} times"
        if not _LABEL.fullmatch(label):
            yield f"builds has the label {shown(label)}, which cannot be a file's name"


def _cell_problem(cell: Cell, labels: Collection[str]) -> str:
    """Return the problem of a cell, or "" if there is none."""
    if cell.build not in labels:
        return f"{cell.name} is on {shown(cell.build)}, which is none of its builds ({', '.join(labels)})"
    if not 0 <= cell.workers <= MOST_WORKERS:   # cells of experiments may have no workers
        return f"{cell.name} has {cell.workers} workers"
    if cell.task_seconds is not None and cell.task_seconds <= 0:
        return f"{cell.name} has tasks of {cell.task_seconds} s"
    try:
        Cell.parse(cell.name, cell.build)
    except ValueError as error:
        return str(error)
    return ""


def _cell_problems(run: Run, measurement: Measurement) -> Iterable[str]:
    cell = measurement.cell
    if cell not in run.cells:
        yield f"{cell.name} is none of the cells of run.json"
    # The files of a run that is being written are read one after the other: values may be newer than run.json.
    most = run.rounds_planned if run.stopped == "running" else min(run.rounds_planned, run.rounds_done + 1)
    for number, count in Counter(each.round for each in measurement.observations).items():
        if count > 1:
            yield f"{cell.name} has round {number} {count} times"
        if not 0 <= number < most:
            yield f"{cell.name} has a round {number}, of {run.rounds_done} done and {run.rounds_planned} planned"
    kinds = {(name, isinstance(metric, str)) for each in measurement.observations for name, metric in each.metrics}
    for name in {name for name, _ in kinds if {(name, True), (name, False)} <= kinds}:
        yield f"{cell.name} has {shown(name)} as a number in some rounds and as text in others"
    for observation in measurement.observations:
        if observation.session != (session := run.session_of(observation.round)):
            yield (f"{cell.name}, round {observation.round}: gilscope_session is {observation.session}, and the round "
                   f"is of session {session}")
        for problem in observation_problems(observation):
            yield f"{cell.name}, round {observation.round}: {problem}"
        # What an experiment measures may have no CPU time; the main job always does.
        if EXPERIMENT not in run.options and not observation.cpu:
            yield f"{cell.name}, round {observation.round}: it has no gilscope_cpu"


_COUNTS = (("loops", 1), ("retakes", 0), ("again", 0), ("tasks", 1))


def observation_problems(observation: Observation) -> Iterable[str]:
    """Yield the problems of the values of one measured process."""
    yield from _list_problems(observation)
    evidence = dataclasses.asdict(observation.evidence)
    numbers = {name: getattr(observation, name) for name in ("demand", "seconds")} | evidence
    for name, least in _COUNTS:
        count = numbers.pop(name) if name in numbers else getattr(observation, name)
        if count is not None and not (is_count(count) and count >= least):
            yield f"{name} is {shown(count)}, not a whole number from {least} on"
    for name, number in numbers.items():
        if number is not None and not _is_time(number):
            yield f"{name} is {shown(number)}, not a number from 0 to {MOST_SECONDS:g}"
    yield from _metric_problems(observation.metrics)
    for name in ("gil_culprit", "hash_seed"):
        text = getattr(observation, name)
        if text is not None and not isinstance(text, str):
            yield f"{name} is {shown(text)}, not text"


def _metric_problems(metrics: Iterable[tuple[str, float | str]]) -> Iterable[str]:
    for name, metric in metrics:
        declared = find_metric(name)
        if declared is not None and declared.whole and not (is_count(metric) and metric >= 0):
            yield f"{name} is {shown(metric)}, not a whole number from 0 on"
        elif declared is not None and isinstance(metric, str):
            yield f"{name} is {shown(metric)}, not a number"
        elif not isinstance(metric, str) and not (is_number(metric) and abs(metric) <= MOST_METRIC):
            yield f"metric {shown(name)} is {shown(metric)}"


def _list_problems(observation: Observation) -> Iterable[str]:
    """Yield the problems of the lists that have one entry for each value."""
    if not observation.wall:
        yield "it has no values"
    if bad := [each for each in observation.wall if not _is_time(each, LEAST_SECONDS)]:
        yield f"a value is {shown(bad[0])}, not a number of seconds above 0 and up to {MOST_SECONDS:g}"
    for name in ("cpu", "passes", "began"):
        numbers = getattr(observation, name)
        if len(numbers) not in {0, len(observation.wall)}:
            yield f"gilscope_{name} has {len(numbers)} numbers for {len(observation.wall)} values"
        if bad := [each for each in numbers if each != 0 and not _is_time(each, LEAST_SECONDS)]:
            yield f"gilscope_{name} has {shown(bad[0])}, not a number from 0 to {MOST_SECONDS:g}"
    if len(set(observation.passes)) < len(observation.passes):
        yield f"gilscope_passes is {shown(observation.passes)}, not a pass of its own for each value"


def _round_problems(run: Run) -> Iterable[str]:
    """Yield the contradictions between rounds.

    A cell may have fewer rounds than others: it failed, its verdict was clear early, or the first round was cut short.
    """
    rounds = {each.cell: {one.round for one in each.observations} for each in run.measurements}
    failed = {each.cell for each in run.failures}
    skipped = {each.cell for each in run.skips}
    last = max((number for each in (*rounds.values(), {f.round for f in run.failures}) for number in each), default=-1)
    if rounds and not set(rounds) <= failed and last + 1 < run.rounds_done:
        yield f"rounds_done is {run.rounds_done}, and the last round with a value is {last}"
    if run.rounds_done and not rounds and not (set(run.cells) <= failed | skipped):
        yield f"rounds_done is {run.rounds_done}, and no cell has a value"
    if EXPERIMENT not in run.options and run.baseline not in {
            each.runner for each in (*run.cells, *(skip.cell for skip in run.skips))}:
        yield f"baseline is {shown(run.baseline)}, which is none of the models of its cells"


def check_suite(document: Mapping[str, Any]) -> None:
    """Check the structure of a pyperf suite.

    Raises:
        DamagedError: A field is missing or of another type.
    """
    benchmarks = _listed(document, "benchmarks", "the suite")
    if document.get("version") != SUITE_VERSION:
        raise DamagedError(f"its version is {shown(document.get('version'))}, not {SUITE_VERSION}")
    for benchmark in benchmarks:
        for run in _listed(benchmark, "runs", "a benchmark"):
            if not isinstance(run, dict):
                raise DamagedError(f"a run is {shown(run)}, not an object")
            for value in _listed(run, "values", "a run"):
                if not (is_number(value) and value > 0):
                    raise DamagedError(f"a value is {shown(value)}, not a number of seconds above 0")
            for warmup in run.get("warmups") or ():
                if not (isinstance(warmup, list) and len(warmup) == 2 and all(map(is_number, warmup))):
                    raise DamagedError(f"a warmup is {shown(warmup)}, not loops and seconds")
            _check_metadata(run)
        _check_metadata(benchmark)
    _check_metadata(document)


def _listed(holder: object, name: str, what: str) -> list[Any]:
    if not isinstance(holder, dict):
        raise DamagedError(f"{what} is {shown(holder)}, not an object")
    entries = holder.get(name)
    if not isinstance(entries, list) or not entries:
        raise DamagedError(f"{name} of {what} is {shown(entries)}, not a list of at least one")
    return entries


def _check_metadata(holder: Mapping[str, Any]) -> None:
    metadata = holder.get("metadata", {})
    if not isinstance(metadata, dict):
        raise DamagedError(f"metadata is {shown(metadata)}, not an object")
    if not isinstance(metadata.get("name", ""), str):
        raise DamagedError(f"metadata name is {shown(metadata['name'])}, not text")
    for name, value in metadata.items():
        if not (value.strip() if isinstance(value, str) else is_number(value)):
            raise DamagedError(f"metadata {shown(name)} is {shown(value)}, not text or a finite number")
