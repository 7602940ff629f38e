"""What is read of a run, checked whole before anything is computed of it.

A damaged value that is believed changes a number without a word.  Every message names file and field.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import types
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.model import ENDINGS, MOST_LOOKS, Cell, Run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Measurement, Observation

EXPERIMENT = "experiment"   # the option that only an experiment's run has
REMEDY = "; take the file from a copy or measure again"
LARGEST = 2**63        # of a whole number: nothing that is counted here comes near it
MOST_SECONDS, LEAST_SECONDS = 1e10, 1e-12   # since the epoch or of a value; nothing that is timed is outside of it
MOST_METRIC = 1e18     # of what an experiment counts or times
MOST_WORKERS = 100_000
MOST_ROUNDS = 1_000_000
_LABEL = re.compile(r"[^\s/\x00-\x1f.-][^/\x00-\x1f]{0,199}")   # of a build: it is a file's name
_VERSION = re.compile(r"3\.\d{1,3}\.\d{1,3}[\w.+-]{0,40}")   # it is a folder's name, too
_SHOWN = 60            # characters of a value that is not as it should be
_WORDS: dict[Any, str] = {str: "text", int: "a whole number", float: "a finite number", bool: "true or false",
                          types.NoneType: "null"}


class DamagedError(ValueError):
    """A field that does not hold what gilscope writes there; says which and what."""


def shown(value: object) -> str:
    """Return a value as a message shows it: on one line, and not all of a large one."""
    try:
        text = ascii(value)
    except (ValueError, RecursionError):   # a number of more digits than Python writes, a list of too many floors
        return f"a {type(value).__name__} too large to show"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def finite(value: object) -> bool:
    """Return whether `value` is a number that a float can hold, and no infinity."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_time(value: object, least: float = 0.0) -> bool:
    return finite(value) and least <= value <= MOST_SECONDS   # type: ignore[operator]  # it is a number


def typed(cls: type, fields: object, where: str) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON holds them, all there and each of its type.

    Raises:
        DamagedError: one is missing, unknown or of another type.
    """
    if not isinstance(fields, dict):
        raise DamagedError(f"{where} is {shown(fields)}, not an object")
    hints = _hints(cls)
    if unknown := [name for name in fields if name not in hints]:
        raise DamagedError(f"{where} has an unknown field {shown(unknown[0])}")
    for field in dataclasses.fields(cls):
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in fields:
            if optional:
                continue
            raise DamagedError(f"{where} lacks {field.name}")
        if not _fits(fields[field.name], hints[field.name]):
            raise DamagedError(f"{where}.{field.name} is {shown(fields[field.name])}, not {_words(hints[field.name])}")
    return fields


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _words(hint: Any) -> str:
    if get_origin(hint) is types.UnionType:
        return " or ".join(map(_words, get_args(hint)))
    if _is_choice(hint):
        return " or ".join(hint)
    return _WORDS.get(hint) or ("a list" if get_origin(hint) is tuple else "an object")


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is types.UnionType:
        return any(_fits(value, each) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, list | tuple) and _all_fit(value, get_args(hint))
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool) and -LARGEST < value < LARGEST
    if hint is float:
        return finite(value)
    if _is_choice(hint):
        return value in tuple(hint)
    as_json = dict if origin is dict or dataclasses.is_dataclass(hint) else hint
    return isinstance(value, as_json)


def _is_choice(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, StrEnum)


def _all_fit(values: Sequence[Any], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return all(_fits(each, hints[0]) for each in values)
    return len(values) == len(hints) and all(map(_fits, values, hints))


def check_header(run: Run, file: Path) -> None:
    """Check what run.json says by itself.

    Raises:
        BadFileError: something of it cannot be.
    """
    _raise_first(file, _header_problems(run))


def check_values(run: Run, file: Path) -> None:
    """Check the values of a run against what its header says of it.

    Raises:
        BadFileError: something of it cannot be; `file` is the header's.
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
        f"stopped is {shown(run.stopped)}, not one of {', '.join(ENDINGS)}": run.stopped in ENDINGS,
        f"rounds_planned is {run.rounds_planned}": 0 < run.rounds_planned <= MOST_ROUNDS,
        f"rounds_done is {run.rounds_done} of {run.rounds_planned} planned": 0 <= run.rounds_done <= run.rounds_planned,
        f"looks is {run.looks}": 0 <= run.looks <= MOST_LOOKS,
        f"machine.cores is {run.machine.cores}": run.machine.cores > 0,
        f"machine.memory_bytes is {run.machine.memory_bytes}": (run.machine.memory_bytes or 0) >= 0,
    }
    yield from (problem for problem, fine in allowed.items() if not fine)
    yield from _option_problems(run.options)
    yield from (f"cells has {cell.name} on {cell.build} {count} times"
                for cell, count in Counter(run.cells).items() if count > 1)
    mentioned = [*run.cells, *run.answered, *(each.cell for each in run.skips), *(each.cell for each in run.failures)]
    yield from filter(None, (_cell_problem(cell, labels) for cell in mentioned))
    yield from (f"failures has round {failure.round} of {run.rounds_done} done, of {failure.cell.name}"
                for failure in run.failures if not 0 <= failure.round <= run.rounds_done)


