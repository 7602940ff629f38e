"""Install packages into one environment, and report why the others could not be installed.

The first environment of a request chooses the versions; the others get the same ones or report which they lack.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import textwrap
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from packaging.utils import canonicalize_name

from gilscope.toolkit.builds.environment import create, installer
from gilscope.toolkit.builds.missing_packages import distribution_of
from gilscope.toolkit.builds.package_installer import (
    NO_SUCH_VERSION,
    NOT_FOUND,
    InstallProblem,
    InstallProblemKind,
    gave_up,
    packages_without_file,
    problem_in,
    unmet_needs,
    was_cancelled,
)
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages.distributions import own_name, site_folders
from gilscope.toolkit.evaluate.packages.fetch_wheels import (
    STOPPED,
    WheelStore,
    make_environment,
    pip_of,
    run_unless_stopped,
)
from gilscope.toolkit.evaluate.requirements.wheel_for_build import why_no_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.packages.fetch_wheels import BundledPip, WheelFetch
    from gilscope.toolkit.model import Build

# The tool that made a package's wheels is the one that builds its source; only maturin tells the language.
_BUILDERS = (("maturin", "Rust (cargo)"), ("meson", "meson"), ("scikit-build", "CMake"), ("setuptools", "setuptools"),
             ("bdist_wheel", "setuptools"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenVersions:
    """The versions in the environment that chose them."""

    pins: tuple[str, ...] = ()      # "name==version" of every package
    made_by: tuple[tuple[str, str], ...] = ()   # name, and the tool that made its wheel: "maturin (1.9.4)"
    unknown: frozenset[str] = frozenset()       # names that no index has, so other builds need not ask again

    def without(self, names: Container[str]) -> ChosenVersions:
        """Return the versions of all other distributions."""
        return replace(self, pins=tuple(pin for pin in self.pins if distribution_of(pin) not in names))


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A wheel or sdist on this machine to install as it is."""

    name: str       # normalised, of the distribution
    path: str
    sha256: str     # of its content


def versions_in(folder: Path) -> ChosenVersions:
    """Return the versions in the environment in `folder`, without pip."""
    found = {name: each for each in distributions(path=[str(site) for site in site_folders(folder)])
             if (name := own_name(each)) and name != "pip"}
    makers = ((name, re.search(r"^Generator: *(.+)", each.read_text("WHEEL") or "", re.MULTILINE))
              for name, each in sorted(found.items()))
    return ChosenVersions(pins=tuple(f"{name}=={each.version}" for name, each in sorted(found.items())),
                          made_by=tuple((name, match[1]) for name, match in makers if match))


def fill(
    folder: Path, build: Build, requirements: Sequence[str], chosen: ChosenVersions | None, *, sdists: bool,
) -> dict[str, InstallProblem]:
    """Make an environment and install what is available; return the reason for each requirement that is not.

    Args:
        folder: Where to make it; must not exist.
        build: The build to make it for.
        requirements: As the user wrote them.
        chosen: The versions to install; None to choose them.
        sdists: Build packages without a wheel from source.

    Raises:
        BuildError: The environment cannot be made, or the index does not answer.
    """
    # Installers build these even if told to use wheels only.
    sources = () if sdists else tuple(filter(_is_source, requirements))
    unknown = {name for text in requirements if chosen and (name := distribution_of(text)) in chosen.unknown}
    rest = [text for text in requirements if text not in sources and distribution_of(text) not in unknown]
    if chosen:
        # Each build has its own file behind a URL, and a pin would ask the index for it.
        chosen = chosen.without({distribution_of(text) for text in rest if _is_direct(text)})
    pip = None if uv_command() or sdists else pip_of(build, folder)
    if pip is None or make_environment(pip, build):
        create(folder, build)
        found = _install(folder, rest, chosen, sdists=sdists) if rest or (chosen and chosen.pins) else {}
    elif rest or (chosen and chosen.pins):
        found = _fetch(pip, build, rest, chosen)
    else:
        found = {}
    why = InstallProblem("it is named by its source, which is built with --build-sdists only")
    return found | dict.fromkeys(unknown, NOT_FOUND) | {distribution_of(text): why for text in sources}


def install_files(folder: Path, files: Sequence[LocalFile]) -> dict[str, InstallProblem]:
    """Install files without their dependencies, in place of what an index gave; return the reasons for failures.

    Their dependencies are requirements like any other.  No store of wheels takes part, as it goes by name and version.
    """
    missing = {}
    anew = "--reinstall" if uv_command() else "--force-reinstall"
    for each in files:
        # An sdist needs its build system from the index.
        alone = ["--no-index"] if each.path.endswith(".whl") else []
        options = [anew, "--no-deps", *alone, *([] if uv_command() else ["--no-compile"])]
        if reason := _installed(folder, [*options, each.path]):
            missing[each.name] = problem_in(reason)
    return missing


