"""Split a lock into what a project needs to run and what only its developers need.  Pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import filterfalse
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gilscope.toolkit.evaluate.requirements.locks import DependencyGraph, LockedPackage

# Extras and groups that nobody installs to use a project.
FOR_DEVELOPERS = frozenset({
    "all-dev", "bench", "benchmark", "benchmarks", "build", "ci", "dev", "develop", "development", "doc", "docs",
    "documentation", "format", "lint", "linting", "mypy", "pre-commit", "qa", "release", "style", "test", "testing",
    "tests", "tox", "type", "types", "typing",
})
DEVELOPER_PREFIXES = frozenset({"dev", "docs", "lint", "test", "tests"})   # of names such as "test-no-images"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockSplit:
    """The packages of a lock, split by purpose."""

    runtime: tuple[LockedPackage, ...]
    development: tuple[LockedPackage, ...]   # not needed to run: groups, extras, and their dependencies


def split_lock(locked: Sequence[LockedPackage], graph: DependencyGraph, roots: Iterable[str] | None) -> LockSplit:
    """Split the packages of a lock; if dependencies are unknown, only what the lock marks is for development.

    Args:
        locked: All packages of the lock.
        graph: Their dependencies according to the lock.
        roots: Names of the project's own runtime requirements; None if they are not known.
    """
    needed = reachable(graph, roots)

    def runs(package: LockedPackage) -> bool:
        return not package.development if needed is None else package.name in needed

    return LockSplit(runtime=tuple(filter(runs, locked)), development=tuple(filterfalse(runs, locked)))


def reachable(graph: DependencyGraph, roots: Iterable[str] | None) -> frozenset[str] | None:
    """Return the names of `roots` and all their dependencies; None if the lock does not record them."""
    names = {*(graph.roots or ()), *map(canonicalize_name, roots or ())}
    # If a lock contains none of the project's requirements it belongs to something else, or the project declares its
    # requirements elsewhere.  No roots at all is an answer, too: the project needs nothing.
    rooted = roots is not None or graph.roots is not None
    unknown = not graph.known or not rooted or (names and names.isdisjoint(graph.needs))
    return None if unknown else frozenset(dependency_chains(graph.needs, names))


def is_for_developers(extra: str) -> bool:
    """Return True if an extra or group of this name is for people who work on the project."""
    name = canonicalize_name(extra)
    return name in FOR_DEVELOPERS or name.partition("-")[0] in DEVELOPER_PREFIXES


def dependency_chains(needs: Mapping[str, Iterable[str]], roots: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return, for each reachable package, the shortest chain of dependencies from a root to it, both included.

    Args:
        needs: The names of each package's direct dependencies, by package.
        roots: Names of the packages to start from.
    """
    found: dict[str, tuple[str, ...]] = {name: (name,) for name in roots}
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for needed in needs.get(name, ()):
            if needed not in found:
                found[needed] = (*found[name], needed)
                waiting.append(needed)
    return found


def top_level_packages(needs: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the packages that no other package needs; all of them if no dependencies are recorded."""
    needed = {each for name, others in needs.items() for each in others if each != name}
    return tuple(name for name in needs if name not in needed)
