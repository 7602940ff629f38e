"""Install interpreters: with uv if it can download them, otherwise compiled from one source with the same flags.

`fetch_source` downloads and `compile_python` compiles; this module decides which versions are needed, and their source.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gilscope.toolkit import temporary
from gilscope.toolkit.builds import compile_python
from gilscope.toolkit.builds.compile_python import OPTIONAL_MODULES, InstallStep, PythonRequest, SourceTarball
from gilscope.toolkit.builds.fetch_source import distribution_source
from gilscope.toolkit.builds.find import find_builds
from gilscope.toolkit.builds.inspection import version_key
from gilscope.toolkit.builds.uv import uv_command
from gilscope.toolkit.builds.versions import NEWEST_FIRST, SUPPORTED
from gilscope.toolkit.errors import BuildError, UnknownNameError
from gilscope.toolkit.escaping import uncoloured
from gilscope.toolkit.model import Note
from gilscope.toolkit.processes.supervised import run
from gilscope.toolkit.user_dirs import data_dir

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gilscope.toolkit.builds.compile_python import InstalledPython, Report
    from gilscope.toolkit.builds.fetch_source import DistributionSource

UV_SECONDS = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonInstallRequest:
    """The options of `gilscope builds install`."""

    names: tuple[str, ...] = ()      # "3.14", "3.14t"; none: the newest available pair
    tarball: Path | None = None
    optimize: bool = False
    jobs: int = 1
    keep_source: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallOutcome:
    """The result of an installation: one line for each build, and notes for the user."""

    lines: tuple[str, ...]
    notes: tuple[Note, ...] = ()


def install(request: PythonInstallRequest, report: Report) -> InstallOutcome:
    """Install the requested interpreters, unless they are installed already.

    Raises:
        UnknownNameError: A name is not a version that can be installed.
        BuildError: Neither uv nor a source provides them; the message has the reason for each.
    """
    pythons = [_request_of(name, optimize=request.optimize) for name in request.names]
    if request.tarball is not None:
        return _from_tarball(SourceTarball.of(request.tarball), pythons, request, report)
    if lines := _already_installed(pythons, optimize=request.optimize):
        return InstallOutcome(lines=lines)
    reason = _install_with_uv([each.label for each in pythons] or _pair_labels(NEWEST_FIRST[0]), report)
    if not reason:
        return InstallOutcome(lines=_already_installed(pythons, optimize=request.optimize) or ("installed by uv",))
    try:
        return _from_distribution(pythons, request, report)
    except BuildError as error:
        raise BuildError(f"{error}\n  (uv: {reason})\n  A CPython tarball can be given with --source.") from error


def _request_of(name: str, *, optimize: bool) -> PythonRequest:
    match = re.fullmatch(r"(3\.(\d+))(t?)", name)
    if not match or int(match[2]) < 12:  # the oldest version that can be measured
        raise UnknownNameError(f"{name!r} cannot be installed: {SUPPORTED}")
    if match[3] and int(match[2]) < 13:  # PEP 703 came with 3.13
        raise UnknownNameError(f"{name!r} cannot be installed: CPython has free-threaded builds from 3.13t on")
    return PythonRequest(match[1], bool(match[3]), optimize)


def _pair_labels(minor: str) -> list[str]:
    return [minor, f"{minor}t"]


def _already_installed(pythons: Sequence[PythonRequest], *, optimize: bool) -> tuple[str, ...]:
    """Return a line for each requested build if all are installed and each pair was built alike, otherwise none."""
    minors = list(dict.fromkeys(each.minor for each in pythons))
    if not minors:
        pairs = (_installed_alike([_request_of(name, optimize=optimize) for name in _pair_labels(minor)])
                 for minor in NEWEST_FIRST)
        return next((lines for lines in pairs if lines), ())
    lines: tuple[str, ...] = ()
    for minor in minors:
        alike = _installed_alike([each for each in pythons if each.minor == minor])
        if not alike:
            return ()
        lines += alike
    return lines


def _installed_alike(pythons: Sequence[PythonRequest]) -> tuple[str, ...]:
    ours = compile_python.installed()
    for digest, optimized in dict.fromkeys((entry.sha256, entry.optimized) for entry in ours):
        found = {entry.label: entry for entry in ours if (entry.sha256, entry.optimized) == (digest, optimized)}
        entries = [found.get(each.label) for each in pythons]
        if all(entries) and (optimized or not any(each.optimize for each in pythons)):
            return tuple(f"{entry.label} is installed already: {entry.executable}" for entry in entries if entry)
    from_uv = {(build.minor, build.free_threaded): build
               for build in reversed(find_builds().builds) if build.source == "uv" and not build.debug}
    builds = [from_uv.get((each.minor, each.free_threaded)) for each in pythons]
    if len({build.version if build else None for build in builds} - {None}) == 1 and all(builds):
        return tuple(f"{each.label} is installed already: {build.executable}"
                     for each, build in zip(pythons, builds, strict=True) if build)
    return ()


def _install_with_uv(labels: Sequence[str], report: Report) -> str:
    """Install prebuilt interpreters with uv; return the reason if that fails, otherwise ""."""
    uv = uv_command()
    if uv is None:
        return "not installed"
    report(InstallStep(f"ask uv for {' '.join(labels)}"))
    # One retry is enough: compiling from source is the fallback.
    environment = {"UV_HTTP_RETRIES": "1", **os.environ}
    try:
        outcome = run([uv, "python", "install", *labels], timeout=UV_SECONDS, env=environment)
    except subprocess.TimeoutExpired:
        return f"did not end within {UV_SECONDS:.0f} s"
    if outcome.returncode == 0:
        return ""
    lines = [line.strip() for line in uncoloured(outcome.stderr).splitlines() if line.strip()]
    return lines[-1].removeprefix("cause: ") if lines else "failed without a reason"


def _from_tarball(
    source: SourceTarball, pythons: Sequence[PythonRequest], request: PythonInstallRequest, report: Report,
) -> InstallOutcome:
    if not pythons:
        raise UnknownNameError("name the versions to build from the source, like 3.14 3.14t")
    labels = {each.label for each in pythons}
    known = {entry.label: entry for entry in compile_python.installed()
             if entry.sha256 == source.sha256 and entry.optimized == request.optimize}
    if labels <= known.keys():
        return InstallOutcome(lines=tuple(
            f"{label} is installed already: {known[label].executable}" for label in sorted(labels)))
    return _outcome(compile_python.build(source, pythons, jobs=request.jobs, report=report))


def _from_distribution(
    pythons: Sequence[PythonRequest], request: PythonInstallRequest, report: Report,
) -> InstallOutcome:
    minors = list(dict.fromkeys(each.minor for each in pythons))
    folder = Path(tempfile.mkdtemp(prefix=temporary.prefix("source")))
    try:
        with distribution_source(report) as distribution:
            sources = ([_download_source(distribution, minor, folder, report) for minor in minors]
                       or [_download_newest_source(distribution, folder, report)])
        made: list[InstalledPython] = []
        for source, minor in sources:
            each = [one for one in pythons if one.minor == minor] or [
                _request_of(name, optimize=request.optimize) for name in _pair_labels(minor)]
            made += compile_python.build(source, each, jobs=request.jobs, report=report)
            if request.keep_source:
                _keep_source(source)
        return _outcome(made)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _download_source(
    distribution: DistributionSource, minor: str, folder: Path, report: Report,
) -> tuple[SourceTarball, str]:
    report(InstallStep(f"download the source of CPython {minor}"))
    source = distribution.download(minor, folder)
    report(InstallStep(f"{source.name}: SHA-256 {source.sha256}"))
    return source, minor


def _download_newest_source(
    distribution: DistributionSource, folder: Path, report: Report,
) -> tuple[SourceTarball, str]:
    reasons = []
    for minor in NEWEST_FIRST:
        try:
            return _download_source(distribution, minor, folder, report)
        except BuildError as error:
            reasons.append(str(error))
    raise BuildError("no CPython source could be downloaded:\n  " + "\n  ".join(reasons))


def _keep_source(source: SourceTarball) -> None:
    folder = data_dir() / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source.tarball, folder / f"{source.sha256[:12]}-{source.tarball.name}")


def _outcome(entries: Sequence[InstalledPython]) -> InstallOutcome:
    lines = tuple(f"{entry.label} is CPython {entry.version} from {entry.source}, SHA-256 {entry.sha256[:16]}..., "
                  f"built in {entry.seconds:.0f} s: {entry.executable}"
                  for entry in sorted(entries, key=lambda entry: version_key(entry.version)))
    missing = sorted({name for entry in entries for name in entry.missing})
    if not missing:
        return InstallOutcome(lines=lines)
    packages = " ".join(OPTIONAL_MODULES[name] for name in missing)
    return InstallOutcome(lines=lines, notes=(Note(
        text=f"built without {', '.join(missing)}: on Debian `apt-get install {packages}` gives what they need; "
             "then remove the folder of the build and install it again"),))
