"""What an evaluation has measured, kept so that nothing is measured twice: each part by itself, in the cache folder.

A part counts as long as no file of the project, no variable that one of them names, no build, no option that it
depends on and no file of gilscope's own has changed, and for a day: versions of packages are chosen anew then.  It is
plain data: reading it runs nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import stat
import time
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gilscope.toolkit
from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_bytes
from gilscope.toolkit.builds.packages.stamp import identity
from gilscope.toolkit.builds.user_dirs import cache_dir
from gilscope.toolkit.evaluate import serialization
from gilscope.toolkit.evaluate.packages.install.eviction import EVALUATIONS, KEPT_SECONDS
from gilscope.toolkit.evaluate.packages.install.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.extensions.facts import OwnBuild
from gilscope.toolkit.evaluate.project.fingerprint import digest, made_by_the_run, sums, variables
from gilscope.toolkit.evaluate.project.suite.running import UNFINISHED
from gilscope.toolkit.evaluate.sections import NO_TIME, MachineFacts, Missing, Races, TestRun
from gilscope.toolkit.store.header import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Build

STATE = "state.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of an evaluation, as it was measured before."""

    value: Any
    made: float         # seconds since the epoch


class Kept:
    """The parts of the evaluations of one project."""

    def __init__(
        self, root: Path, builds: Sequence[Build], *, fresh: bool = False, outputs: Iterable[Path] = (),
    ) -> None:
        """Look at the files of the project in `root`; with `fresh` nothing of before counts.

        Args:
            root: The project's folder.
            builds: All that anything is measured on.
            fresh: Measure everything anew.
            outputs: Files that this call writes; they are no part of the project.
        """
        self._root = root
        self.fresh = fresh
        self._folder = _folder() / hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.doubt = _doubt(self._folder)   # why nothing that is there is used; "": it is
        self._others: tuple[str, ...] = (_own_sum(), *sorted(f"{build.label} {identity(build)}" for build in builds))
        self._state = self._read()
        ours = {str(path.resolve().relative_to(root)) for path in outputs if path.resolve().is_relative_to(root)}
        self._ignored: set[str] = {*self._state["ignored"], *ours}
        self._before = self._sums()
        self._others += variables(root, self._before, os.environ)
        self._made: dict[str, tuple[str, ...]] = {}   # what was measured by this call, with what it depends on
        if self._state["parts"] and not ours <= set(self._state["ignored"]):
            with contextlib.suppress(OSError):
                self._save()   # they are there in the next call, which may write none

    def get(self, name: str, *depends: str) -> Part | None:
        """Return a part when nothing that it depends on has changed, `depends` included."""
        told = self._told(name, depends)
        if not told or told["open"]:
            return None
        try:
            text = read_bytes(self._file(_key(name, depends)), RESULTS).decode()
            return Part(value=serialization.loads(text), made=told["made"])
        except (OSError, ValueError):
            return None   # damaged, or of another version: measured again

    def open(self, name: str, *depends: str) -> str:
        """Return why a part was not kept though nothing has changed since it was measured; "": it was, or never was."""
        return str(self._told(name, depends).get("open", ""))

    def _told(self, name: str, depends: tuple[str, ...]) -> Mapping[str, Any]:
        """Return what is known of a part that still counts; nothing of one that does not."""
        told: dict[str, Any] = self._state["parts"].get(_key(name, depends), {})
        if self.fresh or told.get("stamp") != self._stamp(depends) or told["made"] < time.time() - FRESH_SECONDS:
            return {}
        return told

    def put(self, name: str, value: Any, *depends: str) -> None:
        """Keep a part, or why it has to be measured again; that it cannot be written costs nobody an answer."""
        key = _key(name, depends)
        self._made[key] = depends
        # What tests write into the project's folder is there the next time, too.
        self._ignored |= made_by_the_run(self._before, self._sums())
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            why = left_open(value)
            if not why:
                replace_file(self._file(key), serialization.dumps(value))
            self._write(key, why)

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.json"

    def _write(self, key: str, why: str) -> None:
        parts = self._state["parts"]
        parts[key] = {"made": time.time(), "open": why}
        for each, depends in self._made.items():
            parts[each]["stamp"] = self._stamp(depends)
        self._save()

    def _save(self) -> None:
        self._state["ignored"] = sorted(self._ignored)
        replace_file(self._folder / STATE, json.dumps(self._state))

    def _sums(self) -> dict[str, str]:
        cached = cache_dir()   # which somebody may keep in the project's folder
        return {name: summed for name, summed in sums(self._root).items()
                if not (self._root / name).is_relative_to(cached)}

    def stamp(self) -> str:
        """Return a sum of all that any part depends on."""
        return self._stamp(())

    def _stamp(self, depends: tuple[str, ...]) -> str:
        files = {name: summed for name, summed in self._before.items() if name not in self._ignored}
        return digest(files, *self._others, *depends)

    def _read(self) -> dict[str, Any]:
        remove_old()
        if self.doubt:
            return {"parts": {}, "ignored": []}
        try:
            state = parse_json(read_bytes(self._folder / STATE).decode())
            return {"parts": {str(key): {"stamp": str(told["stamp"]), "made": float(told["made"]),
                                         "open": str(told["open"])}
                              for key, told in state["parts"].items()}, "ignored": list(map(str, state["ignored"]))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {"parts": {}, "ignored": []}


def left_open(value: Any) -> str:
    """Return what in a part was short of time, a quiet machine or an index; "": another call would find the same."""
    return next(_open(value), "")


def _open(value: Any) -> Iterator[str]:
    match value:
        case Missing():
            yield from [value.reason] * (value.passing or value.failed)
        case TestRun():
            yield from [value.ending] * value.ending.startswith(UNFINISHED)
        case Races():   # which says in words what it could not look at
            yield from (reason for _, reason in value.lacking if NO_TIME.reason in reason or UNFINISHED in reason)
        case OwnBuild():   # an index, a compiler or time may be there the next time
            yield from [value.failure] * bool(value.failure)
        case MachineFacts():
            yield from value.doubts * value.may_get_quiet
        case dict():
            yield from chain.from_iterable(map(_open, value.values()))
        case tuple() | list():
            yield from chain.from_iterable(map(_open, value))
        case _ if dataclasses.is_dataclass(value):
            yield from chain.from_iterable(_open(getattr(value, each.name)) for each in dataclasses.fields(value))


def remove_old() -> None:
    """Remove what was kept of projects that nobody has evaluated for a week."""
    for state in _folder().glob(f"*/{STATE}"):
        with contextlib.suppress(OSError):
            if state.stat().st_mtime < time.time() - KEPT_SECONDS:
                shutil.rmtree(state.parent, ignore_errors=True)


def _doubt(folder: Path) -> str:
    """Return why what lies in `folder` may be somebody else's; "": it is ours, or not there."""
    for each in (folder, folder.parent):
        with contextlib.suppress(OSError):
            status = each.stat()
            if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
                return f"{each} can be written by others, so nothing that was measured before is taken from there"
    return ""


def _folder() -> Path:
    return cache_dir() / EVALUATIONS


def _key(name: str, depends: tuple[str, ...]) -> str:
    return f"{name}-{hashlib.sha256(chr(0).join(depends).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


@cache
def _own_sum() -> str:
    """Return a sum of gilscope's own files, by size and time: another version may see something else."""
    root = Path(gilscope.toolkit.__file__).parent
    told = [f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}" for path in sorted(root.rglob("*.py"))
            if (status := path.stat())]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()
