"""The cache of an evaluation: each part is stored by itself, so that nothing is measured twice.

A part is valid for a day, because newer versions of packages may appear.  It becomes invalid earlier if any of these
change: a file of the project, an environment variable that such a file names, a build, an option that the part depends
on, or a file of gilscope.  Parts are plain data: reading one runs no code.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import stat
import sys
import time
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gilscope.toolkit.bounded_reading import RESULTS, parse_json, read_bytes
from gilscope.toolkit.builds.environment import OWN_FOLDERS, identity
from gilscope.toolkit.evaluate.packages.eviction import EVALUATIONS, KEPT_SECONDS
from gilscope.toolkit.evaluate.packages.scratch import FRESH_SECONDS
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
from gilscope.toolkit.evaluate.project.fingerprint import digest, made_by_the_run, sums, variables
from gilscope.toolkit.evaluate.sections import MachineFacts, Missing, TestRun
from gilscope.toolkit.store.header import replace_file
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gilscope.toolkit.model import Build

STATE = "state.json"
OURS = "gilscope.toolkit."
SOURCES = {".py", ".c", ".h"}   # suffixes; the race checker compiles its core from C
# Types that JSON lacks, by the key that marks them.
_TYPES = {"tuple": tuple, "frozenset": frozenset, "float": float, "path": Path}


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPart:
    """One part of an evaluation that an earlier call has measured."""

    value: Any
    made: float         # seconds since the epoch


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
        self._folder = _folder() / hashlib.sha256(str(root).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        self.doubt = _doubt(self._folder)   # why stored parts are ignored; "" if they are used
        self._others: tuple[str, ...] = (_own_sum(), *sorted(f"{build.label} {identity(build)}" for build in builds))
        self._state = self._read()
        written = {str(path.resolve().relative_to(root)) for path in outputs if path.resolve().is_relative_to(root)}
        self._ignored: set[str] = {*self._state["ignored"], *written}
        self._before = self._sums()
        self._others += variables(root, self._before, os.environ)
        self._made: dict[str, tuple[str, ...]] = {}   # keys of the parts of this call, with what each depends on
        if self._state["parts"] and not written <= set(self._state["ignored"]):
            with contextlib.suppress(OSError):
                self._save()   # the next call must ignore these files, even if it writes none

    def get(self, name: str, *depends: str) -> CachedPart | None:
        """Return a part if it is final and nothing that it depends on, such as `depends`, has changed; else None."""
        entry = self._valid_entry(name, depends)
        if not entry or entry["open"]:
            return None
        try:
            text = read_bytes(self._file(_key(name, depends)), RESULTS).decode()
            return CachedPart(value=loads(text), made=entry["made"])
        except (OSError, ValueError):
            return None   # damaged, or of another version: measured again

    def why_provisional(self, name: str, *depends: str) -> str:
        """Return why a part that an earlier call has measured has to be measured again though nothing has changed.

        It is "" if the part is final, or there is none.
        """
        return str(self._valid_entry(name, depends).get("open", ""))

    def _valid_entry(self, name: str, depends: tuple[str, ...]) -> Mapping[str, Any]:
        """Return the entry of a part that is still valid, or an empty one."""
        entry: dict[str, Any] = self._state["parts"].get(_key(name, depends), {})
        if self.fresh or entry.get("stamp") != self._stamp(depends) or entry["made"] < time.time() - FRESH_SECONDS:
            return {}
        return entry

    def put(self, name: str, value: Any, *depends: str) -> None:
        """Store a part, or why it has to be measured again; a cache that cannot be written is no error."""
        key = _key(name, depends)
        self._made[key] = depends
        # Files that tests write into the project's folder must not invalidate the parts in the next call.
        self._ignored |= made_by_the_run(self._before, self._sums())
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            why = why_provisional(value)
            if not why:
                replace_file(self._file(key), dumps(value))
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
        cached = cache_dir()   # a user may have it inside the project's folder
        return {name: summed for name, summed in sums(self._root).items()
                if not (self._root / name).is_relative_to(cached)}

    def stamp(self) -> str:
        """Return a hash of everything that all parts depend on."""
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
            return {"parts": {str(key): {"stamp": str(entry["stamp"]), "made": float(entry["made"]),
                                         "open": str(entry["open"])}
                              for key, entry in state["parts"].items()}, "ignored": list(map(str, state["ignored"]))}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {"parts": {}, "ignored": []}


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
            yield from [value.failure] * bool(value.failure)
        case MachineFacts():
            yield from value.doubts * value.may_get_quiet
        case dict():
            yield from chain.from_iterable(map(_reasons, value.values()))
        case tuple() | list():
            yield from chain.from_iterable(map(_reasons, value))
        case _ if dataclasses.is_dataclass(value):
            yield from chain.from_iterable(_reasons(getattr(value, each.name)) for each in dataclasses.fields(value))


def remove_old() -> None:
    """Remove the caches of projects that nobody has evaluated for a week."""
    for state in _folder().glob(f"*/{STATE}"):
        with contextlib.suppress(OSError):
            if state.stat().st_mtime < time.time() - KEPT_SECONDS:
                shutil.rmtree(state.parent, ignore_errors=True)


def _doubt(folder: Path) -> str:
    """Return why another user may have written to `folder`; "" if none can have, or it does not exist."""
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
    """Return a hash of gilscope's own sources, by size and time, because another version may measure differently."""
    files = [f"{path} {status.st_size} {status.st_mtime_ns}" for folder in OWN_FOLDERS
             for path in sorted(folder.rglob("*")) if path.suffix in SOURCES and (status := path.stat())]
    return hashlib.sha256("\n".join(files).encode()).hexdigest()


