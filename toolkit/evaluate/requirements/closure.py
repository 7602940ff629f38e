"""Which packages of a lock a project needs to run, and which are there for its developers.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from gilscope.toolkit.evaluate.requirements.chains import chains

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gilscope.toolkit.evaluate.requirements.locks import Graph, Locked

# Extras and groups that nobody installs to use a project.
FOR_DEVELOPERS = frozenset({
    "all-dev", "bench", "benchmark", "benchmarks", "build", "ci", "dev", "develop", "development", "doc", "docs",
    "documentation", "format", "lint", "linting", "mypy", "pre-commit", "qa", "release", "style", "test", "testing",
    "tests", "tox", "type", "types", "typing",
})

BEGINNINGS = frozenset({"dev", "docs", "lint", "test", "tests"})   # "test-no-images" is one of them, too


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """The packages of a lock."""

    runtime: tuple[Locked, ...]
    development: tuple[Locked, ...]   # whatever the project does not need to run: groups, extras, what these need


def apart(locked: Sequence[Locked], graph: Graph, asked: Iterable[str] | None) -> Apart:
    """Return the packages that what is asked for needs, and the others; all are needed where nobody can tell.

    Args:
        locked: All of the lock.
        graph: What each needs, as the lock has it.
        asked: Names of what the project itself needs to run; None: not known.
    """
    needed = reached(graph, asked)
    if needed is None:
        told = [each for each in locked if each.development]
        return Apart(runtime=tuple(each for each in locked if not each.development), development=tuple(told))
    return Apart(runtime=tuple(each for each in locked if each.name in needed),
                 development=tuple(each for each in locked if each.name not in needed))


def reached(graph: Graph, asked: Iterable[str] | None) -> frozenset[str] | None:
    """Return the names of everything that these packages need, with themselves; None where nobody can tell."""
    roots = {*(graph.roots or ()), *map(canonicalize_name, asked or ())}
    # A lock without any of what the project names is another's, or the project says it elsewhere.  Who needs nothing
    # has no roots, and that is told.
    told = asked is not None or graph.roots is not None
    unknown = not graph.known or not told or (roots and roots.isdisjoint(graph.needs))
    return None if unknown else frozenset(chains(graph.needs, roots))


def is_for_developers(extra: str) -> bool:
    """Return whether an extra or group of this name is for who works on the project."""
    name = canonicalize_name(extra)
    return name in FOR_DEVELOPERS or name.partition("-")[0] in BEGINNINGS
