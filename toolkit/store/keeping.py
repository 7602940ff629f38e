"""`results/<label>/`: one pyperf suite per build, and `run.json` beside them.

Every measured process is one pyperf run, so that pyperf's own commands can read the files; fields that pyperf lacks are
stored in the run's metadata under names that begin with `gilscope_`.  No derived number is stored.  Files are replaced
atomically: a reader, also after a crash, sees either the old or the new one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
from typing import IO, TYPE_CHECKING, Any

import pyperf

from gilscope.toolkit import metrics
from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError, SaveError, ToolkitError
from gilscope.toolkit.model import Build, Cell, Evidence, Measurement, Observation, Run
from gilscope.toolkit.records import DamagedError, shown
from gilscope.toolkit.store.checking import REMEDY, check_suite, check_values, observation_problems
from gilscope.toolkit.store.header import HEADER, header, lock_folder, read_header, replace_file, suite_path
from gilscope.toolkit.store.labels import RESULTS as RESULTS_FOLDER
from gilscope.toolkit.store.labels import label_of, label_path, label_taken, new_folder
from gilscope.toolkit.store.transfer_rounds import PENDING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

_PREFIX = "gilscope_"
_METRIC = "gilscope_metric_"
# pyperf does not check the files that it loads, so a file of another program may raise any of these.
_NO_SUITE = (ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, RuntimeError)


class Store:
    """Writes one run; its folder is locked until `close`."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        """Use `create` or `reopen` instead."""
        self.path = path
        self._lock = lock
        self._runs: dict[Cell, dict[int, pyperf.Run]] = {}
        self._observations: dict[Cell, dict[int, Observation]] = {}

    @staticmethod
    def refuse_taken(label: str, results: Path = RESULTS_FOLDER) -> None:
        """Refuse a label that is taken, before a new run is prepared.

        Raises:
            LabelTakenError: There is a run of that name.
        """
        path = label_path(label, results)
        if path.exists():
            raise label_taken(path)

    @classmethod
    def create(cls, label: str, results: Path = RESULTS_FOLDER) -> Store:
        """Create the folder of a new run.

        Raises:
            LabelTakenError: There is a run of that name.
            ToolkitError: The folder cannot be written.
        """
        return cls(*new_folder(label, results))

    @classmethod
    def reopen(cls, path: Path) -> tuple[Store, Run]:
        """Open an unfinished run to continue it, and return it with its complete rounds only.

        Raises:
            LabelTakenError: Another process is writing it.
            BadFileError: One of its files is damaged.
        """
        store = cls(path, lock_folder(path))
        try:
            run = load_run(path)
            for build in run.builds:
                store._load_rounds(path, build, run.rounds_done)
        except BaseException:
            store.close()
            raise
        failures = tuple(failure for failure in run.failures if failure.round < run.rounds_done)
        return store, dataclasses.replace(run, measurements=store.measurements(), failures=failures)

    def _load_rounds(self, path: Path, build: Build, rounds: int) -> None:
        for cell, pyperf_run, observation in _read_suite(path, build):
            # An interrupted round is repeated as a whole: continued later, it would mix two states of the machine.
            if observation.round < rounds:
                self._insert(cell, pyperf_run, observation)

    def add(self, cell: Cell, values: Path, details: Mapping[str, Any]) -> Observation:
        """Add the pyperf file `values` of one measured process; it replaces an earlier one of the same round.

        Args:
            cell: The measured cell.
            values: The file that pyperf's worker wrote: one benchmark with one run.
            details: The fields of `Observation` that pyperf does not store, and additional `metadata`.

        Raises:
            BadFileError: The file was deleted, cannot be read, or has an impossible value; the measured code may have
                overwritten it, or replaced the code that writes it.
            ToolkitError: The earlier rounds were measured on another machine or interpreter.
        """
        try:
            (run,) = pyperf.Benchmark.load(str(values)).get_runs()
            observation = _observation(run.values, details)
        except OSError as error:
            raise BadFileError(f"its values cannot be read: {error.strerror}") from error
        except _NO_SUITE as error:
            raise BadFileError(f"its values cannot be read ({type(error).__name__}): the measured code may have "
                               "overwritten them, or replaced the code that writes them") from error
        for problem in observation_problems(observation):
            raise BadFileError(f"a measured value is impossible: {problem}")
        metadata = dict(run.get_metadata())
        metadata |= dict(details.get("metadata", {})) | _to_metadata(observation)
        complete = pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)
        self._refuse_elsewhere(cell, complete)
        self._insert(cell, complete, observation)
        return observation

    def _refuse_elsewhere(self, cell: Cell, run: pyperf.Run) -> None:
        """Refuse a process of another machine, system or interpreter: pyperf stores no such mix in one benchmark."""
        others = self._runs.get(cell)
        if others:
            try:
                pyperf.Benchmark([next(iter(others.values())), run])
            except ValueError as error:
                raise ToolkitError(f"{self.path.name} cannot be continued here, because its rounds were measured on "
                                   f"another machine, system or interpreter ({error}): start a new run") from error

    def keep_files(self, cell: Cell, files: Mapping[str, str]) -> None:
        """Store the files, by name, that a measured process wrote beside its values; they replace earlier ones.

        Raises:
            SaveError: The disk is full or the folder is gone.
        """
        for name, path in files.items():
            target = file_path(self.path, cell, name)
            try:
                target.parent.mkdir(exist_ok=True)
                shutil.move(path, target)
            except OSError as error:
                raise SaveError(f"cannot save {target}: {error.strerror}") from error

    def _insert(self, cell: Cell, run: pyperf.Run, observation: Observation) -> None:
        self._runs.setdefault(cell, {})[observation.round] = run
        self._observations.setdefault(cell, {})[observation.round] = observation

    def observations(self, cell: Cell) -> Sequence[Observation]:
        """Return the observations of `cell` so far, in order of round."""
        rounds = self._observations.get(cell, {})
        return [rounds[key] for key in sorted(rounds)]

    def measurements(self) -> tuple[Measurement, ...]:
        """Return the measurements of all cells so far."""
        return tuple(
            Measurement(cell=cell, observations=tuple(rounds[key] for key in sorted(rounds)))
            for cell, rounds in self._observations.items()
        )

    def save(self, run: Run) -> None:
        """Write the suites, then run.json; `run.measurements` is ignored.

        Raises:
            SaveError: The disk is full, and the earlier files stay unchanged; or the folder is gone for good.
        """
        try:
            if not self.path.is_dir():
                self._make_again()
            for build in run.builds:
                self._save_suite(build.label)
            replace_file(self.path / HEADER, json.dumps(header(run), indent=1))
        except OSError as error:
            if not self.path.is_dir():
                raise SaveError(f"cannot save {self.path}: the folder was deleted and cannot be created again "
                                f"({error.strerror}); this run is lost") from error
            raise SaveError(
                f"cannot save {self.path.resolve()}: {error.strerror}; everything saved before is intact: free disk "
                f"space, then continue with --resume {self.path.name}"
            ) from error

    def _make_again(self) -> None:
        """Create the folder again after somebody deleted it: all values are still in memory."""
        self.path.mkdir(parents=True)
        self._lock.close()
        self._lock = lock_folder(self.path)

    def _save_suite(self, build: str) -> None:
        benchmarks = [
            pyperf.Benchmark([rounds[key] for key in sorted(rounds)])
            for cell, rounds in self._runs.items()
            if cell.build == build
        ]
        if not benchmarks:
            return
        part = self.path / f".{build}.json.part"
        try:
            with part.open("w") as file:
                pyperf.BenchmarkSuite(benchmarks).dump(file)
                file.flush()
                os.fsync(file.fileno())
            part.rename(suite_path(self.path, build))
        finally:
            part.unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()


def file_path(path: Path, cell: Cell, name: str) -> Path:
    """Return the path of the file `name` that a measured process of `cell` left in the run in `path`."""
    readable = re.sub(r"[^A-Za-z0-9._+=-]", "_", f"{cell.build}-{cell.name}")
    return path / "files" / f"{readable}-{name}"


def load_run(path: Path) -> Run:
    """Return the run in the folder `path`.

    Raises:
        BadFileError: A file is missing, damaged, of another format or of a later version; the message names it.
    """
    merging = (path / PENDING).exists()
    run = read_header(path)
    observations: dict[Cell, list[Observation]] = {}
    for build in run.builds:
        for cell, _pyperf_run, observation in _read_suite(path, build):
            # A merge replaces the suites before the header; it may be in progress, or may have been killed.
            if not merging or observation.round < run.rounds_done:
                observations.setdefault(cell, []).append(observation)
    measurements = tuple(
        Measurement(cell=cell, observations=tuple(sorted(each, key=lambda one: one.round)))
        for cell, each in observations.items()
    )
    run = dataclasses.replace(run, measurements=measurements, label=label_of(run.label, path))
    check_values(run, path / HEADER)
    return run


def _read_suite(path: Path, build: Build) -> Iterable[tuple[Cell, pyperf.Run, Observation]]:
    file = suite_path(path, build.label)
    if not os.path.lexists(file):
        return
    for benchmark in _load_suite(file).get_benchmarks():
        try:
            cell = Cell.parse(benchmark.get_name() or "", build.label)
        except ValueError as error:
            raise BadFileError(f"{file}: {error}") from error
        for run in benchmark.get_runs():
            try:
                yield cell, run, _from_metadata(run)
            except (KeyError, ValueError, TypeError, OverflowError) as error:
                raise BadFileError(
                    f"{file}: a run of {cell.name} lacks what gilscope wrote ({error}); was it edited or converted?"
                ) from error


def _load_suite(file: Path) -> pyperf.BenchmarkSuite:
    try:
        text = read_text(file, RESULTS)
        document = parse_json(text)
        if not isinstance(document, dict):
            raise DamagedError(f"it holds a {type(document).__name__}")
        check_suite(document)
        return pyperf.BenchmarkSuite.loads(text)
    except FileNotFoundError:
        raise BadFileError(f"{file} is a link to a missing file") from None
    except OSError as error:
        raise BadFileError(f"{file} cannot be read: {error.strerror}") from error
    except _NO_SUITE as error:
        problem = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise BadFileError(f"{file} is cut off or not a pyperf suite: {problem}{REMEDY}") from error


_OPTIONAL = ("gil_start", "gil_end", "gil_culprit", "demand", "tasks", "seconds", "hash_seed")
_LISTS: dict[str, type[float | int]] = {"cpu": float, "passes": int, "began": float}   # one for each value
_EVIDENCE = tuple(field.name for field in dataclasses.fields(Evidence))


def _observation(values: tuple[float, ...], details: Mapping[str, Any]) -> Observation:
    evidence = details.get("evidence", {})
    return Observation(
        round=details["round"],
        wall=tuple(values),
        cpu=tuple(details["cpu"]),
        loops=details["loops"],
        evidence=Evidence(**{name: evidence.get(name) for name in _EVIDENCE}),
        starved=details["starved"],
        retakes=details.get("retakes", 0),
        metrics=tuple(sorted(dict(details.get("metrics", {})).items())),
        passes=tuple(details.get("passes", ())),
        began=tuple(details.get("began", ())),
        again=details.get("again", 0),
        **{name: details.get(name) for name in _OPTIONAL},
    )


def _to_metadata(observation: Observation) -> dict[str, str | int | float]:
    fields: dict[str, Any] = {
        "round": observation.round,
        "retakes": observation.retakes,
        "starved": observation.starved,
        **{name: " ".join(map(repr, getattr(observation, name))) or None for name in _LISTS},
        "again": observation.again or None,
        **{name: getattr(observation.evidence, name) for name in _EVIDENCE},
        **{name: getattr(observation, name) for name in _OPTIONAL},
    }
    # pyperf accepts str, int and float only; unknown fields are left out.
    known = {
        _PREFIX + name: ("yes" if value else "no") if isinstance(value, bool) else value
        for name, value in fields.items()
        if value is not None
    }
    return known | {_metric_key(name): value for name, value in observation.metrics}


def _metric_key(name: str) -> str:
    return (_PREFIX if metrics.find_metric(name) else _METRIC) + name


def _from_metadata(run: pyperf.Run) -> Observation:
    metadata = run.get_metadata()
    fields = {name.removeprefix(_PREFIX): value for name, value in metadata.items() if name.startswith(_PREFIX)}
    details: dict[str, Any] = {name: fields.get(name) for name in _OPTIONAL}
    for name in ("gil_start", "gil_end"):
        details[name] = None if details[name] is None else _yes_or_no(fields, name)
    details |= {
        "round": _whole(fields["round"], "round"),
        "retakes": _whole(fields["retakes"], "retakes"),
        "starved": _yes_or_no(fields, "starved"),
        **{name: [kind(each) for each in str(fields.get(name, "")).split()] for name, kind in _LISTS.items()},
        "again": _whole(fields.get("again", 0), "again"),
        "evidence": {name: fields.get(name) for name in _EVIDENCE},
        "loops": run.get_total_loops(),
        "metrics": {
            name.removeprefix(_METRIC): value for name, value in metadata.items() if name.startswith(_METRIC)
        } | {
            each.name: fields[each.name] for each in metrics.CELL_METRICS if each.name in fields
        },
    }
    return _observation(run.values, details)


def _yes_or_no(fields: Mapping[str, Any], name: str) -> bool:
    if fields[name] not in {"yes", "no"}:
        raise ValueError(f"{_PREFIX}{name} is {shown(fields[name])}, not yes or no")
    return bool(fields[name] == "yes")


def _whole(value: object, name: str) -> int:
    if not isinstance(value, int):   # int() would turn 1.5 into 1
        raise ValueError(f"{_PREFIX}{name} is {shown(value)}, not a whole number")  # noqa: TRY004 - an error of the file
    return value