def dumps(value: Any) -> str:
    """Return `value` as JSON: gilscope's dataclasses and enumerations, plain values, paths, and collections of them."""
    return json.dumps(_plain(value))


def loads(text: str) -> Any:
    """Return the value that `dumps` has written.

    Raises:
        ValueError: The text is damaged, or names a class that is not gilscope's or that has changed.
    """
    try:
        return _value(parse_json(text))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not what was written: {error}") from error


def _plain(value: Any) -> Any:  # noqa: PLR0911 - one answer per kind of value
    match value:
        case Enum():
            return {"enum": _name(type(value)), "member": value.name}
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else {"float": repr(value)}
        case Path():
            return {"path": str(value)}
        case list():
            return [_plain(each) for each in value]
        case dict():
            return {"dict": [[_plain(key), _plain(each)] for key, each in value.items()]}
        case frozenset():
            return {"frozenset": [_plain(each) for each in value]}
        case tuple() if type(value) is tuple:
            return {"tuple": [_plain(each) for each in value]}
        case _ if dataclasses.is_dataclass(value):
            fields = {each.name: _plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
            return {"class": _name(type(value)), "fields": fields}
    raise AssertionError(f"not a dataclass of gilscope: {type(value)}")


def _value(plain: Any) -> Any:
    match plain:
        case list():
            return [_value(each) for each in plain]
        case {"dict": items}:
            return {_value(key): _value(each) for key, each in items}
        case {"enum": name, "member": member}:
            return _class(name, Enum)[member]
        case {"class": name, "fields": fields}:
            return _class(name, object)(**{key: _value(each) for key, each in fields.items()})
        case dict():
            ((kind, inner),) = plain.items()
            return _TYPES[kind](_value(inner))
    return plain


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, kind: type) -> Any:
    """Return the enumeration or dataclass of this name, which an imported module of gilscope defines."""
    module, _, attribute = name.partition(":")
    found = getattr(sys.modules.get(module), attribute, None)
    if (not module.startswith(OURS) or not isinstance(found, type) or found.__module__ != module
            or not (issubclass(found, kind) if kind is Enum else dataclasses.is_dataclass(found))):
        raise ValueError(f"{name} is not a class of gilscope that can be stored")
    return found