_OPTIONS: dict[str, tuple[type, str]] = {
    "selection": (dict, "an object"), "settings": (dict, "an object"), "units": (list, "a list"),
    "paths": (list, "a list"), "packages": (list, "a list"), "experiment": (str, "text"), "effort": (str, "text"),
}


_LEAST = {"rounds": 1, "values": 1, "warmups": 0, "retakes": 0, "min_seconds": 0, "timeout": 0, "budget": 0,
          "resolution": 0, "shared_by": 1}


def _option_problems(options: Mapping[str, Any]) -> Iterable[str]:
    """Yield what is wrong with what reports read of the options; what --resume needs is checked there."""
    for name, (kind, words) in _OPTIONS.items():
        if name in options and not isinstance(options[name], kind):
            yield f"options.{name} is {shown(options[name])}, not {words}"
            return
    for unit in options.get("units", ()):
        if not (isinstance(unit, list) and _all_fit(unit, (str, float, int, int)) and min(unit[1:]) > 0):
            yield f"options.units has {shown(unit)}, not a workload, seconds, units and tasks"
    # An experiment has them beside its name.
    for where, settings in (("options", options), ("options.settings", options.get("settings", {}))):
        for name, least in _LEAST.items():
            number = settings.get(name)
            if number is not None and not (finite(number) and least <= number <= LARGEST):
                yield f"{where}.{name} is {shown(number)}, not a number from {least} on"


def _label_problems(labels: Sequence[str]) -> Iterable[str]:
    if not labels:
        yield "builds is empty"
    for label, count in Counter(labels).items():
        if count > 1:
            yield f"builds has {shown(label)} {count} times"
        if not _LABEL.fullmatch(label):
            yield f"builds has the label {shown(label)}, which cannot be a file's name"


def _cell_problem(cell: Cell, labels: Collection[str]) -> str:
    """Return what is wrong with a cell, "" when nothing is."""
    if cell.build not in labels:
        return f"{cell.name} is on {shown(cell.build)}, which is none of its builds ({', '.join(labels)})"
    if not 0 <= cell.workers <= MOST_WORKERS:   # an experiment has cells with none beside
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
        for problem in observation_problems(observation):
            yield f"{cell.name}, round {observation.round}: {problem}"
        # What an experiment measures may have no CPU time; the main job always does.
        if EXPERIMENT not in run.options and not observation.cpu:
            yield f"{cell.name}, round {observation.round}: it has no gilscope_cpu"


_COUNTS = (("loops", 1), ("retakes", 0), ("again", 0), ("tasks", 1), ("rss_bytes", 0), ("pss_bytes", 0),
           ("involuntary_switches", 0))


def observation_problems(seen: Observation) -> Iterable[str]:
    """Yield what cannot be in what one process measured."""
    yield from _list_problems(seen)
    numbers = {name: getattr(seen, name) for name in ("demand", "seconds")} | dataclasses.asdict(seen.evidence)
    for name, least in _COUNTS:
        count = numbers.pop(name) if name in numbers else getattr(seen, name)
        if count is not None and not (_fits(count, int) and count >= least):
            yield f"{name} is {shown(count)}, not a whole number from {least} on"
    for name, number in numbers.items():
        if number is not None and not _is_time(number):
            yield f"{name} is {shown(number)}, not a number from 0 to {MOST_SECONDS:g}"
    for name, metric in seen.metrics:
        if not isinstance(metric, str) and not (finite(metric) and abs(metric) <= MOST_METRIC):
            yield f"metric {shown(name)} is {shown(metric)}"
    if seen.gil_culprit is not None and not isinstance(seen.gil_culprit, str):
        yield f"gil_culprit is {shown(seen.gil_culprit)}, not text"


