"""Record conflicts as plain values: what is known only while the program runs, and nothing that could wait.

Imported on the first conflict, in the checked program.  Kind and severity, names and advice follow from the records, in
`gilscope.toolkit.race.verdicts`.  Nothing here waits: threads that record at the same time agree through
`dict.setdefault`, and each writes its own line.
"""

from __future__ import annotations

import os
import sys

from gilscope.toolkit.race import safe_inspection
from gilscope.toolkit.race.conflicts.objects import (
    ObjectDescriber,
    accessing_frame,
    facts_of,
    key_text,
    lookup,
    present_value,
)
from gilscope.toolkit.race.core import NO_VALUE
from gilscope.toolkit.race.site import all_sites
from gilscope.toolkit.race.spool import Spool
from gilscope.toolkit.race.terms import WRITES, AccessKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from gilscope.toolkit.race.core import Conflict, Core, Place, RawAccess
    from gilscope.toolkit.race.site import SiteInfo
    from gilscope.toolkit.race.spool import Plain

    DescribeThread = Callable[[int], tuple[str, tuple[Place, ...]]]

_open, _read, _close, _getpid = os.open, os.read, os.close, os.getpid   # a program's tests may replace them later
LARGEST = 2_000_000    # bytes; larger source files are not read completely
RUNPY = "<frozen runpy>"
BEGINS = RUNPY, "_run_module_as_main"     # frames below it belong to the interpreter or to gilscope
# Files that acquire locks for their callers.
LOCKING = ("threading.py", "queue.py", "_base.py", "thread.py", "synchronize.py", "process_locks.py")


