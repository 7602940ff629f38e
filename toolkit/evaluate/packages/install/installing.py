"""Put packages into one environment: what can be had of them, and of what cannot the reason.

The first environment of a request chooses the versions; the others get the same ones, or say which they lack.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import textwrap
from dataclasses import dataclass
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gilscope.toolkit.builds.packages.environment import create, installer
from gilscope.toolkit.builds.packages.installer import NO_VERSION, NO_WHEEL, UNKNOWN, gave_up, run_installer, shortened
from gilscope.toolkit.builds.packages.lacking import normalized
from gilscope.toolkit.builds.user_dirs import uv_command
from gilscope.toolkit.errors import BuildError
from gilscope.toolkit.evaluate.packages.distributions import own_name, site_folders
from gilscope.toolkit.evaluate.packages.install.fetch_wheels import Store, make, pip_of
from gilscope.toolkit.evaluate.requirements.wheel_for_build import why_no_wheel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gilscope.toolkit.evaluate.packages.install.fetch_wheels import Fetched, Pip
    from gilscope.toolkit.model import Build

# What an installer says of a requirement without a wheel: pip, then uv.
_MISSING = re.compile(r"(?:No matching distribution found for|Because(?: only)?) ([A-Za-z0-9][\w.-]*)")
_NEEDS = re.compile(r"requires ([\w.-]+), which is not installed")   # pip check
# A Ctrl-C that reached pip, or whoever ended it: no word on any package, so nothing to be kept.
_ENDED = re.compile(r"Operation cancelled by user|pip ended with -\d+|^no output$")
# What made a wheel tells what its source takes; of setuptools it does not tell which compilers.
_SETUPTOOLS = "a compiler of C, C++ or Rust"
_TOOLCHAINS = (("maturin", "rustc"), ("meson", "a C compiler and meson"), ("scikit-build", "a C++ compiler and CMake"),
               ("setuptools", _SETUPTOOLS), ("bdist_wheel", _SETUPTOOLS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the environment that chooses the versions holds."""

    pins: tuple[str, ...] = ()      # "name==version" of everything
    made_by: tuple[tuple[str, str], ...] = ()   # name, and what made its wheel: "maturin (1.9.4)"


def chosen_in(folder: Path) -> Chosen:
    """Return what the environment in `folder` holds, without its pip."""
    found = {name: each for each in distributions(path=[str(site) for site in site_folders(folder)])
             if (name := own_name(each)) and name != "pip"}
    makers = ((name, re.search(r"^Generator: *(.+)", each.read_text("WHEEL") or "", re.MULTILINE))
              for name, each in sorted(found.items()))
    return Chosen(pins=tuple(f"{name}=={each.version}" for name, each in sorted(found.items())),
                  made_by=tuple((name, match[1]) for name, match in makers if match))


def fill(
    folder: Path, build: Build, requirements: Sequence[str], chosen: Chosen | None, *, sdists: bool,
) -> dict[str, str]:
    """Make the environment in `folder` and install what can be had; return what cannot, with the reason.

    Args:
        folder: That is not there yet.
        build: Whose environment it is.
        requirements: As the user writes them.
        chosen: The versions; None: choose them.
        sdists: Build from source what has no wheel.

    Raises:
        BuildError: The environment cannot be made, or the index does not answer.
    """
    # An installer takes these at their word, whatever it is told of wheels, and runs their build scripts.
    sources = () if sdists else tuple(filter(_is_source, requirements))
    rest = [text for text in requirements if text not in sources]
    pip = None if uv_command() or sdists else pip_of(build, folder)
    if pip is None or make(pip, build):
        create(folder, build)
        found = _install(folder, rest, chosen, sdists=sdists)
    else:
        found = _fetch(pip, build, rest, chosen)
    return found | {name_of(text): "it is named by its source, which is built with --build-sdists only"
                    for text in sources}


