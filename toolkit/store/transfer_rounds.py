"""Transfer of a run's rounds between folders: `cut_block` exports new rounds, `RoundReceiver` stores and merges them.

A block holds the header of the run and its complete rounds from a given number on, as JSON of pyperf suites.  A
received block is a file of its own until it is merged into the suites.  A merge rewrites whole suites, which grow with
every round, so `SavePace` limits the share of time that merging may take.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit.bounded_reading import MIB, RESULTS, parse_json, read_bytes
from gilscope.toolkit.errors import BadFileError, LabelTakenError, ToolkitError
from gilscope.toolkit.records import DamagedError, shown
from gilscope.toolkit.store.checking import REMEDY, check_suite
from gilscope.toolkit.store.header import (
    HEADER,
    PENDING,
    cannot_save,
    lock_folder,
    parse_header,
    read_header,
    read_json,
    replace_file,
    suite_path,
)
from gilscope.toolkit.store.reading import read_suite, whole_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from gilscope.toolkit.model import Run

_PART = ".part"            # name, in that folder, of a block that is being written
MOST = 1024 * MIB          # largest JSON of a block: more than a suite may have, but bounded
SHARE = 0.05               # largest share of the time that merging may take
_LEVEL = 1                 # compression level: the fastest one shrinks JSON of numbers to a quarter
_ROUND = "gilscope_round"
_OWN = frozenset({"name", _ROUND})   # metadata that each run has for itself, never a whole suite


def cut_block(path: Path, since: int = 0) -> bytes:
    """Return the complete rounds from `since` on of the run in `path`, which may still be written, as a block.

    Raises:
        BadFileError: One of its files is missing or damaged.
    """
    # Read the header first: values are saved before it, so they are never older than the header.
    header = read_json(path / HEADER)
    try:
        done, labels = int(header["rounds_done"]), [str(build["label"]) for build in header["builds"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"{path / HEADER} is damaged or was edited: {error}{REMEDY}") from error
    suites = {label: _document(_chosen(_read_suite(suite_path(path, label)), range(since, done))) for label in labels}
    return _packed({"header": header, "suites": {label: suite for label, suite in suites.items() if suite}})


class SavePace:
    """Limits the share of time that all incoming runs together spend on merging blocks into suites."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start now; `clock` returns seconds."""
        self.clock = clock
        self._began = clock()
        self._spent = 0.0

    @property
    def has_time(self) -> bool:
        """True if blocks may be merged now."""
        return self._spent <= SHARE * (self.clock() - self._began)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Add the duration of the `with` block to the time spent."""
        began = self.clock()
        yield
        self._spent += self.clock() - began


class RoundReceiver:
    """The local copy of a run that is measured elsewhere; its folder is locked until `close`."""

    def __init__(self, path: Path, label: str, pace: SavePace | None = None) -> None:
        """Open the folder, which may be new, and merge the blocks that an earlier process left there.

        Args:
            path: The folder.
            label: The label of the run.
            pace: Shared by all runs that are received at the same time; None: this is the only one.

        Raises:
            LabelTakenError: Another process has locked the folder.
            BadFileError: A file in it is damaged.
            SaveError: The folder cannot be written.
        """
        self.path = path
        self._label = label
        self._pace = pace or SavePace()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = lock_folder(path)
        except OSError as error:
            raise cannot_save(path, error) from error
        try:
            self._count = max((int(block.name) for block in self._pending()), default=-1) + 1
            self.merge()
            self.run: Run | None = read_header(path) if (path / HEADER).exists() else None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Return the receiver itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    @property
    def rounds(self) -> int:
        """The number of stored rounds."""
        return self.run.rounds_done if self.run else 0

    def receive(self, block: bytes) -> Run:
        """Write a block to the disk, merge it if there is time, and return the header in it.

        Raises:
            BadFileError: It is no valid block; stored rounds stay unchanged.
            SaveError: The disk is full.
        """
        fields = _unpacked(block, f"what came for {self._label}")
        run = parse_header(fields["header"] | {"label": self._label}, self.path / HEADER)
        labels = {build.label for build in run.builds}
        if strangers := fields["suites"].keys() - labels:
            raise BadFileError(f"what came for {self._label} has values of {', '.join(map(shown, sorted(strangers)))}, "
                               "which it has no build of")
        folder = self.path / PENDING
        part = folder / _PART
        try:
            folder.mkdir(exist_ok=True)
            with part.open("wb") as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            part.rename(folder / f"{self._count:06d}")
        except OSError as error:
            raise cannot_save(self.path, error) from error
        self._count += 1
        self.run = run
        if self._pace.has_time:
            self.merge()
        return run

    def merge(self) -> None:
        """Merge the pending blocks into the suites.

        Raises:
            SaveError: The disk is full; stored rounds stay unchanged.
            BadFileError: A file is damaged.
        """
        if pending := self._pending():
            with self._pace.spending():
                self._merge(pending)

    def _merge(self, pending: Sequence[Path]) -> None:
        blocks = [_unpacked(read_bytes(file, RESULTS), str(file)) for file in pending]
        try:
            for label in {label: None for block in blocks for label in block["suites"]}:
                file = suite_path(self.path, label)
                received = [whole_runs(block["suites"].get(label, {})) for block in blocks]
                runs = _merged([_read_suite(file), *map(_runs, received)])
                replace_file(file, json.dumps(_document(runs), separators=(",", ":")))
            replace_file(self.path / HEADER, json.dumps(blocks[-1]["header"] | {"label": self._label}, indent=1))
            for merged in pending:
                merged.unlink()
            (self.path / PENDING / _PART).unlink(missing_ok=True)   # left by a write for which the disk had no room
            (self.path / PENDING).rmdir()
        except OSError as error:
            raise cannot_save(self.path, error) from error

    def _pending(self) -> list[Path]:
        return sorted(file for file in self.path.glob(f"{PENDING}/*") if file.name.isdecimal())

    def close(self) -> None:
        """Unlock the folder; pending blocks stay there."""
        self._lock.close()


def merge_pending(path: Path) -> None:
    """Merge the pending blocks of the run in the folder `path`, or of the hosts' runs below it.

    A receiver that was killed, or ran out of disk space, leaves such blocks behind.  A run that another process has
    locked is left to that process.

    Raises:
        SaveError: A run without any merged round cannot be written; all others are merged.
        BadFileError: The blocks of such a run are damaged; all others are merged.
    """
    failed: list[ToolkitError] = []
    for run in sorted(folder.parent for pattern in (PENDING, f"*/{PENDING}") for folder in path.glob(pattern)):
        try:
            RoundReceiver(run, "/".join(run.absolute().parts[-2:])).close()
        except LabelTakenError:
            continue
        except ToolkitError as error:
            if not (run / HEADER).exists():   # otherwise the rounds that were merged before can be shown
                failed.append(error)
    if failed:
        raise failed[0]


Runs = dict[str, dict[int, dict[str, Any]]]   # by benchmark and round: a pyperf run with its complete metadata


def _runs(whole: Iterable[tuple[str, dict[str, Any]]]) -> Runs:
    """Return the runs that `whole_runs` yields of a suite, by benchmark and round."""
    runs: Runs = {}
    for name, run in whole:
        try:
            runs.setdefault(name, {})[int(run["metadata"][_ROUND])] = run
        except (KeyError, ValueError, TypeError) as error:
            raise DamagedError(f"a run of it lacks what gilscope wrote ({error})") from error
    return runs


def _chosen(runs: Runs, numbers: range) -> Runs:
    chosen = {name: {number: run for number, run in each.items() if number in numbers} for name, each in runs.items()}
    return {name: each for name, each in chosen.items() if each}


def _merged(parts: Iterable[Runs]) -> Runs:
    """Return all runs; if several parts have the same round of a benchmark, the last part wins."""
    merged: Runs = {}
    for part in parts:
        for name, rounds in part.items():
            merged.setdefault(name, {}).update(rounds)
    return merged


def _document(runs: Runs) -> dict[str, Any]:
    """Return the suite with these runs, {} if there are none; metadata that all runs share is stored once."""
    if not runs:
        return {}
    all_runs = [run for each in runs.values() for run in each.values()]
    common = dict(all_runs[0]["metadata"])
    for run in all_runs:
        metadata = run["metadata"]
        common = {name: value for name, value in common.items()
                  if name not in _OWN and name in metadata and metadata[name] == value}
    return {"benchmarks": [_benchmark(name, each, common) for name, each in runs.items()], "metadata": common,
            "version": "1.0"}


def _benchmark(name: str, rounds: Mapping[int, dict[str, Any]], common: Mapping[str, Any]) -> dict[str, Any]:
    once = {*common, "name"}
    runs = [run | {"metadata": {key: value for key, value in run["metadata"].items() if key not in once}}
            for _, run in sorted(rounds.items())]
    return {"metadata": {"name": name}, "runs": runs}


def _read_suite(file: Path) -> Runs:
    """Return the suite in `file`, empty if there is none."""
    try:
        return _runs(read_suite(file)) if file.exists() else {}
    except DamagedError as error:
        raise BadFileError(f"{file} is damaged: {error}{REMEDY}") from error


def _packed(fields: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(fields, separators=(",", ":")).encode(), _LEVEL)


def _unpacked(block: bytes, where: str) -> dict[str, Any]:
    """Return the fields of a block, checked.

    Raises:
        BadFileError: It is no valid block.
    """
    try:
        unpacking = zlib.decompressobj()
        text = unpacking.decompress(block, MOST)
        if not unpacking.eof:
            raise DamagedError("it is cut off, or too large")
        fields = parse_json(text.decode())
        if not isinstance(fields, dict) or not all(isinstance(fields.get(key), dict) for key in ("header", "suites")):
            raise DamagedError("it is no block of rounds")
        for suite in fields["suites"].values():
            check_suite(suite)
            _runs(whole_runs(suite))
    except (ValueError, zlib.error) as error:
        raise BadFileError(f"{where} cannot be read: {error}") from error
    return fields