class Recorder:
    """Writer of the records of one process; its arguments are those of `ConflictHandler`."""

    def __init__(self, core: Core, folder: str, root: str, describe_thread: DescribeThread,
                 options: dict[str, Any]) -> None:
        self._core = core
        self._root = root
        self._describe_thread = describe_thread
        self._objects = ObjectDescriber(core)
        self._locks: dict[int, dict[str, Plain]] = {}
        self._locksets: dict[tuple[Any, ...], frozenset[int]] = {}
        self._recorded: dict[tuple[Any, ...], None] = {}        # what conflicts differ in
        self._written: dict[tuple[int, str], int] = {}       # process and path -> sites before this number
        self._by_path: tuple[int, dict[str, list[int]]] = (0, {})     # for how many sites; their numbers
        self._counted: dict[tuple[int, int], int] = {}
        self.sections: dict[str | None, None] = {}     # those with a record
        self._spool = Spool(folder, {
            "core": core.name, "root": root,
            **{name: options[name] for name in ("target", "build", "command") if options.get(name) is not None},
        })

    def record(self, conflict: Conflict, section: str | None) -> None:
        """Record a conflict, unless the records have one that differs in nothing a verdict or a name depends on."""
        sort, owner, part, key, first, second, value = conflict
        sites = all_sites[first[1]], all_sites[second[1]]
        frame = accessing_frame(sites[1])
        if value is NO_VALUE and frame is not None and sites[1].stored and second[2] == AccessKind.WRITE:
            value = lookup(frame, sites[1].stored)
        present = present_value(part, owner, key, frame)
        described = self._objects.describe(part, owner, key, sites, frame)
        text = key_text(part, owner, key)
        lockset = self._lockset((owner, part, text), (first, second))
        facts: dict[str, Plain] = {
            "section": section, "sort": sort, "part": part, "lockset": tuple(sorted(lockset)),
            "value": int(facts_of(value)), "present": int(facts_of(present)),
            "same": value is not NO_VALUE and present is not NO_VALUE and safe_inspection.same(value, present)}
        what = (*map(_hashable, (facts | described | {"number": 0, "label": ""}).values()),
                text if part != "item" or described["form"] == "module" else "",
                *((side[1:3], side[4:]) for side in (first, second)))
        if what in self._recorded:
            return
        self._write_files([site.path for site in sites])
        self._spool.write({"t": "conflict", **facts, "key": text, "owner": described,
                           "first": self._side(first), "second": self._side(second)})
        # Only now: who finds it there finds its record.  Threads that get here together each write one.
        self._recorded[what] = None
        self.sections[section] = None

    def record_gap(self, reason: str, count: int) -> None:
        """Record that accesses go unchecked."""
        self._spool.write({"t": "gap", "reason": reason, "count": count})

    def forget_counts(self) -> None:
        """Ignore the counts so far: the process that this one was forked from reports them."""
        self._counted = self._core.counts()

    def finish(self, unrewritten: tuple[tuple[str, str], ...]) -> None:
        """Write the record that ends the process's part: counts, suppressions and modules that were not rewritten."""
        counts: list[Plain] = [(pair, times) for pair, counted in self._core.counts().items()
                               if (times := counted - self._counted.get(pair, 0)) > 0]
        noted = {(site.path, site.line, site.note) for site in list(all_sites) if site.note is not None}
        self._spool.write({
            "t": "finish",
            "counts": counts,
            "noted": [(self._path(path), line, why) for path, line, why in sorted(noted)],
            "unrewritten": list(unrewritten),
        })

    def _lockset(self, location: tuple[Any, str, str], sides: Sequence[RawAccess]) -> frozenset[int]:
        """Return the locks that all writes of the location hold, as far as conflicts report them."""
        owner, *rest = location
        place = (self._core.object_number(owner), *rest)
        for _, _, kind, _, locks, _ in sides:
            if kind in WRITES:
                self._locksets[place] = self._locksets.get(place, frozenset(locks)).intersection(locks)
        return self._locksets.get(place, frozenset())

    def _side(self, access: RawAccess) -> dict[str, Plain]:
        """Return the fields of a `SideRecord`."""
        uid, number, kind, context, locks, span = access
        name, started = self._describe_thread(uid)
        started, stack = _own(started), _own(self._core.stack(context))
        self._write_files([path for path, _, _ in (*started, *stack)])
        return {
            "thread": uid, "name": str.__str__(name), "started": self._places(started), "site": number,
            "kind": kind, "stack": self._places(stack), "locks": [self._lock(lock) for lock in locks], "span": span}

    def _lock(self, uid: int) -> dict[str, Plain]:
        """Return the fields of a `LockRecord`."""
        found = self._locks.get(uid)
        if found is None:
            stack, lock = self._core.lock_origin(uid)
            taken = [place for place in stack if not place[0].endswith(LOCKING)][:1] or stack[:1]
            paths = tuple(path for path, _, _ in taken if not path.endswith(LOCKING))
            found = self._locks.setdefault(uid, {
                "uid": uid, "at": self._places(taken),
                "holder": None if lock is None else self._objects.holder(lock, paths)})
        return found

    def _places(self, places: Sequence[Place]) -> list[Plain]:
        return [(self._path(path), line, function) for path, line, function in places]

    def _path(self, path: str) -> str:
        """Return the path of a code object as an absolute one, even if the program has changed its folder."""
        if path.startswith("<") or os.path.isabs(path):
            return path
        return os.path.normpath(os.path.join(self._root, path))

    def _write_files(self, paths: Iterable[str]) -> None:
        """Record source and sites of checked files, each once: the file may be gone when the program ends."""
        known = len(all_sites)
        if self._by_path[0] != known:     # more modules have been imported since
            self._by_path = known, _by_path(all_sites[:known])
        for path in dict.fromkeys(paths):
            numbers = self._by_path[1].get(path, [])
            before = self._written.get((_getpid(), path), 0)     # a forked child has its own records
            if numbers and numbers[-1] >= before:
                self._spool.write({
                    "t": "file", "path": self._path(path),
                    "source": "" if before else _source(self._path(path), path),
                    "sites": [(number, *all_sites[number][1:]) for number in numbers if number >= before]})
                self._written[_getpid(), path] = known


def _hashable(value: Plain) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _own(places: tuple[Place, ...]) -> tuple[Place, ...]:
    """Return the places, innermost first, without the frames of runpy that `-m` starts a program with."""
    begun = [number for number, (path, _, function) in enumerate(places) if (path, function) == BEGINS]
    own = begun[-1] if begun else len(places)
    while own and places[own - 1][0] == RUNPY:
        own -= 1
    return places[:own]


def _by_path(sites: list[SiteInfo]) -> dict[str, list[int]]:
    """Return the numbers of the sites of each file."""
    found: dict[str, list[int]] = {}
    for number, site in enumerate(sites):
        found.setdefault(site.path, []).append(number)
    return found


def _source(path: str, name: str) -> str:
    """Return a file's bytes as Latin-1, or those of the lines that the program put into linecache for other code."""
    return (_content(path) or _cached(name)).decode("latin-1")


def _content(path: str) -> bytes:
    try:
        descriptor = _open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError):
        return b""
    parts: list[bytes] = []
    try:
        while sum(map(len, parts)) < LARGEST and (part := _read(descriptor, 1 << 20)):
            parts.append(part)
    except OSError:
        return b""
    finally:
        _close(descriptor)
    return b"".join(parts)[:LARGEST]


def _cached(name: str) -> bytes:
    linecache = sys.modules.get("linecache")
    entry = getattr(linecache, "cache", {}).get(name)
    # lazy ones have 1
    lines = [str(line) for line in entry[2]] if entry is not None and len(entry) == 4 else []
    return "".join(lines).encode(errors="surrogatepass")
