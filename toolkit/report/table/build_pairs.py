"""The builds that a report compares with each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.model import Build


def build_pairs(builds: Sequence[Build]) -> list[tuple[Build, Build]]:
    """Return the pairs of builds to compare, the baseline first.

    A free-threaded build is compared with the GIL build of its version, or with the first GIL build if there is none;
    every other GIL build is compared with the first.  Without any GIL build, all are compared with the first build.
    """
    with_gil = [build for build in builds if not build.free_threaded]
    if not with_gil:
        return [(builds[0], build) for build in builds[1:]]
    pairs = [(with_gil[0], build) for build in with_gil[1:]]
    for build in builds:
        if build.free_threaded:
            same = [other for other in with_gil if other.minor == build.minor]
            pairs.append(((same or with_gil)[0], build))
    return pairs
