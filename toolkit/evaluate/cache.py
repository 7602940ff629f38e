"""The cache of an evaluation: each part is stored by itself, so that nothing is measured twice.

A part is valid for a day, because newer versions of packages may appear.  It becomes invalid earlier if any of these
change: a file of the project, an environment variable that such a file names, a build, an option that the part depends
on, or a file of gilscope.  Parts are plain data: reading one runs no code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import stat
import time
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.builds.environment import OWN_FOLDERS, identity
from gilscope.toolkit.evaluate.packages.eviction import EVALUATIONS, KEPT_SECONDS
from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
from gilscope.toolkit.evaluate.project.fingerprint import digest, made_by_the_run, sums, variables
from gilscope.toolkit.evaluate.sections import MachineFacts, Missing, TestRun
from gilscope.toolkit.keyed_store import KeyedStore
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from gilscope.toolkit.model import Build

STATE = "state"   # the key of the project's state beside those of its parts
SOURCES = {".py", ".c", ".h"}   # suffixes; the race checker compiles its core from C


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPart:
    """One part of an evaluation that an earlier call has measured."""

    value: Any
    made: float         # seconds since the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """The record of a part that was measured."""

    made: float
    stamp: str          # of everything that it depends on
    provisional: str    # why its value was not stored; "" if it is final


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """All of a project's parts."""

    parts: dict[str, _Entry]     # by key
    ignored: tuple[str, ...]     # files that tests and gilscope write into the project's folder


class EvaluationCache:
    """The parts of the evaluations of one project."""

    def __init__(
        self, root: Path, builds: Sequence[Build], *, fresh: bool = False, outputs: Iterable[Path] = (),
    ) -> None:
        """Open the cache of the project in `root`.

        Args:
            root: The project's folder.
            builds: All builds that the evaluation measures on.
            fresh: Ignore the parts that earlier calls have stored.
            outputs: Files that this call writes; they are no part of the project.
        """
        self._root = root
        self.fresh = fresh
        self._store = KeyedStore(cache_dir() / EVALUATIONS)
        self._store.remove_older(KEPT_SECONDS)
        self.doubt = _doubt(self._store.folder)   # why stored parts are ignored; "" if they are used
        self._others: tuple[str, ...] = (_own_sum(), *sorted(f"{build.label} {identity(build)}" for build in builds))
        state: _State | None = None if self.doubt else self._store.get(_State, str(root), STATE)
        self._parts = state.parts if state else {}
        before = {*state.ignored} if state else set()
        written = {str(path.resolve().relative_to(root)) for path in outputs if path.resolve().is_relative_to(root)}
        self._ignored = before | written
        self._read: dict[Path, tuple[str, str]] = {}   # files that this call has read once
        self._before = self._sums()
        self._others += variables(root, self._before, os.environ)
        self._made: dict[str, tuple[str, ...]] = {}   # keys of the parts of this call, with what each depends on
        if self._parts and not written <= before:
            self._save()   # the next call must ignore these files, even if it writes none

    def get(self, kind: Any, name: str, *depends: str) -> CachedPart | None:
        """Return a part if it is final and nothing that it depends on has changed; else None.

        Args:
            kind: The type of the part, as `records.from_plain` reads it.
            name: The name of the part.
            depends: What it depends on beside files and builds.
        """
        entry = self._valid_entry(name, depends)
        if entry is None or entry.provisional:
            return None
        value = self._store.get(kind, str(self._root), _key(name, depends))
        return None if value is None else CachedPart(value=value, made=entry.made)

    def why_provisional(self, name: str, *depends: str) -> str:
        """Return why a part that an earlier call has measured has to be measured again though nothing has changed.

        It is "" if the part is final, or there is none.
        """
        entry = self._valid_entry(name, depends)
        return entry.provisional if entry else ""

    def _valid_entry(self, name: str, depends: tuple[str, ...]) -> _Entry | None:
        """Return the entry of a part if it is younger than a day and nothing that it depends on has changed."""
        entry = self._parts.get(_key(name, depends))
        old = entry is None or entry.made < time.time() - FRESH_SECONDS or entry.stamp != self._stamp(depends)
        return None if self.fresh or old else entry

    def put(self, name: str, value: Any, *depends: str) -> None:
        """Store a part, or why it has to be measured again; a cache that cannot be written is no error."""
        key = _key(name, depends)
        self._made[key] = depends
        # Files that tests write into the project's folder must not invalidate the parts in the next call.
        self._ignored |= made_by_the_run(self._before, self._sums())
        provisional = why_provisional(value)
        if not provisional:
            self._store.put(value, str(self._root), key)
        self._parts[key] = _Entry(made=time.time(), stamp="", provisional=provisional)
        for each, dependencies in self._made.items():
            self._parts[each] = replace(self._parts[each], stamp=self._stamp(dependencies))
        self._save()

    def _save(self) -> None:
        state = _State(parts=self._parts, ignored=tuple(sorted(self._ignored)))
        self._store.put(state, str(self._root), STATE)

    def _sums(self) -> dict[str, str]:
        cached = cache_dir()   # a user may have it inside the project's folder
        return {name: summed for name, summed in sums(self._root, known=self._read).items()
                if not (self._root / name).is_relative_to(cached)}

    def stamp(self) -> str:
        """Return a hash of everything that all parts depend on."""
        return self._stamp(())

    def _stamp(self, depends: tuple[str, ...]) -> str:
        files = {name: summed for name, summed in self._before.items() if name not in self._ignored}
        return digest(files, *self._others, *depends)


def why_provisional(value: Any) -> str:
    """Return why a part is provisional (out of time, busy machine, no index), or "" if it is final.

    This is not a view over `Fact.provisional`: a part is stored as soon as it is measured, so that an interruption
    does not lose it, and facts are found when all parts are there.  A fact may follow from several parts, and of a
    provisional section that no fact mentions, such as one of many packages, the part has to be measured again, too.
    """
    return next(_reasons(value), "")


def _reasons(value: Any) -> Iterator[str]:
    match value:
        case Missing():
            yield from [value.reason] * value.cause.provisional
        case TestRun():
            yield from [str(value.ending)] * (value.ending.kind == "unfinished")
        case OwnBuild():   # an index, a compiler or time may be there the next time
            yield from [value.failure.reason] if value.failure else []
        case MachineFacts():
            yield from value.doubts * value.may_get_quiet
        case dict():
            yield from chain.from_iterable(map(_reasons, value.values()))
        case tuple() | list():
            yield from chain.from_iterable(map(_reasons, value))
        case _ if dataclasses.is_dataclass(value):
            yield from chain.from_iterable(_reasons(getattr(value, each.name)) for each in dataclasses.fields(value))


def _doubt(folder: Path) -> str:
    """Return why another user may have written to `folder`; "" if none can have, or it does not exist."""
    with contextlib.suppress(OSError):
        status = folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & stat.S_IWOTH:
            return f"{folder} can be written by others, so nothing that was measured before is taken from there"
    return ""


def _key(name: str, depends: tuple[str, ...]) -> str:
    return f"{name}-{hashlib.sha256(chr(0).join(depends).encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


@cache
def _own_sum() -> str:
    """Return a hash of gilscope's own sources, by size and time, because another version may measure differently."""
    files = [f"{path} {status.st_size} {status.st_mtime_ns}" for folder in OWN_FOLDERS
             for path in sorted(folder.rglob("*")) if path.suffix in SOURCES and (status := path.stat())]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()