def _is_source(requirement: str) -> bool:
    """Return True if a requirement is a path or URL of anything but a wheel."""
    place = requirement.partition("@")[2].partition(" ;")[0].strip() or requirement
    return (":" in place or os.sep in place or place in {".", ".."}) and not urlsplit(place).path.endswith(".whl")


def _is_direct(requirement: str) -> bool:
    """Return True if a requirement names its file: "name @ file:///...", which no index vouches for."""
    return "@" in requirement.partition(";")[0]


def _fetch(
    pip: BundledPip, build: Build, requirements: Sequence[str], chosen: ChosenVersions | None,
) -> dict[str, InstallProblem]:
    """Install with parallel downloads; fall back to one installer run after another."""
    found = _choose(pip, build, requirements) if chosen is None else _same(pip, build, chosen)
    if found is None and chosen is None:
        found = _locked(pip, build, requirements)
    if found is None:
        return _install(pip.environment, requirements, chosen, sdists=False)
    if chosen is None:
        return found
    pinned = {text.partition("==")[0] for text in chosen.pins}
    rest = [text for text in requirements if distribution_of(text) not in pinned]
    if not (missing := _with_limits(pip.environment, rest, chosen)):
        return found
    with WheelStore(build).fresh() as name:
        return found | _explained(pip, build, rest, missing, Path(name))


def _locked(pip: BundledPip, build: Build, requirements: Sequence[str]) -> dict[str, InstallProblem] | None:
    """Install the pinned versions that have a wheel; None if this is not a lock, or it fails.

    A resolver gives up at a pinned package that needs another one without a wheel, and trying each alone takes long.
    """
    pins = tuple(filter(_is_pin, requirements))
    if len(pins) * 2 <= len(requirements):
        return None
    limits = ChosenVersions(pins=pins)
    if (missing := _same(pip, build, limits)) is None:
        return None
    missing |= _with_limits(pip.environment, [text for text in requirements if text not in pins], limits)
    # If the pins are not a complete lock, they need further packages.
    needed = dict.fromkeys(map(canonicalize_name, unmet_needs(pip.run("check"))))
    return missing | _with_limits(pip.environment, [name for name in needed if name not in missing], limits)


def _is_pin(requirement: str) -> bool:
    """Return True if a requirement pins one version of a package without extras, as locks do."""
    return re.match(r"[A-Za-z0-9][\w.-]* *==[^*,]+(;|$)", requirement) is not None


def _choose(pip: BundledPip, build: Build, requirements: Sequence[str]) -> dict[str, InstallProblem] | None:
    """Install the resolver's choice; return reasons for missing packages, or None if one attempt does not show them."""
    store = WheelStore(build)
    with store.fresh() as name:
        missing, rest = _without_missing(requirements, lambda wanted: _checked(pip.download(wanted, Path(name))))
        if rest or pip.install(Path(name).glob("*.whl")):
            return None
        # The store answers by name and version, which another file has, too.
        direct = {distribution_of(text) for text in requirements if _is_direct(text)}
        store.keep(file for file in Path(name).glob("*.whl") if distribution_of(file.name.split("-")[0]) not in direct)
        return _explained(pip, build, requirements, missing, Path(name))


def _explained(
    pip: BundledPip, build: Build, requirements: Sequence[str], missing: dict[str, InstallProblem], folder: Path,
) -> dict[str, InstallProblem]:
    """Return the reasons for missing packages by what the index has of each: an unknown name has no wheel, either."""
    told = pip.fetch([text for text in requirements if distribution_of(text) in missing], folder)
    return missing | {distribution_of(text): _why(text, each, build, {}) for text, each in told.items() if each.problem}


def _same(pip: BundledPip, build: Build, chosen: ChosenVersions) -> dict[str, InstallProblem] | None:
    """Install the chosen versions; return reasons for those without a wheel for this build, or None on failure."""
    store = WheelStore(build)
    wheels = store.find(chosen.pins)
    with store.fresh() as name:
        told = pip.fetch([pin for pin in chosen.pins if pin not in wheels], Path(name))
        for each in told.values():
            _checked(each.problem)
        if pip.install([*wheels.values(), *Path(name).glob("*.whl")]):
            return None
        store.keep(Path(name).glob("*.whl"))
    return {distribution_of(pin): _why(pin, each, build, dict(chosen.made_by))
            for pin, each in told.items() if each.problem}


