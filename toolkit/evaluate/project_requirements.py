"""The packages that a project needs, by its declarations and its lock: what to install, and what is for development."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.evaluate.packages.scratch import EnvironmentRequest
from gilscope.toolkit.evaluate.requirements.closure import LockSplit, reachable, split_lock
from gilscope.toolkit.evaluate.requirements.locks import DependencyGraph, LockedPackage, read_graph, read_lock
from gilscope.toolkit.evaluate.requirements.wheel_for_build import choose_wheels
from gilscope.toolkit.evaluate.sections import Development, Missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gilscope.toolkit.evaluate.project.discovery import Project
    from gilscope.toolkit.evaluate.requirements.wheel_for_build import WheelChoice
    from gilscope.toolkit.model import Build


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRequirements:
    """A project's requirements, with the packages of its lock."""

    project: Project
    locked: tuple[LockedPackage, ...]   # empty if there is no lock
    graph: DependencyGraph              # of the lock
    split: LockSplit                    # of the locked packages

    def environment(self, *, beside: Sequence[str] = (), sdists: bool, offline: bool) -> EnvironmentRequest:
        """Return the install request: the versions of the lock if there is one, and the packages in `beside`.

        Of the locked packages for development it has only those that `beside` needs: the others decide nothing, and
        may have no wheel.
        """
        pins = self.split.runtime
        if beside and (needed := reachable(self.graph, map(distribution_of, beside))):
            pins = (*pins, *(each for each in self.split.development if each.name in needed))
        locked = {each.name for each in self.locked}
        # A lock that is older than the declaration lacks some requirements.
        unlocked = [text for text in self.project.requirements if distribution_of(text) not in locked]
        # The other packages of a lock are imported by these.
        named = tuple(map(distribution_of, (*self.project.requirements, *beside))) if self.locked else ()
        return EnvironmentRequest(requirements=(*(each.pin for each in pins), *unlocked, *beside), sdists=sdists,
                                  offline=offline, asked=named)

    def offered(self, build: Build) -> tuple[WheelChoice, ...] | Missing:
        """Return the wheel that the lock has for each package on this build."""
        if not self.locked:
            return Missing(reason="the project has no lock file")
        return choose_wheels(self.split.runtime, build)

    def summaries(self, builds: Sequence[Build]) -> Iterator[str]:
        """Yield facts from the lock alone about each build; this needs no network, and less than a second."""
        for build in builds if self.locked else ():
            offers = choose_wheels(self.split.runtime, build)
            if all(each.kind == "not known" for each in offers):
                continue   # requirements files name no files
            fitting = sum(each.kind in {"binary", "pure"} for each in offers)
            without = [each.name for each in offers if each.kind in {"sdist", "nothing"}]
            lacking = f"; no wheel: {', '.join(without)}" if without else ""
            yield (f"{build.label}: {fitting} of {len(offers)} packages of the lock have a wheel{lacking} "
                   "(metadata only, not a verdict)")

    def development(self, lacking: Mapping[str, tuple[str, ...]]) -> Development | None:
        """Return the packages for development, and those of `lacking` (by build) that users do not need."""
        runtime = {each.name for each in self.split.runtime} | set(map(distribution_of, self.project.requirements))
        others = {label: names for label, missing in lacking.items()
                  if (names := tuple(name for name in missing if name not in runtime))}
        for_tests = (distribution_of(text) for text in self.project.test_requirements)
        packages = tuple(dict.fromkeys([*(each.name for each in self.split.development),
                                        *(name for name in for_tests if name not in runtime)]))
        if not (packages or self.project.extras or others):
            return None
        return Development(packages=packages, extras=self.project.extras, lacking=others)


def read_requirements(project: Project) -> ProjectRequirements:
    """Read the project's lock, if it has one.

    Raises:
        BadFileError: The lock cannot be read.
    """
    locked = tuple(read_lock(project.lock)) if project.lock else ()
    graph = read_graph(project.lock) if project.lock else DependencyGraph(needs={}, known=False)
    split = split_lock(locked, graph, map(distribution_of, project.requirements) if project.declares else None)
    return ProjectRequirements(project=project, locked=locked, graph=graph, split=split)
