"""The folder of a run, written: one pyperf suite per build, and `run.json` beside them.

Every measured process is one pyperf run, so that pyperf's own commands can read the files; fields that pyperf lacks are
metadata, see `run_metadata`.  Files are replaced atomically: a reader, also after a crash, sees either the old or the
new one.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyperf

from gilscope.toolkit.errors import BadFileError, SaveError, ToolkitError
from gilscope.toolkit.model import Measurement
from gilscope.toolkit.store.checking import REMEDY, observation_problems
from gilscope.toolkit.store.header import HEADER, cannot_save, header, lock_folder, replace_file, suite_path
from gilscope.toolkit.store.labels import label_path, label_taken, make_folder, new_folder
from gilscope.toolkit.store.reading import file_path, load_run, read_observations
from gilscope.toolkit.store.run_metadata import make_observation, to_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gilscope.toolkit.model import Build, Cell, Observation, Run

# The metadata of pyperf that are alike for all processes of a run, whatever their interpreter.
_OF_THE_MACHINE = ("aslr", "cpu_config", "cpu_count", "cpu_model_name", "hostname", "perf_version", "platform")
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
        self._machine: dict[str, str | int | float] = {}

    @staticmethod
    def refuse_taken(label: str, results: Path | None = None) -> None:
        """Refuse a label that is taken, before a new run is prepared.

        Raises:
            LabelTakenError: There is a run of that name.
        """
        path = label_path(label, results)
        if path.exists():
            raise label_taken(path)

    @classmethod
    def create(cls, label: str, results: Path | None = None) -> Store:
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
        for cell, run, observation in read_observations(path, build):
            # An interrupted round is repeated as a whole: continued later, it would mix two states of the machine.
            if observation.round < rounds:
                try:
                    self._insert(cell, _pyperf_run(run), observation)
                except ValueError as error:
                    raise BadFileError(f"{suite_path(path, build.label)}: a run of {cell.name} is none of pyperf's "
                                       f"({error}){REMEDY}") from error

    def add(self, cell: Cell, values: Path | Sequence[float], details: Mapping[str, Any]) -> Observation:
        """Add the values of one measured process; they replace earlier ones of the same round.

        Args:
            cell: The measured cell.
            values: The file that pyperf's worker wrote, one benchmark with one run; or seconds, of a process in which
                pyperf did not run.
            details: The fields of `Observation` that pyperf does not store, and additional `metadata`.

        Raises:
            BadFileError: The file was deleted, cannot be read, or has an impossible value; the measured code may have
                overwritten it, or replaced the code that writes it.
            ToolkitError: The earlier rounds were measured on another machine or interpreter.
        """
        try:
            run = self._read(values) if isinstance(values, Path) else self._made(cell, values)
            observation = make_observation(run.values, details)
        except OSError as error:
            raise BadFileError(f"its values cannot be read: {error.strerror}") from error
        except _NO_SUITE as error:
            raise BadFileError(f"its values cannot be read ({type(error).__name__}): the measured code may have "
                               "overwritten them, or replaced the code that writes them") from error
        for problem in observation_problems(observation):
            raise BadFileError(f"a measured value is impossible: {problem}")
        metadata = dict(run.get_metadata())
        metadata |= dict(details.get("metadata", {})) | to_metadata(observation)
        complete = pyperf.Run(run.values, warmups=run.warmups, metadata=metadata, collect_metadata=False)
        self._refuse_elsewhere(cell, complete)
        self._insert(cell, complete, observation)
        return observation

    @staticmethod
    def _read(file: Path) -> pyperf.Run:
        (run,) = pyperf.Benchmark.load(str(file)).get_runs()
        return run

    def _made(self, cell: Cell, values: Sequence[float]) -> pyperf.Run:
        """Return a run with what pyperf says of this machine; of the interpreter, `details` say all."""
        if not self._machine:
            collected = pyperf.Run([1.0], metadata={"name": "machine"}, collect_metadata=True).get_metadata()
            self._machine = {name: collected[name] for name in _OF_THE_MACHINE if name in collected}
        return pyperf.Run(list(values), metadata={**self._machine, "name": cell.name, "loops": 1, "unit": "second"},
                          collect_metadata=False)

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
            raise cannot_save(self.path, error, self.path.name) from error

    def _make_again(self) -> None:
        """Create the folder again after somebody deleted it: all values are still in memory."""
        make_folder(self.path)
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


def _pyperf_run(plain: Mapping[str, Any]) -> pyperf.Run:
    """Return the run of `read_observations` as pyperf's.

    Raises:
        ValueError: pyperf refuses its metadata or warm-ups.
    """
    return pyperf.Run(plain["values"], warmups=[*map(tuple, plain.get("warmups") or ())], metadata=plain["metadata"],
                      collect_metadata=False)