def _list_problems(seen: Observation) -> Iterable[str]:
    """Yield what is wrong with that of which there is one for each value."""
    if not seen.wall:
        yield "it has no values"
    if bad := [each for each in seen.wall if not _is_time(each, LEAST_SECONDS)]:
        yield f"a value is {shown(bad[0])}, not a number of seconds above 0 and up to {MOST_SECONDS:g}"
    for name in ("cpu", "passes", "began"):
        numbers = getattr(seen, name)
        if len(numbers) not in {0, len(seen.wall)}:
            yield f"gilscope_{name} has {len(numbers)} numbers for {len(seen.wall)} values"
        if bad := [each for each in numbers if each != 0 and not _is_time(each, LEAST_SECONDS)]:
            yield f"gilscope_{name} has {shown(bad[0])}, not a number from 0 to {MOST_SECONDS:g}"
    if len(set(seen.passes)) < len(seen.passes):
        yield f"gilscope_passes is {shown(seen.passes)}, not a pass of its own for each value"


def _round_problems(run: Run) -> Iterable[str]:
    """Yield what does not fit between rounds.

    Cells may have fewer rounds than others: they failed, their answer was clear, or the first round was cut short.
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
    # Where rounds go to open cells alone, A/A arms may be there for the noise of others, without their own baseline.
    twins = {cell for cell in rounds if cell.twin and run.looks}
    checks = twins | {dataclasses.replace(cell, twin=False) for cell in twins}
    for cell, own in rounds.items():
        base = dataclasses.replace(cell, runner=run.baseline, workers=1, twin=False)
        if base not in run.cells or base in failed | skipped or cell in checks:
            continue
        # The first round may have been cut before its baseline; the one after the last may be in progress.
        if lost := sorted(each for each in own - rounds.get(base, set()) if 0 < each < run.rounds_done):
            yield f"{cell.name} on {cell.build} has a value of round {lost[0]}, and its baseline has none"


def check_suite(document: Mapping[str, Any]) -> None:
    """Check the shape of a pyperf suite, as pyperf does not; raise where it is another.

    Raises:
        DamagedError: something is missing or of another type.
    """
    for benchmark in _listed(document, "benchmarks", "the suite"):
        for run in _listed(benchmark, "runs", "a benchmark"):
            if not isinstance(run, dict):
                raise DamagedError(f"a run is {shown(run)}, not an object")
            for value in _listed(run, "values", "a run"):
                if not (finite(value) and value > 0):
                    raise DamagedError(f"a value is {shown(value)}, not a number of seconds above 0")
            for warmup in run.get("warmups") or ():
                if not (isinstance(warmup, list) and len(warmup) == 2 and all(map(finite, warmup))):  # noqa: PLR2004
                    raise DamagedError(f"a warmup is {shown(warmup)}, not loops and seconds")
            _check_metadata(run)
        _check_metadata(benchmark)
    _check_metadata(document)


def _listed(holder: object, name: str, what: str) -> list[Any]:
    if not isinstance(holder, dict):
        raise DamagedError(f"{what} is {shown(holder)}, not an object")
    found = holder.get(name)
    if not isinstance(found, list) or not found:
        raise DamagedError(f"{name} of {what} is {shown(found)}, not a list of at least one")
    return found


def _check_metadata(holder: Mapping[str, Any]) -> None:
    found = holder.get("metadata", {})
    if not isinstance(found, dict):
        raise DamagedError(f"metadata is {shown(found)}, not an object")
    if not isinstance(found.get("name", ""), str):
        raise DamagedError(f"metadata name is {shown(found['name'])}, not text")
    for name, value in found.items():
        if not isinstance(value, str) and not finite(value):
            raise DamagedError(f"metadata {shown(name)} is {shown(value)}, not text or a finite number")
