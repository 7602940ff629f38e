"""The folder of a run, read: one pyperf suite per build, and `run.json` beside them.

The suites are read as the JSON that they are: importing pyperf, as `keeping` does to write them, takes longer.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_text
from gilscope.toolkit.errors import BadFileError
from gilscope.toolkit.model import Cell, Measurement
from gilscope.toolkit.records import DamagedError
from gilscope.toolkit.store.checking import REMEDY, check_suite, check_values
from gilscope.toolkit.store.header import HEADER, PENDING, read_header, suite_path
from gilscope.toolkit.store.labels import label_of
from gilscope.toolkit.store.run_metadata import from_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gilscope.toolkit.model import Build, Observation, Run


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
        for cell, _, observation in read_observations(path, build):
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


def read_observations(path: Path, build: Build) -> Iterator[tuple[Cell, dict[str, Any], Observation]]:
    """Yield each process that was measured on `build` in the run in `path`: its cell, pyperf's run, and observation.

    A pyperf run is the object that `whole_runs` yields.

    Raises:
        BadFileError: The suite is damaged.
    """
    file = suite_path(path, build.label)
    if not os.path.lexists(file):
        return
    for name, run in read_suite(file):
        try:
            cell = Cell.parse(name, build.label)
        except ValueError as error:
            raise BadFileError(f"{file}: {error}") from error
        try:
            observation = from_metadata(run["values"], run["metadata"])
        except (KeyError, ValueError, TypeError, OverflowError) as error:
            raise BadFileError(
                f"{file}: a run of {name} lacks what gilscope wrote ({error}); was it edited or converted?"
            ) from error
        yield cell, run, observation


def read_suite(file: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return what `whole_runs` yields of the suite in `file`.

    Raises:
        BadFileError: It is missing or damaged.
    """
    try:
        suite = parse_json(read_text(file, RESULTS))
        check_suite(suite)
        return [*whole_runs(suite)]
    except FileNotFoundError:
        raise BadFileError(f"{file} is a link to a missing file") from None
    except OSError as error:
        raise BadFileError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFileError(f"{file} is cut off or not a pyperf suite: {error}{REMEDY}") from error


def whole_runs(suite: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the run of each process in a checked suite, with the metadata that it shares with others.

    Raises:
        DamagedError: A run has no name.
    """
    for benchmark in suite.get("benchmarks", ()):
        common = suite.get("metadata", {}) | benchmark.get("metadata", {})
        for run in benchmark["runs"]:
            metadata = common | run.get("metadata", {})
            if "name" not in metadata:
                raise DamagedError("a run of it lacks its name")
            yield metadata["name"], run | {"metadata": metadata}
