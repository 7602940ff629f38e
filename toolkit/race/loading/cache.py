"""Cache of rewritten code on disk, so that a warm start rewrites nothing.

A cache entry is found by source, path and rewriter, and verified by a checksum; damaged entries are ignored.  The cache
is read at the start of the checked program, so this module imports little.
"""

from __future__ import annotations

import marshal
import os
import sys
from _imp import source_hash
from importlib.util import MAGIC_NUMBER

from gilscope.toolkit.race.site import SiteInfo
from gilscope.toolkit.user_dirs import cache_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any

    Entry = tuple[CodeType, list[SiteInfo]]

MOST_ENTRIES = 4000          # about 40 MB
_HEADER = b"gilscope-race-1\n"
_HASH_KEY = 0x6769_6C73      # arbitrary
_RACE = os.path.abspath(__file__).rpartition("loading")[0]


def load(source: bytes, path: str, flavour: str = "") -> Entry | None:
    """Return the linkable code and its sites, or None if there is no valid entry."""
    try:
        with open(_place(source, path, flavour), "rb") as file:
            content = file.read()
    except OSError:
        return None
    start = len(_HEADER) + 8
    if content[:len(_HEADER)] != _HEADER or content[len(_HEADER):start] != source_hash(_HASH_KEY, content[start:]):
        return None
    try:
        made_from, code, infos = marshal.loads(content[start:])  # noqa: S302  our own file, and its checksum is right
    except (ValueError, EOFError, TypeError):
        return None
    if made_from != _made_from(source, path, flavour):
        return None     # an entry for another source with the same hash
    return code, [SiteInfo(path, *info) for info in infos]


def save(source: bytes, path: str, code: CodeType, infos: Sequence[SiteInfo], flavour: str = "") -> None:
    """Store rewritten code, if the folder can be written."""
    content: Any = (_made_from(source, path, flavour), code, [tuple(info)[1:] for info in infos])
    payload = marshal.dumps(content)
    place = _place(source, path, flavour)
    aside = f"{place}.{os.getpid()}.{id(payload)}"
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(aside, "xb") as file:
            file.write(_HEADER + source_hash(_HASH_KEY, payload) + payload)
        os.replace(aside, place)
        _bound(os.path.dirname(place))
    except OSError:
        return


def folder() -> str:
    """Return the folder of the entries."""
    return os.path.join(cache_folder(), "race")


def _place(source: bytes, path: str, flavour: str) -> str:
    name = source_hash(_HASH_KEY, repr(_made_from(source, path, flavour)).encode()).hex()
    return os.path.join(folder(), name)


def _made_from(source: bytes, path: str, flavour: str) -> tuple[object, ...]:
    return (source_hash(_HASH_KEY, source), len(source), path, flavour, sys.implementation.cache_tag, MAGIC_NUMBER,
            sys.flags.optimize, _rewriter())


def _rewriter() -> tuple[tuple[str, int, int], ...]:
    """Return the identity of the rewriter's version: its files, with their sizes and times."""
    global _files  # noqa: PLW0603  computed once per process
    if _files is None:
        names = [_RACE + "site.py", _RACE + "terms.py", _RACE + "effects.py"]
        for folder in ("analysis", "rewrite"):
            names += [os.path.join(_RACE, folder, name) for name in os.listdir(_RACE + folder) if name.endswith(".py")]
        stats = [(name, os.stat(name)) for name in sorted(names)]
        _files = tuple((name.removeprefix(_RACE), stat.st_size, stat.st_mtime_ns) for name, stat in stats)
    return _files


_files: tuple[tuple[str, int, int], ...] | None = None


def _bound(place: str) -> None:
    """Remove the oldest entries if there are too many."""
    entries = [entry.path for entry in os.scandir(place)]
    if len(entries) <= MOST_ENTRIES:
        return
    entries.sort(key=lambda path: os.stat(path).st_mtime)
    for path in entries[:len(entries) - MOST_ENTRIES * 3 // 4]:
        os.unlink(path)
