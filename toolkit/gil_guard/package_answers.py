"""Results of `gilscope doctor` and `gilscope evaluate` about versions of packages, for `pytest --gil=off` to quote.

The answers are in the cache folder, one file for each package and free-threaded build.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from gilscope.toolkit.keyed_store import KeyedStore
from gilscope.toolkit.user_dirs import cache_dir

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = "package-answers"           # in the cache
KEPT_SECONDS = 90 * 24 * 3600.0      # a version does not change, but what is newest does
MOST_VERSIONS = 100                  # of a package


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionAnswer:
    """How one version of a package behaves on a free-threaded build."""

    version: str
    mends: bool      # True if it leaves the GIL off, and nothing else is wrong with it
    status: str      # for people


def remember(name: str, python: str, answers: Iterable[VersionAnswer]) -> None:
    """Store answers on a package beside earlier ones.

    Args:
        name: Of the package.
        python: The minor version of the free-threaded build, "3.14".
        answers: On any of its versions.
    """
    found = {each.version: each for each in (*_stored(name, python), *answers)}
    _store().put(list(found.values())[-MOST_VERSIONS:], canonicalize_name(name), python)


def newer_versions(name: str, version: str) -> tuple[VersionAnswer, ...]:
    """Return the answers on this Python for versions of a package newer than `version`, the newest first."""
    try:
        found = {Version(each.version): each for each in _stored(name, f"{sys.version_info[0]}.{sys.version_info[1]}")}
        return tuple(found[each] for each in sorted(found, reverse=True) if each > Version(version))
    except InvalidVersion:
        return ()


def _store() -> KeyedStore:
    return KeyedStore(cache_dir() / FOLDER)


def _stored(name: str, python: str) -> tuple[VersionAnswer, ...]:
    key = canonicalize_name(name), python
    return _store().get(tuple[VersionAnswer, ...], *key, most_age=KEPT_SECONDS) or ()