def _why(pin: str, told: WheelFetch, build: Build, made_by: dict[str, str]) -> InstallProblem:
    """Return why one version has no wheel, and what its source builds with."""
    problem = problem_in(told.problem)
    if problem.kind is not InstallProblemKind.NO_WHEEL:
        return problem
    if not told.files:
        if not told.newest:
            # If the index had any file of this version, it would be listed.
            return problem if "==" in pin else NOT_FOUND
        return replace(NO_SUCH_VERSION, more=f"the newest is {told.newest}") if _is_pin(pin) else problem
    wheels = [file for file in told.files if file.endswith(".whl")]
    if len(wheels) == len(told.files):
        return replace(problem, reason=f"{why_no_wheel(wheels, build)}, and no source either")
    maker = made_by.get(pin.partition("==")[0], "")
    builder = next((builder for word, builder in _BUILDERS if word in maker), "")
    return replace(problem, reason=why_no_wheel(wheels, build),
                   more=f"its source builds with {builder}" if builder else "its source is there")


def _install(
    folder: Path, requirements: Sequence[str], chosen: ChosenVersions | None, *, sdists: bool,
) -> dict[str, InstallProblem]:
    """Install with one installer run after another."""
    options = _options(sdists=sdists)
    if chosen is None:
        return _install_rest(folder, requirements, options)
    with _constraints(chosen) as limits:
        if not _installed(folder, [*options, *limits, *requirements]):
            return {}
    # The resolver stops at the first missing package; the first environment has already determined all of them.
    pinned = {text.partition("==")[0] for text in chosen.pins}
    missing = _install_rest(folder, chosen.pins, [*options, "--no-deps"])
    return missing | _with_limits(
        folder, [text for text in requirements if distribution_of(text) not in pinned], chosen, sdists=sdists)


def _with_limits(
    folder: Path, requirements: Sequence[str], chosen: ChosenVersions, *, sdists: bool = False
) -> dict[str, InstallProblem]:
    """Install packages that the first environment lacks, with all other versions fixed."""
    with _constraints(chosen) as limits:
        return _install_rest(folder, requirements, [*_options(sdists=sdists), *limits])


def _options(*, sdists: bool) -> list[str]:
    options = [] if sdists else ["--only-binary", ":all:"]
    # Most modules are never imported; those that are get compiled then.
    return options if uv_command() else [*options, "--no-compile"]


@contextlib.contextmanager
def _constraints(chosen: ChosenVersions) -> Iterator[list[str]]:
    """Yield the options that restrict an installer to the chosen versions."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(chosen.pins))
        file.flush()
        yield ["--constraint", file.name]


def _install_rest(folder: Path, requirements: Sequence[str], options: Sequence[str]) -> dict[str, InstallProblem]:
    """Install as much as possible together; leave out the package that each failure names, and try again."""
    missing, rest = _without_missing(requirements, lambda wanted: _installed(folder, [*options, *wanted]))
    return missing | {distribution_of(text): problem_in(reason) for text in rest
                      if (reason := _installed(folder, [*options, text]))}


def _without_missing(
    requirements: Iterable[str], attempt: Callable[[list[str]], str]
) -> tuple[dict[str, InstallProblem], list[str]]:
    """Try all requirements, and again without the one that a failure names.

    Returns:
        The missing packages with reasons, and the requirements that failed together for another reason.
    """
    missing: dict[str, InstallProblem] = {}
    # One package may be listed several times, for different versions of Python.
    todo: dict[str, list[str]] = {}
    for text in requirements:
        todo.setdefault(distribution_of(text), []).append(text)
    while todo:
        reason = attempt([*chain.from_iterable(todo.values())])
        if not reason:
            break
        names = map(canonicalize_name, packages_without_file(reason))
        name = next((name for name in names if name in todo), None)
        if name is None:   # a dependency of one of them
            return missing, [*chain.from_iterable(todo.values())]
        missing[name] = problem_in(reason)
        del todo[name]
    return missing, []


def _installed(folder: Path, arguments: Sequence[str]) -> str:
    """Install; return "" or the reason for the failure.

    Raises:
        BuildError: The installer was stopped, or the index does not answer, so nothing is known of any package.
    """
    return _checked(run_unless_stopped([*installer(folder), *arguments]))


def _checked(reason: str) -> str:
    if was_cancelled(reason):
        raise BuildError(STOPPED)
    if why := gave_up(reason):
        raise BuildError(f"the package index does not answer ({textwrap.shorten(why, 200)}); --offline does without")
    return reason


