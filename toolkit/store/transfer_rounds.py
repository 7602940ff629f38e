"""Rounds of a run on their way from one folder to another: cut out there, kept here as they come, put into its files.

What travels is a block: the header of the run and the complete rounds from some number on, as JSON of pyperf suites.
Here each block is a file of its own until it is put into the suites, whose size grows with every round: that is done
at once while it is quick, and seldom where it would take the time of who waits for the next block.
"""

from __future__ import annotations

import json
import os
import time
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from gilscope.toolkit.bounded_reading import MIB, RESULTS, parse_json, read_bytes, read_text
from gilscope.toolkit.errors import BadFileError, LabelTakenError, SaveError, ToolkitError
from gilscope.toolkit.store.checking import REMEDY, DamagedError, check_suite, shown
from gilscope.toolkit.store.header import (
    HEADER,
    locked,
    parse_header,
    read_header,
    read_json,
    replace_file,
    suite_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from gilscope.toolkit.model import Run

WAITING = ".blocks"        # the folder of the blocks that are not in the suites yet
_PART = ".part"            # in it, a block that is being written
MOST = 1024 * MIB          # of a block's JSON: more than a suite may have, and an end
SHARE = 0.05               # of the time may go to putting blocks into suites
_LEVEL = 1                 # of compression: JSON of numbers shrinks to a quarter, and nobody waits long
_ROUND = "gilscope_round"
_OWN = frozenset({"name", _ROUND})   # never said once for all benchmarks of a suite


def cut(path: Path, since: int = 0) -> bytes:
    """Return what the run in `path`, which may be being written, has of complete rounds from `since` on, as a block.

    Raises:
        BadFileError: a file of it is missing or damaged.
    """
    # First the header: values are saved before it, so they are never older than what it says of them.
    header = read_json(path / HEADER)
    try:
        done, labels = int(header["rounds_done"]), [str(build["label"]) for build in header["builds"]]
    except (KeyError, TypeError, ValueError) as error:
        raise BadFileError(f"{path / HEADER} is damaged or was edited: {error}{REMEDY}") from error
    suites = {label: _document(_chosen(_read_suite(suite_path(path, label)), range(since, done))) for label in labels}
    return _packed({"header": header, "suites": {label: suite for label, suite in suites.items() if suite}})


class Pace:
    """How much of the time has gone into putting blocks into suites, of all runs that come in together."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now; `clock` gives seconds."""
        self.clock = clock
        self._began = clock()
        self._spent = 0.0

    @property
    def has_time(self) -> bool:
        """Whether some may go into it now."""
        return self._spent <= SHARE * (self.clock() - self._began)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """Count what the block takes."""
        began = self.clock()
        yield
        self._spent += self.clock() - began


class Arriving:
    """The run in a folder that gets its rounds from elsewhere; held until it is closed."""

    def __init__(self, path: Path, label: str, pace: Pace | None = None) -> None:
        """Open the folder, which may be new.

        Args:
            path: The folder.
            label: Of the run.
            pace: Of all that come in together; None: this one comes alone.

        Raises:
            LabelTakenError: another process holds it.
            BadFileError: what is there is damaged.
            SaveError: it cannot be written.
        """
        self.path = path
        self._label = label
        self._pace = pace or Pace()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = locked(path)
        except OSError as error:
            raise _cannot_save(path, error) from error
        try:
            self._count = max((int(each.name) for each in self._blocks()), default=-1) + 1
            self.put()
            self.run: Run | None = read_header(path) if (path / HEADER).exists() else None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """Hold it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go."""
        self.close()

    @property
    def rounds(self) -> int:
        """How many rounds are kept."""
        return self.run.rounds_done if self.run else 0

    def keep(self, block: bytes) -> Run:
        """Keep a block on the disk and return the header in it.

        Raises:
            BadFileError: it is no block, or says what cannot be; what is kept stays as it was.
            SaveError: the disk is full.
        """
        fields = _unpacked(block, f"what came for {self._label}")
        run = parse_header(fields["header"] | {"label": self._label}, self.path / HEADER)
        labels = {build.label for build in run.builds}
        if strangers := fields["suites"].keys() - labels:
            raise BadFileError(f"what came for {self._label} has values of {', '.join(map(shown, sorted(strangers)))}, "
                               "which it has no build of")
        waiting = self.path / WAITING
        part = waiting / _PART
        try:
            waiting.mkdir(exist_ok=True)
            with part.open("wb") as file:
                file.write(block)
                file.flush()
                os.fsync(file.fileno())
            part.rename(waiting / f"{self._count:06d}")
        except OSError as error:
            raise _cannot_save(self.path, error) from error
        self._count += 1
        self.run = run
        if self._pace.has_time:
            self.put()
        return run

    def put(self) -> None:
        """Put the blocks that wait into the suites.

        Raises:
            SaveError: the disk is full; what was kept before is whole.
            BadFileError: a file is damaged.
        """
        if waiting := self._blocks():
            with self._pace.spending():
                self._put(waiting)

    def _put(self, waiting: Sequence[Path]) -> None:
        blocks = [_unpacked(read_bytes(each, RESULTS), str(each)) for each in waiting]
        try:
            for label in {label: None for block in blocks for label in block["suites"]}:
                file = suite_path(self.path, label)
                runs = _merged([_read_suite(file), *(_runs(block["suites"].get(label, {})) for block in blocks)])
                replace_file(file, json.dumps(_document(runs), separators=(",", ":")))
            replace_file(self.path / HEADER, json.dumps(blocks[-1]["header"] | {"label": self._label}, indent=1))
            for each in waiting:
                each.unlink()
            (self.path / WAITING / _PART).unlink(missing_ok=True)   # of a block that the disk had no room for
            (self.path / WAITING).rmdir()
        except OSError as error:
            raise _cannot_save(self.path, error) from error

    def _blocks(self) -> list[Path]:
        return sorted(each for each in self.path.glob(f"{WAITING}/*") if each.name.isdecimal())

    def close(self) -> None:
        """Let another process write."""
        self._lock.close()


def put_waiting(path: Path) -> None:
    """Put what waits of the run in the folder `path`, or of the hosts below it, into their files.

    Who kept it may have been killed, or had no room on the disk.  What another process is at is left to that.

    Raises:
        SaveError: it cannot be written, and nothing of that run is in its files; the others are done.
        BadFileError: likewise, as it is damaged.
    """
    failed: list[ToolkitError] = []
    for run in sorted(waiting.parent for pattern in (WAITING, f"*/{WAITING}") for waiting in path.glob(pattern)):
        try:
            Arriving(run, "/".join(run.absolute().parts[-2:])).close()
        except LabelTakenError:
            continue
        except ToolkitError as error:
            if not (run / HEADER).exists():   # else what is in the files can be shown
                failed.append(error)
    if failed:
        raise failed[0]


Runs = dict[str, dict[int, dict[str, Any]]]   # benchmark, round: a run of pyperf's with all of its metadata


def _runs(suite: Mapping[str, Any]) -> Runs:
    """Return the runs of a suite, each with what the suite says once for several."""
    found: Runs = {}
    for benchmark in suite.get("benchmarks", ()):
        common = suite.get("metadata", {}) | benchmark.get("metadata", {})
        for run in benchmark["runs"]:
            metadata = common | run.get("metadata", {})
            try:
                found.setdefault(metadata["name"], {})[int(metadata[_ROUND])] = run | {"metadata": metadata}
            except (KeyError, ValueError, TypeError) as error:
                raise DamagedError(f"a run of it lacks what gilscope wrote ({error})") from error
    return found


def _chosen(runs: Runs, numbers: range) -> Runs:
    chosen = {name: {number: run for number, run in each.items() if number in numbers} for name, each in runs.items()}
    return {name: each for name, each in chosen.items() if each}


def _merged(parts: Iterable[Runs]) -> Runs:
    """Return all runs; of one benchmark and round, that of the later part."""
    merged: Runs = {}
    for part in parts:
        for name, rounds in part.items():
            merged.setdefault(name, {}).update(rounds)
    return merged


def _document(runs: Runs) -> dict[str, Any]:
    """Return the suite with these runs; {} of none.  What all of them say stands once."""
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
    """Return what the suite in `file` holds, nothing where there is none."""
    try:
        suite = parse_json(read_text(file, RESULTS))
        check_suite(suite)
        return _runs(suite)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise BadFileError(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadFileError(f"{file} is cut off or not a pyperf suite: {error}{REMEDY}") from error


def _packed(fields: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(fields, separators=(",", ":")).encode(), _LEVEL)


def _unpacked(block: bytes, where: str) -> dict[str, Any]:
    """Return the fields of a block, checked.

    Raises:
        BadFileError: it is none.
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
            _runs(suite)
    except (ValueError, zlib.error) as error:
        raise BadFileError(f"{where} cannot be read: {error}") from error
    return fields


def _cannot_save(path: Path, error: OSError) -> SaveError:
    return SaveError(f"cannot save {path.resolve()}: {error.strerror}; what was saved before is whole: make room, then "
                     "go on with --resume")