def _is_source(requirement: str) -> bool:
    """Return whether a requirement is a path or URL of anything but a wheel."""
    place = requirement.partition("@")[2].partition(" ;")[0].strip() or requirement
    return (":" in place or os.sep in place or place in {".", ".."}) and not urlsplit(place).path.endswith(".whl")


def _fetch(pip: Pip, build: Build, requirements: Sequence[str], chosen: Chosen | None) -> dict[str, str]:
    """Install with several downloads at once; where that is no use, one after another."""
    found = _choose(pip, build, requirements) if chosen is None else _same(pip, build, chosen)
    if found is None and chosen is None:
        found = _locked(pip, build, requirements)
    if found is None:
        return _install(pip.environment, requirements, chosen, sdists=False)
    if chosen is None:
        return found
    pinned = {text.partition("==")[0] for text in chosen.pins}
    return found | _with_limits(pip.environment, [text for text in requirements if name_of(text) not in pinned], chosen)


def _locked(pip: Pip, build: Build, requirements: Sequence[str]) -> dict[str, str] | None:
    """Install the versions that a lock pins, whatever one of them misses; None where it is no lock, or that fails.

    A resolver gives up at a pinned package that needs another one without a wheel, and each alone takes a run of pip.
    """
    pins = tuple(filter(_is_pin, requirements))
    if len(pins) * 2 <= len(requirements):
        return None
    limits = Chosen(pins=pins)
    if (missing := _same(pip, build, limits)) is None:
        return None
    missing |= _with_limits(pip.environment, [text for text in requirements if text not in pins], limits)
    # Pins that are no whole lock have needs beside them.
    needed = dict.fromkeys(map(normalized, _NEEDS.findall(pip.run("check"))))
    return missing | _with_limits(pip.environment, [name for name in needed if name not in missing], limits)


def _is_pin(requirement: str) -> bool:
    """Return whether a requirement is one version of a package without extras, as locks have it."""
    return re.match(r"[A-Za-z0-9][\w.-]* *==[^*,]+(;|$)", requirement) is not None


def _choose(pip: Pip, build: Build, requirements: Sequence[str]) -> dict[str, str] | None:
    """Install what the resolver chooses; return what cannot be had, None when that is not clear from one try."""
    store = Store(build)
    with store.fresh() as name:
        missing, rest = _without_missing(requirements, lambda wanted: _checked(pip.download(wanted, Path(name))))
        if rest or pip.install(Path(name).glob("*.whl")):
            return None
        store.keep(Path(name).glob("*.whl"))
        told = pip.fetch([text for text in requirements if name_of(text) in missing], Path(name))
    return missing | {name_of(text): _why(text, each, build, {}) for text, each in told.items() if each.problem}


def _same(pip: Pip, build: Build, chosen: Chosen) -> dict[str, str] | None:
    """Install the versions that were chosen; return those that this build has no wheel of, None when that fails."""
    store = Store(build)
    wheels = store.find(chosen.pins)
    with store.fresh() as name:
        told = pip.fetch([pin for pin in chosen.pins if pin not in wheels], Path(name))
        for each in told.values():
            _checked(each.problem)
        if pip.install([*wheels.values(), *Path(name).glob("*.whl")]):
            return None
        store.keep(Path(name).glob("*.whl"))
    return {name_of(pin): _why(pin, each, build, dict(chosen.made_by))
            for pin, each in told.items() if each.problem}


def _why(pin: str, told: Fetched, build: Build, made_by: dict[str, str]) -> str:
    """Return why there is no wheel of one version, and what its source would take."""
    reason = shortened(told.problem)
    if reason != NO_WHEEL:
        return reason
    if not told.files:
        if not told.newest:
            return reason if "==" in pin else UNKNOWN  # of any version there would be files
        return f"{NO_VERSION}; the newest is {told.newest}" if _is_pin(pin) else reason
    wheels = [file for file in told.files if file.endswith(".whl")]
    if len(wheels) == len(told.files):
        return f"{why_no_wheel(wheels, build)}, and no source either"
    maker = made_by.get(pin.partition("==")[0], "")
    needs = next((needed for word, needed in _TOOLCHAINS if word in maker), "what its build needs")
    return f"{why_no_wheel(wheels, build)}; its source takes {needs}"


