"""Prepare the places where the project's code runs: on each build its packages, what its tests need, and itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gilscope.toolkit.errors import ToolkitError
from gilscope.toolkit.evaluate.packages import scratch
from gilscope.toolkit.evaluate.project.extensions.building import InstalledProject, own_builds
from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnBuild
from gilscope.toolkit.evaluate.project.extensions.staging import stage
from gilscope.toolkit.evaluate.project.installing import (
    Installation,
    install_project,
    restore_installation,
    store_installation,
)
from gilscope.toolkit.evaluate.project.racing.tests import NEEDED as NEEDED_AT_ONCE
from gilscope.toolkit.evaluate.project.suite.running import needed_by
from gilscope.toolkit.evaluate.project.where_to_run import RunSite
from gilscope.toolkit.evaluate.sections import Cause, Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from gilscope.toolkit.evaluate.cache import EvaluationCache
    from gilscope.toolkit.evaluate.project.extensions.own_extensions import OwnExtensions
    from gilscope.toolkit.evaluate.project_requirements import ProjectRequirements
    from gilscope.toolkit.evaluate.request import EvaluationRequest
    from gilscope.toolkit.model import Build

NOTHING_INSTALLED = Missing(reason="nothing of it was installed before; call it once without --offline",
                            cause=Cause.OFFLINE)
NOTHING_BUILT = Missing(reason="--offline builds nothing, because what builds it would be downloaded",
                        cause=Cause.OFFLINE)
NO_TESTS = Missing(reason="no tests were found")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSites:
    """The places where the project's code runs, by label of the build."""

    run_sites: Mapping[str, RunSite | Missing]
    installed: Mapping[str, InstalledProject]   # also where installing the project failed

    @classmethod
    def missing(cls, builds: Iterable[Build], reason: Missing) -> PreparedSites:
        """Return the same reason for every build."""
        return cls(run_sites=dict.fromkeys((build.label for build in builds), reason), installed={})


class RunSitePreparer:
    """Installs the project with its packages for each build."""

    def __init__(
        self, requirements: ProjectRequirements, extensions: OwnExtensions, *, request: EvaluationRequest,
        at_hand: Sequence[Build], cache: EvaluationCache | None, say: Callable[[str], None],
    ) -> None:
        """Prepare sites for the project that `requirements` belongs to.

        Args:
            requirements: The project's requirements.
            extensions: Its own extension modules.
            request: The options of the call.
            at_hand: All builds on this machine.
            cache: Its stamp says if a project that was built before has changed; None: build it.
            say: Reports a step to the user.
        """
        self._project = requirements.project
        self._requirements = requirements
        self._extensions = extensions
        self._request = request
        self._at_hand = at_hand
        self._cache = cache
        self._say = say

    @property
    def needed(self) -> bool:
        """True if there is anything to run: tests, a workload, or extension modules to import."""
        return bool(self._project.tests is not None or self._request.workload is not None or self._extensions.any)

    def prepare(self, folder: Path, builds: Sequence[Build]) -> PreparedSites:
        """Return the site of each build; what is installed for them lies in `folder`."""
        beside = (*self._project.test_requirements, *needed_by(self._project.tests),
                  *NEEDED_AT_ONCE * bool(self._request.threads))
        environment = self._requirements.environment(beside=beside, sdists=self._request.sdists,
                                                     offline=self._request.offline)
        try:
            made = scratch.prepare(environment, builds, self._say, self._at_hand)
        except ToolkitError as error:
            return PreparedSites.missing(builds, Missing(reason=str(error), cause=Cause.FAILED))
        installed = {build.label: self._installed(folder, build, made[build.label])
                     for build in builds if build.label in made}
        sites = {build.label: self._run_site(folder, installed[build.label], made[build.label])
                 if build.label in made else NOTHING_INSTALLED for build in builds}
        return PreparedSites(run_sites=sites, installed=installed)

    def _installed(self, folder: Path, build: Build, made: scratch.ScratchEnvironment) -> InstalledProject:
        target = folder / build.label
        done = self._install(build, made, target)
        if done.failure:
            self._say(f"{build.label}: the project itself is imported from its folder, not installed: "
                      f"{done.failure.reason}")
        return InstalledProject(build=build, python=made.python, target=target, installation=done)

    def _run_site(self, folder: Path, installed: InstalledProject, made: scratch.ScratchEnvironment) -> RunSite:
        label, failure = installed.build.label, installed.installation.failure
        root = None if failure or not self._extensions.any else folder / f"{label}-tree"
        if root and (reason := stage(self._project, installed.target, root)):
            self._say(f"{label}: its tests are run beside its sources, as there is no copy: {reason}")
            root = None
        run_site = RunSite(build=label, python=made.python, lacking=tuple(made.missing), root=root,
                           folders=self._project.sources if failure else (installed.target,),
                           compiled=folder / f"{label}-compiled")
        # Test runners find the package of a test inside of a namespace package only if it is imported from there.
        first = run_site.placed(self._project).sources if any("." in name for name in self._project.modules) else ()
        return replace(run_site, folders=tuple(dict.fromkeys((*first, *run_site.folders))))

    def _install(self, build: Build, made: scratch.ScratchEnvironment, target: Path) -> Installation:
        """Install the project itself, from the build of an earlier call where nothing has changed since."""
        if self._request.offline:
            return Installation(failure=NOTHING_BUILT)
        if not self._extensions.any:
            return install_project(self._project, made.folder, target)
        stamp = self._cache.stamp() if self._cache else ""
        if (self._cache and not self._cache.fresh
                and (before := restore_installation(made.folder, target, stamp))):
            self._say(f"{build.label}: the project itself was built before")
            return before
        self._say(f"{build.label}: build the project itself with its extension modules")
        done = install_project(self._project, made.folder, target)
        if stamp and not done.failure:
            store_installation(made.folder, target, stamp, done)
        return done


def own_builds_on(
    prepared: PreparedSites, extensions: OwnExtensions, counterparts: Mapping[str, Build],
) -> dict[str, OwnBuild]:
    """Return the evidence about the project's own extension modules on each prepared site, by label of the build.

    `counterparts` has the build with a GIL, by the label of each build without one.
    """
    missing = {label: OwnBuild(build=label, failure=run_site)
               for label, run_site in prepared.run_sites.items() if isinstance(run_site, Missing)}
    labels = {label: counterpart.label for label, counterpart in counterparts.items()}
    return missing | own_builds(extensions, prepared.installed, labels)