def _install(
    folder: Path, requirements: Sequence[str], chosen: Chosen | None, *, sdists: bool,
) -> dict[str, str]:
    """Install by one installer's run after another."""
    options = _options(sdists=sdists)
    if chosen is None:
        return _install_rest(folder, requirements, options)
    with _constraints(chosen) as limits:
        if not _installed(folder, [*options, *limits, *requirements]):
            return {}
    # The resolver gives up at the first thing that is missing; the other build has told what there is to install.
    pinned = {text.partition("==")[0] for text in chosen.pins}
    missing = _install_rest(folder, chosen.pins, [*options, "--no-deps"])
    return missing | _with_limits(
        folder, [text for text in requirements if name_of(text) not in pinned], chosen, sdists=sdists)


def _with_limits(
    folder: Path, requirements: Sequence[str], chosen: Chosen, *, sdists: bool = False
) -> dict[str, str]:
    """Install what the first environment could not have, with the versions of all else as they are."""
    with _constraints(chosen) as limits:
        return _install_rest(folder, requirements, [*_options(sdists=sdists), *limits])


def _options(*, sdists: bool) -> list[str]:
    options = [] if sdists else ["--only-binary", ":all:"]
    # Most modules are never imported; the others are compiled then.
    return options if uv_command() else [*options, "--no-compile"]


@contextlib.contextmanager
def _constraints(chosen: Chosen) -> Iterator[list[str]]:
    """Give the options that limit an installer to some versions."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(chosen.pins))
        file.flush()
        yield ["--constraint", file.name]


def _install_rest(folder: Path, requirements: Sequence[str], options: Sequence[str]) -> dict[str, str]:
    """Install together what goes in; each failure names one that is missing, which is left out of the next try."""
    missing, rest = _without_missing(requirements, lambda wanted: _installed(folder, [*options, *wanted]))
    return missing | {name_of(text): shortened(reason) for text in rest
                      if (reason := _installed(folder, [*options, text]))}


def _without_missing(
    requirements: Iterable[str], attempt: Callable[[list[str]], str]
) -> tuple[dict[str, str], list[str]]:
    """Try all, and again without the one that a failure names.

    Returns:
        What is missing, with the reason; and what could not be had together for another reason.
    """
    missing: dict[str, str] = {}
    # One package may be asked for several times, for different versions of Python.
    todo: dict[str, list[str]] = {}
    for text in requirements:
        todo.setdefault(name_of(text), []).append(text)
    while todo:
        reason = attempt([*chain.from_iterable(todo.values())])
        if not reason:
            break
        names = [normalized(match.rstrip(".-")) for match in _MISSING.findall(reason)]
        name = next((name for name in names if name in todo), None)
        if name is None:   # something that one of them needs
            return missing, [*chain.from_iterable(todo.values())]
        missing[name] = shortened(reason)
        del todo[name]
    return missing, []


def _installed(folder: Path, arguments: Sequence[str]) -> str:
    """Install; return "" or why it failed.

    Raises:
        BuildError: The index does not answer: then nothing is known of any package.
    """
    return _checked(run_installer([*installer(folder), *arguments]))


def _checked(reason: str) -> str:
    if _ENDED.search(reason):
        raise BuildError("the installer was ended from outside")
    if line := gave_up(reason):
        told = line.rpartition("broken by ")[2]
        raise BuildError(f"the package index does not answer ({textwrap.shorten(told, 200)}); --offline does without")
    return reason


def name_of(requirement: str) -> str:
    """Return the distribution that a requirement like "lxml[html]>=6" asks for."""
    match = re.match(r"[A-Za-z0-9][\w.-]*", requirement.strip())
    return normalized(match[0]) if match else requirement
